"""Times of messages and broadcasts between real ranks, here, in a lab, or on a cluster."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from collsim.collectives import COLLECTIVES
from collsim.gloo import RankGroup
from collsim.gloo.lab import Shape
from collsim.gloo.shaping import shaped_group
from collsim.tracing import trace

SIZES: Final = (1, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
ROUNDS: Final = 5
"""How often each size is visited, at random moments: a disturbance must not fall on one size."""

BROADCAST_SIZES: Final = (1, 64 << 10, 1 << 20)
MOST_SECONDS: Final = 0.5
"""A size whose messages take longer is visited once only."""


@dataclass(frozen=True)
class Message:
    """One measured message between rank 0 and a peer: half a round trip.

    Attributes:
        peer: The other rank.
        nbytes: Bytes.
        seconds: What it took.
    """

    peer: int
    nbytes: int
    seconds: float


@dataclass(frozen=True)
class Measured:
    """All times.

    Attributes:
        messages: Between rank 0 and each peer.
        broadcasts: Median seconds of torch's own broadcast from rank 0, by bytes.
        machines: Name of each rank's machine; () if all are on this one.
    """

    messages: tuple[Message, ...]
    broadcasts: tuple[tuple[int, float], ...]
    machines: tuple[str, ...]


def measure(
    n_ranks: int,
    start: Callable[..., AbstractContextManager[RankGroup]],
    progress: Callable[[str], None] = lambda title: None,
    *,
    timeout: float = 60.0,
    seed: int = 0,
) -> Measured:
    """Measure messages and broadcasts.

    Args:
        n_ranks: How many ranks.
        start: Makes a group of them, from their number and the timeout.
        progress: Called with what is under way.
        timeout: Seconds that one piece of work may take.
        seed: Of the order of sizes.

    Raises:
        ExecutionUnavailable: There is no torch, or no lab.
        ExecutionError: A rank died, hung or raised.
    """
    with start(n_ranks, timeout=timeout) as group:
        messages = tuple(_messages(group, progress, random.Random(seed)))
        progress("broadcasts")
        broadcasts = tuple((nbytes, _broadcast(group, nbytes)) for nbytes in BROADCAST_SIZES)
        return Measured(messages, broadcasts, group.machines)


def _messages(
    group: RankGroup, progress: Callable[[str], None], order: random.Random
) -> Iterator[Message]:
    """Every size to every peer, several times over, mixed; the first of each warms up."""
    visits = [(nbytes, peer) for nbytes in SIZES for peer in range(1, group.n_ranks)]
    slow: set[tuple[int, int]] = set()
    for number in range(ROUNDS):
        progress(f"messages, round {number + 1} of {ROUNDS}")
        for nbytes, peer in order.sample(visits, len(visits)):
            if (nbytes, peer) in slow:
                continue
            repetitions = 2 if nbytes >= 1 << 20 else 6
            arguments: dict[str, Any] = {
                "peer": peer,
                "nbytes": nbytes,
                "repetitions": repetitions,
            }
            times = group.run("collsim.gloo.ranks:ping", [arguments] * group.n_ranks)[0]
            if times[0] > MOST_SECONDS:
                slow.add((nbytes, peer))
            yield from (Message(peer, nbytes, seconds) for seconds in times[1:])


def _broadcast(group: RankGroup, nbytes: int) -> float:
    """The median makespan (s) of torch's own broadcast."""
    collective = COLLECTIVES["broadcast"]
    schedule = trace(collective, collective.algorithms["gloo"], group.n_ranks)
    return median(group.native(schedule, nbytes, repetitions=2 * ROUNDS + 1).makespans)


@contextmanager
def lab_group(shape: Shape, *, timeout: float) -> Iterator[RankGroup]:
    """Ranks in a shaped network, where it is known what a calibration should find."""
    with shaped_group(shape, timeout=timeout) as shaped:
        yield shaped.group
