"""Ranks going through their steps, CPUs, and the ends of messages: the same in both link models.

The functions mirror `collsim.simulation.world`, event for event.
"""

from collections.abc import Sequence

from collsim.replay.clock import put
from collsim.replay.world import World


def release(world: World, transfer: int, time: int) -> None:
    """Let a message start at a time."""
    world.released[transfer] = time
    put(world.clock, transfer, 0, time)


def begin_step(world: World, step: int, now: int) -> None:
    """Begin a step, and release the messages that may start."""
    world.begin[step] = now
    for place in range(world.first_send[step], world.first_send[step + 1]):
        transfer = world.sends[place]
        if world.is_eager[transfer]:
            release(world, transfer, now)
        elif world.begin[world.dst_step[transfer]] >= 0:
            release(world, transfer, now + world.control)
    for place in range(world.first_receive[step], world.first_receive[step + 1]):
        transfer = world.receives[place]
        if not world.is_eager[transfer]:
            if world.begin[world.src_step[transfer]] >= 0:
                release(world, transfer, now + world.control)
        elif world.is_unclaimed[transfer]:
            world.is_unclaimed[transfer] = False
            put(world.clock, transfer, world.receive, now)


def end_one(world: World, step: int, now: int) -> None:
    """One operation of a step is done; begin the next step if it was the last."""
    world.undone[step] -= 1
    if world.undone[step] == 0:
        world.end[step] = now
        if world.following[step] >= 0:
            begin_step(world, world.following[step], now)


def use_cpu_to_send(world: World, transfer: int, now: int) -> int:
    """Queue for the sender's CPU; when it will have spent the overhead."""
    rank = world.src[transfer]
    start = max(now, world.cpu_free[rank], world.last_send[rank] + world.gap)
    world.last_send[rank] = start
    world.cpu_free[rank] = start + world.overhead
    return int(start + world.overhead)


def leave(world: World, transfer: int, now: int) -> None:
    """The last byte has left its sender."""
    world.left[transfer] = now
    end_one(world, world.src_step[transfer], now)


def receive(world: World, transfer: int, now: int) -> None:
    """Queue for the receiver's CPU."""
    rank = world.dst[transfer]
    start = max(now, world.cpu_free[rank], world.last_receive[rank] + world.gap)
    world.last_receive[rank] = start
    ready = start + world.overhead
    world.cpu_free[rank] = ready
    if ready > now:
        put(world.clock, transfer, world.finish, ready)
    else:
        finish(world, transfer, now)


def finish(world: World, transfer: int, now: int) -> None:
    """The receive is done."""
    world.done[transfer] = now
    end_one(world, world.dst_step[transfer], now)


def end_of_crossing(world: World, transfer: int, stage: int, now: int) -> None:
    """A stage after the last byte has come in: it waits for its receive step, then for the CPU."""
    if stage == world.finish:
        finish(world, transfer, now)
        return
    if stage == world.arrive:
        world.arrived[transfer] = now
        if world.begin[world.dst_step[transfer]] < 0:
            world.is_unclaimed[transfer] = True
            return
    receive(world, transfer, now)


def begin_all(world: World, first_steps: Sequence[int]) -> None:
    """Begin every channel's first step at time zero."""
    for step in first_steps:
        begin_step(world, step, 0)
