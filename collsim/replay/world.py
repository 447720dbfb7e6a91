"""What a replay knows and remembers: columns, by name.

Compiled functions read `world.src[transfer]` from arrays, plain Python from lists. The columns of
the schedule and of the workload are the engine's own, not copies; those of times become the
timeline's.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from collsim.network import Network, Workload, picoseconds
from collsim.schedule import Ints
from collsim.timeline import UNOBSERVED

Column = Any
"""An array when compiled, a list when not."""


class World(NamedTuple):
    """A run: numbers, columns that stay as they are, and columns that change as it goes."""

    overhead: int
    gap: int
    control: int
    store_and_forward: bool
    # Stages of a transfer at one instant: its release, its hops, then these; as in `simulation`.
    leave: int
    arrive: int
    receive: int
    finish: int
    clock: Any
    # Of each transfer, of each hop, and of each step.
    src: Column
    dst: Column
    src_step: Column
    dst_step: Column
    is_eager: Column
    first_hop: Column
    link: Column
    service: Column
    latency: Column
    first_send: Column
    sends: Column
    first_receive: Column
    receives: Column
    following: Column
    # Where steps, CPUs, links and transfers stand.
    undone: Column
    cpu_free: Column
    last_send: Column
    last_receive: Column
    link_free: Column
    last_byte: Column
    is_unclaimed: Column
    # When it happened.
    begin: Column
    end: Column
    released: Column
    started: Column
    left: Column
    arrived: Column
    done: Column
    hop_start: Column
    hop_end: Column


class Flows(NamedTuple):
    """Links that are shared: flows, the queues of pairs, and the component that is shared anew."""

    nbytes: Column
    bandwidth: Column
    # The flows on each link are a list through their hops.
    owner: Column
    head: Column
    after: Column
    before: Column
    # The messages of each pair queue.
    pair: Column
    queue_head: Column
    queue_tail: Column
    queue_next: Column
    # Of each flow.
    is_on: Column
    since: Column
    remaining: Column
    rate: Column
    new_rate: Column
    leaving: Column
    # Of the links and flows that are shared anew.
    count: Column
    is_touched: Column
    touched: Column
    found_flow: Column
    found_link: Column
    is_flow_found: Column
    is_link_found: Column
    capacity: Column
    unfixed: Column


N_TOUCHED, N_FLOWS, N_LINKS = range(3)
"""Places in `Flows.count`."""

Record = TypeVar("Record", bound=NamedTuple)


def in_lists(record: Record) -> Record:
    """The same with lists for arrays: plain Python reads them faster."""
    return record._replace(
        **{
            name: value.tolist()
            for name, value in record._asdict().items()
            if isinstance(value, np.ndarray)
        }
    )


def in_arrays(world: World) -> World:
    """The same with arrays for lists."""
    columns: dict[str, Any] = {
        name: np.array(value, np.int64)
        for name, value in world._asdict().items()
        if isinstance(value, list)
    }
    return world._replace(**columns)


def new_world(network: Network, workload: Workload, clock: object) -> World:
    """A run before anything has begun."""
    schedule, model = workload.schedule, network.model
    n, n_steps, n_hops = len(schedule), len(schedule.steps), len(workload.link)
    sends, first_send = schedule.sends_by_step
    receives, first_receive = schedule.receives_by_step
    longest = longest_route(workload)
    gap = picoseconds(model.gap)
    return World(
        overhead=picoseconds(model.overhead),
        gap=gap,
        control=picoseconds(model.control),
        store_and_forward=model.store_and_forward,
        leave=longest + 1,
        arrive=longest + 2,
        receive=longest + 3,
        finish=longest + 4,
        clock=clock,
        src=_given(schedule.src),
        dst=_given(schedule.dst),
        src_step=_given(schedule.src_step),
        dst_step=_given(schedule.dst_step),
        is_eager=_given(workload.is_eager),
        first_hop=_given(workload.first_hop),
        link=_given(workload.link),
        service=_given(workload.service_ps),
        latency=_given(workload.latency_ps),
        first_send=_given(first_send),
        sends=_given(sends),
        first_receive=_given(first_receive),
        receives=_given(receives),
        following=_given(schedule.steps.following),
        undone=np.diff(first_send) + np.diff(first_receive),
        cpu_free=np.zeros(schedule.n_ranks, np.int64),
        last_send=np.full(schedule.n_ranks, -gap, np.int64),
        last_receive=np.full(schedule.n_ranks, -gap, np.int64),
        link_free=np.zeros(len(network.links.names), np.int64),
        last_byte=np.zeros(n, np.int64),
        is_unclaimed=np.zeros(n, np.bool_),
        begin=_unobserved(n_steps),
        end=_unobserved(n_steps),
        released=_unobserved(n),
        started=_unobserved(n),
        left=_unobserved(n),
        arrived=_unobserved(n),
        done=_unobserved(n),
        hop_start=_unobserved(n_hops),
        hop_end=_unobserved(n_hops),
    )


def longest_route(workload: Workload) -> int:
    """Hops of the longest route, at least 1."""
    return int(np.diff(workload.first_hop).max(initial=1))


def new_flows(network: Network, workload: Workload) -> Flows:
    """Shared links before anything flows."""
    schedule = workload.schedule
    n, n_hops, n_links = len(schedule), len(workload.link), len(network.links.names)
    pairs, pair = schedule.pairs
    zeros, nowhere = np.zeros, _unobserved
    return Flows(
        nbytes=workload.message_bytes.astype(np.float64),
        bandwidth=network.links.bandwidth.astype(np.float64),
        owner=np.repeat(np.arange(n), np.diff(workload.first_hop)),
        head=nowhere(n_links),
        after=nowhere(n_hops),
        before=nowhere(n_hops),
        pair=_given(pair),
        queue_head=nowhere(len(pairs)),
        queue_tail=nowhere(len(pairs)),
        queue_next=nowhere(n),
        is_on=zeros(n, np.bool_),
        since=zeros(n, np.int64),
        remaining=zeros(n),
        rate=zeros(n),
        new_rate=zeros(n),
        leaving=nowhere(n),
        count=zeros(3, np.int64),
        is_touched=zeros(n_links, np.bool_),
        touched=zeros(n_links, np.int64),
        found_flow=zeros(n, np.int64),
        found_link=zeros(n_links, np.int64),
        is_flow_found=zeros(n, np.bool_),
        is_link_found=zeros(n_links, np.bool_),
        capacity=zeros(n_links),
        unfixed=zeros(n_links, np.int64),
    )


def _given(column: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """A column that is only read, always of the same type, so that one compilation serves all."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def _unobserved(count: int) -> Ints:
    return np.full(count, UNOBSERVED, np.int64)
