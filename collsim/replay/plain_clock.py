"""The clock of a replay in plain Python: `heapq`, with the same order of events."""

from heapq import heappop, heappush
from typing import NamedTuple

from collsim.replay.clock import NEVER


class PlainClock(NamedTuple):
    """Events as (time, key) in a heap."""

    n_stages: int
    events: list[tuple[int, int]]


def new_clock(n_stages: int) -> PlainClock:
    """A clock without events."""
    return PlainClock(n_stages, [])


def put(clock: PlainClock, transfer: int, stage: int, time: int) -> None:
    """Let a stage of a transfer happen at a time; lower transfers first, then lower stages."""
    heappush(clock.events, (time, transfer * clock.n_stages + stage))


def take(clock: PlainClock) -> tuple[int, int, int]:
    """Take the next event: its time (`NEVER` if there is none), transfer and stage."""
    if not clock.events:
        return NEVER, 0, 0
    time, key = heappop(clock.events)
    return time, key // clock.n_stages, key % clock.n_stages
