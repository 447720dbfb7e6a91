"""Networks of switches in tiers: star, leaf and spine, fat tree, two sites."""

import math
from typing import TYPE_CHECKING, Final

from collsim.topology.wiring import (
    DEFAULT_BANDWIDTH,
    DEFAULT_LATENCY,
    add_host,
    add_link,
    add_switch,
    check_bandwidths,
    check_count,
    check_latencies,
    check_total,
    circle,
    is_number,
    new_graph,
    plural,
    row,
)

if TYPE_CHECKING:
    from collsim.topology.wiring import Topology


def star(
    *, hosts: int = 8, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> "Topology":
    """Hosts on one switch. A route has two links, so a message takes twice the latency.

    Args:
        hosts: How many.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("hosts", hosts)
    check_total(f"hosts={hosts}", hosts + 1, 2 * hosts)
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    graph = new_graph("star", f"star of {plural(hosts, 'host')}", hosts_forward=False)
    names = [add_host(graph, f"h{i}", pos) for i, pos in enumerate(circle(hosts))]
    add_switch(graph, "s0", (0, 0))
    for name in names:
        add_link(graph, name, "s0", bandwidth, latency)
    return graph


def leaf_spine(
    *,
    leaves: int = 4,
    spines: int = 2,
    hosts_per_leaf: int = 4,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
    uplink_bandwidth: float | None = None,
    oversubscription: float | None = None,
) -> "Topology":
    """Two tiers: hosts on leaf switches, every leaf joined to every spine.

    Args:
        leaves: Leaf switches.
        spines: Spine switches.
        hosts_per_leaf: Hosts on each leaf.
        bandwidth: Bytes/s of each host's link and direction.
        latency: Seconds of each link.
        uplink_bandwidth: Bytes/s from a leaf to a spine; the hosts' bandwidth if not given.
        oversubscription: Gives uplink_bandwidth instead: what the hosts of a leaf can send, over
            what its uplinks carry; 1 blocks nothing.

    Raises:
        ValueError: A parameter is out of range, or both of the last two are given.
    """
    for name, count in (("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts_per_leaf)):
        check_count(name, count)
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    hosts = leaves * hosts_per_leaf
    check_total(
        f"leaves={leaves}, spines={spines}, hosts_per_leaf={hosts_per_leaf}",
        hosts + leaves + spines,
        2 * (hosts + leaves * spines),
    )
    uplink = bandwidth if uplink_bandwidth is None else uplink_bandwidth
    if oversubscription is not None:
        if uplink_bandwidth is not None:
            raise ValueError(
                "give uplink_bandwidth or oversubscription, not both; "
                f"got {uplink_bandwidth!r} and {oversubscription!r}"
            )
        uplink = _uplink(hosts_per_leaf * bandwidth / spines, oversubscription)
    check_bandwidths(uplink_bandwidth=uplink)
    name = f"leaf-spine, {plural(leaves, 'leaf')} × {plural(hosts_per_leaf, 'host')}, "
    graph = new_graph("leaf_spine", name + plural(spines, "spine"), hosts_forward=False)
    width = max(hosts, spines)
    for i, pos in enumerate(row(hosts, 0, width)):
        add_host(graph, f"h{i}", pos)
    for i, pos in enumerate(row(leaves, 1, width)):
        add_switch(graph, f"leaf{i}", pos)
    for i, pos in enumerate(row(spines, 2, width)):
        add_switch(graph, f"spine{i}", pos)
    for host in range(hosts):
        add_link(graph, f"h{host}", f"leaf{host // hosts_per_leaf}", bandwidth, latency)
    for leaf in range(leaves):
        for spine in range(spines):
            add_link(graph, f"leaf{leaf}", f"spine{spine}", uplink, latency)
    return graph


MAX_RATIO: Final = 1_000_000
"""How oversubscribed uplinks may be."""


def _uplink(blocking_nothing: float, oversubscription: float) -> float:
    """Bytes/s of an uplink, from what it would take to block nothing."""
    if not is_number(oversubscription) or not 0 < oversubscription <= MAX_RATIO:
        raise ValueError(
            f"oversubscription must be above 0 and at most {MAX_RATIO:,}, got {oversubscription!r}"
        )
    return blocking_nothing / oversubscription


def fat_tree(
    *, k: int = 4, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> "Topology":
    """A three-tier tree of switches with k ports each: k³/4 hosts, and no link is oversubscribed.

    k pods have k/2 edge and k/2 aggregation switches each; k²/4 core switches join the pods.
    There are 3k³/4 links.

    Reference:
        Al-Fares, Loukissas, Vahdat, A scalable, commodity data center network architecture,
        SIGCOMM 2008.

    Args:
        k: Ports of a switch, even.
        bandwidth: Bytes/s of each link and direction.
        latency: Seconds of each link.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("k", k, 2)
    if k % 2:
        raise ValueError(f"k must be even, got {k}")
    check_bandwidths(bandwidth=bandwidth)
    check_latencies(latency=latency)
    half = k // 2
    hosts, tier, cores = k * half * half, k * half, half * half
    check_total(f"k={k}", hosts + 2 * tier + cores, 6 * hosts)
    graph = new_graph("fat_tree", f"{k}-ary fat tree", hosts_forward=False)
    for i, pos in enumerate(row(hosts, 0, hosts)):
        add_host(graph, f"h{i}", pos)
    tiers = (("edge", tier), ("agg", tier), ("core", cores))
    for level, (label, count) in enumerate(tiers, start=1):
        for i, pos in enumerate(row(count, level, hosts)):
            add_switch(graph, f"{label}{i}", pos)
    for host in range(hosts):
        add_link(graph, f"h{host}", f"edge{host // half}", bandwidth, latency)
    for switch in range(tier):
        pod, place = divmod(switch, half)
        for i in range(half):
            add_link(graph, f"edge{switch}", f"agg{pod * half + i}", bandwidth, latency)
        for i in range(half):
            add_link(graph, f"agg{switch}", f"core{place * half + i}", bandwidth, latency)
    return graph


def two_sites(
    *,
    hosts_per_site: int = 4,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
    thin_bandwidth: float = 0.125e9,
    thin_latency: float = 1e-3,
) -> "Topology":
    """Two stars joined by one thin link between their switches, a dumbbell.

    Args:
        hosts_per_site: Hosts on each of the two switches.
        bandwidth: Bytes/s of each host's link and direction.
        latency: Seconds of each host's link.
        thin_bandwidth: Bytes/s of the link between the sites; 1 Gbit/s if not given.
        thin_latency: Its seconds; 1 ms if not given, which is some 200 km of fibre.

    Raises:
        ValueError: A parameter is out of range.
    """
    check_count("hosts_per_site", hosts_per_site)
    check_bandwidths(bandwidth=bandwidth, thin_bandwidth=thin_bandwidth)
    check_latencies(latency=latency, thin_latency=thin_latency)
    links = 2 * (2 * hosts_per_site + 1)
    check_total(f"hosts_per_site={hosts_per_site}", 2 * hosts_per_site + 2, links)
    name = f"two sites of {plural(hosts_per_site, 'host')}"
    graph = new_graph("two_sites", name, hosts_forward=False)
    radius = max(1.0, hosts_per_site / math.pi)
    for host in range(2 * hosts_per_site):
        site, place = divmod(host, hosts_per_site)
        turn = math.pi * (place + 0.5) / hosts_per_site
        side = 1 if site else -1
        x, y = side * (1 + radius * math.sin(turn)), radius * math.cos(turn)
        add_host(graph, f"h{host}", (x, y))
    for site in range(2):
        add_switch(graph, f"s{site}", (2 * site - 1, 0))
    for host in range(2 * hosts_per_site):
        add_link(graph, f"h{host}", f"s{host // hosts_per_site}", bandwidth, latency)
    add_link(graph, "s0", "s1", thin_bandwidth, thin_latency)
    return graph
