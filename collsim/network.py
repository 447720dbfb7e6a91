"""A topology with ranks placed on it, and how messages share it: what the engines need.

Times inside the engines are integer picoseconds. They are rounded here, once: the oracles call
the same functions.
"""

from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np
import numpy.typing as npt

from collsim.errors import ScenarioError
from collsim.program import LogGP
from collsim.schedule import Ints, Schedule
from collsim.topology.links import LinkTable, link_table
from collsim.topology.placement import groups
from collsim.topology.routing import default_routing, routes

PICOSECONDS = 10**12
"""Picoseconds in a second."""

MAX_PICOSECONDS = 4 * 10**18
"""The longest run that integer picoseconds can count safely: 46 days."""


def picoseconds(seconds: float) -> int:
    """Seconds as whole picoseconds, to the nearest."""
    return round(seconds * PICOSECONDS)


def transmission_ps(nbytes: npt.ArrayLike, bandwidth: npt.ArrayLike) -> Ints:
    """Picoseconds that `nbytes` bytes take on a link of `bandwidth` bytes/s, rounded up."""
    exact = np.asarray(nbytes, np.float64) * PICOSECONDS / np.asarray(bandwidth, np.float64)
    return np.asarray(np.ceil(np.minimum(exact, MAX_PICOSECONDS)), np.int64)


@dataclass(frozen=True, slots=True)
class Model:
    """How messages travel.

    Attributes:
        sharing: ``fifo``: a link carries one message after the other. ``fair``: messages of
            different pairs of ranks share links max-min fairly.
        protocol: ``rendezvous``: a message starts when both its send step and its receive step
            have begun. ``eager``: it starts with the send step and waits at the receiver.
        eager_limit: Under rendezvous, messages of up to this many bytes are eager all the same;
            None: no message is.
        overhead: LogGP's o (s): CPU time of each send and of each receive.
        gap: LogGP's g (s): least time between the starts of a rank's sends, and of its receives.
        control: Time (s) that a rendezvous takes before the message starts.
        store_and_forward: Under ``fifo``, a switch passes a message on only when it has all of it.
        routing: ``shortest``, ``ecmp`` or ``dimension``; "" for the topology's own.
        seed: Seed of ``ecmp``.
    """

    sharing: Literal["fifo", "fair"] = "fair"
    protocol: Literal["rendezvous", "eager"] = "rendezvous"
    eager_limit: int | None = None
    overhead: float = 0.0
    gap: float = 0.0
    control: float = 0.0
    store_and_forward: bool = False
    routing: Literal["shortest", "ecmp", "dimension", ""] = ""
    seed: int = 0


Route = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """A schedule's messages as the engines see them: bytes, links and integer times.

    Attributes:
        schedule: The schedule.
        nbytes: Bytes of the collective's argument.
        message_bytes: Payload of each transfer, int64[n].
        is_eager: Which transfers start without their receive step, bool[n].
        first_hop: Where each transfer's hops begin in the three arrays below, int64[n + 1].
        link: Link of each hop, int64[hops].
        service_ps: Time that the message takes on it, int64[hops].
        latency_ps: The link's latency, int64[hops].
    """

    schedule: Schedule
    nbytes: int
    message_bytes: Ints
    is_eager: npt.NDArray[np.bool_]
    first_hop: Ints
    link: Ints
    service_ps: Ints
    latency_ps: Ints


@dataclass(frozen=True)
class Network:
    """A topology, the host of each rank, and the model. Made by `connect`.

    Attributes:
        graph: The topology.
        placement: Host of each rank.
        model: How messages travel.
        links: The links, one row each.
    """

    graph: "nx.DiGraph[str]"
    placement: tuple[str, ...]
    model: Model
    links: LinkTable
    _routes: dict[tuple[str, str], Route] = field(default_factory=dict, repr=False, compare=False)
    _kept_hops: "WeakKeyDictionary[Schedule, tuple[Ints, Ints, Ints]]" = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled without what it keeps to be fast."""
        return Network, (self.graph, self.placement, self.model, self.links)

    @property
    def n_ranks(self) -> int:
        """How many ranks are placed."""
        return len(self.placement)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each host, in order of their first rank."""
        return groups(self.placement)

    @property
    def routing(self) -> str:
        """The routing in use."""
        return self.model.routing or default_routing(self.graph)

    def host_routes(self, pairs: set[tuple[str, str]]) -> dict[tuple[str, str], Route]:
        """Links between pairs of hosts, in order; what was routed once is kept."""
        missing = sorted(pairs - self._routes.keys())
        if missing:
            found = routes(
                self.graph, self.links, missing, routing=self.routing, seed=self.model.seed
            )
            self._routes.update(found)
        return {pair: self._routes[pair] for pair in pairs}

    def route(self, src: int, dst: int) -> Route:
        """Links from rank `src` to rank `dst`."""
        pair = (self.placement[src], self.placement[dst])
        return self.host_routes({pair})[pair]

    def loggp(self, root: int = 0) -> LogGP:
        """The network in four numbers, as the root sees it: L and G are medians over its routes."""
        own = self.placement[root]
        others = [self.placement[rank] for rank in range(self.n_ranks) if rank != root]
        if not others:
            return LogGP(0.0, self.model.overhead, self.model.gap, 0.0)
        routed = self.host_routes({(own, host) for host in others})
        found = [routed[own, host] for host in others]
        latency = np.median([self.links.latency[list(route)].sum() for route in found])
        slowest = np.median([self.links.bandwidth[list(route)].min() for route in found])
        return LogGP(float(latency), self.model.overhead, self.model.gap, 1 / float(slowest))

    def lower(self, schedule: Schedule, nbytes: int) -> Workload:
        """Meet a schedule with a message size.

        Raises:
            ScenarioError: Ranks differ in number, or the run would outlast integer picoseconds.
        """
        if schedule.n_ranks != self.n_ranks:
            raise ScenarioError(
                f"the schedule has {schedule.n_ranks} ranks, the network {self.n_ranks}", "ranks"
            )
        message_bytes = schedule.message_bytes(nbytes)
        first_hop, link, latency = self._hops(schedule)
        carried = np.repeat(message_bytes, np.diff(first_hop))
        service = transmission_ps(carried, self.links.bandwidth[link])
        self._check_span(len(schedule), service, latency)
        limit = self.model.eager_limit
        small = message_bytes <= (-1 if limit is None else limit)
        return Workload(
            schedule=schedule,
            nbytes=nbytes,
            message_bytes=message_bytes,
            is_eager=small | (self.model.protocol == "eager"),
            first_hop=first_hop,
            link=link,
            service_ps=service,
            latency_ps=latency,
        )

    def _hops(self, schedule: Schedule) -> tuple[Ints, Ints, Ints]:
        """Where each transfer's hops begin, their links and latencies; kept for each schedule."""
        if schedule not in self._kept_hops:
            used, which = schedule.pairs
            ends = np.divmod(used, self.n_ranks)
            src, dst = ([self.placement[rank] for rank in side.tolist()] for side in ends)
            host_pairs = list(zip(src, dst, strict=True))
            found = self.host_routes(set(host_pairs))
            path = [found[pair] for pair in host_pairs]
            lengths = np.array([len(route) for route in path], np.int64)
            flat = np.array([link for route in path for link in route], np.int64)
            first = np.cumsum(lengths) - lengths
            hops = lengths[which]
            first_hop = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
            link = flat[np.arange(first_hop[-1]) + np.repeat(first[which] - first_hop[:-1], hops)]
            latency = np.round(self.links.latency * PICOSECONDS).astype(np.int64)[link]
            self._kept_hops[schedule] = first_hop, link, latency
        return self._kept_hops[schedule]

    def _check_span(self, n_transfers: int, service: Ints, latency: Ints) -> None:
        """Refuse what would overflow: all messages one after the other is the longest run."""
        model = self.model
        a_message = 2 * model.overhead + 2 * model.gap + model.control
        longest = service.sum(dtype=np.float64) + latency.sum(dtype=np.float64)
        longest += n_transfers * a_message * PICOSECONDS
        if longest > MAX_PICOSECONDS:
            raise ScenarioError(
                "this could take 46 days of network time or more, beyond what picoseconds in "
                "64 bits count; look for a bandwidth, latency or size with a wrong unit",
                "topology",
            )


def connect(graph: "nx.DiGraph[str]", placement: tuple[str, ...], model: Model) -> Network:
    """Put ranks on a topology.

    Args:
        graph: A topology, as the builders make them.
        placement: Host of each rank.
        model: How messages travel.

    Raises:
        ValueError: A rank's host is not in the topology, or a model value is negative.
    """
    for rank, host in enumerate(placement):
        if host not in graph:
            raise ValueError(f"rank {rank} is placed on {host!r}, which the topology lacks")
    for name in ("overhead", "gap", "control"):
        if getattr(model, name) < 0:
            raise ValueError(f"{name} must not be negative, got {getattr(model, name)}")
    return Network(graph, placement, model, link_table(graph))
