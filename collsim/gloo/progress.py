"""What ranks share beside the network: what each is doing, meetings, and a clock."""

import mmap
import struct
import time
from dataclasses import dataclass
from typing import Final, Protocol

_HEAD: Final = struct.Struct("=Qd")
_TEXT_BYTES: Final = 240
_SLOT: Final = _HEAD.size + _TEXT_BYTES
_LOOK_EVERY: Final = 0.0005


class Board(Protocol):
    """What ranks share. None of it is counted as traffic of a collective."""

    def note(self, rank: int, text: str) -> None:
        """Note what a rank is doing."""

    def meet(self, rank: int, n_ranks: int, timeout: float) -> None:
        """Wait until every rank has met as often; TimeoutError after `timeout` seconds."""

    def agree(self) -> None:
        """Make the ranks' clocks agree; all call it together, while nothing is counted."""

    def now(self) -> int:
        """Nanoseconds of a clock that the ranks share."""


class Progress:
    """A board in memory that ranks share with their server.

    One slot a rank: how often it has met the others, what it does, and since when.
    """

    def __init__(self, n_ranks: int) -> None:
        self._memory = mmap.mmap(-1, n_ranks * _SLOT)

    def note(self, rank: int, text: str) -> None:
        """Note what a rank is doing."""
        said = text.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0")
        start = rank * _SLOT
        self._memory[start + 8 : start + _SLOT] = struct.pack("=d", time.monotonic()) + said

    def doing(self, rank: int) -> str:
        """What a rank was doing last."""
        start = rank * _SLOT + _HEAD.size
        said = self._memory[start : start + _TEXT_BYTES].rstrip(b"\0")
        return said.decode(errors="ignore")  # the end may be cut within a letter

    def since(self, rank: int) -> float:
        """Since when it has been doing that, on the monotonic clock (s)."""
        return float(_HEAD.unpack_from(self._memory, rank * _SLOT)[1])

    def meetings(self, rank: int) -> int:
        """How often a rank has come to meet the others."""
        return int(_HEAD.unpack_from(self._memory, rank * _SLOT)[0])

    def meet(self, rank: int, n_ranks: int, timeout: float) -> None:
        """Count one more meeting of a rank, and wait until every other has come as often.

        Raises:
            TimeoutError: A rank has not come in time.
        """
        times = self.meetings(rank) + 1
        start = rank * _SLOT
        self._memory[start : start + 8] = struct.pack("=Q", times)
        deadline = time.monotonic() + timeout
        for peer in range(n_ranks):
            while self.meetings(peer) < times:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"timed out waiting for rank {peer} to come this far")
                time.sleep(_LOOK_EVERY)

    def agree(self) -> None:
        """Nothing to do: ranks on one machine have one clock."""

    def now(self) -> int:
        """The machine's monotonic clock (ns)."""
        return time.monotonic_ns()


Address = tuple[str, int]
Ends = tuple[Address, Address]
"""A connection: own address, and the peer's."""


@dataclass(frozen=True)
class Self:
    """What a piece of work may use.

    Attributes:
        rank: This rank.
        n_ranks: Number of ranks.
        timeout: Seconds that it may wait for others.
        board: What it shares with them.
        foreign: Connections of this process that are none of the group's.
    """

    rank: int
    n_ranks: int
    timeout: float
    board: Board
    foreign: frozenset[Ends] = frozenset()

    def says(self, text: str) -> None:
        """Note what this rank is doing, for the case that it does not come back."""
        self.board.note(self.rank, text)

    def meet(self) -> None:
        """Wait until every rank has met as often, with no byte on the group's connections.

        Raises:
            TimeoutError: A rank has not come in time.
        """
        self.board.meet(self.rank, self.n_ranks, self.timeout)
