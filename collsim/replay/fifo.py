"""The event loop with links that carry one message after the other, as in `FifoLinks`."""

from collections.abc import Sequence

from collsim.replay.clock import NEVER, put, take
from collsim.replay.steps import begin_all, end_of_crossing, leave, use_cpu_to_send
from collsim.replay.world import World


def run_fifo(world: World, first_steps: Sequence[int]) -> None:
    """Play all events."""
    begin_all(world, first_steps)
    now, transfer, stage = take(world.clock)
    while now < NEVER:
        if stage < world.leave:
            ready = now
            if stage == 0:
                ready = use_cpu_to_send(world, transfer, now)
                stage = 1
            if ready > now:
                put(world.clock, transfer, 1, ready)
            else:
                take_link(world, transfer, stage, now)
        elif stage == world.leave:
            leave(world, transfer, now)
        else:
            end_of_crossing(world, transfer, stage, now)
        now, transfer, stage = take(world.clock)


def take_link(world: World, transfer: int, stage: int, now: int) -> None:
    """Take the link of hop `stage` − 1, now or when it is free."""
    hop = world.first_hop[transfer] + stage - 1
    link = world.link[hop]
    start = max(now, world.link_free[link])
    world.link_free[link] = start + world.service[hop]
    tail = max(world.link_free[link], world.last_byte[transfer])
    world.hop_start[hop] = start
    world.hop_end[hop] = tail
    if stage == 1:
        world.started[transfer] = start
        put(world.clock, transfer, world.leave, tail)
    last_byte = tail + world.latency[hop]
    world.last_byte[transfer] = last_byte
    if hop + 1 == world.first_hop[transfer + 1]:
        put(world.clock, transfer, world.arrive, last_byte)
    elif world.store_and_forward:
        put(world.clock, transfer, stage + 1, last_byte)
    else:
        put(world.clock, transfer, stage + 1, start + world.latency[hop])
