"""The network model, played in SimPy: the readable definition of what a schedule takes.

Each message is a process. It is released when its steps have begun, waits for its sender's CPU,
crosses the links of its route, waits for its receiver's CPU, and is done.

Time is integer picoseconds. Whatever happens at one instant happens in the order of transfer
numbers, then of the stages of one transfer: an event's SimPy priority is made of both, so the
result does not depend on the order in which anything was created.

What the model leaves out: congestion control, packet loss, headers, switch memory limits,
and the time that programs compute.
"""

from collections.abc import Callable, Generator
from math import ceil
from typing import Any, Final

import numpy as np
import simpy
from simpy.events import Event, EventPriority

from collsim.errors import ScheduleError, SimulationStalled
from collsim.fairness import connected_flows, max_min_rates
from collsim.network import PICOSECONDS, Network, Workload, picoseconds
from collsim.schedule import Ints, Schedule
from collsim.timeline import UNOBSERVED, Hops, Timeline

Process = Generator[Event, Any, None]


class Moment(Event):
    """An event that is put on the clock with a priority; at one time, lower ones come first."""

    def due(self, time: int, priority: int) -> "Moment":
        """Put it on the clock, at a time (ps)."""
        self._ok, self._value = True, None
        self.env.schedule(self, EventPriority(priority), time - int(self.env.now))
        return self


class _World:
    """What all messages of a run share: the clock, steps, CPUs, links, and the record of times."""

    def __init__(self, network: Network, workload: Workload) -> None:
        schedule, model = workload.schedule, network.model
        self.env = simpy.Environment(0)
        self.workload = workload
        self.overhead = picoseconds(model.overhead)
        self.gap = picoseconds(model.gap)
        self.control = picoseconds(model.control)
        self.hop_latency: list[int] = workload.latency_ps.tolist()
        self.service: list[int] = workload.service_ps.tolist()
        self.link: list[int] = workload.link.tolist()
        self.first_hop: list[int] = workload.first_hop.tolist()
        longest = int(np.diff(workload.first_hop).max(initial=1))
        # Stages of a transfer at one instant: its release, its hops, then these.
        self.leave, self.arrive, self.receive, self.finish = range(longest + 1, longest + 5)
        self.n_stages = longest + 5
        self.cpu_free = [0] * schedule.n_ranks
        self.last_start = {verb: [-self.gap] * schedule.n_ranks for verb in ("send", "receive")}
        self.src, self.dst = schedule.src.tolist(), schedule.dst.tolist()
        self.times = {
            name: [UNOBSERVED] * len(schedule)
            for name in ("released", "started", "left", "arrived", "done")
        }
        self.hop_start = [UNOBSERVED] * len(self.link)
        self.hop_end = [UNOBSERVED] * len(self.link)

    @property
    def now(self) -> int:
        """The time (ps)."""
        return int(self.env.now)

    def at(self, time: int, transfer: int, stage: int) -> Moment:
        """A stage of a transfer at a time. Priority 0 is SimPy's own, for starting processes."""
        return Moment(self.env).due(time, 1 + transfer * self.n_stages + stage)

    def wake(self, sleeper: Moment, transfer: int, stage: int) -> None:
        """Let the process of a transfer that waits for `sleeper` go on, at this instant."""
        sleeper.due(self.now, 1 + transfer * self.n_stages + stage)

    def call(self, time: int, transfer: int, stage: int, action: Callable[[], object]) -> None:
        """Call `action` at a stage of a transfer."""
        event = self.at(time, transfer, stage)
        event.callbacks = [lambda _: action() and None]

    def after_all(self, action: Callable[[], object]) -> None:
        """Call `action` when everything else that is due at this time has happened."""
        event = Moment(self.env).due(self.now, 1 + len(self.src) * self.n_stages)
        event.callbacks = [lambda _: action() and None]

    def use_cpu(self, rank: int, verb: str) -> int:
        """Queue for the rank's CPU; return when it will have spent the overhead."""
        start = max(self.now, self.cpu_free[rank], self.last_start[verb][rank] + self.gap)
        self.last_start[verb][rank] = start
        self.cpu_free[rank] = start + self.overhead
        return start + self.overhead


class _Steps:
    """Where each rank stands in its program: begins steps, and releases their messages."""

    def __init__(self, world: _World, cross: Callable[[int, "_Steps"], Process]) -> None:
        schedule = world.workload.schedule
        steps = schedule.steps
        self.world = world
        self.cross = cross
        self.is_eager: list[bool] = world.workload.is_eager.tolist()
        self.src_step: list[int] = schedule.src_step.tolist()
        self.dst_step: list[int] = schedule.dst_step.tolist()
        self.sends: list[list[int]] = [[] for _ in range(len(steps))]
        self.receives: list[list[int]] = [[] for _ in range(len(steps))]
        for transfer, (src, dst) in enumerate(zip(self.src_step, self.dst_step, strict=True)):
            self.sends[src].append(transfer)
            self.receives[dst].append(transfer)
        self.undone = [len(s) + len(r) for s, r in zip(self.sends, self.receives, strict=True)]
        self.following = [UNOBSERVED] * len(steps)
        for step, previous in enumerate(steps.previous.tolist()):
            if previous >= 0:
                self.following[previous] = step
        self.begin_time = [UNOBSERVED] * len(steps)
        self.end_time = [UNOBSERVED] * len(steps)
        self.unclaimed: dict[int, Moment] = {}
        for step in np.flatnonzero(steps.previous < 0).tolist():
            self.begin(step)

    def begin(self, step: int) -> None:
        """Begin a step now."""
        self.begin_time[step] = self.world.now
        for transfer in self.sends[step]:
            if self.is_eager[transfer]:
                self._release(transfer, self.world.now)
            elif self.has_begun(self.dst_step[transfer]):
                self._release(transfer, self.world.now + self.world.control)
        for transfer in self.receives[step]:
            if not self.is_eager[transfer]:
                if self.has_begun(self.src_step[transfer]):
                    self._release(transfer, self.world.now + self.world.control)
            elif transfer in self.unclaimed:
                self.world.wake(self.unclaimed.pop(transfer), transfer, self.world.receive)

    def has_begun(self, step: int) -> bool:
        """Whether a step has begun."""
        return self.begin_time[step] != UNOBSERVED

    def _release(self, transfer: int, time: int) -> None:
        self.world.times["released"][transfer] = time
        self.world.call(time, transfer, 0, lambda: self.world.env.process(self.message(transfer)))

    def end_one(self, step: int) -> None:
        """One operation of a step is done; begin the next step if it was the last."""
        self.undone[step] -= 1
        if self.undone[step] == 0:
            self.end_time[step] = self.world.now
            if self.following[step] != UNOBSERVED:
                self.begin(self.following[step])

    def message(self, transfer: int) -> Process:
        """The life of one message."""
        world = self.world
        ready = world.use_cpu(world.src[transfer], "send")
        if ready > world.now:
            yield world.at(ready, transfer, 1)
        yield from self.cross(transfer, self)
        yield from self.receive(transfer)

    def has_left(self, transfer: int) -> None:
        """The last byte of a message has left its sender."""
        self.world.times["left"][transfer] = self.world.now
        self.end_one(self.src_step[transfer])

    def receive(self, transfer: int) -> Process:
        """Take in a message that has arrived: wait for its receive step and for the CPU."""
        world = self.world
        world.times["arrived"][transfer] = world.now
        if not self.has_begun(self.dst_step[transfer]):
            self.unclaimed[transfer] = Moment(world.env)
            yield self.unclaimed[transfer]
        ready = world.use_cpu(world.dst[transfer], "receive")
        if ready > world.now:
            yield world.at(ready, transfer, world.finish)
        world.times["done"][transfer] = world.now
        self.end_one(self.dst_step[transfer])


class _FifoLinks:
    """Links that carry one message after the other, in the order of requests."""

    def __init__(self, world: _World, store_and_forward: bool) -> None:
        self.world = world
        self.store_and_forward = store_and_forward
        self.free: dict[int, int] = {}

    def cross(self, transfer: int, steps: _Steps) -> Process:
        """Take each link of the route in turn; end when the last byte has arrived."""
        world = self.world
        hops = range(world.first_hop[transfer], world.first_hop[transfer + 1])
        last_byte = 0  # when it reaches the link
        for stage, hop in enumerate(hops, start=1):
            link, latency = world.link[hop], world.hop_latency[hop]
            start = max(world.now, self.free.get(link, 0))
            self.free[link] = start + world.service[hop]
            tail = max(self.free[link], last_byte)
            world.hop_start[hop], world.hop_end[hop] = start, tail
            if stage == 1:
                world.times["started"][transfer] = start
                world.call(tail, transfer, world.leave, lambda: steps.has_left(transfer))
            last_byte = tail + latency
            if hop + 1 in hops:
                first_byte = start + latency
                request = last_byte if self.store_and_forward else first_byte
                yield world.at(request, transfer, stage + 1)
        yield world.at(last_byte, transfer, world.arrive)


class _FairLinks:
    """Links whose bandwidth the messages of different pairs of ranks share max-min fairly.

    Messages of one pair queue. A message is on all links of its route at once.
    """

    def __init__(self, world: _World, bandwidth: list[float]) -> None:
        self.world = world
        self.bandwidth = bandwidth
        self.flows: dict[int, list[int]] = {}
        self.crossing: dict[int, set[int]] = {}
        self.queues: dict[tuple[int, int], list[int]] = {}
        self.gone: dict[int, Moment] = {}
        self.remaining: dict[int, float] = {}
        self.rate: dict[int, float] = {}
        self.since: dict[int, int] = {}
        self.leaving: dict[int, Moment] = {}
        self.touched: set[int] = set()

    def cross(self, transfer: int, steps: _Steps) -> Process:
        """Queue for the pair, flow, and end when the last byte has arrived."""
        world = self.world
        hops = slice(world.first_hop[transfer], world.first_hop[transfer + 1])
        queue = self.queues.setdefault((world.src[transfer], world.dst[transfer]), [])
        queue.append(transfer)
        if queue[0] != transfer:
            self.gone[transfer] = Moment(world.env)
            yield self.gone[transfer]
        world.times["started"][transfer] = world.now
        start, n_hops = world.now, hops.stop - hops.start
        nbytes = int(world.workload.message_bytes[transfer])
        left = self._flow(transfer, nbytes, world.link[hops]) if nbytes else None
        yield left or world.at(world.now, transfer, world.leave)
        world.hop_start[hops] = [start] * n_hops
        world.hop_end[hops] = [world.now] * n_hops
        queue.pop(0)
        if queue:
            world.wake(self.gone.pop(queue[0]), queue[0], 1)
        steps.has_left(transfer)
        yield world.at(world.now + sum(world.hop_latency[hops]), transfer, world.arrive)

    def _flow(self, transfer: int, nbytes: int, links: list[int]) -> Moment:
        """Begin a flow; the event comes when its last byte has left."""
        self.flows[transfer] = links
        self.remaining[transfer], self.rate[transfer] = float(nbytes), 0.0
        self.since[transfer] = self.world.now
        for link in links:
            self.crossing.setdefault(link, set()).add(transfer)
        self._touch(links)
        self.gone[transfer] = Moment(self.world.env)
        return self.gone[transfer]

    def _touch(self, links: list[int]) -> None:
        """Share anew once everything else of this instant has happened."""
        if not self.touched:
            self.world.after_all(self._share)
        self.touched.update(links)

    def _share(self) -> None:
        """Compute the rates that a change of flows may have changed."""
        now = self.world.now
        touched = sorted(self.touched)
        self.touched.clear()
        members = connected_flows(touched, self.flows, self.crossing)
        rates = max_min_rates({flow: self.flows[flow] for flow in members}, self.bandwidth)
        for flow, rate in rates.items():
            if rate == self.rate[flow]:
                continue
            self.remaining[flow] -= self.rate[flow] * ((now - self.since[flow]) / PICOSECONDS)
            self.rate[flow], self.since[flow] = rate, now
            end = now + max(0, ceil(self.remaining[flow] * PICOSECONDS / rate))
            if flow in self.leaving:
                self.leaving[flow].callbacks = []  # it leaves at another time
            self.leaving[flow] = self.world.at(end, flow, self.world.leave)
            self.leaving[flow].callbacks = [lambda _, flow=flow: self._leave(flow)]

    def _leave(self, flow: int) -> None:
        """The last byte of a flow has left."""
        links = self.flows.pop(flow)
        for link in links:
            self.crossing[link].remove(flow)
        for column in (self.remaining, self.rate, self.since, self.leaving):
            del column[flow]
        self._touch(links)
        self.world.wake(self.gone.pop(flow), flow, self.world.leave)


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
    world = _World(network, workload)
    if network.model.sharing == "fifo":
        fifo = _FifoLinks(world, network.model.store_and_forward)
        steps = _Steps(world, fifo.cross)
    else:
        steps = _Steps(world, _FairLinks(world, network.links.bandwidth.tolist()).cross)
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


def _report_stall(schedule: Schedule, done: Ints, steps: _Steps) -> None:
    """SimPy ends quietly when processes are stuck: say how many, and where one stands."""
    missing = int(np.flatnonzero(done == UNOBSERVED)[0])
    begun = [side for side in ("src", "dst") if steps.has_begun(getattr(steps, f"{side}_step")[missing])]
    lacking = "neither end has begun it" if not begun else f"only its {begun[0]} has begun it"
    raise SimulationStalled(
        f"{schedule.algorithm}: {int((done != UNOBSERVED).sum())} of {len(schedule)} messages were "
        f"delivered, then all ranks waited; {schedule[missing]} never moved ({lacking})"
    )
