"""The event loop with links that carry one message after the other, as in `FifoLinks`."""

from collsim.replay.heap import take
from collsim.replay.memory import (
    ARRIVE,
    FIRST_HOP,
    FREE,
    HOP_END,
    HOP_START,
    KEY,
    LAST_BYTE,
    LATENCY,
    LEAVE,
    LINK,
    SERVICE,
    SIZE,
    STAGES,
    STARTED,
    STORES,
    TIME,
    Memory,
)
from collsim.replay.steps import end_of_crossing, schedule_stage, use_cpu_to_send


def run_fifo(m: Memory) -> None:
    """Play all events."""
    while m[SIZE] > 0:
        slot = take(m)
        now, transfer = m[m[TIME] + slot], slot // 2
        stage = m[m[KEY] + slot] - transfer * m[STAGES]
        if stage == 0:
            ready = use_cpu_to_send(m, transfer, now)
            if ready > now:
                schedule_stage(m, transfer, ready, 1)
            else:
                take_link(m, transfer, 1, now)
        elif stage < m[LEAVE]:
            take_link(m, transfer, stage, now)
        else:
            end_of_crossing(m, transfer, stage, now)


def take_link(m: Memory, transfer: int, stage: int, now: int) -> None:
    """Take the link of hop `stage` − 1, now or when it is free."""
    hop = m[m[FIRST_HOP] + transfer] + stage - 1
    link = m[m[LINK] + hop]
    start = max(now, m[m[FREE] + link])
    m[m[FREE] + link] = start + m[m[SERVICE] + hop]
    tail = max(m[m[FREE] + link], m[m[LAST_BYTE] + transfer])
    m[m[HOP_START] + hop] = start
    m[m[HOP_END] + hop] = tail
    if stage == 1:
        m[m[STARTED] + transfer] = start
        schedule_stage(m, transfer, tail, m[LEAVE])
    m[m[LAST_BYTE] + transfer] = tail + m[m[LATENCY] + hop]
    if hop + 1 < m[m[FIRST_HOP] + transfer + 1]:
        request = m[m[LAST_BYTE] + transfer] if m[STORES] else start + m[m[LATENCY] + hop]
        schedule_stage(m, transfer, request, stage + 1)
    else:
        schedule_stage(m, transfer, m[m[LAST_BYTE] + transfer], m[ARRIVE])
