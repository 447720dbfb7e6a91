"""Topologies."""
from collsim.topology.builders import TOPOLOGIES, star

