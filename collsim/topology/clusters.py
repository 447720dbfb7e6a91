"""Networks of groups that are tight inside: dragonfly, nodes with several GPUs."""

import itertools
import math
from typing import TYPE_CHECKING

from collsim.topology.wiring import (
    DEFAULT_BANDWIDTH,
    DEFAULT_LATENCY,
    Position,
    add_host,
    add_link,
    add_switch,
    check_bandwidths,
    check_count,
    check_latencies,
    check_total,
    new_graph,
    plural,
    row,
)

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology


def dragonfly(
    *,
    p: int = 2,
    a: int = 4,
    h: int = 2,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
    local_bandwidth: float | None = None,
    global_bandwidth: float | None = None,
    global_latency: float | None = None,
) -> "Topology":
    """Groups of fully joined routers; one global link joins each two groups.

    There are g = a·h + 1 groups, a·g routers and p·a·g hosts. Port j of group i (on its router
    j // h) leads to group j, or j + 1 from j = i on.
    Shortest routes may take two global links in place of local, global, local.

    Reference:
        Kim, Dally, Scott, Abts, Technology-driven, highly-scalable dragonfly topology, ISCA 2008,
        whose p, a and h these are. It recommends a = 2p = 2h.

    Args:
        p: Hosts on each router.
        a: Routers in each group.
        h: Global links of each router.
        bandwidth: Bytes/s of each host's link and direction.
        latency: Seconds of each link.
        local_bandwidth: Bytes/s between routers of a group; as the hosts' if not given.
        global_bandwidth: Bytes/s between groups; as the hosts' if not given.
        global_latency: Seconds between groups; as the other links' if not given.

    Raises:
        ValueError: A parameter is out of range.
    """
    local_bandwidth = bandwidth if local_bandwidth is None else local_bandwidth
    global_bandwidth = bandwidth if global_bandwidth is None else global_bandwidth
    global_latency = latency if global_latency is None else global_latency
    _check_dragonfly(p, a, h)
    check_bandwidths(
        bandwidth=bandwidth, local_bandwidth=local_bandwidth, global_bandwidth=global_bandwidth
    )
    check_latencies(latency=latency, global_latency=global_latency)
    groups = a * h + 1
    graph = new_graph("dragonfly", f"dragonfly p={p}, a={a}, h={h}", hosts_forward=False)
    places = _dragonfly_places(p, a, groups)
    for host in range(p * a * groups):
        add_host(graph, f"h{host}", places[host // p][1 + host % p])
    for router in range(a * groups):
        add_switch(graph, f"s{router}", places[router][0])
    for host in range(p * a * groups):
        add_link(graph, f"h{host}", f"s{host // p}", bandwidth, latency)
    for group in range(groups):
        routers = [f"s{group * a + i}" for i in range(a)]
        for u, v in itertools.combinations(routers, 2):
            add_link(graph, u, v, local_bandwidth, latency)
    for group, other in itertools.combinations(range(groups), 2):
        here, there = group * a + (other - 1) // h, other * a + group // h
        add_link(graph, f"s{here}", f"s{there}", global_bandwidth, global_latency)
    return graph


def _check_dragonfly(p: int, a: int, h: int) -> None:
    for name, count in (("p", p), ("a", a), ("h", h)):
        check_count(name, count)
    groups = a * h + 1
    links = groups * (p * a + a * (a - 1) // 2) + groups * (groups - 1) // 2
    check_total(f"p={p}, a={a}, h={h}", groups * a * (1 + p), 2 * links)


def _dragonfly_places(p: int, a: int, groups: int) -> list[list[Position]]:
    """Of each router: where it stands, then where its hosts do. Circles on a circle, hosts out."""
    inner = max(1.0, a / 4)
    spoke = max(1.0, p / 3)
    ring = (inner + spoke + 0.6) * max(1.5, groups / math.pi)
    places = []
    for router in range(a * groups):
        group, i = divmod(router, a)
        turn = 2 * math.pi * group / groups
        x, y = ring * math.sin(turn), ring * math.cos(turn)
        out = turn + 2 * math.pi * i / a
        spots = [(x + inner * math.sin(out), y + inner * math.cos(out))]
        for host in range(p):
            fan = out + (host - (p - 1) / 2) * 1.6 / max(p, a)
            far = inner + spoke
            spots.append((x + far * math.sin(fan), y + far * math.cos(fan)))
        places.append(spots)
    return places


def multi_gpu(
    *,
    nodes: int = 2,
    gpus_per_node: int = 8,
    nvlink_bandwidth: float = 450e9,
    nvlink_latency: float = 0.35e-6,
    nic_bandwidth: float = 50e9,
    nic_latency: float = 0.6e-6,
    spine_bandwidth: float | None = None,
    spine_latency: float = 0.3e-6,
) -> "Topology":
    """Nodes whose GPUs share an NVSwitch and have a network card each, rail-optimised.

    Each GPU is a host. Its card leads to the rail switch of its number, which joins the GPUs of
    that number in all nodes; a spine joins the rails. So a route takes two links inside a node
    (NVSwitch), two to the same number in another node (rail), four to any other (rail, spine,
    rail). GPUs do not pass messages on: an algorithm must, if it wants to keep to its rail.

    Args:
        nodes: Nodes, each with one NVSwitch.
        gpus_per_node: GPUs in each node, which is also the number of rails.
        nvlink_bandwidth: Bytes/s from a GPU to its NVSwitch, each direction; NVLink 4 if not given.
        nvlink_latency: Seconds of that link; two make a hop from GPU to GPU.
        nic_bandwidth: Bytes/s from a GPU to its rail switch; InfiniBand NDR if not given.
        nic_latency: Seconds of that link.
        spine_bandwidth: Bytes/s from a rail switch to the spine; if not given nodes ·
            nic_bandwidth, so that all cards may send across at once.
        spine_latency: Seconds of that link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("nodes", nodes)
    check_count("gpus_per_node", gpus_per_node)
    check_bandwidths(nvlink_bandwidth=nvlink_bandwidth, nic_bandwidth=nic_bandwidth)
    spine_bandwidth = nodes * nic_bandwidth if spine_bandwidth is None else spine_bandwidth
    check_bandwidths(spine_bandwidth=spine_bandwidth)
    check_latencies(
        nvlink_latency=nvlink_latency, nic_latency=nic_latency, spine_latency=spine_latency
    )
    gpus = nodes * gpus_per_node
    check_total(
        f"nodes={nodes}, gpus_per_node={gpus_per_node}",
        gpus + nodes + gpus_per_node + 1,
        2 * (2 * gpus + gpus_per_node),
    )
    name = f"{plural(nodes, 'node')} of {plural(gpus_per_node, 'GPU')}"
    graph = new_graph("multi_gpu", name, hosts_forward=False)
    _add_gpu_nodes(graph, nodes, gpus_per_node)
    for gpu in range(gpus):
        node, rail = divmod(gpu, gpus_per_node)
        add_link(graph, f"h{gpu}", f"nvswitch{node}", nvlink_bandwidth, nvlink_latency)
        add_link(graph, f"h{gpu}", f"rail{rail}", nic_bandwidth, nic_latency)
    for rail in range(gpus_per_node):
        add_link(graph, f"rail{rail}", "spine0", spine_bandwidth, spine_latency)
    return graph


def _add_gpu_nodes(graph: "Topology", nodes: int, gpus_per_node: int) -> None:
    """A box of GPUs in two rows for each node, the NVSwitch amid; rails and the spine above."""
    columns = -(-gpus_per_node // 2)
    for gpu in range(nodes * gpus_per_node):
        node, i = divmod(gpu, gpus_per_node)
        x = node * (columns + 1) + i % columns + 0.5
        add_host(graph, f"h{gpu}", (x, 2.0 - 2 * (i // columns)))
    for node in range(nodes):
        add_switch(graph, f"nvswitch{node}", (node * (columns + 1) + columns / 2, 1))
    width = nodes * (columns + 1) - 1
    for rail, pos in enumerate(row(gpus_per_node, 4, width)):
        add_switch(graph, f"rail{rail}", pos)
    add_switch(graph, "spine0", (width / 2, 5.5))
