"""Who sends which chunks to whom, in which step: a traced program, without bytes and without time.

A `Schedule` is flat numpy columns, no object a message, so that a million transfers are practical.
`trace` makes one from a rank program; `with_acks` makes another from it. Nothing else orders
transfers than the steps: a transfer is released by its source step (under rendezvous, by its
destination step as well), and a step ends when its sends have left and its receives have arrived.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from collsim.errors import ScheduleError
from collsim.program import Collective

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Source:
    """The function that yielded a step."""

    file: str
    function: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """One message of a schedule: `chunks` from rank `src` to rank `dst`."""

    id: int
    src: int
    dst: int
    channel: int
    chunks: range
    src_step: int
    dst_step: int

    def __str__(self) -> str:
        return f"rank {self.src} → rank {self.dst}: {spell_chunks(self.chunks)}"


@dataclass(frozen=True)
class Steps:
    """One row for each step; the steps of one rank and channel stand together, in order.

    Attributes:
        rank: The rank whose step it is, int64[n_steps].
        channel: Its channel, int64[n_steps].
        previous: The step it follows, −1 for the first of a channel, int64[n_steps].
        label: What the program says about it, "" if nothing.
        line: Source line, int64[n_steps].
        source: Index into `sources`, int64[n_steps].
        sources: The functions that yielded steps.
    """

    rank: Ints
    channel: Ints
    previous: Ints
    label: list[str]
    line: Ints
    source: Ints
    sources: tuple[Source, ...]

    def __len__(self) -> int:
        return len(self.rank)

    def where(self, step: int) -> str:
        """Where a step stands in its program, as errors name it."""
        source = self.sources[int(self.source[step])]
        return f"{source.function} in {Path(source.file).name}, line {self.line[step]}"

    @cached_property
    def position(self) -> Ints:
        """Which step of its channel each one is, from 0."""
        first = np.flatnonzero(self.previous < 0)
        lengths = np.diff(np.append(first, len(self)))
        return np.arange(len(self)) - np.repeat(first, lengths)


@dataclass(frozen=True)
class Schedule:
    """A collective as transfers between steps. Made by `trace`.

    Transfers are numbered by (depth of the source step, src, channel, position in the program),
    where a step is one deeper than the step before it and than the steps that send to it. The
    numbers break ties in every engine, so they belong to the definition.

    Attributes:
        collective: The contract that it must fulfil.
        algorithm: The program's name.
        n_ranks: Number of ranks.
        root: Root rank, 0 if the collective has none.
        n_chunks: Chunks in the whole message.
        n_channels: Channels of each rank.
        src: Sending rank of each transfer, int64[n].
        dst: Receiving rank, int64[n].
        channel: Channel at both ends, int64[n].
        first_chunk: First chunk carried, int64[n].
        chunk_count: Number of chunks carried (0 is legal), int64[n].
        src_step: The step that sends, int64[n].
        dst_step: The step that receives, int64[n].
        steps: The steps.
        round: When each transfer starts if all take one unit of time and latency is nothing
            (rendezvous), int64[n]; −1 for those that a deadlock never lets start.
        rendezvous_deadlock: Why this cannot run under rendezvous, "" if it can.
    """

    collective: Collective
    algorithm: str
    n_ranks: int
    root: int
    n_chunks: int
    n_channels: int
    src: Ints
    dst: Ints
    channel: Ints
    first_chunk: Ints
    chunk_count: Ints
    src_step: Ints
    dst_step: Ints
    steps: Steps
    round: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    rendezvous_deadlock: str = ""

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, index: int) -> Transfer:
        first = int(self.first_chunk[index])
        return Transfer(
            id=index % len(self),
            src=int(self.src[index]),
            dst=int(self.dst[index]),
            channel=int(self.channel[index]),
            chunks=range(first, first + int(self.chunk_count[index])),
            src_step=int(self.src_step[index]),
            dst_step=int(self.dst_step[index]),
        )

    def __iter__(self) -> Iterator[Transfer]:
        return (self[i] for i in range(len(self)))

    @property
    def chunks_per_block(self) -> int:
        """Chunks of the collective's argument: all of a broadcast's, one rank's share otherwise."""
        return self.n_chunks // self.collective.blocks(self.n_ranks)

    @property
    def n_rounds(self) -> int:
        """Rounds until the last transfer has ended."""
        return int(self.round.max()) + 1 if len(self) else 0

    def offsets(self, nbytes: int) -> Ints:
        """Byte at which each chunk starts, and the end: int64[n_chunks + 1].

        `nbytes` is what the collective's argument has: the message of a broadcast, one rank's
        share of a scatter or all_gather. Chunk i of the c chunks of a block covers its bytes
        i·nbytes // c up to (i + 1)·nbytes // c.
        """
        per_block = self.chunks_per_block
        block, chunk = np.divmod(np.arange(self.n_chunks + 1), per_block)
        return np.asarray(block * nbytes + chunk * nbytes // per_block, np.int64)

    def message_bytes(self, nbytes: int) -> Ints:
        """Payload bytes of each transfer, int64[n]."""
        offsets = self.offsets(nbytes)
        ends = offsets[self.first_chunk + self.chunk_count]
        return np.asarray(ends - offsets[self.first_chunk], np.int64)

    def bytes_matrix(self, nbytes: int) -> Ints:
        """Payload bytes between each pair, int64[n_ranks, n_ranks]: row sends, column receives."""
        matrix = np.zeros((self.n_ranks, self.n_ranks), np.int64)
        np.add.at(matrix, (self.src, self.dst), self.message_bytes(nbytes))
        return matrix


def spell_chunks(chunks: range) -> str:
    """Chunks as errors and narration name them: "chunk 3", "chunks 4–7", "no chunks"."""
    if len(chunks) == 0:
        return "no chunks"
    if len(chunks) == 1:
        return f"chunk {chunks.start}"
    return f"chunks {chunks.start}–{chunks.stop - 1}"


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


def _following(steps: Steps) -> Ints:
    """The step after each one on its channel, −1 for the last."""
    follows = np.full(len(steps), -1, np.int64)
    has_previous = np.flatnonzero(steps.previous >= 0)
    follows[steps.previous[has_previous]] = has_previous
    return follows


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
    following = _following(steps)
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
    following = _packed(_following(steps))
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
