"""The clock of a compiled replay: which event comes next, by (time, transfer, stage).

Events of one stage mostly come in order, so each stage has a queue, and an event that is not
earlier than the last of its queue is appended. Others go to a binary heap. The next event is the
earliest among the fronts of the queues and the top of the heap.

Every transfer has at most two events in the heap: what it does next, and when its last byte
leaves. A second one moves the first.
"""

from typing import Any, NamedTuple

import numpy as np

Column = Any

NEVER = 1 << 62
"""Later than every event (ps)."""

LONGEST_QUEUE = 1 << 15
"""Events that a queue holds at most; a power of two."""


class Clock(NamedTuple):
    """Queues of one stage each, and a heap."""

    n_stages: int
    leave: int
    mask: int
    # Of each stage: its queue's events, where it begins and ends, its first and last event.
    time: Any
    transfer: Any
    head: Any
    tail: Any
    front_time: Any
    front_transfer: Any
    back_time: Any
    back_transfer: Any
    # Slots in heap order; of each slot its place in the heap, plus one, its time and its key.
    heap: Any
    place: Any
    slot_time: Any
    slot_key: Any
    size: Any


def new_clock(n_transfers: int, n_stages: int, leave: int) -> Clock:
    """A clock without events, for transfers 0 … n_transfers (one more than there are)."""
    length = LONGEST_QUEUE
    while length > 2 and length // 2 >= n_transfers:
        length //= 2
    slots = 2 * n_transfers + 2
    return Clock(
        n_stages=n_stages,
        leave=leave,
        mask=length - 1,
        time=np.zeros(n_stages * length, np.int64),
        transfer=np.zeros(n_stages * length, np.int64),
        head=np.zeros(n_stages, np.int64),
        tail=np.zeros(n_stages, np.int64),
        front_time=np.full(n_stages, NEVER, np.int64),
        front_transfer=np.zeros(n_stages, np.int64),
        back_time=np.zeros(n_stages, np.int64),
        back_transfer=np.zeros(n_stages, np.int64),
        heap=np.zeros(slots, np.int64),
        place=np.zeros(slots, np.int64),
        slot_time=np.zeros(slots, np.int64),
        slot_key=np.zeros(slots, np.int64),
        size=np.zeros(1, np.int64),
    )


def comes_before(time: int, key: int, other_time: int, other_key: int) -> bool:
    """The rule for ties: at one time, the lower transfer first, then the lower stage."""
    return time < other_time or (time == other_time and key < other_key)


def put(clock: Clock, transfer: int, stage: int, time: int) -> None:
    """Let a stage of a transfer happen at a time."""
    head, tail = clock.head[stage], clock.tail[stage]
    if tail == head:
        clock.front_time[stage] = time
        clock.front_transfer[stage] = transfer
    elif tail - head > clock.mask or not comes_before(
        clock.back_time[stage], clock.back_transfer[stage], time, transfer
    ):
        leaves = 1 if stage == clock.leave else 0
        put_in_heap(clock, 2 * transfer + leaves, time, transfer * clock.n_stages + stage)
        return
    place = stage * (clock.mask + 1) + (tail & clock.mask)
    clock.time[place] = time
    clock.transfer[place] = transfer
    clock.back_time[stage] = time
    clock.back_transfer[stage] = transfer
    clock.tail[stage] = tail + 1


def take(clock: Clock) -> tuple[int, int, int]:
    """Take the next event: its time (`NEVER` if there is none), transfer and stage."""
    now, transfer, stage = NEVER, 0, 0
    for queue in range(clock.n_stages):
        time, front = clock.front_time[queue], clock.front_transfer[queue]
        if comes_before(time, front, now, transfer):
            now, transfer, stage = time, front, queue
    if clock.size[0] > 0:
        slot = clock.heap[0]
        time, key = clock.slot_time[slot], clock.slot_key[slot]
        if comes_before(time, key, now, transfer * clock.n_stages + stage):
            take_from_heap(clock)
            return time, key // clock.n_stages, key % clock.n_stages
    if now == NEVER:
        return now, transfer, stage
    head = clock.head[stage] + 1
    clock.head[stage] = head
    if head < clock.tail[stage]:
        place = stage * (clock.mask + 1) + (head & clock.mask)
        clock.front_time[stage] = clock.time[place]
        clock.front_transfer[stage] = clock.transfer[place]
    else:
        clock.front_time[stage] = NEVER
    return now, transfer, stage


def put_in_heap(clock: Clock, slot: int, time: int, key: int) -> None:
    """Add a slot, or move it if it is there already."""
    place = clock.place[slot] - 1
    if place < 0:
        place = clock.size[0]
        clock.size[0] += 1
    clock.slot_time[slot] = time
    clock.slot_key[slot] = key
    place = sift_up(clock, slot, place)
    sift_down(clock, slot, place)


def take_from_heap(clock: Clock) -> None:
    """Remove the earliest slot."""
    clock.place[clock.heap[0]] = 0
    clock.size[0] -= 1
    if clock.size[0] > 0:
        sift_down(clock, clock.heap[clock.size[0]], 0)


def sift_up(clock: Clock, slot: int, place: int) -> int:
    """Move a slot from `place` up to where it belongs; return where that is."""
    time, key = clock.slot_time[slot], clock.slot_key[slot]
    while place > 0:
        above = (place - 1) >> 1
        other = clock.heap[above]
        if not comes_before(time, key, clock.slot_time[other], clock.slot_key[other]):
            break
        clock.heap[place] = other
        clock.place[other] = place + 1
        place = above
    clock.heap[place] = slot
    clock.place[slot] = place + 1
    return place


def sift_down(clock: Clock, slot: int, place: int) -> None:
    """Move a slot from `place` down to where it belongs."""
    time, key, size = clock.slot_time[slot], clock.slot_key[slot], clock.size[0]
    below = 2 * place + 1
    while below < size:
        other = clock.heap[below]
        if below + 1 < size:
            right = clock.heap[below + 1]
            if comes_before(
                clock.slot_time[right], clock.slot_key[right],
                clock.slot_time[other], clock.slot_key[other],
            ):  # fmt: skip
                below += 1
                other = right
        if not comes_before(clock.slot_time[other], clock.slot_key[other], time, key):
            break
        clock.heap[place] = other
        clock.place[other] = place + 1
        place = below
        below = 2 * place + 1
    clock.heap[place] = slot
    clock.place[slot] = place + 1
