"""The model of `collsim.simulation`, compiled: the same timeline, bit for bit, much faster.

One event loop over flat columns. With numba it runs compiled on arrays; without it, the same
functions run as they are on lists. numba is imported when a replay is asked for.
"""

from functools import cache
from typing import Any, Final

from collsim import compiling
from collsim.compiling import Function, compiled, linked
from collsim.errors import ScheduleError
from collsim.network import Network, Workload
from collsim.replay import clock, fair, fifo, filling, plain_clock, steps
from collsim.replay.world import World, in_arrays, in_lists, longest_route, new_flows, new_world
from collsim.schedule import Schedule
from collsim.timeline import UNOBSERVED, Hops, Timeline, refuse_stall

CLOCK: Final[tuple[Function, ...]] = (
    *(clock.comes_before, clock.sift_up, clock.sift_down, clock.put_in_heap),
    *(clock.take_from_heap, clock.put, clock.take),
)
PLAIN_CLOCK: Final[tuple[Function, ...]] = (plain_clock.put, plain_clock.take)
STEPS: Final[tuple[Function, ...]] = (
    *(steps.release, steps.begin_step, steps.end_one, steps.use_cpu_to_send, steps.leave),
    *(steps.finish, steps.receive, steps.end_of_crossing, steps.begin_all),
)
LOOPS: Final[dict[str, tuple[Function, ...]]] = {
    "fifo": (fifo.take_link, fifo.run_fifo),
    "fair": (
        *(filling.add_link, filling.find_component, filling.fullest_link, filling.fix),
        *(filling.fill, fair.touch, fair.has_crossed, fair.stop, fair.cross, fair.queue_up),
        *(fair.change_rate, fair.share, fair.run_fair),
    ),
}
"""The functions of each loop, each after those that it calls."""


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
    play = _play_compiled if compiling.has_numba() else _play_plain
    world = play(network, workload)
    if (world.done == UNOBSERVED).any():
        refuse_stall(schedule, world.done, world.begin)
    how = "compiled" if compiling.has_numba() else "plain"
    return Timeline(
        schedule=schedule,
        kind="predicted",
        engine=f"replay ({how})",
        nbytes=nbytes,
        released=world.released,
        started=world.started,
        left=world.left,
        arrived=world.arrived,
        done=world.done,
        step_begin=world.begin,
        step_end=world.end,
        hops=Hops(
            first=workload.first_hop,
            link=workload.link,
            start=world.hop_start,
            end=world.hop_end,
            service_ps=workload.service_ps,
            latency_ps=workload.latency_ps,
            link_names=network.links.names,
        ),
    )


def _play_compiled(network: Network, workload: Workload) -> World:
    """Play a workload on arrays."""
    n_stages = _n_stages(network, workload)
    ticking = clock.new_clock(len(workload.schedule), n_stages, longest_route(workload) + 1)
    world = new_world(network, workload, ticking)
    flows = (new_flows(network, workload),) if network.model.sharing == "fair" else ()
    compiled_loop(network.model.sharing)(world, *flows, workload.schedule.first_steps)
    return world


def _play_plain(network: Network, workload: Workload) -> World:
    """Play a workload on lists, which plain Python reads faster."""
    ticking = plain_clock.new_clock(_n_stages(network, workload))
    world = in_lists(new_world(network, workload, ticking))
    fair_flows = network.model.sharing == "fair"
    flows = (in_lists(new_flows(network, workload)),) if fair_flows else ()
    functions = linked((*PLAIN_CLOCK, *STEPS, *LOOPS[network.model.sharing]))
    loop = functions[f"run_{network.model.sharing}"]
    loop(world, *flows, workload.schedule.first_steps.tolist())
    return in_arrays(world)


def _n_stages(network: Network, workload: Workload) -> int:
    """Stages of a transfer, of which the last shares links anew under ``fair``."""
    return longest_route(workload) + (6 if network.model.sharing == "fair" else 5)


@cache
def compiled_loop(sharing: str) -> Any:
    """The loop of a link model compiled by numba; kept on disk between processes."""
    return compiled((*CLOCK, *STEPS, *LOOPS[sharing]))
