"""Networks without switches: hosts are joined to each other, and pass on messages of others."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from collsim.topology.wiring import (
    DEFAULT_BANDWIDTH,
    DEFAULT_LATENCY,
    Position,
    add_host,
    add_link,
    add_way,
    check_bandwidths,
    check_count,
    check_latencies,
    check_total,
    circle,
    new_graph,
    plural,
)

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology


def line(
    *, hosts: int = 8, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> "Topology":
    """Hosts in a row, each joined to the next: hosts − 1 links.

    Args:
        hosts: How many.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("hosts", hosts)
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    graph = new_graph("line", f"line of {plural(hosts, 'host')}", hosts_forward=True)
    names = [add_host(graph, f"h{i}", (i, 0)) for i in range(hosts)]
    for u, v in itertools.pairwise(names):
        add_link(graph, u, v, bandwidth, latency)
    return graph


def ring(
    *,
    hosts: int = 8,
    directions: int = 2,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
) -> "Topology":
    """Hosts in a circle, each joined to the next: as many links as hosts.

    Args:
        hosts: How many.
        directions: 2, or 1 for links that lead clockwise only (h0→h1→…→h0).
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("hosts", hosts)
    check_count("directions", directions, 1, 2)
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    way = "one-way " if directions == 1 else ""
    graph = new_graph("ring", f"{way}ring of {plural(hosts, 'host')}", hosts_forward=True)
    names = [add_host(graph, f"h{i}", pos) for i, pos in enumerate(circle(hosts))]
    if hosts == 1:
        return graph
    ways = [(names[i], names[(i + 1) % hosts]) for i in range(hosts)]
    for u, v in ways:
        add_way(graph, u, v, bandwidth, latency)
    if directions == 2:  # after all clockwise ways, so that these come first in ties
        for u, v in ways:
            add_way(graph, v, u, bandwidth, latency)
    return graph


def mesh(
    *,
    dims: Sequence[int] = (4, 4),
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
) -> "Topology":
    """A grid of hosts, joined to their neighbours in each dimension.

    Host i has the coordinates (i mod k1, i // k1 mod k2, …). Each dimension of length k has
    k − 1 links in each of its rows.

    Args:
        dims: Length of each dimension.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    _check_dims(dims)
    return _grid("mesh", dims, bandwidth, latency, wrap=False)


def torus(
    *,
    dims: Sequence[int] = (4, 4),
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
) -> "Topology":
    """A grid of hosts whose rows close to rings in each dimension.

    Host i has the coordinates (i mod k1, i // k1 mod k2, …). Each dimension of length k has k
    links in each of its rows; with k = 2 both would join the same hosts, and there is one.

    Args:
        dims: Length of each dimension.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    _check_dims(dims)
    return _grid("torus", dims, bandwidth, latency, wrap=True)


def hypercube(
    *,
    dimension: int = 3,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
) -> "Topology":
    """2^dimension hosts, joined where their numbers differ in one bit.

    Args:
        dimension: Links of each host.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("dimension", dimension, 0, 16)
    graph = _grid("hypercube", (2,) * dimension, bandwidth, latency, wrap=False)
    graph.graph["name"] = f"{dimension}-dimensional hypercube"
    return graph


def full_mesh(
    *, hosts: int = 8, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> "Topology":
    """Every host joined to every other: hosts · (hosts − 1) / 2 links.

    Args:
        hosts: How many.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("hosts", hosts)
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    check_total(f"a full mesh of hosts={hosts}", hosts, hosts * (hosts - 1))
    graph = new_graph("full_mesh", f"full mesh of {plural(hosts, 'host')}", hosts_forward=True)
    names = [add_host(graph, f"h{i}", pos) for i, pos in enumerate(circle(hosts))]
    for u, v in itertools.combinations(names, 2):
        add_link(graph, u, v, bandwidth, latency)
    return graph


def _grid(
    kind: str, dims: Sequence[int], bandwidth: float, latency: float, *, wrap: bool
) -> "Topology":
    """A mesh or torus, with `dims`, `wrap` and each host's `coordinates` noted for routing."""
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    hosts = math.prod(dims)
    spelt = " × ".join(map(str, dims))
    check_total(f"dims={list(dims)}", hosts, 2 * len(dims) * hosts)
    graph = new_graph(kind, f"{spelt} {kind}", hosts_forward=True)
    graph.graph.update(dims=tuple(dims), wrap=wrap)
    # product() turns its last factor fastest, host numbers their first coordinate
    cells = [cell[::-1] for cell in itertools.product(*map(range, reversed(dims)))]
    name = {cell: f"h{i}" for i, cell in enumerate(cells)}
    for cell, pos in zip(cells, _positions(cells, dims, wrap), strict=True):
        add_host(graph, name[cell], pos)
        graph.nodes[name[cell]]["coordinates"] = cell
    for cell in cells:
        for axis, step in itertools.product(range(len(dims)), (1, -1)):
            at = cell[axis] + step
            if wrap:
                at %= dims[axis]
            neighbour = (*cell[:axis], at, *cell[axis + 1 :])
            if neighbour in name and neighbour != cell:
                add_way(graph, name[cell], name[neighbour], bandwidth, latency)
    return graph


def _check_dims(dims: object) -> None:
    if not isinstance(dims, list | tuple) or not 1 <= len(dims) <= 16:
        raise ValueError(f"dims must be a list of 1 to 16 whole numbers, got {dims!r}")
    for axis, length in enumerate(dims):
        check_count(f"dims[{axis}]", length)


def _positions(cells: Sequence[tuple[int, ...]], dims: Sequence[int], wrap: bool) -> list[Position]:
    """Rows and columns, the third dimension slanted; three more repeat this beside it."""
    if wrap and len(dims) == 1:
        return circle(dims[0])
    width = height = 0.0
    depth = 1
    steps: list[Position] = []
    for axis, length in enumerate(dims):
        slant = 0.17 * (axis // 3)  # lest the links of the fourth pass under nodes of the first
        step = ((width + 1, slant), (-slant, height + 1), (0.37 * depth, 0.29 * depth))[axis % 3]
        depth *= length if axis % 3 == 2 else 1
        steps.append(step)
        width += abs(step[0]) * (length - 1)
        height += step[1] * (length - 1)
    return [_bend(cell, dims, steps, wrap) for cell in cells]


def _bend(
    cell: Sequence[int], dims: Sequence[int], steps: Sequence[Position], wrap: bool
) -> Position:
    """The place of a cell; a torus' rows are arcs, so that its closing links are seen."""
    x = y = 0.0
    for at, length, (right, up) in zip(cell, dims, steps, strict=True):
        x += at * right
        y += at * up
        if wrap and length > 2:
            bow = 0.3 * at * (length - 1 - at) / (length - 1)
            x -= bow * up
            y += bow * right
    return x, y
