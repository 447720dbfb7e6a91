"""The model of `collsim.simulation`, compiled: the same timeline, bit for bit, much faster.

One event loop over flat columns. With numba it runs compiled on arrays; without it, the same
functions run as they are on lists. numba is imported when a replay is asked for.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any, Final

import numpy as np

from collsim.errors import ScheduleError
from collsim.network import Network
from collsim.replay import fair, fifo, heap, steps
from collsim.replay.memory import (
    ARRIVED,
    BEGIN,
    DONE,
    END,
    HOP_END,
    HOP_START,
    LEFT,
    RELEASED,
    STARTED,
    column,
    new_memory,
)
from collsim.schedule import Schedule
from collsim.timeline import UNOBSERVED, Hops, Timeline, refuse_stall

FUNCTIONS: Final[tuple[Callable[..., Any], ...]] = (
    *(heap.comes_before, heap.sift_up, heap.sift_down, heap.put, heap.take),
    *(steps.schedule_stage, steps.release, steps.begin_step, steps.end_one),
    *(steps.use_cpu_to_send, steps.leave, steps.finish, steps.receive, steps.arrive),
    *(steps.end_of_crossing, steps.begin_all, fifo.take_link, fifo.run_fifo),
    *(fair.touch, fair.has_crossed, fair.cross, fair.queue_up, fair.add_link),
    *(fair.find_component, fair.fill, fair.share, fair.run_fair),
)
"""The loop's functions, each after those that it calls."""


def has_numba() -> bool:
    """Whether replays run compiled."""
    return find_spec("numba") is not None


def replay(schedule: Schedule, network: Network, nbytes: int) -> Timeline:
    """Play a schedule on a network; what `simulate` gives, bit for bit.

    Raises:
        ScheduleError: The ranks block each other under the network's protocol.
        ScenarioError: The run is longer than integer picoseconds can count.
        SimulationStalled: Messages were never delivered.
    """
    workload = network.lower(schedule, nbytes)
    if schedule.rendezvous_deadlock and not workload.is_eager.any():
        raise ScheduleError(schedule.rendezvous_deadlock)
    m, x = new_memory(network, workload)
    first_steps = np.flatnonzero(schedule.steps.previous < 0)
    arguments = (x,) if network.model.sharing == "fair" else ()
    loop = f"run_{network.model.sharing}"
    if has_numba():
        run = compiled()
        run["begin_all"](m, first_steps)
        run[loop](m, *arguments)
    else:
        listed = m.tolist()  # plain Python reads lists faster
        plain = {function.__name__: function for function in FUNCTIONS}
        plain["begin_all"](listed, first_steps.tolist())
        plain[loop](listed, *(argument.tolist() for argument in arguments))
        m = np.array(listed, np.int64)
    n, n_steps, n_hops = len(schedule), len(schedule.steps), len(workload.link)
    done, begin = column(m, DONE, n), column(m, BEGIN, n_steps)
    if (done == UNOBSERVED).any():
        refuse_stall(schedule, done, begin)
    how = "compiled" if has_numba() else "plain"
    return Timeline(
        schedule=schedule,
        kind="predicted",
        engine=f"replay ({how})",
        nbytes=nbytes,
        released=column(m, RELEASED, n),
        started=column(m, STARTED, n),
        left=column(m, LEFT, n),
        arrived=column(m, ARRIVED, n),
        done=done,
        step_begin=begin,
        step_end=column(m, END, n_steps),
        hops=Hops(
            first=workload.first_hop,
            link=workload.link,
            start=column(m, HOP_START, n_hops),
            end=column(m, HOP_END, n_hops),
            service_ps=workload.service_ps,
            latency_ps=workload.latency_ps,
            link_names=network.links.names,
        ),
    )


@cache
def compiled() -> Mapping[str, Callable[..., Any]]:
    """The functions compiled by numba, calling each other; kept on disk between processes."""
    import numba  # late: a quarter of a second

    made: dict[str, Callable[..., Any]] = {}
    for function in FUNCTIONS:
        assert isinstance(function, FunctionType)
        names = {**function.__globals__, **made}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        made[function.__name__] = numba.njit(cache=True)(copy)
    return made
