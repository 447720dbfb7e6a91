"""Who sends which chunks to whom, in which step: a traced program, without bytes and without time.

A `Schedule` is flat numpy columns, no object a message, so that a million transfers are practical.
`trace` makes one from a rank program; `with_acks` makes another from it. Nothing else orders
transfers than the steps: a transfer is released by its source step (under rendezvous, by its
destination step as well), and a step ends when its sends have left and its receives have arrived.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
    def following(self) -> Ints:
        """The step after each one on its channel, −1 for the last, int64[n_steps]."""
        follows = np.full(len(self), -1, np.int64)
        has_previous = np.flatnonzero(self.previous >= 0)
        follows[self.previous[has_previous]] = has_previous
        return follows

    @cached_property
    def position(self) -> Ints:
        """Which step of its channel each one is, from 0."""
        first = np.flatnonzero(self.previous < 0)
        lengths = np.diff(np.append(first, len(self)))
        return np.arange(len(self)) - np.repeat(first, lengths)


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def sends_by_step(self) -> tuple[Ints, Ints]:
        """Transfers in the order of the steps that send them, and where each step's begin."""
        return grouped(self.src_step, len(self.steps))

    @cached_property
    def receives_by_step(self) -> tuple[Ints, Ints]:
        """Transfers in the order of the steps that receive them, and where each step's begin."""
        return grouped(self.dst_step, len(self.steps))

    @cached_property
    def first_steps(self) -> Ints:
        """The first step of every channel of every rank."""
        return np.flatnonzero(self.steps.previous < 0)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """The pairs that messages go between, src · n_ranks + dst, and which is each transfer's."""
        found, which = np.unique(self.src * self.n_ranks + self.dst, return_inverse=True)
        return found, which.astype(np.int64)

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


def grouped(keys: Ints, n_groups: int) -> tuple[Ints, Ints]:
    """Indices in the order of their keys (0 … n_groups − 1), and where each key's begin."""
    first = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_groups), out=first[1:])
    return np.argsort(keys, kind="stable"), first


def spell_chunks(chunks: range) -> str:
    """Chunks as errors and narration name them: "chunk 3", "chunks 4–7", "no chunks"."""
    if len(chunks) == 0:
        return "no chunks"
    if len(chunks) == 1:
        return f"chunk {chunks.start}"
    return f"chunks {chunks.start}–{chunks.stop - 1}"
