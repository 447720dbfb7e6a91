"""The chain of messages that decided when a run ended, from its start to its end."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from collsim.timeline import UNOBSERVED, Timeline
from collsim.units import spell_time


@dataclass(frozen=True, slots=True)
class Leg:
    """One message on the critical path.

    Attributes:
        transfer: Its number.
        begin_ps: When it was released (ps).
        end_ps: When it let the next one go (ps).
        waits_for: The link on which the next one of the path waits for it, "" if the next one is
            released by the end of this one's step.
    """

    transfer: int
    begin_ps: int
    end_ps: int
    waits_for: str = ""


def critical_path(timeline: Timeline) -> tuple[Leg, ...]:
    """Walk back from the last rank's finish: what ended last, what had let it begin, and so on.

    A message's end is explained by the message before it on a link where it had to queue, or else
    by the step that released it. At equal times, the message of the lowest number counts. Shared
    links (``fair``) slow messages without making them queue, so there only steps explain.

    Empty for an empty schedule and for runs without times of single messages.
    """
    if len(timeline.schedule) == 0 or (timeline.released == UNOBSERVED).any():
        return ()
    schedule = timeline.schedule
    step = int(np.argmax(timeline.step_end))
    legs: list[Leg] = []
    while step >= 0:
        transfer, end = _last_of(timeline, step)
        legs.append(Leg(transfer, int(timeline.released[transfer]), end))
        while (queued := _waited_for(timeline, transfer)) is not None:
            transfer, end, link = queued
            legs.append(Leg(transfer, int(timeline.released[transfer]), end, link))
        src, dst = int(schedule.src_step[transfer]), int(schedule.dst_step[transfer])
        begins = timeline.step_begin
        is_eager = timeline.released[transfer] < begins[dst]
        releasing = src if is_eager or begins[src] >= begins[dst] else dst
        step = int(schedule.steps.previous[releasing])
    return tuple(reversed(legs))


def _last_of(timeline: Timeline, step: int) -> tuple[int, int]:
    """The message whose end ended a step, and when."""
    sent = np.flatnonzero(timeline.schedule.src_step == step)
    received = np.flatnonzero(timeline.schedule.dst_step == step)
    transfers = np.concatenate([sent, received])
    ends = np.concatenate([timeline.left[sent], timeline.done[received]])
    last = np.lexsort((transfers, -ends))[0]
    return int(transfers[last]), int(ends[last])


def _waited_for(timeline: Timeline, transfer: int) -> tuple[int, int, str] | None:
    """The message that a message queued behind last, until when, and on which link."""
    hops = timeline.hops
    if hops is None:
        return None
    first, stop = int(hops.first[transfer]), int(hops.first[transfer + 1])
    for hop in reversed(range(first, stop)):
        asked = timeline.released[transfer]
        if hop > first:
            asked = hops.start[hop - 1] + hops.latency_ps[hop - 1]
        if hops.start[hop] <= asked:
            continue
        free = hops.start + hops.service_ps == hops.start[hop]
        before = np.flatnonzero(free & (hops.link == hops.link[hop]) & (hops.service_ps > 0))
        if len(before):
            ahead = int(np.searchsorted(hops.first, before[0], side="right")) - 1
            return ahead, int(hops.start[hop]), hops.link_names[int(hops.link[hop])]
    return None


def spell_path(timeline: Timeline, most: int = 8) -> str:
    """The critical path in words: messages of one pair in a row count as one item of it.

    Beyond `most` items, its middle is left out.
    """
    legs = critical_path(timeline)
    if not legs:
        return "nothing is sent" if len(timeline.schedule) == 0 else "not observed"
    words = []
    for (way, waits_for), run in groupby(legs, lambda leg: (_way(timeline, leg), leg.waits_for)):
        messages = list(run)
        times = f" × {len(messages)}" if len(messages) > 1 else ""
        freed = f" (then {waits_for} is free)" if waits_for else ""
        words.append(f"{way}{times} until {spell_time(messages[-1].end_ps / 1e12)}{freed}")
    if len(words) > most:
        head, tail = most // 2, most - most // 2
        left_out = f"… {len(words) - most} more …"
        words = [*words[:head], left_out, *words[-tail:]]
    return ", ".join(words)


def _way(timeline: Timeline, leg: Leg) -> str:
    transfer = timeline.schedule[leg.transfer]
    return f"{transfer.src}→{transfer.dst}"
