"""What every builder does: make graphs, nodes and links, and check its parameters."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import networkx as nx

if TYPE_CHECKING:
    Topology = nx.DiGraph[str]

Position = tuple[float, float]

DEFAULT_BANDWIDTH: Final = 1.25e9
"""Bytes/s of a link: 10 Gbit/s."""

DEFAULT_LATENCY: Final = 5e-6
"""Seconds of a link: two of them make the 10 µs that kernel TCP takes through one switch."""

MAX_NODES: Final = 100_000
"""Hosts and switches that a topology may have; more is a slip, and would fill the memory."""

MAX_LINKS: Final = 2_000_000
"""Directed links that a topology may have, for the same reason: a full mesh has many."""


def new_graph(kind: str, name: str, *, hosts_forward: bool) -> "Topology":
    """An empty topology.

    Args:
        kind: Its row in the table of topologies.
        name: Its name for people.
        hosts_forward: Whether hosts pass on messages of others.
    """
    graph: Topology = nx.DiGraph()
    graph.graph.update(kind=kind, name=name, hosts_forward=hosts_forward)
    return graph


def add_host(graph: "Topology", name: str, pos: Position) -> str:
    """Add a host, drawn at `pos`; gives its name."""
    graph.add_node(name, kind="host", pos=(float(pos[0]), float(pos[1])))
    return name


def add_switch(graph: "Topology", name: str, pos: Position) -> str:
    """Add a switch, drawn at `pos`; gives its name."""
    graph.add_node(name, kind="switch", pos=(float(pos[0]), float(pos[1])))
    return name


def add_link(graph: "Topology", u: str, v: str, bandwidth: float, latency: float) -> None:
    """Join two nodes in both directions, at `bandwidth` bytes/s and `latency` seconds each."""
    add_way(graph, u, v, bandwidth, latency)
    add_way(graph, v, u, bandwidth, latency)


def add_way(graph: "Topology", u: str, v: str, bandwidth: float, latency: float) -> None:
    """Join two nodes in one direction."""
    graph.add_edge(u, v, bandwidth=float(bandwidth), latency=float(latency))


def circle(count: int) -> list[Position]:
    """`count` places on a circle, clockwise from the top, about one apart."""
    radius = max(1.0, count / (2 * math.pi))
    turns = [2 * math.pi * i / count for i in range(count)]
    return [(radius * math.sin(turn), radius * math.cos(turn)) for turn in turns]


def row(count: int, y: float, width: float) -> list[Position]:
    """`count` places side by side at height `y`, spread over 0 … `width`."""
    return [((i + 0.5) * width / count, y) for i in range(count)]


def plural(count: int, noun: str) -> str:
    """The count and its noun: "1 host", "8 hosts"."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"


def check_count(name: str, value: object, least: int = 1, most: int = MAX_NODES) -> None:
    """Check a parameter that counts things; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}, got {value!r}")


def check_dims(dims: object) -> None:
    """Check the lengths of a grid's dimensions; ValueError otherwise."""
    if not isinstance(dims, list | tuple) or not 1 <= len(dims) <= 16:
        raise ValueError(f"dims must be a list of 1 to 16 whole numbers, got {dims!r}")
    for axis, length in enumerate(dims):
        check_count(f"dims[{axis}]", length)


def check_rates(**rates: object) -> None:
    """Check that each is a bandwidth: finite and above 0 bytes/s; ValueError otherwise."""
    for name, value in rates.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number of bytes/s, got {value!r}")


def check_delays(**delays: object) -> None:
    """Check that each is a latency: finite and at least 0 s; ValueError otherwise."""
    for name, value in delays.items():
        if not is_number(value) or not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a number of seconds, 0 or more, got {value!r}")


def check_total(name: str, nodes: int, links: int) -> None:
    """Refuse topologies that are too large before they are built; ValueError.

    Args:
        name: What the message calls it, with the parameters to blame.
        nodes: Hosts and switches that it would have.
        links: Directed links that it would have.
    """
    for count, most, noun in ((nodes, MAX_NODES, "nodes"), (links, MAX_LINKS, "directed links")):
        if count > most:
            raise ValueError(f"{name} would have {count:,} {noun}; at most {most:,} are allowed")


def product(factors: Iterable[int]) -> int:
    """The product of whole numbers."""
    return math.prod(factors)
