"""Tests that drive the app in a browser."""
