"""Ranks going through their steps, CPUs, and the ends of messages: the same in both link models.

The functions mirror `collsim.simulation.world`, event for event.
"""

from collsim.replay.heap import put
from collsim.replay.memory import (
    ARRIVE,
    ARRIVED,
    BEGIN,
    CONTROL,
    CPU_FREE,
    DONE,
    DST,
    DST_STEP,
    END,
    FINISH,
    FIRST_RECEIVE,
    FIRST_SEND,
    FOLLOWING,
    GAP,
    IS_EAGER,
    LAST_RECEIVE,
    LAST_SEND,
    LEAVE,
    LEFT,
    OVERHEAD,
    RECEIVE,
    RECEIVES,
    RELEASED,
    SENDS,
    SRC,
    SRC_STEP,
    STAGES,
    UNCLAIMED,
    UNDONE,
    Memory,
)


def schedule_stage(m: Memory, transfer: int, time: int, stage: int) -> None:
    """Put a stage of a transfer on the clock."""
    leaves = 1 if stage == m[LEAVE] else 0
    put(m, 2 * transfer + leaves, time, transfer * m[STAGES] + stage)


def begin_step(m: Memory, step: int, now: int) -> None:
    """Begin a step, and release the messages that may start."""
    m[m[BEGIN] + step] = now
    for i in range(m[m[FIRST_SEND] + step], m[m[FIRST_SEND] + step + 1]):
        transfer = m[m[SENDS] + i]
        if m[m[IS_EAGER] + transfer]:
            release(m, transfer, now)
        elif m[m[BEGIN] + m[m[DST_STEP] + transfer]] >= 0:
            release(m, transfer, now + m[CONTROL])
    for i in range(m[m[FIRST_RECEIVE] + step], m[m[FIRST_RECEIVE] + step + 1]):
        transfer = m[m[RECEIVES] + i]
        if not m[m[IS_EAGER] + transfer]:
            if m[m[BEGIN] + m[m[SRC_STEP] + transfer]] >= 0:
                release(m, transfer, now + m[CONTROL])
        elif m[m[UNCLAIMED] + transfer]:
            m[m[UNCLAIMED] + transfer] = 0
            schedule_stage(m, transfer, now, m[RECEIVE])


def release(m: Memory, transfer: int, time: int) -> None:
    """Let a message start at a time."""
    m[m[RELEASED] + transfer] = time
    schedule_stage(m, transfer, time, 0)


def end_one(m: Memory, step: int, now: int) -> None:
    """One operation of a step is done; begin the next step if it was the last."""
    m[m[UNDONE] + step] -= 1
    if m[m[UNDONE] + step] == 0:
        m[m[END] + step] = now
        if m[m[FOLLOWING] + step] >= 0:
            begin_step(m, m[m[FOLLOWING] + step], now)


def use_cpu_to_send(m: Memory, transfer: int, now: int) -> int:
    """Queue for the sender's CPU; when it will have spent the overhead."""
    rank = m[m[SRC] + transfer]
    start = max(now, m[m[CPU_FREE] + rank], m[m[LAST_SEND] + rank] + m[GAP])
    m[m[LAST_SEND] + rank] = start
    m[m[CPU_FREE] + rank] = start + m[OVERHEAD]
    return int(m[m[CPU_FREE] + rank])


def leave(m: Memory, transfer: int, now: int) -> None:
    """The last byte has left its sender."""
    m[m[LEFT] + transfer] = now
    end_one(m, m[m[SRC_STEP] + transfer], now)


def arrive(m: Memory, transfer: int, now: int) -> None:
    """The last byte has come in; it waits for its receive step, then for the CPU."""
    m[m[ARRIVED] + transfer] = now
    if m[m[BEGIN] + m[m[DST_STEP] + transfer]] < 0:
        m[m[UNCLAIMED] + transfer] = 1
    else:
        receive(m, transfer, now)


def receive(m: Memory, transfer: int, now: int) -> None:
    """Queue for the receiver's CPU."""
    rank = m[m[DST] + transfer]
    start = max(now, m[m[CPU_FREE] + rank], m[m[LAST_RECEIVE] + rank] + m[GAP])
    m[m[LAST_RECEIVE] + rank] = start
    m[m[CPU_FREE] + rank] = start + m[OVERHEAD]
    if m[m[CPU_FREE] + rank] > now:
        schedule_stage(m, transfer, m[m[CPU_FREE] + rank], m[FINISH])
    else:
        finish(m, transfer, now)


def finish(m: Memory, transfer: int, now: int) -> None:
    """The receive is done."""
    m[m[DONE] + transfer] = now
    end_one(m, m[m[DST_STEP] + transfer], now)


def end_of_crossing(m: Memory, transfer: int, stage: int, now: int) -> None:
    """A stage after the links."""
    if stage == m[LEAVE]:
        leave(m, transfer, now)
    elif stage == m[ARRIVE]:
        arrive(m, transfer, now)
    elif stage == m[RECEIVE]:
        receive(m, transfer, now)
    else:
        finish(m, transfer, now)


def begin_all(m: Memory, first_steps: "list[int]") -> None:
    """Begin every channel's first step at time zero."""
    for step in first_steps:
        begin_step(m, step, 0)
