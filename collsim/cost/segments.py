"""The best segment size, searched on closed forms of our own semantics."""

from collections.abc import Callable, Mapping
from math import ceil, inf
from typing import Final

from collsim.program import LogGP

MIN_SEGMENT: Final = 1 << 10
MAX_SEGMENTS: Final = 1024

Form = Callable[[int, int, float, float], float]
"""``form(n_ranks, segments, alpha, transmission)``: makespan (s) when each segment takes
`transmission` seconds on a link and `alpha` seconds more to arrive."""


def chain_rendezvous(p: int, s: int, alpha: float, transmission: float) -> float:
    """Every round ends with an arrival: p − 2 + S rounds."""
    return (p - 2 + s) * (alpha + transmission)


def chain_eager(p: int, s: int, alpha: float, transmission: float) -> float:
    """Segments follow each other without pause; only the first hops pay the latency."""
    return (p - 1) * alpha + (p - 2 + s) * transmission


FORMS: Final[Mapping[tuple[str, str, str], Form]] = {
    ("broadcast", "chain", "rendezvous"): chain_rendezvous,
    ("broadcast", "chain", "eager"): chain_eager,
}
"""Forms by collective, algorithm and protocol."""


def best_segment(
    collective: str, algorithm: str, n_ranks: int, nbytes: int, loggp: LogGP, protocol: str
) -> int:
    """The segment size (bytes) with the least makespan on an ideal network.

    Powers of two from 1 KiB are tried, as long as there are at most 1024 segments, and the whole
    message. A message of up to 1 KiB is one segment. At equal makespans, the larger one counts.
    """
    form = FORMS[collective, algorithm, protocol]
    best, least = max(1, nbytes), inf
    size = MIN_SEGMENT
    candidates = [max(1, nbytes)]
    while size < nbytes:
        if ceil(nbytes / size) <= MAX_SEGMENTS:
            candidates.append(size)
        size *= 2
    for segment in sorted(candidates, reverse=True):
        segments = max(1, ceil(nbytes / segment))
        alpha = loggp.L + 2 * loggp.o
        makespan = form(n_ranks, segments, alpha, nbytes / segments * loggp.G)
        if makespan < least:
            best, least = segment, makespan
    return best
