"""What every builder does: make graphs, nodes and links, and check its parameters."""

import math
import sys
from typing import TYPE_CHECKING, Final, TypeGuard, cast

import networkx as nx
import numpy as np

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


MAX_LATENCY: Final = 1e6
"""Seconds that a link may take: eleven days are a slip, and picoseconds must fit in 64 bits."""


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
    many = {"leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else many}"


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a plain number, not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_count(name: str, value: object, least: int = 1, most: int = MAX_NODES) -> None:
    """Check a parameter that counts things; ValueError otherwise."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= cast(int, value) <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}, got {value!r}")


def check_bandwidths(**bandwidths: object) -> None:
    """Check that each is finite and above 0 bytes/s; ValueError otherwise."""
    for name, value in bandwidths.items():
        if not is_number(value) or not 0 < value <= sys.float_info.max:
            raise ValueError(f"{name} must be a positive number of bytes/s, got {value!r}")


def check_latencies(**latencies: object) -> None:
    """Check that each is from 0 to `MAX_LATENCY` seconds; ValueError otherwise."""
    for name, value in latencies.items():
        if not is_number(value) or not 0 <= value <= MAX_LATENCY:
            raise ValueError(
                f"{name} must be a number of seconds from 0 to {MAX_LATENCY:,.0f}, got {value!r}"
            )


def check_total(what: str, nodes: int, links: int) -> None:
    """Refuse what is too large before it is built; ValueError.

    Args:
        what: What the message calls it; it should show the parameters to blame.
        nodes: Hosts and switches that it would have.
        links: Directed links that it would have.
    """
    for count, most, noun in ((nodes, MAX_NODES, "nodes"), (links, MAX_LINKS, "directed links")):
        if count > most:
            raise ValueError(f"{what} would have {count:,} {noun}; at most {most:,} are allowed")
