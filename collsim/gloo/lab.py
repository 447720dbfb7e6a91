"""A shaped network on this machine: what it should be, and the commands that make it.

Each rank has a network namespace of its own with one interface, ``eth0``, joined to the others by a
bridge in one more namespace. Rates are set where packets leave: towards the switch in the rank's
namespace, towards the rank in the bridge's. Linux can shape bandwidth like this; delay is what the
machine needs to pass a message on.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

import networkx as nx

from collsim.errors import ScenarioError
from collsim.network import Model, Network, connect
from collsim.topology.links import is_half_duplex

MAX_RANKS: Final = 16
"""More of them and a few cores cannot keep up with their packets."""

SLOWEST: Final = 1e6 / 8
FASTEST: Final = 1e9 / 8
"""Bytes/s that a link may have: beyond, the processors are the limit and not the link."""

PACKET: Final = 1514
"""Bytes of a full Ethernet frame with its header."""

SEGMENT: Final = 1448
"""Bytes of data in it, between the headers of Ethernet, IP and TCP with its time stamps."""

GOODPUT: Final = SEGMENT / PACKET

ACK_RATE: Final = 1_000_000_000
"""Bits/s of the class for TCP's bare acknowledgements, which would else queue behind data."""

INTERFACE: Final = "eth0"
_SUBNET: Final = "10.83.0"


@dataclass(frozen=True)
class Shape:
    """The rates of a lab in bytes/s.

    Attributes:
        up: From each rank to the switch; () where pairs have links of their own.
        down: From the switch to each rank; () likewise.
        pairs: From rank to rank, [src][dst]; () if ranks share a switch.
    """

    up: tuple[float, ...] = ()
    down: tuple[float, ...] = ()
    pairs: tuple[tuple[float, ...], ...] = ()

    @property
    def n_ranks(self) -> int:
        """How many ranks it joins."""
        return len(self.up or self.pairs)


def shape_of(network: Network) -> Shape:
    """The lab for a network: a star gives each rank its rates, a full mesh each pair.

    Raises:
        ScenarioError: The lab cannot be like this network.
    """
    n, links = network.n_ranks, network.links
    if not 2 <= n <= MAX_RANKS:
        raise ScenarioError(f"the lab takes 2 to {MAX_RANKS}, got {n}", "ranks")
    graph = network.graph
    if len(network.groups) != n:
        raise ScenarioError("the lab has one rank a host", "ranks_per_host")
    if any(is_half_duplex(graph, u, v) for u, v in graph.edges):
        raise ScenarioError("the lab has no half-duplex links", "topology")
    kind = graph.graph.get("kind")
    rate = links.bandwidth.tolist()
    if kind == "star":
        routes = [network.route(rank, (rank + 1) % n) for rank in range(n)]
        up = tuple(rate[route[0]] for route in routes)
        down = tuple(rate[network.route((rank - 1) % n, rank)[1]] for rank in range(n))
        shape = Shape(up=up, down=down)
    elif kind == "full_mesh":
        shape = Shape(
            pairs=tuple(
                tuple(rate[network.route(src, dst)[0]] if src != dst else 0.0 for dst in range(n))
                for src in range(n)
            )
        )
    else:
        raise ScenarioError(
            f"the lab has one switch (star) or a link for each pair (full_mesh), got {kind}",
            "topology.kind",
        )
    for found in (*shape.up, *shape.down, *(r for row in shape.pairs for r in row if r)):
        if not SLOWEST <= found <= FASTEST:
            raise ScenarioError(
                f"the lab shapes links of 1 Mbit/s to 1 Gbit/s, got {found * 8 / 1e6:,.6g} Mbit/s; "
                "try --set 'topology.bandwidth=100 Mbit/s'",
                "topology.bandwidth",
            )
    return shape


def lab_network(
    network: Network,
    alpha: float,
    sharing: Literal["fifo", "fair"] = "fair",
    goodput: float = GOODPUT,
) -> Network:
    """The model of a lab: `network` with what headers leave of its rates, and the lab's latency.

    Args:
        network: What the lab was shaped after.
        alpha: Seconds of a message of one byte, half a round trip.
        sharing: ``fair``, or ``fifo`` for what a serial order of sends would take.
        goodput: The part of a link's rate that is data.
    """
    graph = nx.DiGraph(network.graph)
    hops = 2 if graph.graph.get("kind") == "star" else 1
    for _, _, link in graph.edges(data=True):
        link.update(bandwidth=link["bandwidth"] * goodput, latency=alpha / hops)
    model = replace(Model(), sharing=sharing, protocol="rendezvous")
    return connect(graph, network.placement, model)


def address(rank: int) -> str:
    """A rank's address in the lab."""
    return f"{_SUBNET}.{rank + 1}"


def switch_links(n_ranks: int, namespaces: list[str]) -> list[str]:
    """``ip`` commands that make the bridge and a cable to each rank.

    Args:
        n_ranks: How many.
        namespaces: Where each rank's namespace is found.
    """
    lines = ["link add br0 type bridge", "link set br0 up"]
    for rank in range(n_ranks):
        lines += [
            f"link add port{rank} type veth peer name {INTERFACE} netns {namespaces[rank]}",
            f"link set port{rank} addrgenmode none",
            f"link set port{rank} master br0 gso_max_segs 1 up",
        ]
    return lines


def rank_links(rank: int) -> list[str]:
    """``ip`` commands inside a rank's namespace."""
    return [
        "link set lo up",
        f"link set {INTERFACE} addrgenmode none",
        f"addr add {address(rank)}/24 dev {INTERFACE}",
        f"link set {INTERFACE} gso_max_segs 1 up",
    ]


def switch_rates(shape: Shape) -> list[str]:
    """``tc`` commands in the bridge's namespace: the rates down to the ranks."""
    lines = []
    for rank, rate in enumerate(shape.down):
        peers = {address(peer): rate / shape.n_ranks for peer in range(shape.n_ranks)}
        lines += _shaped(f"port{rank}", "src", peers, rate)
    return lines


def rank_rates(shape: Shape, rank: int) -> list[str]:
    """``tc`` commands in a rank's namespace: its rate up, or one for each peer."""
    if shape.pairs:
        rates = {address(peer): rate for peer, rate in enumerate(shape.pairs[rank]) if rate}
        return _shaped(INTERFACE, "dst", rates, None)
    rate = shape.up[rank]
    peers = {address(peer): rate / shape.n_ranks for peer in range(shape.n_ranks)}
    return _shaped(INTERFACE, "dst", peers, rate)


def _shaped(device: str, end: str, rates: dict[str, float], shared: float | None) -> list[str]:
    """A class for bare acknowledgements, and one for the data from or to each peer.

    Args:
        device: The interface.
        end: Which address of a packet names the peer, ``src`` or ``dst``.
        rates: Bytes/s that each peer has for sure.
        shared: Bytes/s that all of them share, each up to the whole; None if they share nothing.

    Peers take turns packet by packet, as with the fair queues that Linux uses by default: a message
    that says "ready" does not stand behind data for others.

    Small bursts and single packets (no offloaded large ones) keep the rate even over milliseconds;
    queues of 4 MB hold what a node's sends put into them at once, so that nothing is dropped.
    """
    burst = "burst 5kb cburst 5kb quantum 1514"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb rate {ACK_RATE}bit prio 0 quantum 1514",
        f"filter add dev {device} parent 1: protocol ip prio 1 u32 "
        "match u16 0x0000 0xffc0 at 2 flowid 1:1",  # packets shorter than 64 bytes
    ]
    if shared is not None:
        lines.append(
            f"class add dev {device} parent 1: classid 1:2 htb rate {_bits(shared)} {burst}"
        )
    for number, (peer, rate) in enumerate(rates.items(), 0x10):
        ceiling = _bits(rate if shared is None else shared)
        parent = "1:" if shared is None else "1:2"
        lines += [
            f"class add dev {device} parent {parent} classid 1:{number:x} htb "
            f"rate {_bits(rate)} ceil {ceiling} prio 1 {burst}",
            f"qdisc add dev {device} parent 1:{number:x} bfifo limit 4mb",
            f"filter add dev {device} parent 1: protocol ip prio 2 u32 "
            f"match ip {end} {peer}/32 flowid 1:{number:x}",
        ]
    return lines


def _bits(rate: float) -> str:
    return f"{round(rate * 8)}bit"
