"""Change single links of a topology: a slow cable, a half-duplex segment, a faster uplink."""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from collsim.errors import ScenarioError
from collsim.topology.links import is_half_duplex
from collsim.topology.wiring import check_bandwidths, check_latencies

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology

Edge = tuple[str, str]

EVERY = "*"
"""The selector of all links."""

LINK_KEYS = ("bandwidth", "latency", "duplex")
MEMORY_KEYS = ("memory_bandwidth", "memory_latency")
MOST_HINTS = 5_000
"""Names that are searched for near matches; beyond that it would take seconds."""


def override(graph: "Topology", changes: Mapping[str, Mapping[str, object]]) -> "Topology":
    """Change links, in the order given; the graph itself stays as it is.

    Args:
        graph: A topology.
        changes: What to set, by selector. A selector is a node (``h3``: all its links, both
            directions), ``u-v`` (both directions of a link), ``u->v`` (one direction), or ``*``
            (all links). To set are ``bandwidth`` (bytes/s), ``latency`` (s) and ``duplex``
            (``half``: both directions share the link; ``full``), and for hosts
            ``memory_bandwidth`` and ``memory_latency``. One direction of a half-duplex link
            stands for both.

    Returns:
        A changed copy.

    Raises:
        ScenarioError: A selector fits nothing or several links, or a value is not allowed.
    """
    changed = graph.copy()
    for selector, values in changes.items():
        field = f"topology.links.{selector}"
        edges = _select(changed, selector, field)
        try:
            _check(values)
        except ValueError as error:
            raise ScenarioError(str(error), field) from None
        hosts = [node for node in _nodes(changed, selector) if _is_host(changed, node)]
        _set_memory(changed, hosts, values, field)
        _set_links(changed, edges, values, field)
    return changed


def _is_host(graph: "Topology", node: str) -> bool:
    return bool(graph.nodes[node]["kind"] == "host")


def _nodes(graph: "Topology", selector: str) -> list[str]:
    """The nodes that a selector names; none if it names a link."""
    if selector in graph:
        return [selector]
    return list(graph) if selector == EVERY else []


def _select(graph: "Topology", selector: str, field: str) -> list[Edge]:
    if selector in graph:
        return [*graph.out_edges(selector), *graph.in_edges(selector)]
    if selector == EVERY:
        return list(graph.edges)
    arrow = "->" if "->" in selector else "-"
    fits = [
        pair
        for pair in _splits(selector, arrow)
        if graph.has_edge(*pair) or (arrow == "-" and graph.has_edge(*pair[::-1]))
    ]
    if not fits:
        raise ScenarioError(f"no node or link is called so; {_hint(graph, selector)}", field)
    if len(fits) > 1:
        spelt = " or ".join(f"{u}->{v}" for u, v in fits)
        raise ScenarioError(f"fits several links; write {spelt}", field)
    u, v = fits[0]
    both = [(u, v)] if arrow == "->" else [(u, v), (v, u)]
    return [edge for edge in both if graph.has_edge(*edge)]


def _splits(selector: str, arrow: str) -> list[Edge]:
    """All ways to read a selector as two names, which may have the arrow's signs in them."""
    parts = selector.split(arrow)
    return [
        (arrow.join(parts[:i]).strip(), arrow.join(parts[i:]).strip()) for i in range(1, len(parts))
    ]


def _hint(graph: "Topology", selector: str) -> str:
    arrow = "->" if "->" in selector else "-"
    names = [*graph, *(f"{u}{arrow}{v}" for u, v in graph.edges)][:MOST_HINTS]
    near = difflib.get_close_matches(selector, names, 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    u, v = next(iter(graph.edges), ("u", "v"))
    return f"use a node ({u}), a link ({u}-{v}), one direction ({u}->{v}) or {EVERY}"


def _check(values: Mapping[str, object]) -> None:
    """Check names and values; ValueError otherwise."""
    for key, value in values.items():
        if key in ("bandwidth", "memory_bandwidth"):
            check_bandwidths(**{key: value})
        elif key in ("latency", "memory_latency"):
            check_latencies(**{key: value})
        elif key != "duplex":
            raise ValueError(f"unknown key {key!r}; use {', '.join(LINK_KEYS + MEMORY_KEYS)}")
        elif value not in ("half", "full"):
            raise ValueError(f"duplex must be half or full, got {value!r}")


def _set_memory(
    graph: "Topology", hosts: list[str], values: Mapping[str, object], field: str
) -> None:
    memory = {key: values[key] for key in MEMORY_KEYS if key in values}
    if memory and not hosts:
        raise ScenarioError(f"{next(iter(memory))} is a host's; this is no host", field)
    for host in hosts:
        graph.nodes[host].update(memory)


def _set_links(
    graph: "Topology", edges: list[Edge], values: Mapping[str, object], field: str
) -> None:
    rates = {key: values[key] for key in ("bandwidth", "latency") if key in values}
    for u, v in edges:
        graph.edges[u, v].update(rates)
        if is_half_duplex(graph, u, v):
            graph.edges[v, u].update(rates)
    if "duplex" not in values:
        return
    chosen = set(edges)
    for u, v in edges:
        if (v, u) not in chosen:
            raise ScenarioError(f"duplex is of both directions, and this is {u}->{v} alone", field)
        if values["duplex"] == "half":
            _check_alike(graph, u, v, field)
        graph.edges[u, v]["duplex"] = values["duplex"]


def _check_alike(graph: "Topology", u: str, v: str, field: str) -> None:
    for key in ("bandwidth", "latency"):
        there, back = graph.edges[u, v][key], graph.edges[v, u][key]
        if there != back:
            raise ScenarioError(
                f"half duplex needs the same {key} both ways; it is {there:g} {u}->{v} and "
                f"{back:g} {v}->{u}; set {key} too",
                field,
            )
