"""Clocks of different machines: how far each is from rank 0's.

Cristian's method (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3,
1989): ask for the time, and take it for that of the middle of the round trip. The shortest of
several round trips is the best witness; its error is at most half of it.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

ROUND_TRIPS: Final = 20


def clock_name() -> str:
    """Which monotonic clock this process reads: the machine's start, and its time namespace."""
    started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{started} {Path('/proc/self/ns/time').readlink()}"


def best_offset(samples: Iterable[tuple[int, int, int]]) -> int:
    """Nanoseconds to add to one's own clock, from (asked, the other's time, answered)."""
    asked, theirs, answered = min(samples, key=lambda sample: sample[2] - sample[0])
    return theirs - (asked + answered) // 2


def offset_to_rank_0(rank: int, clocks: Sequence[str]) -> int:
    """Nanoseconds to add to this rank's clock to read rank 0's; all ranks call it together.

    Ranks that read one clock with rank 0 exchange nothing.

    Args:
        rank: This rank.
        clocks: Each rank's `clock_name`.
    """
    for peer, name in enumerate(clocks):
        if name != clocks[0]:
            if rank == 0:
                _tell(peer)
            elif rank == peer:
                return best_offset(_ask() for _ in range(ROUND_TRIPS))
    return 0


def _tell(peer: int) -> None:
    """Answer a rank that asks for the time."""
    import torch
    import torch.distributed as dist

    for _ in range(ROUND_TRIPS):
        dist.recv(torch.zeros(1, dtype=torch.int64), peer)
        dist.send(torch.tensor([time.monotonic_ns()]), peer)


def _ask() -> tuple[int, int, int]:
    """Ask rank 0 for the time once."""
    import torch
    import torch.distributed as dist

    answer = torch.zeros(1, dtype=torch.int64)
    asked = time.monotonic_ns()
    dist.send(answer, 0)
    dist.recv(answer, 0)
    return asked, int(answer), time.monotonic_ns()
