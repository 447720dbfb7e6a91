"""The network model, played in SimPy: the readable definition of what a schedule takes.

Each message is a process. It is released when its steps have begun, waits for its sender's CPU,
crosses the links of its route, waits for its receiver's CPU, and is done.

Time is integer picoseconds. Whatever happens at one instant happens in the order of transfer
numbers, then of the stages of one transfer: an event's SimPy priority is made of both, so the
result does not depend on the order in which anything was created.

What the model leaves out: congestion control, packet loss, headers, switch memory limits,
and the time that programs compute.
"""

import numpy as np

from collsim.errors import ScheduleError, SimulationStalled
from collsim.network import Network
from collsim.schedule import Ints, Schedule
from collsim.simulation.links import FairLinks, FifoLinks
from collsim.simulation.world import Steps, World
from collsim.timeline import UNOBSERVED, Hops, Timeline


def simulate(schedule: Schedule, network: Network, nbytes: int) -> Timeline:
    """Play a schedule on a network.

    Args:
        schedule: What is sent.
        network: Where the ranks are, and how messages travel.
        nbytes: Bytes of the collective's argument (see `Schedule.offsets`).

    Raises:
        ScheduleError: The ranks block each other under the network's protocol.
        ScenarioError: The run is longer than integer picoseconds can count.
        SimulationStalled: Messages were never delivered.
    """
    workload = network.lower(schedule, nbytes)
    if schedule.rendezvous_deadlock and not workload.is_eager.any():
        raise ScheduleError(schedule.rendezvous_deadlock)
    world = World(network, workload)
    if network.model.sharing == "fifo":
        fifo = FifoLinks(world, network.model.store_and_forward)
        steps = Steps(world, fifo.cross)
    else:
        steps = Steps(world, FairLinks(world, network.links.bandwidth.tolist()).cross)
    world.env.run()
    done = np.array(world.times["done"], np.int64)
    if (done == UNOBSERVED).any():
        _report_stall(schedule, done, steps)
    return Timeline(
        schedule=schedule,
        kind="predicted",
        engine=f"simpy, {network.model.sharing}, {network.model.protocol}",
        nbytes=nbytes,
        **{name: np.array(column, np.int64) for name, column in world.times.items()},
        step_begin=np.array(steps.begin_time, np.int64),
        step_end=np.array(steps.end_time, np.int64),
        hops=Hops(
            first=workload.first_hop,
            link=workload.link,
            start=np.array(world.hop_start, np.int64),
            end=np.array(world.hop_end, np.int64),
            service_ps=workload.service_ps,
            latency_ps=workload.latency_ps,
            link_names=network.links.names,
        ),
    )


def _report_stall(schedule: Schedule, done: Ints, steps: Steps) -> None:
    """SimPy ends quietly when processes are stuck: say how many, and where one stands."""
    missing = int(np.flatnonzero(done == UNOBSERVED)[0])
    begun = [
        side for side in ("src", "dst") if steps.has_begun(getattr(steps, f"{side}_step")[missing])
    ]
    lacking = "neither end has begun it" if not begun else f"only its {begun[0]} has begun it"
    raise SimulationStalled(
        f"{schedule.algorithm}: {int((done != UNOBSERVED).sum())} of {len(schedule)} messages were "
        f"delivered, then all ranks waited; {schedule[missing]} never moved ({lacking})"
    )
