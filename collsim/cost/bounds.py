"""Lower bounds: times that no algorithm can beat on a given network, whatever it does.

Hosts, not ranks, are what links join, so ranks that share a host count as one place. All bounds
are of the model itself: they use the least latencies and every link at once.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import networkx as nx
from networkx.algorithms.flow import build_residual_network, edmonds_karp

from collsim.errors import ScenarioError
from collsim.network import Network
from collsim.program import Collective
from collsim.units import spell_time

MOST_FLOWS: Final = 64
"""How many largest flows are computed for one bound; more only make it a little better."""

MOST_SEARCHED: Final = 2048
"""Hosts up to which the nearest two are searched for; beyond, a slightly weaker bound is used."""

CLOSE: Final = 1e-9
"""Relative step below which the search for the bound of a scatter ends."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A time that cannot be beaten.

    Attributes:
        seconds: The time (s).
        reason: Why, in a few words.
    """

    seconds: float
    reason: str


def lower_bound(collective: Collective, network: Network, nbytes: int, root: int = 0) -> Bound:
    """The larger of all bounds that hold for a collective on a network.

    Args:
        collective: The collective.
        network: Where the ranks are, and how messages travel.
        nbytes: Bytes of the collective's argument.
        root: The root's rank.

    Raises:
        ScenarioError: The collective has no bound here.
    """
    if network.n_ranks == 1:
        return Bound(0.0, "one rank has nothing to send")
    forms = FORMS.get(collective.name)
    if forms is None:
        raise ScenarioError(f"no lower bound is known for {collective.name}", "collective")
    found = [form(network, nbytes, root) for form in forms]
    return max(found, key=lambda bound: bound.seconds)


def informing_all(network: Network, nbytes: int, root: int) -> Bound:
    """The earliest that messages can inform every rank: the greedy LogP tree for one byte.

    Reference: Karp, Sahay, Santos, Schauser: Optimal Broadcast and Summation in the LogP Model,
    SPAA 1993.
    """
    model = network.model
    spacing = max(model.gap, model.overhead)
    flight = 2 * model.overhead + least_latency(network)
    if min(nbytes, 1):
        fastest = float(network.links.bandwidth.max())
        flight += 1 / fastest
    informed, last = 1, 0.0
    chances = [flight]  # when the next message of each informed rank arrives
    while informed < network.n_ranks and spacing > 0:
        last = heapq.heappop(chances)
        heapq.heappush(chances, last + spacing)
        heapq.heappush(chances, last + flight)
        informed += 1
    if spacing == 0:  # the root alone could inform everybody at once
        last = flight
    return Bound(
        last, f"informing {network.n_ranks} ranks takes {spell_time(last)} even for a byte"
    )


def least_latency(network: Network) -> float:
    """Least latency (s) between two ranks: inside a shared host, or on the shortest way out."""
    found = [
        float(network.links.latency[network.links.memory[network.placement[group[0]]]])
        for group in network.groups
        if len(group) > 1
    ]
    hosts = set(_rank_hosts(network))
    least = min(found, default=inf)
    if len(hosts) > MOST_SEARCHED:
        return min(least, _out_and_in(network, hosts))
    for host in sorted(hosts) if len(hosts) > 1 else ():
        least = min(least, _latency_to_another(network, host, hosts, least))
    return least


def _out_and_in(network: Network, hosts: set[str]) -> float:
    """No route is shorter (s) than the least way out of a host and the least way into another."""
    edges = network.graph.edges(data=True)
    out = min(float(about["latency"]) for u, _, about in edges if u in hosts)
    into = min(float(about["latency"]) for _, v, about in edges if v in hosts)
    direct = (float(about["latency"]) for u, v, about in edges if u in hosts and v in hosts)
    return min(out + into, min(direct, default=inf))


def _latency_to_another(network: Network, host: str, hosts: set[str], known: float) -> float:
    """Latency (s) from a host to the nearest other one of `hosts`; `known` if none is nearer."""
    reached: set[str] = set()
    queue = [(0.0, host)]
    while queue:
        latency, node = heapq.heappop(queue)
        if node in reached:
            continue
        reached.add(node)
        if node != host and node in hosts:
            return latency
        for after, about in network.graph.adj[node].items():
            farther = latency + float(about["latency"])
            if farther < known:
                heapq.heappush(queue, (farther, after))
    return known


def broadcast_flow(network: Network, nbytes: int, root: int) -> Bound:
    """All bytes must reach each host: no faster than the largest flow from the root's host."""
    source = network.placement[root]
    sinks = [host for host in _rank_hosts(network) if host != source]
    if not sinks:
        memory = network.links.memory[source]
        links = network.links
        seconds = nbytes / float(links.bandwidth[memory]) + float(links.latency[memory])
        return Bound(seconds, f"the message must cross the memory of {source} once")
    latency = dict.fromkeys(sinks, least_latency(network))
    if network.model.sharing == "fifo":  # bytes reach each link only as fast as latency lets them
        latency = _latencies(network, source)
    flow = _flows_to(network, source, sinks, latency, nbytes)
    worst = max(sinks, key=lambda host: nbytes / flow[host] + latency[host])
    seconds = nbytes / flow[worst] + latency[worst]
    return Bound(seconds, f"all bytes must reach {worst}, which takes {spell_time(seconds)}")


def _rank_hosts(network: Network) -> list[str]:
    """The hosts that have ranks, in the order of their first rank."""
    return [network.placement[group[0]] for group in network.groups]


def _latencies(network: Network, source: str) -> dict[str, float]:
    """Least latency (s) from a host to every node."""
    found = nx.single_source_dijkstra_path_length(network.graph, source, weight="latency")
    return {node: float(latency) for node, latency in found.items()}


def _flows_to(
    network: Network, source: str, sinks: list[str], latency: dict[str, float], nbytes: int
) -> dict[str, float]:
    """What can flow (bytes/s) from a host to each of `sinks`, at most.

    No more than their own links carry. Where that leaves the longest times, the largest flow is
    computed, for up to `MOST_FLOWS` hosts; a host behind one switch gets what the switch gets.
    """
    graph = network.graph
    out = sum(float(about["bandwidth"]) for about in graph.adj[source].values())
    into = {
        sink: min(out, sum(float(about["bandwidth"]) for about in graph.pred[sink].values()))
        for sink in sinks
    }
    residual = build_residual_network(graph, "bandwidth")
    to_switch: dict[str, float] = {}
    for sink in sorted(sinks, key=lambda host: -(nbytes / into[host] + latency[host])):
        before = next(iter(graph.pred[sink])) if len(graph.pred[sink]) == 1 else sink
        goal = sink if before == source else before
        if goal not in to_switch:
            if len(to_switch) == MOST_FLOWS:
                continue
            found = edmonds_karp(
                graph, source, goal, capacity="bandwidth", residual=residual, cutoff=out
            )
            to_switch[goal] = float(found.graph["flow_value"])
        into[sink] = min(into[sink], to_switch[goal])
    return into


def scatter_flow(network: Network, nbytes: int, root: int) -> Bound:
    """The least time in which one flow can bring every host its bytes.

    Discrete Newton: the smallest cut for a time T says which hosts lack what; the time in which
    that cut's links carry all of it is the next T. Each step is a valid bound.
    """
    source = network.placement[root]
    demands = {
        network.placement[group[0]]: nbytes * len(group)
        for group in network.groups
        if network.placement[group[0]] != source
    }
    own = sum(1 for host in network.placement if host == source) - 1
    memory = network.links.memory[source]
    inside = own * nbytes / float(network.links.bandwidth[memory])
    if not demands or nbytes == 0:
        latency = _latencies(network, source)
        farthest = max([0.0, *(latency[host] for host in demands)])
        seconds = max(inside, farthest)
        return Bound(seconds, f"the farthest block takes {spell_time(seconds)}")
    graph = nx.DiGraph(network.graph)
    out = sum(float(graph.edges[source, after]["bandwidth"]) for after in graph.successors(source))
    seconds = sum(demands.values()) / out
    while True:
        cut, short = _smallest_cut(graph, source, demands, seconds)
        longer = short / cut if cut else seconds
        if longer <= seconds * (1 + CLOSE):
            break
        seconds = longer
    latency = _latencies(network, source)
    nearest = min(latency[host] for host in demands)
    if network.model.sharing == "fair":
        nearest = least_latency(network)
    total = max(seconds + nearest, inside, max(latency[host] for host in demands))
    return Bound(
        total, f"the root's blocks need {spell_time(seconds)} on the links they must cross"
    )


def _smallest_cut(
    graph: "nx.DiGraph[str]", source: str, demands: dict[str, int], seconds: float
) -> tuple[float, float]:
    """Bandwidth (bytes/s) of the smallest cut in `seconds`, and the bytes that must cross it."""
    timed: nx.DiGraph[str] = nx.DiGraph()
    for u, v, about in graph.edges(data=True):
        timed.add_edge(u, v, capacity=float(about["bandwidth"]) * seconds)
    goal = "all blocks"
    for host, nbytes in demands.items():
        timed.add_edge(host, goal, capacity=float(nbytes))
    _, (near, _) = nx.minimum_cut(timed, source, goal)
    bandwidth = sum(
        float(about["bandwidth"])
        for u, v, about in graph.edges(data=True)
        if u in near and v not in near
    )
    return bandwidth, float(sum(demands[host] for host in demands if host not in near))


def all_gather_cut(network: Network, nbytes: int, root: int) -> Bound:
    """The blocks of all ranks elsewhere must come into each host, over links that lead there."""
    bounds = []
    for group in network.groups:
        host = network.placement[group[0]]
        elsewhere = network.n_ranks - len(group)
        if not elsewhere:
            links, memory = network.links, network.links.memory[host]
            seconds = nbytes / float(links.bandwidth[memory]) + float(links.latency[memory])
            return Bound(seconds, f"blocks must cross the memory of {host}")
        graph = network.graph
        into = [
            float(graph.edges[before, host]["bandwidth"]) for before in graph.predecessors(host)
        ]
        latency = min(float(graph.edges[b, host]["latency"]) for b in graph.predecessors(host))
        seconds = elsewhere * nbytes / sum(into) + latency
        bounds.append(Bound(seconds, f"{elsewhere} blocks must enter {host} over its own links"))
    return max(bounds, key=lambda bound: bound.seconds)


Form = Callable[[Network, int, int], Bound]

FORMS: Final[dict[str, tuple[Form, ...]]] = {
    "broadcast": (informing_all, broadcast_flow),
    "scatter": (scatter_flow,),
    "all_gather": (all_gather_cut,),
}
"""The bounds of each collective."""
