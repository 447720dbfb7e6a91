"""The memory of a replay: one column of integers that holds all others, one of floats.

A compiled function is given two arrays instead of sixty, which makes calls cheap, and plain Python
runs the same code on two lists. The first entries of the integers are single numbers, and where
each column begins: `m[m[SRC] + t]` is the source of transfer t.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from collsim.network import Network, Workload, picoseconds
from collsim.ordering import following_steps
from collsim.schedule import Ints
from collsim.timeline import UNOBSERVED

Memory = Any
"""int64[…] when compiled, a list when not."""

Floats = Any
"""float64[…] when compiled, a list when not."""

# Single numbers: times in picoseconds, stages as in the SimPy model, counts.
(OVERHEAD, GAP, CONTROL, STAGES, STORES, COUNT, LEAVE, ARRIVE, RECEIVE, FINISH,
 SIZE, N_TOUCHED, N_FLOWS, N_LINKS) = range(14)  # fmt: skip

# Where columns begin. Of the heap: slots in heap order, and of each slot its place, time and key.
SLOT, PLACE, TIME, KEY = range(14, 18)

# Of the schedule: transfers, their hops, and the sends and receives of each step.
(SRC, DST, SRC_STEP, DST_STEP, IS_EAGER, FIRST_HOP, LINK, SERVICE, LATENCY,
 FIRST_SEND, SENDS, FIRST_RECEIVE, RECEIVES, FOLLOWING) = range(18, 32)  # fmt: skip

# Of the run: where steps, CPUs, links and transfers stand, and the times that were seen.
(UNDONE, BEGIN, END, CPU_FREE, LAST_SEND, LAST_RECEIVE, FREE, LAST_BYTE, UNCLAIMED,
 RELEASED, STARTED, LEFT, ARRIVED, DONE, HOP_START, HOP_END) = range(32, 48)  # fmt: skip

# Of shared links: the flows on each link are a list through hops (head, after, before); the
# messages of a pair queue; links and flows of the component that is shared anew.
(OWNER, HEAD, AFTER, BEFORE, IS_ON, PAIR, QUEUE_HEAD, QUEUE_TAIL, QUEUE_NEXT, SINCE,
 IS_TOUCHED, TOUCHED, FOUND_FLOW, FOUND_LINK, IS_FLOW_FOUND, IS_LINK_FOUND,
 UNFIXED) = range(48, 65)  # fmt: skip

# Columns of floats: bytes of flows, their rates (bytes/s), bandwidth that is left.
NBYTES, REMAINING, RATE, NEW_RATE, BANDWIDTH, CAPACITY = range(65, 71)

HEADER = 71


def new_memory(network: Network, workload: Workload) -> tuple[Ints, "np.ndarray[Any, Any]"]:
    """The memory before anything has begun."""
    columns = {**_heap(workload), **_schedule(workload), **_run(network, workload)}
    floats: dict[int, Any] = {}
    if network.model.sharing == "fair":
        columns.update(_flows(network, workload))
        floats = _floats(network, workload)
    m = np.concatenate([np.zeros(HEADER, np.int64), *columns.values()])
    _note_places(m, columns, HEADER)
    _note_places(m, floats, 0)
    model = network.model
    longest = int(np.diff(workload.first_hop).max(initial=1))
    m[OVERHEAD], m[GAP] = picoseconds(model.overhead), picoseconds(model.gap)
    m[CONTROL], m[STORES] = picoseconds(model.control), model.store_and_forward
    m[STAGES], m[COUNT] = longest + 5, len(workload.schedule)
    m[LEAVE], m[ARRIVE], m[RECEIVE], m[FINISH] = range(longest + 1, longest + 5)
    return m, np.concatenate([np.zeros(0), *floats.values()])


def column(m: Ints, name: int, count: int) -> Ints:
    """A column of the memory, as a copy."""
    return np.array(m[m[name] : m[name] + count], np.int64)


def _note_places(m: Ints, columns: Mapping[int, Any], first: int) -> None:
    for name, values in columns.items():
        m[name] = first
        first += len(values)


def _zeros(count: int) -> Ints:
    return np.zeros(count, np.int64)


def _nowhere(count: int) -> Ints:
    return np.full(count, UNOBSERVED, np.int64)


def _heap(workload: Workload) -> dict[int, Ints]:
    slots = 2 * len(workload.schedule) + 1
    return {SLOT: _zeros(slots), PLACE: _nowhere(slots), TIME: _zeros(slots), KEY: _zeros(slots)}


def _schedule(workload: Workload) -> dict[int, Ints]:
    schedule = workload.schedule
    sends, first_send = _by_step(schedule.src_step, len(schedule.steps))
    receives, first_receive = _by_step(schedule.dst_step, len(schedule.steps))
    return {
        SRC: schedule.src,
        DST: schedule.dst,
        SRC_STEP: schedule.src_step,
        DST_STEP: schedule.dst_step,
        IS_EAGER: workload.is_eager.astype(np.int64),
        FIRST_HOP: workload.first_hop,
        LINK: workload.link,
        SERVICE: workload.service_ps,
        LATENCY: workload.latency_ps,
        FIRST_SEND: first_send,
        SENDS: sends,
        FIRST_RECEIVE: first_receive,
        RECEIVES: receives,
        FOLLOWING: following_steps(schedule.steps),
        UNDONE: np.diff(first_send) + np.diff(first_receive),
    }


def _by_step(steps: Ints, n_steps: int) -> tuple[Ints, Ints]:
    """Transfers sorted by step, and where each step's begin."""
    first = _zeros(n_steps + 1)
    np.cumsum(np.bincount(steps, minlength=n_steps), out=first[1:])
    return np.argsort(steps, kind="stable").astype(np.int64), first


def _run(network: Network, workload: Workload) -> dict[int, Ints]:
    schedule = workload.schedule
    n, n_steps, n_hops = len(schedule), len(schedule.steps), len(workload.link)
    long_ago = np.full(schedule.n_ranks, -picoseconds(network.model.gap), np.int64)
    times = (RELEASED, STARTED, LEFT, ARRIVED, DONE)
    return {
        BEGIN: _nowhere(n_steps),
        END: _nowhere(n_steps),
        CPU_FREE: _zeros(schedule.n_ranks),
        LAST_SEND: long_ago,
        LAST_RECEIVE: long_ago,
        FREE: _zeros(len(network.links.names)),
        LAST_BYTE: _zeros(n),
        UNCLAIMED: _zeros(n),
        **{name: _nowhere(n) for name in times},
        HOP_START: _nowhere(n_hops),
        HOP_END: _nowhere(n_hops),
    }


def _flows(network: Network, workload: Workload) -> dict[int, Ints]:
    schedule = workload.schedule
    n, n_hops, n_links = len(schedule), len(workload.link), len(network.links.names)
    pairs, pair = np.unique(schedule.src * schedule.n_ranks + schedule.dst, return_inverse=True)
    return {
        OWNER: np.repeat(np.arange(n), np.diff(workload.first_hop)),
        HEAD: _nowhere(n_links),
        AFTER: _nowhere(n_hops),
        BEFORE: _nowhere(n_hops),
        IS_ON: _zeros(n),
        PAIR: pair.astype(np.int64),
        QUEUE_HEAD: _nowhere(len(pairs)),
        QUEUE_TAIL: _nowhere(len(pairs)),
        QUEUE_NEXT: _nowhere(n),
        SINCE: _zeros(n),
        IS_TOUCHED: _zeros(n_links),
        TOUCHED: _zeros(n_links),
        FOUND_FLOW: _zeros(n),
        FOUND_LINK: _zeros(n_links),
        IS_FLOW_FOUND: _zeros(n),
        IS_LINK_FOUND: _zeros(n_links),
        UNFIXED: _zeros(n_links),
    }


def _floats(network: Network, workload: Workload) -> dict[int, Any]:
    n, n_links = len(workload.schedule), len(network.links.names)
    return {
        NBYTES: workload.message_bytes.astype(np.float64),
        REMAINING: np.zeros(n),
        RATE: np.zeros(n),
        NEW_RATE: np.zeros(n),
        BANDWIDTH: network.links.bandwidth.astype(np.float64),
        CAPACITY: np.zeros(n_links),
    }
