"""What all messages of a simulated run share, and how ranks go through their steps."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy
from simpy.events import Event, EventPriority

from collsim.network import Network, Workload, picoseconds
from collsim.timeline import UNOBSERVED

Process = Generator[Event, Any, None]


def _call(action: Callable[[], object]) -> None:
    action()


class Moment(Event):
    """An event that is put on the clock with a priority; at one time, lower ones come first."""

    def due(self, time: int, priority: int) -> "Moment":
        """Put it on the clock, at a time (ps)."""
        self._ok, self._value = True, None
        self.env.schedule(self, EventPriority(priority), time - int(self.env.now))
        return self


class World:
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
        event.callbacks = [lambda _: _call(action)]

    def after_all(self, action: Callable[[], object]) -> None:
        """Call `action` when everything else that is due at this time has happened."""
        event = Moment(self.env).due(self.now, 1 + len(self.src) * self.n_stages)
        event.callbacks = [lambda _: _call(action)]

    def use_cpu(self, rank: int, verb: str) -> int:
        """Queue for the rank's CPU; return when it will have spent the overhead."""
        start = max(self.now, self.cpu_free[rank], self.last_start[verb][rank] + self.gap)
        self.last_start[verb][rank] = start
        self.cpu_free[rank] = start + self.overhead
        return start + self.overhead


class Steps:
    """Where each rank stands in its program: begins steps, and releases their messages."""

    def __init__(self, world: World, cross: Callable[[int, "Steps"], Process]) -> None:
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
