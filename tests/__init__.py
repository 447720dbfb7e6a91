"""Tests of collsim: one module for each module of the package."""
