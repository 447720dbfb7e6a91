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

from collsim.errors import ScheduleError
from collsim.network import Network
from collsim.schedule import Schedule
from collsim.simulation.links import FairLinks, FifoLinks
from collsim.simulation.world import Steps, World
from collsim.timeline import UNOBSERVED, Hops, Timeline, refuse_stall


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
        refuse_stall(schedule, done, np.array(steps.begin_time, np.int64))
    return Timeline(
        schedule=schedule,
        kind="predicted",
        engine="simpy",
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
