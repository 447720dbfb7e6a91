"""Networks as graphs: builders, files, presets, changes, placement of ranks, links and routes.

A topology is a `networkx.DiGraph`. Its nodes are hosts (``h0``, ``h1``, …) and switches, each with
a `kind` and where to draw it (`pos`). A directed edge is one direction of a link, with a
`bandwidth` (bytes/s) and a `latency` (s); where both directions carry ``duplex="half"`` they
share one link. ``graph.graph["hosts_forward"]`` says whether hosts pass on messages of others.
"""

from collsim.topology.builders import TOPOLOGIES
from collsim.topology.clusters import dragonfly, multi_gpu
from collsim.topology.files import read_topology
from collsim.topology.graphs import from_graph
from collsim.topology.grids import full_mesh, hypercube, line, mesh, ring, torus
from collsim.topology.links import (
    DEFAULT_MEMORY_BANDWIDTH,
    DEFAULT_MEMORY_LATENCY,
    LinkTable,
    host_names,
    link_table,
)
from collsim.topology.overrides import override
from collsim.topology.placement import groups, place
from collsim.topology.presets import LINK_PRESETS, MACHINE_PRESETS, LinkPreset, MachinePreset
from collsim.topology.routing import default_routing, routes
from collsim.topology.trees import fat_tree, leaf_spine, star, two_sites

__all__ = [
    "DEFAULT_MEMORY_BANDWIDTH",
    "DEFAULT_MEMORY_LATENCY",
    "LINK_PRESETS",
    "MACHINE_PRESETS",
    "TOPOLOGIES",
    "LinkPreset",
    "LinkTable",
    "MachinePreset",
    "default_routing",
    "dragonfly",
    "fat_tree",
    "from_graph",
    "full_mesh",
    "groups",
    "host_names",
    "hypercube",
    "leaf_spine",
    "line",
    "link_table",
    "mesh",
    "multi_gpu",
    "override",
    "place",
    "read_topology",
    "ring",
    "routes",
    "star",
    "torus",
    "two_sites",
]
