"""The order of a schedule's transfers: their numbers and rounds, deadlocks, acknowledgements."""

from array import array
from dataclasses import replace
from typing import Any

import numpy as np

from collsim.errors import ScheduleError
from collsim.schedule import Ints, Schedule, Steps, spell_chunks


def ordered(schedule: Schedule) -> Schedule:
    """Number the transfers of a schedule, give them rounds, and look for deadlocks.

    The transfers must stand in the order of (src, channel, position in the program).

    Raises:
        ScheduleError: Steps wait for each other in a cycle, however messages are buffered.
    """
    depth = _depths(schedule)
    order = np.argsort(depth[schedule.src_step], kind="stable")
    names = ("src", "dst", "channel", "first_chunk", "chunk_count", "src_step", "dst_step")
    columns: dict[str, Any] = {name: getattr(schedule, name)[order] for name in names}
    schedule = replace(schedule, **columns)
    rounds, deadlock = _rounds(schedule)
    return replace(schedule, round=rounds, rendezvous_deadlock=deadlock)


def _packed(column: Ints) -> "array[int]":
    """A column that Python loops read fast, in a quarter of a list's memory."""
    packed = array("q")
    packed.frombytes(np.ascontiguousarray(column, np.int64).tobytes())
    return packed


def _grouped(keys: Ints, values: Ints, n_groups: int) -> "tuple[array[int], array[int]]":
    """`values` sorted by their key, and where each key's begin, keeping order."""
    first = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_groups), out=first[1:])
    return _packed(values[np.argsort(keys, kind="stable")]), _packed(first)


def _depths(schedule: Schedule) -> Ints:
    """Depth of each step; ScheduleError when buffering without limit could not save it.

    A step begins when the step before it is done: when that one has begun, and so have the steps
    that send what it receives.
    """
    steps = schedule.steps
    following = steps.following
    unblocks = following[schedule.dst_step]
    counts, followed = unblocks >= 0, np.flatnonzero(following >= 0)
    before = np.concatenate([schedule.src_step[counts], followed])
    after = np.concatenate([unblocks[counts], following[followed]])
    receivers, first = _grouped(before, after, len(steps))
    pending = _packed(np.bincount(after, minlength=len(steps)))
    depth = _packed(np.zeros(len(steps), np.int64))
    ready = [step for step, count in enumerate(pending) if count == 0]
    for step in ready:  # grows as it is walked
        below = depth[step] + 1
        for receiver in receivers[first[step] : first[step + 1]]:
            depth[receiver] = max(depth[receiver], below)
            pending[receiver] -= 1
            if pending[receiver] == 0:
                ready.append(receiver)
    if len(ready) < len(steps):
        begun = set(ready)
        stuck = [step for step in ready if following[step] >= 0 and following[step] not in begun]
        raise ScheduleError(f"deadlock, even if sends never wait: {_cycle(schedule, stuck, False)}")
    return np.array(depth, np.int64)


def _rounds(schedule: Schedule) -> tuple[Ints, str]:
    """Round of each transfer under rendezvous, and why it deadlocks there ("" if not)."""
    steps = schedule.steps
    ids = np.arange(len(schedule))
    ends = np.concatenate([schedule.src_step, schedule.dst_step])
    touching, first = _grouped(ends, np.concatenate([ids, ids]), len(steps))
    following = _packed(steps.following)
    src_step, dst_step = _packed(schedule.src_step), _packed(schedule.dst_step)
    undone = _packed(np.bincount(ends, minlength=len(steps)))
    start, begun = _packed(np.zeros_like(ids)), _packed(np.zeros_like(ids))
    end = _packed(np.zeros(len(steps), np.int64))
    ready = [(step, 0) for step in np.flatnonzero(steps.previous < 0).tolist()]
    for step, now in ready:  # grows as it is walked
        for transfer in touching[first[step] : first[step + 1]]:
            begun[transfer] += 1
            start[transfer] = max(start[transfer], now)
            if begun[transfer] < 2:
                continue
            for side in (src_step[transfer], dst_step[transfer]):
                undone[side] -= 1
                end[side] = max(end[side], start[transfer] + 1)
                if undone[side] == 0 and following[side] >= 0:
                    ready.append((following[side], end[side]))
    rounds = np.where(np.array(begun, np.int64) < 2, -1, np.array(start, np.int64))
    stuck = [step for step, _ in ready if undone[step] > 0]
    if not stuck:
        return rounds, ""
    return rounds, f"deadlock under rendezvous: {_cycle(schedule, stuck, True)}"


def _cycle(schedule: Schedule, stuck: list[int], sends_wait: bool) -> str:
    """Follow who waits for whom until a rank repeats, and say so.

    `stuck` are the steps that have begun and never end.
    """
    steps = schedule.steps
    stands_at = {(int(steps.rank[s]), int(steps.channel[s])): s for s in stuck}
    waiting: dict[int, str] = {}
    peers: dict[int, tuple[int, int]] = {}
    ends = ((schedule.src_step, "send"),) if sends_wait else ()
    for column, verb in (*ends, (schedule.dst_step, "receive")):
        other_step = schedule.src_step if verb == "receive" else schedule.dst_step
        for transfer in np.flatnonzero(np.isin(column, stuck)).tolist():
            step, other = int(column[transfer]), int(other_step[transfer])
            peer = (int(steps.rank[other]), int(steps.channel[other]))
            if stands_at.get(peer, other) < other:  # the other end has not begun
                chunks = spell_chunks(schedule[transfer].chunks)
                way = "from" if verb == "receive" else "to"
                waiting[step] = f"waits to {verb} {chunks} {way} rank {peer[0]}"
                peers[step] = peer
    path = []
    step = min(peers)
    while step not in path:
        path.append(step)
        step = stands_at[peers[step]]
    return "; ".join(
        f"rank {steps.rank[s]} in step {steps.position[s]} ({steps.where(s)}) {waiting[s]}"
        for s in path[path.index(step) :]
    )


def with_acks(schedule: Schedule) -> Schedule:
    """The same schedule where each receipt is acknowledged by an empty message.

    After each step comes one more, which acknowledges what the step received and waits for the
    acknowledgements of what it sent; acknowledgements are not acknowledged. Real sends end before
    delivery (the kernel buffers them), so timed real runs of serial programs need this.

    Raises:
        ScheduleError: The acknowledgements make ranks wait for each other in a cycle.
    """
    steps = schedule.steps
    first = np.arange(len(steps)) * 2  # a step becomes two: itself, and the step of its acks
    doubled: dict[str, Any] = {
        name: np.repeat(getattr(steps, name), 2) for name in ("rank", "channel", "line", "source")
    }
    previous = np.empty(2 * len(steps), np.int64)
    previous[0::2] = np.where(steps.previous < 0, -1, steps.previous * 2 + 1)
    previous[1::2] = first
    labels = [text for label in steps.label for text in (label, "acknowledge")]
    both: dict[str, Any] = {
        "src": np.concatenate([schedule.src, schedule.dst]),
        "dst": np.concatenate([schedule.dst, schedule.src]),
        "channel": np.concatenate([schedule.channel, schedule.channel]),
        "first_chunk": np.concatenate([schedule.first_chunk, schedule.first_chunk]),
        "chunk_count": np.concatenate([schedule.chunk_count, np.zeros(len(schedule), np.int64)]),
        "src_step": np.concatenate([schedule.src_step * 2, schedule.dst_step * 2 + 1]),
        "dst_step": np.concatenate([schedule.dst_step * 2, schedule.src_step * 2 + 1]),
    }
    order = np.argsort(both["src_step"], kind="stable")
    return ordered(
        replace(
            schedule,
            algorithm=f"{schedule.algorithm} with acks",
            steps=Steps(previous=previous, label=labels, sources=steps.sources, **doubled),
            **{name: column[order] for name, column in both.items()},
        )
    )


def sends_in_turn(schedule: Schedule) -> bool:
    """Whether a rank, on one channel, sends to other ranks in one step than in its step before.

    Real sends end when the kernel has buffered their bytes, so such a rank would have several
    messages on its way at once: only acknowledgements keep the order that the program states.
    """
    steps = schedule.steps
    targets: dict[int, set[int]] = {}
    for step, dst in zip(schedule.src_step.tolist(), schedule.dst.tolist(), strict=True):
        targets.setdefault(step, set()).add(dst)
    position = steps.position
    latest: dict[tuple[int, int], set[int]] = {}
    for step in sorted(targets, key=position.__getitem__):
        thread = int(steps.rank[step]), int(steps.channel[step])
        if latest.setdefault(thread, targets[step]) != targets[step]:
            return True
    return False


def crossing_pairs(schedule: Schedule) -> list[tuple[int, int]]:
    """Pairs of ranks that send data to each other on different channels, the lower rank first.

    A receiver's word that it is ready may then stand behind data that it sends the same way.
    """
    carries = schedule.chunk_count > 0
    channels: dict[tuple[int, int], set[int]] = {}
    columns = (schedule.src, schedule.dst, schedule.channel)
    for src, dst, channel in zip(*(column[carries].tolist() for column in columns), strict=True):
        channels.setdefault((src, dst), set()).add(channel)
    return sorted(
        (low, high)
        for (low, high), there in channels.items()
        if low < high and (high, low) in channels and len(there | channels[high, low]) > 1
    )
