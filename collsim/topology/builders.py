"""The table of topologies: a new one is one function and one line here."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from collsim.topology.clusters import dragonfly, multi_gpu
from collsim.topology.grids import full_mesh, hypercube, line, mesh, ring, torus
from collsim.topology.trees import fat_tree, leaf_spine, star, two_sites

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology

TOPOLOGIES: "Final[Mapping[str, Callable[..., Topology]]]" = {
    "star": star,
    "line": line,
    "ring": ring,
    "mesh": mesh,
    "torus": torus,
    "hypercube": hypercube,
    "full_mesh": full_mesh,
    "fat_tree": fat_tree,
    "leaf_spine": leaf_spine,
    "dragonfly": dragonfly,
    "multi_gpu": multi_gpu,
    "two_sites": two_sites,
}
"""The builders by the kind that scenarios name; all parameters are keywords with defaults."""
