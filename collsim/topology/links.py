"""The links of a topology in numbered rows, as the engines and the plots read them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import networkx as nx

Floats = npt.NDArray[np.float64]

DEFAULT_MEMORY_BANDWIDTH: Final = 10e9
"""Bytes/s between ranks of one host: one core's copy through shared memory, in and out again."""

DEFAULT_MEMORY_LATENCY: Final = 0.5e-6
"""Seconds between ranks of one host: a few cache misses and a wake-up by polling."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkTable:
    """One row a link: first those of the graph in edge order, then the memory of each host.

    The two directions of a half-duplex link are one row.

    Attributes:
        names: For people: ``h0→s0``, ``h0↔s0`` if half duplex, ``h0 memory``.
        bandwidth: Bytes/s, float64[n].
        latency: Seconds, float64[n].
        index: Row of each directed edge.
        memory: Row of each host's memory, which joins the ranks placed on it.
    """

    names: tuple[str, ...]
    bandwidth: Floats
    latency: Floats
    index: dict[tuple[str, str], int]
    memory: dict[str, int]

    def __len__(self) -> int:
        return len(self.names)


def host_names(graph: "nx.DiGraph[str]") -> list[str]:
    """The hosts of a topology, in order."""
    return [node for node, attributes in graph.nodes(data=True) if attributes["kind"] == "host"]


def is_half_duplex(graph: "nx.DiGraph[str]", u: str, v: str) -> bool:
    """Whether the edges u→v and v→u are one shared link."""
    return (
        graph.edges[u, v].get("duplex") == "half"
        and graph.has_edge(v, u)
        and graph.edges[v, u].get("duplex") == "half"
    )


def link_table(graph: "nx.DiGraph[str]") -> LinkTable:
    """Number the links of `graph`.

    Args:
        graph: A topology, as the builders make them.
    """
    names: list[str] = []
    bandwidth: list[float] = []
    latency: list[float] = []
    index: dict[tuple[str, str], int] = {}
    memory: dict[str, int] = {}

    def add(name: str, rate: float, delay: float) -> int:
        names.append(name)
        bandwidth.append(rate)
        latency.append(delay)
        return len(names) - 1

    for u, v, edge in graph.edges(data=True):
        half = is_half_duplex(graph, u, v)
        if half and (v, u) in index:
            index[u, v] = index[v, u]
        else:
            arrow = "↔" if half else "→"
            index[u, v] = add(f"{u}{arrow}{v}", edge["bandwidth"], edge["latency"])
    for host in host_names(graph):
        attributes = graph.nodes[host]
        memory[host] = add(
            f"{host} memory",
            attributes.get("memory_bandwidth", DEFAULT_MEMORY_BANDWIDTH),
            attributes.get("memory_latency", DEFAULT_MEMORY_LATENCY),
        )
    rates, delays = np.array(bandwidth, np.float64), np.array(latency, np.float64)
    rates.setflags(write=False)
    delays.setflags(write=False)
    return LinkTable(tuple(names), rates, delays, index, memory)
