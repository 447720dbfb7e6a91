"""Which links a message takes: shortest paths, spread or not, or dimension by dimension.

Routes are static: they depend on the topology, the pair and a seed, never on the load.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal

import networkx as nx

from collsim.errors import ScenarioError
from collsim.topology.links import LinkTable

Pair = tuple[str, str]
Route = tuple[int, ...]
Routing = Literal["shortest", "ecmp", "dimension"]


def default_routing(graph: "nx.DiGraph[str]") -> Routing:
    """``dimension`` for a mesh, torus or hypercube, else ``shortest``."""
    return "dimension" if "dims" in graph.graph else "shortest"


def routes(
    graph: "nx.DiGraph[str]",
    table: LinkTable,
    pairs: Iterable[Pair],
    *,
    routing: str = "shortest",
    seed: int = 0,
) -> dict[Pair, Route]:
    """The links of each pair of hosts, in order. A host reaches itself over its memory.

    Args:
        graph: A topology, as the builders make them. Hosts pass messages on for others only if
            its ``hosts_forward`` says so.
        table: Its links.
        pairs: Source and destination hosts.
        routing: ``shortest``: fewest links; among equals the first in the order of the edges.
            ``ecmp``: fewest links; every node chooses among equals by a hash of seed, source,
            destination and its own name, as switches do for each flow.
            ``dimension``: correct the first coordinate, then the second, and so on, the short way
            round (upwards where both are as short); e-cube on a hypercube.
        seed: Seed of ``ecmp``.

    Raises:
        ValueError: `routing` is unknown, or an end is no host of the topology.
        ScenarioError: A pair has no path, or ``dimension`` on a topology without dimensions.
    """
    if routing not in _ROUTERS:
        raise ValueError(f"routing must be one of {', '.join(_ROUTERS)}, got {routing!r}")
    found: dict[Pair, Route] = {}
    by_destination: dict[str, dict[str, None]] = {}
    for src, dst in pairs:
        for host in (src, dst):
            if host not in table.memory:
                raise ValueError(f"{host!r} is no host of the topology")
        if src == dst:
            found[src, dst] = (table.memory[src],)
        else:
            by_destination.setdefault(dst, {})[src] = None
    found.update(_ROUTERS[routing](graph, table, by_destination, seed))
    return found


Destinations = dict[str, dict[str, None]]
"""The sources of each destination, in order and without repetition."""


def _shortest(
    graph: "nx.DiGraph[str]", table: LinkTable, wanted: Destinations, seed: int
) -> dict[Pair, Route]:
    """All sources of a destination share the ends of their routes, so each is walked once."""
    found: dict[Pair, Route] = {}
    for dst, sources in wanted.items():
        distance = _distances(graph, table, dst, sources)
        known: dict[str, Route] = {dst: ()}
        for src in sources:
            walked = [src]
            while walked[-1] not in known:
                walked.append(_next_hops(graph, table, dst, distance, walked[-1])[0])
            for node, after in zip(walked[-2::-1], walked[:0:-1], strict=True):
                known[node] = (table.index[node, after], *known[after])
            found[src, dst] = known[src]
    return found


def _ecmp(
    graph: "nx.DiGraph[str]", table: LinkTable, wanted: Destinations, seed: int
) -> dict[Pair, Route]:
    found: dict[Pair, Route] = {}
    for dst, sources in wanted.items():
        distance = _distances(graph, table, dst, sources)
        hops: dict[str, list[str]] = {}
        for src in sources:
            node, links = src, []
            while node != dst:
                if node not in hops:
                    hops[node] = _next_hops(graph, table, dst, distance, node)
                after = hops[node][_choice(seed, src, dst, node, len(hops[node]))]
                links.append(table.index[node, after])
                node = after
            found[src, dst] = tuple(links)
    return found


def _choice(seed: int, src: str, dst: str, node: str, n_choices: int) -> int:
    """Which of its next hops `node` takes: BLAKE2b-64 of the four, modulo their number.

    Python's own hash() would differ from run to run.
    """
    if n_choices == 1:
        return 0
    key = "\0".join((str(seed), src, dst, node)).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") % n_choices


def _distances(
    graph: "nx.DiGraph[str]", table: LinkTable, dst: str, sources: Iterable[str]
) -> dict[str, int]:
    """Links from each node to `dst`: breadth first, backwards, until all `sources` are reached."""
    hosts_forward = graph.graph.get("hosts_forward", False)
    missing = set(sources)
    distance = {dst: 0}
    queue = deque([dst])
    while queue and missing:
        node = queue.popleft()
        if node in table.memory and node != dst and not hosts_forward:
            continue
        further = distance[node] + 1
        for previous in graph.predecessors(node):
            if previous not in distance:
                distance[previous] = further
                missing.discard(previous)
                queue.append(previous)
                if not missing:  # all that is nearer than the farthest source is known by now
                    return distance
    if missing:
        src = next(src for src in sources if src in missing)
        raise ScenarioError(f"there is no path from {src} to {dst}", "topology")
    return distance


def _next_hops(
    graph: "nx.DiGraph[str]", table: LinkTable, dst: str, distance: dict[str, int], node: str
) -> list[str]:
    """The neighbours of `node` that are one link nearer to `dst`, in the order of the edges."""
    if distance[node] == 1:  # a switch may have thousands of neighbours
        return [dst]
    hosts_forward = graph.graph.get("hosts_forward", False)
    return [
        after
        for after in graph.successors(node)
        if distance.get(after) == distance[node] - 1
        and (after == dst or hosts_forward or after not in table.memory)
    ]


def _dimension(
    graph: "nx.DiGraph[str]", table: LinkTable, wanted: Destinations, seed: int
) -> dict[Pair, Route]:
    """Dally and Seitz, Deadlock-free message routing, IEEE Trans. Computers C-36(5), 1987."""
    if "dims" not in graph.graph:
        kind = graph.graph.get("kind", "graph")
        raise ScenarioError(
            f"'dimension' needs a mesh, a torus or a hypercube, this is a {kind}; "
            "use shortest or ecmp",
            "network.routing",
        )
    at: dict[str, tuple[int, ...]] = nx.get_node_attributes(graph, "coordinates")
    node_at = {coordinates: node for node, coordinates in at.items()}
    dims, wrap = graph.graph["dims"], graph.graph["wrap"]
    found: dict[Pair, Route] = {}
    for dst, sources in wanted.items():
        for src in sources:
            path = [node_at[step] for step in _dimension_path(at[src], at[dst], dims, wrap)]
            found[src, dst] = tuple(_link(table, u, v) for u, v in pairwise(path))
    return found


def _dimension_path(
    start: Sequence[int], end: Sequence[int], dims: Sequence[int], wrap: bool
) -> list[tuple[int, ...]]:
    """Coordinates from `start` to `end`, one dimension after the other."""
    here = list(start)
    path = [tuple(here)]
    for axis, k in enumerate(dims):
        up = (end[axis] - here[axis]) % k
        upwards = up <= k - up if wrap else end[axis] > here[axis]
        step = 1 if upwards else -1
        while here[axis] != end[axis]:
            here[axis] = (here[axis] + step) % k
            path.append(tuple(here))
    return path


def _link(table: LinkTable, u: str, v: str) -> int:
    if (u, v) not in table.index:
        raise ScenarioError(
            f"routing by dimension wants the link {u}->{v}, which is missing; use shortest",
            "network.routing",
        )
    return table.index[u, v]


_ROUTERS: Final[dict[str, Callable[..., dict[Pair, Route]]]] = {
    "shortest": _shortest,
    "ecmp": _ecmp,
    "dimension": _dimension,
}
