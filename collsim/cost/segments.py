"""The best segment size, searched on closed forms of our own semantics.

The forms are for equal segments, in seconds. They are exact, except where they say otherwise.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import ceil, inf
from typing import Final

from collsim.collectives import COLLECTIVES
from collsim.collectives.broadcast.two_trees import two_trees
from collsim.collectives.describe import Formula, describe
from collsim.cost import pipelined
from collsim.cost.ideal import Case, Ideal
from collsim.network import picoseconds
from collsim.program import LogGP

MIN_SEGMENT: Final = 1 << 10
MAX_SEGMENTS: Final = 1024

ROUNDING: Final = 1e-12
"""Relative difference of makespans that are meant to be equal."""

Form = Callable[[int, int, float, float], float]
"""``form(p, s, alpha, takes)``: makespan (s) on p ranks of a message in s segments, each of which
takes `takes` seconds on a link and `alpha` seconds more to arrive."""


def chain_rendezvous(p: int, s: int, alpha: float, takes: float) -> float:
    """Every round ends with an arrival: p − 2 + S rounds."""
    return (p - 2 + s) * (alpha + takes)


def chain_eager(p: int, s: int, alpha: float, takes: float) -> float:
    """Segments follow each other without pause; only the first hops pay the latency."""
    return (p - 1) * alpha + (p - 2 + s) * takes


def binary_rendezvous(p: int, s: int, alpha: float, takes: float) -> float:
    """The root sends a segment to its first child once that has received the one before."""
    period = alpha + takes if p == 2 else takes + max(alpha, takes)
    return tree_reach(p, alpha, takes) + (s - 1) * period


def binary_eager(p: int, s: int, alpha: float, takes: float) -> float:
    """Segments follow each other as fast as the root's link takes them."""
    return tree_reach(p, alpha, takes) + (s - 1) * min(2, p - 1) * takes


def tree_reach(p: int, alpha: float, takes: float) -> float:
    """When the first segment has reached the last rank of a binary tree.

    A rank's path from the root are the binary digits of v + 1 after the first one, where a one
    stands for a second child, which its parent serves after the first. The latest rank is the one
    with the most ones of the lowest level, or the last one of the level above.
    """
    depth = p.bit_length() - 1
    second = (p - (1 << depth) + 1).bit_length() - 1  # ones, at most, on the lowest level
    lowest = depth * alpha + (depth + second) * takes
    return max(lowest, (depth - 1) * (alpha + 2 * takes))


def split_binary_rendezvous(p: int, s: int, alpha: float, takes: float) -> float:
    """Streams of S/2 segments down both sides, as in a binary tree, and the swap of halves."""
    period = alpha + takes if p == 2 else takes + max(alpha, takes)
    streamed = _sides_reach(p, alpha, takes) + (s / 2 - 1) * period
    return streamed + alpha + s / 2 * takes


def split_binary_eager(p: int, s: int, alpha: float, takes: float) -> float:
    """Nearly so: the root may begin its swap a little earlier."""
    streamed = _sides_reach(p, alpha, takes) + (s / 2 - 1) * min(2, p - 1) * takes
    return streamed + alpha + s / 2 * takes


def _sides_reach(p: int, alpha: float, takes: float) -> float:
    """When the first segments of both halves have reached the last ranks of their sides."""
    first = takes + tree_reach(p // 2, alpha, takes)
    second = 2 * takes + tree_reach((p - 1) // 2, alpha, takes) if p > 2 else 0.0
    return alpha + max(first, second)


def circulant(p: int, s: int, alpha: float, takes: float) -> float:
    """Nearly (L − 1 + S)(α + nβ/S); the first S mod L segments, exactly, tell by how much.

    L segments more take L full rounds more. Eager messages save a little of the latency, which
    this does not know.
    """
    q = max(1, (p - 1).bit_length())
    few = (s - 1) % q + 1
    ideal = Ideal(picoseconds(alpha), 1 / takes if takes else inf)
    exact = pipelined.circulant(Case(p, few, few, ideal))  # a segment is a byte of `takes` seconds
    return (exact or 0) * 1e-12 + (s - few) * (alpha + takes)


def two_trees_rendezvous(p: int, s: int, alpha: float, takes: float) -> float:
    """At most what the algorithm's docstring says."""
    return _two_trees().value(p=p, n=s * takes, S=s, alpha=alpha, beta=1.0) or 0.0


@cache
def _two_trees() -> Formula:
    return describe(two_trees).formulas["Makespan"]


def two_trees_eager(p: int, s: int, alpha: float, takes: float) -> float:
    """About (L − 1)(α + 2nβ/S) for the first segments, and then nβ: the root's link is busy."""
    return ((p - 1).bit_length() - 1) * (alpha + 2 * takes) + alpha + s * takes


FORMS: Final[Mapping[tuple[str, str, str], Form]] = {
    ("broadcast", "chain", "rendezvous"): chain_rendezvous,
    ("broadcast", "chain", "eager"): chain_eager,
    ("broadcast", "binary", "rendezvous"): binary_rendezvous,
    ("broadcast", "binary", "eager"): binary_eager,
    ("broadcast", "split_binary", "rendezvous"): split_binary_rendezvous,
    ("broadcast", "split_binary", "eager"): split_binary_eager,
    ("broadcast", "two_trees", "rendezvous"): two_trees_rendezvous,
    ("broadcast", "two_trees", "eager"): two_trees_eager,
    ("broadcast", "circulant", "rendezvous"): circulant,
    ("broadcast", "circulant", "eager"): circulant,
}
"""Forms by collective, algorithm and protocol: all segmented algorithms."""


def best_segment(
    collective: str, algorithm: str, n_ranks: int, nbytes: int, loggp: LogGP, protocol: str
) -> int:
    """The segment size (bytes) with the least makespan on an ideal network.

    Powers of two from 1 KiB are tried, as long as there are at most 1024 segments, and the whole
    message. A message of up to 1 KiB is one segment. At equal makespans, the larger one counts.

    Raises:
        ValueError: The algorithm is not segmented, or there is no such algorithm or protocol.
    """
    form = FORMS.get((collective, algorithm, protocol))
    if form is None:
        known = ", ".join(" ".join(key) for key in FORMS)
        raise ValueError(
            f"no segments to choose for {collective} {algorithm} {protocol}; there are: {known}"
        )
    if n_ranks < 1:
        raise ValueError(f"n_ranks must be at least 1, got {n_ranks}")
    if n_ranks == 1:
        return max(1, nbytes)
    chunks = COLLECTIVES[collective].algorithms[algorithm].chunks
    best, least = max(1, nbytes), inf
    for segment in candidates(nbytes):
        s = chunks(n_ranks, max(1, ceil(nbytes / segment)))
        takes = loggp.occupancy(nbytes / s)
        alpha = max(0.0, loggp.flight(nbytes / s) - takes)
        makespan = form(n_ranks, s, alpha, takes)
        if makespan < least * (1 - ROUNDING):
            best, least = segment, makespan
    return best


def candidates(nbytes: int) -> list[int]:
    """The segment sizes that are tried (bytes), the largest first."""
    powers = (1 << i for i in range(MIN_SEGMENT.bit_length() - 1, nbytes.bit_length()))
    sizes = [size for size in powers if size < nbytes <= size * MAX_SEGMENTS]
    return [max(1, nbytes), *reversed(sizes)]
