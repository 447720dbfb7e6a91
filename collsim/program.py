"""The words that rank programs are written in.

A *rank program* is a generator that says, as a textbook would, what one rank does:

    def chain(me: Rank) -> Iterator[Step]:
        if me.virtual > 0:
            yield Recv(me.actual(me.virtual - 1), ALL)
        if me.virtual < me.n_ranks - 1:
            yield Send(me.actual(me.virtual + 1), ALL)

Each ``yield`` is a *step*: one operation, or several that start together, with an optional text
that narrates the step::

    yield Send(right, mine), Recv(left, theirs), f"rank {me.rank} passes block {mine} on"

A step ends when all its operations are done, and only then does the next step of the same channel
begin. A `Send` is done when its last byte has left the rank; a `Recv` when the last byte has
arrived. Programs speak of *chunks* (indices, no bytes) and never see a network, so one program
serves every message size, topology and engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal


class _All(Enum):
    ALL = "all chunks"

    def __repr__(self) -> str:
        return "ALL"


ALL: Final = _All.ALL
"""Every chunk of the message."""

Chunks = int | range | Literal[_All.ALL]
"""One chunk index, a contiguous range of them (step 1, possibly empty), or `ALL`."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send `chunks` to rank `dst`, as one message."""

    dst: int
    chunks: Chunks


@dataclass(frozen=True, slots=True)
class Recv:
    """Receive `chunks` from rank `src`, as one message."""

    src: int
    chunks: Chunks


Op = Send | Recv
Step = Op | tuple[Op | str, ...]
"""What one ``yield`` gives: an operation, or several that start together, and perhaps a label."""


@dataclass(frozen=True, slots=True)
class Rank:
    """What a program knows of the rank it speaks for.

    Attributes:
        rank: This rank, 0 … n_ranks − 1.
        n_ranks: How many ranks take part.
        root: The rank that a rooted collective starts from (0 for the others).
        n_chunks: How many chunks the whole message has. Scatter and all_gather number chunks by
            rank first: those of rank r are r·c … r·c + c − 1, where c = n_chunks / n_ranks.
        channel: Which of the rank's channels this program drives.
        n_channels: How many channels each rank has.
    """

    rank: int
    n_ranks: int
    root: int = 0
    n_chunks: int = 1
    channel: int = 0
    n_channels: int = 1

    @property
    def virtual(self) -> int:
        """This rank's number when ranks are counted from the root: the root is 0."""
        return (self.rank - self.root) % self.n_ranks

    def actual(self, virtual: int) -> int:
        """The rank whose virtual number is `virtual` (taken modulo n_ranks)."""
        return (virtual + self.root) % self.n_ranks

    def block(self, first: int, last: int | None = None) -> range:
        """The chunks of ranks `first` … `last` − 1 where each rank owns an equal share.

        ``me.block(r)`` are the chunks of rank r alone.
        """
        per_rank = self.n_chunks // self.n_ranks
        return range(first * per_rank, (first + 1 if last is None else last) * per_rank)


Program = Callable[..., Iterator[Step]]
"""``program(me, **parameters)``: a generator function over the steps of one rank and channel."""


@dataclass(frozen=True, slots=True)
class LogGP:
    """A network in four numbers (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995).

    Attributes:
        L: Latency (s) from the last byte's leaving to its arrival.
        o: Overhead (s) that the CPU spends on each send and on each receive.
        g: Gap (s), the least time between the starts of two sends, or of two receives.
        G: Gap per byte (s/byte), the inverse of the bandwidth. n bytes take n·G.
    """

    L: float
    o: float = 0.0
    g: float = 0.0
    G: float = 0.0

    def occupancy(self, nbytes: float) -> float:
        """Seconds from one blocking send's start to the next one's."""
        return max(self.g, self.o + nbytes * self.G)

    def flight(self, nbytes: float) -> float:
        """Seconds from a send's start to the end of its receive."""
        return 2 * self.o + self.L + nbytes * self.G


@dataclass(frozen=True, slots=True)
class Setting:
    """What `Algorithm.prepare` may look at to make a program's parameters.

    Attributes:
        n_ranks: How many ranks take part.
        root: The root's rank.
        groups: The ranks of each host, in order of their first rank.
        loggp: The network as four numbers.
        nbytes: Bytes of the whole message.
    """

    n_ranks: int
    root: int
    groups: tuple[tuple[int, ...], ...]
    loggp: LogGP
    nbytes: int


@dataclass(frozen=True, slots=True)
class RankRule:
    """Which rank counts an algorithm is published for."""

    text: str
    allows: Callable[[int], bool]


def _any(n_ranks: int) -> bool:
    return n_ranks >= 1


def _power_of_two(n_ranks: int) -> bool:
    return n_ranks >= 1 and n_ranks & (n_ranks - 1) == 0


def _even(n_ranks: int) -> bool:
    return n_ranks == 1 or n_ranks % 2 == 0


ANY_RANKS: Final = RankRule("any number of ranks", _any)
POWER_OF_TWO: Final = RankRule("a power of two ranks", _power_of_two)
EVEN: Final = RankRule("an even number of ranks, or one", _even)


def whole(n_ranks: int, segments: int) -> int:
    """Chunk rule: each block travels as one piece."""
    return 1


def segmented(n_ranks: int, segments: int) -> int:
    """Chunk rule: as many chunks as there are segments."""
    return segments


def halves(n_ranks: int, segments: int) -> int:
    """Chunk rule: two halves of equally many chunks, at least `segments` in all."""
    return 2 * -(-segments // 2)


def one_per_rank(n_ranks: int, segments: int) -> int:
    """Chunk rule: a share of the message for each rank."""
    return n_ranks


def two(n_ranks: int, segments: int) -> int:
    """Chunk rule: each block travels as two halves."""
    return 2


SEGMENTED_RULES: Final = (segmented, halves)
"""The chunk rules that depend on the segment size."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of a collective's table of algorithms.

    Attributes:
        program: The rank program.
        messages: ``messages(n_ranks, chunks)``: how many messages it sends, where `chunks` is the
            number of chunks a block (what `chunks` below gives).
        chunks: ``chunks(n_ranks, segments)``: chunks a block (a whole broadcast message, or one
            rank's share of a scatter or all_gather).
        channels: Channels a rank.
        ranks: The rank counts it is made for.
        prepare: Makes the program's parameters as plain values; what the user gives goes before.
    """

    program: Program
    messages: Callable[[int, int], int] | None = None
    chunks: Callable[[int, int], int] = whole
    channels: int = 1
    ranks: RankRule = ANY_RANKS
    prepare: Callable[[Setting], Mapping[str, object]] | None = None

    @property
    def is_segmented(self) -> bool:
        """Whether the segment size changes what it does."""
        return self.chunks in SEGMENTED_RULES

    @property
    def summary(self) -> str:
        """First line of the program's docstring."""
        return (self.program.__doc__ or "").strip().split("\n")[0]


Holdings = Callable[[int, int, int, int], range]
"""``holdings(rank, n_ranks, root, n_chunks)``: the chunks a rank holds."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective: its contract as data, and its algorithms.

    Attributes:
        name: Name in `torch.distributed`.
        before: The chunks each rank holds at the start.
        after: The chunks each rank must hold at the end.
        blocks: ``blocks(n_ranks)``: how many blocks of `nbytes` bytes the whole message has: 1
            for broadcast, n_ranks for scatter and all_gather.
        rooted: Whether there is a root.
        algorithms: The table of algorithms, by name.
    """

    name: str
    before: Holdings
    after: Holdings
    blocks: Callable[[int], int]
    rooted: bool
    algorithms: Mapping[str, Algorithm] = field(default_factory=dict)

    def nbytes_total(self, n_ranks: int, nbytes: int) -> int:
        """Bytes of the whole message when the argument of the collective has `nbytes`."""
        return self.blocks(n_ranks) * nbytes


def check_members(peers: Sequence[int], n_ranks: int) -> None:
    """Check that `peers` is a permutation of 0 … n_ranks − 1; ValueError otherwise."""
    if sorted(peers) != list(range(n_ranks)):
        raise ValueError(f"expected each rank from 0 to {n_ranks - 1} once, got {list(peers)}")
