"""Memory that ranks and their server share: what each rank is doing, and whom it waits for."""

import mmap
import struct
import time
from dataclasses import dataclass
from typing import Final

_HEAD: Final = struct.Struct("=Qd")
_TEXT_BYTES: Final = 240
_SLOT: Final = _HEAD.size + _TEXT_BYTES
_LOOK_EVERY: Final = 0.0005


class Progress:
    """One slot a rank: how often it has met the others, what it does, and since when."""

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

    def come(self, rank: int) -> int:
        """Count one more meeting of a rank."""
        times = self.meetings(rank) + 1
        start = rank * _SLOT
        self._memory[start : start + 8] = struct.pack("=Q", times)
        return times


@dataclass(frozen=True)
class Self:
    """What a piece of work may use.

    Attributes:
        rank: This rank.
        n_ranks: Number of ranks.
        timeout: Seconds that it may wait for others.
        progress: The memory that it shares with them.
    """

    rank: int
    n_ranks: int
    timeout: float
    progress: Progress

    def says(self, text: str) -> None:
        """Note what this rank is doing, for the case that it does not come back."""
        self.progress.note(self.rank, text)

    def meet(self) -> None:
        """Wait until every rank has met as often, in shared memory: no byte on the network.

        Raises:
            TimeoutError: A rank has not come in time.
        """
        times = self.progress.come(self.rank)
        deadline = time.monotonic() + self.timeout
        for peer in range(self.n_ranks):
            while self.progress.meetings(peer) < times:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"timed out waiting for rank {peer} to come this far")
                time.sleep(_LOOK_EVERY)
