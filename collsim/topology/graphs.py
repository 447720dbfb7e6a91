"""Topologies from any networkx graph: check it, and give it the form that builders give."""

import itertools
import math
from typing import TYPE_CHECKING, Any

import networkx as nx

from collsim.topology.links import host_names
from collsim.topology.wiring import (
    MAX_LINKS,
    MAX_NODES,
    Position,
    check_bandwidths,
    check_latencies,
    circle,
    is_number,
)

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology

MOST_SPRINGS = 200
"""Nodes that are laid out as if links were springs; beyond that it would take seconds."""


def from_graph(graph: "nx.Graph[Any] | nx.DiGraph[Any]") -> "Topology":
    """Check a graph, and make a topology of it.

    Args:
        graph: Nodes may have `kind` (``host``, the default, or ``switch``), `pos` (or `x` and
            `y`), `memory_bandwidth` (bytes/s), `memory_latency` (s). Edges have `bandwidth`
            (bytes/s) and `latency` (s), and may have `duplex` (``full``, the default, or
            ``half``). Undirected edges become two directed ones. Names of nodes become strings.
            `name`, `kind` and `hosts_forward` of the graph are kept; without the last, hosts pass
            on messages of others if there is no switch. Other attributes are left out.

    Returns:
        A new graph; nodes without a place have been given one.

    Raises:
        ValueError: Names the node or edge, its value and what is allowed; or a pair of hosts
            without a path.
    """
    if not isinstance(graph, nx.Graph) or graph.is_multigraph():
        raise ValueError(
            f"expected a networkx Graph or DiGraph, got {type(graph).__name__}; parallel edges "
            "are one edge with the sum of their bandwidths"
        )
    if len(graph) > MAX_NODES or graph.number_of_edges() > MAX_LINKS:
        raise ValueError(
            f"it has {len(graph):,} nodes and {graph.number_of_edges():,} edges; "
            f"at most {MAX_NODES:,} and {MAX_LINKS:,} are allowed"
        )
    topology: Topology = nx.DiGraph()
    for node, attributes in graph.nodes(data=True):
        _add_node(topology, node, attributes)
    for u, v, attributes in graph.to_directed(as_view=True).edges(data=True):
        _add_edge(topology, str(u), str(v), attributes)
    _check_half_duplex(topology)
    _describe(topology, graph)
    pair = _unreachable(topology)
    if pair:
        raise ValueError(f"there is no path from {pair[0]} to {pair[1]}{_why(topology)}")
    _lay_out(topology)
    return topology


def _add_node(topology: "Topology", node: object, attributes: dict[str, Any]) -> None:
    name = str(node)
    if not name.strip() or not name.isprintable() or any(sign in name for sign in ARROWS):
        raise ValueError(
            f"a node is called {name!r}; names are printable, not empty, and without "
            f"{' '.join(ARROWS)}"
        )
    if name in topology:
        raise ValueError(f"two nodes are called {name!r}")
    kind = attributes.get("kind", "host")
    if kind not in ("host", "switch"):
        raise ValueError(f"node {name}: kind must be host or switch, got {kind!r}")
    kept = {key: attributes[key] for key in MEMORY if key in attributes and kind == "host"}
    try:
        check_bandwidths(**{key: kept[key] for key in MEMORY[:1] if key in kept})
        check_latencies(**{key: kept[key] for key in MEMORY[1:] if key in kept})
    except ValueError as error:
        raise ValueError(f"node {name}: {error}") from None
    topology.add_node(name, kind=kind, **kept)
    pos = attributes.get("pos", (attributes.get("x"), attributes.get("y")))
    if _is_position(pos):
        topology.nodes[name]["pos"] = (float(pos[0]), float(pos[1]))
    if isinstance(attributes.get("coordinates"), tuple):
        topology.nodes[name]["coordinates"] = attributes["coordinates"]


ARROWS = ("->", "→", "↔")
"""What stands between the names of nodes, so not in them."""

MEMORY = ("memory_bandwidth", "memory_latency")


def _is_position(pos: object) -> bool:
    return (
        isinstance(pos, list | tuple)
        and len(pos) == 2
        and all(is_number(value) and math.isfinite(value) for value in pos)
    )


def _add_edge(topology: "Topology", u: str, v: str, attributes: dict[str, Any]) -> None:
    where = f"edge {u} {v}"
    if u == v:
        raise ValueError(f"{where}: joins a node to itself")
    for key in ("bandwidth", "latency"):
        if key not in attributes:
            raise ValueError(f"{where}: has no {key}")
    duplex = attributes.get("duplex", "full")
    try:
        check_bandwidths(bandwidth=attributes["bandwidth"])
        check_latencies(latency=attributes["latency"])
        if duplex not in ("half", "full"):
            raise ValueError(f"duplex must be half or full, got {duplex!r}")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    rates = {key: float(attributes[key]) for key in ("bandwidth", "latency")}
    topology.add_edge(u, v, **rates)
    if duplex == "half":
        topology.edges[u, v]["duplex"] = "half"


def _check_half_duplex(topology: "Topology") -> None:
    for u, v, attributes in topology.edges(data=True):
        if "duplex" in attributes and topology.get_edge_data(v, u) != attributes:
            raise ValueError(
                f"edge {u} {v}: duplex is half, so {v} {u} must be there, half and with the same "
                "bandwidth and latency"
            )


def _describe(topology: "Topology", graph: "nx.Graph[Any]") -> None:
    """Attributes of the whole graph."""
    hosts = len(host_names(topology))
    switches = len(topology) - hosts
    if not hosts:
        raise ValueError("there is no host; every node is a switch" if switches else "it is empty")
    given = graph.graph
    forward = given.get("hosts_forward")
    topology.graph.update(
        name=str(given.get("name") or f"graph of {hosts} hosts and {switches} switches"),
        kind=str(given.get("kind") or "graph"),
        hosts_forward=forward if isinstance(forward, bool) else not switches,
    )
    if _is_grid(topology, given.get("dims")):
        topology.graph.update(dims=given["dims"], wrap=bool(given.get("wrap")))


def _is_grid(topology: "Topology", dims: object) -> bool:
    """Whether the nodes' coordinates fill a grid of these dimensions."""
    if not isinstance(dims, tuple) or not all(isinstance(length, int) for length in dims):
        return False
    coordinates = set(nx.get_node_attributes(topology, "coordinates").values())
    if math.prod(dims) != len(topology) or len(coordinates) != len(topology):
        return False
    return coordinates == set(itertools.product(*map(range, dims)))


def _unreachable(topology: "Topology") -> tuple[str, str] | None:
    """A pair of hosts without a path, if there is one.

    Hosts that reach the same strongly connected parts reach the same hosts, so that one search
    serves them all.
    """
    forward = topology.graph["hosts_forward"]
    hosts = dict.fromkeys(host_names(topology))
    carriers = [node for node in topology if forward or node not in hosts]
    parts = nx.strongly_connected_components(topology.subgraph(carriers))
    part = {node: i for i, nodes in enumerate(parts) for node in nodes}
    reached: dict[frozenset[int | str], set[str]] = {}
    for host in hosts:
        key = frozenset(part.get(node, node) for node in topology.successors(host))
        if key not in reached:
            reached[key] = _reached(topology, host, part).intersection(hosts)
        others = len(reached[key]) - (host in reached[key])
        if others < len(hosts) - 1:
            return host, next(h for h in hosts if h != host and h not in reached[key])
    return None


def _reached(topology: "Topology", host: str, part: dict[str, int]) -> set[str]:
    """Nodes that `host` has a path to; only those that are in a part pass messages on."""
    found: set[str] = set()
    waiting = list(topology.successors(host))
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            if node in part:
                waiting.extend(topology.successors(node))
    return found


def _why(topology: "Topology") -> str:
    if topology.graph["hosts_forward"]:
        return ""
    return "; hosts pass on no messages of others where there are switches"


def _lay_out(topology: "Topology") -> None:
    """Give nodes their places, unless all have one."""
    if all("pos" in attributes for _, attributes in topology.nodes(data=True)):
        return
    places: dict[str, Position]
    if len(topology) > MOST_SPRINGS:
        places = dict(zip(topology, circle(len(topology)), strict=True))
    else:
        spread = math.sqrt(len(topology))
        springs = nx.spring_layout(topology.to_undirected(), seed=0, scale=spread)
        places = {node: (float(x), float(y)) for node, (x, y) in springs.items()}
    nx.set_node_attributes(topology, places, "pos")
