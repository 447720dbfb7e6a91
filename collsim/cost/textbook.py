"""The textbook's forms: one-port Hockney, a message of n bytes occupies its sender for α + nβ.

They are labels to compare with, not oracles: collsim puts latency on the links, so a sender is
free again after nβ. p ranks, n bytes of the collective's argument, S segments, L = ⌈log2 p⌉.

References: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
MPICH, International Journal of High Performance Computing Applications 19(1), 2005;
Pjesivac-Grbovic et al.: Performance Analysis of MPI Collective Operations, Cluster Computing
10(2), 2007; Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and
scan, Parallel Computing 35(12), 2009; Träff: doi 10.1145/3735139 (circulant).

The trees made for a machine (logp_optimal, postal) are known in LogGP and the postal model, where a
sender is free again after max(g, o + nG): their form is the time of the best tree there, whatever
tree is given (Karp, Sahay, Santos, Schauser, SPAA 1993; Bar-Noy, Kipnis, SPAA 1992).

gloo's broadcast and all_gather have no form: their messages share a link as they happen to meet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, Final

from collsim.collectives.broadcast.optimal import greedy_tree
from collsim.program import LogGP


@dataclass(frozen=True, slots=True)
class Case:
    """What the forms look at.

    Attributes:
        p: Number of ranks, at least 2.
        n: Bytes of the collective's argument.
        segments: Segments of a segmented algorithm.
        alpha: Latency of a message (s).
        beta: Time for a byte (s).
        parameters: The program's own parameters.
        overhead: What a send costs the CPU (s), part of alpha already; only LogGP's forms ask.
        gap: Least time between the starts of two sends (s); only LogGP's forms ask.
    """

    p: int
    n: int
    segments: int
    alpha: float
    beta: float
    parameters: Mapping[str, Any]
    overhead: float = 0.0
    gap: float = 0.0

    @property
    def levels(self) -> int:
        """⌈log2 p⌉."""
        return (self.p - 1).bit_length()

    def message(self, nbytes: float) -> float:
        """α + nβ."""
        return self.alpha + nbytes * self.beta


def one_after_the_other(c: Case) -> float:
    """(p − 1)(α + nβ)."""
    return (c.p - 1) * c.message(c.n)


def at_once(c: Case) -> float:
    """α + (p − 1)nβ: all posted at once on a shared uplink."""
    return c.alpha + (c.p - 1) * c.n * c.beta


def chain(c: Case) -> float:
    """(p − 2 + S)(α + nβ/S)."""
    return (c.p - 2 + c.segments) * c.message(c.n / c.segments)


def binary(c: Case) -> float:
    """2(⌊log2 p⌋ − 1 + S)(α + nβ/S)."""
    return 2 * (c.p.bit_length() - 2 + c.segments) * c.message(c.n / c.segments)


def split_binary(c: Case) -> float:
    """2(⌊log2 p⌋ − 1 + S/2)(α + nβ/S) + α + nβ/2, half of the S segments in each half."""
    halves = ceil(c.segments / 2)
    down = 2 * (c.p.bit_length() - 2 + halves) * c.message(c.n / (2 * halves))
    return down + c.message(c.n / 2)


def binomial(c: Case) -> float:
    """L(α + nβ)."""
    return c.levels * c.message(c.n)


def knomial(c: Case) -> float:
    """(k − 1)⌈log_k p⌉(α + nβ)."""
    k = int(c.parameters.get("k", 4))
    return (k - 1) * ceil(log(c.p, k) - 1e-9) * c.message(c.n)


def scatter_doubling(c: Case) -> float:
    """2Lα + 2nβ(p − 1)/p."""
    return 2 * c.levels * c.alpha + 2 * c.n * c.beta * (c.p - 1) / c.p


def scatter_ring(c: Case) -> float:
    """(L + p − 1)α + 2nβ(p − 1)/p."""
    return (c.levels + c.p - 1) * c.alpha + 2 * c.n * c.beta * (c.p - 1) / c.p


def two_trees(c: Case) -> float:
    """(2L + 2k)(α + nβ/2k), where each tree carries k segments."""
    segments = 2 * ceil(c.segments / 2)
    return (2 * c.levels + segments) * c.message(c.n / segments)


def circulant(c: Case) -> float:
    """(L − 1 + S)(α + nβ/S)."""
    return (c.levels - 1 + c.segments) * c.message(c.n / c.segments)


def best_tree(c: Case) -> float:
    """The last time of the greedy tree: flight α + nβ, occupancy max(g, o + nβ)."""
    occupancy = max(c.gap, c.overhead + c.n * c.beta)
    return greedy_tree(c.p, c.message(c.n), occupancy)[1][-1]


def two_level(c: Case) -> float:
    """Binomial between hosts, then binomial inside the largest host."""
    groups = c.parameters.get("groups") or [range(c.p)]
    inside = (max(len(group) for group in groups) - 1).bit_length()
    return ((len(groups) - 1).bit_length() + inside) * c.message(c.n)


def tree_of_blocks(c: Case) -> float:
    """Lα + (p − 1)nβ: binomial scatter, recursive doubling, Bruck."""
    return c.levels * c.alpha + (c.p - 1) * c.n * c.beta


def neighbour_exchange(c: Case) -> float:
    """(p/2)α + (p − 1)nβ."""
    return c.p / 2 * c.alpha + (c.p - 1) * c.n * c.beta


def gather_broadcast(c: Case) -> float:
    """Lα + (p − 1)nβ up, then L(α + p·nβ) down."""
    return tree_of_blocks(c) + c.levels * c.message(c.p * c.n)


FORMS: Final[Mapping[tuple[str, str], Callable[[Case], float]]] = {
    ("broadcast", "flat"): one_after_the_other,
    ("broadcast", "flat_at_once"): at_once,
    ("broadcast", "chain"): chain,
    ("broadcast", "binary"): binary,
    ("broadcast", "split_binary"): split_binary,
    ("broadcast", "binomial"): binomial,
    ("broadcast", "binomial_halving"): binomial,
    ("broadcast", "knomial"): knomial,
    ("broadcast", "scatter_ring_all_gather"): scatter_ring,
    ("broadcast", "scatter_rd_all_gather"): scatter_doubling,
    ("broadcast", "postal"): best_tree,
    ("broadcast", "logp_optimal"): best_tree,
    ("broadcast", "two_trees"): two_trees,
    ("broadcast", "circulant"): circulant,
    ("broadcast", "two_level"): two_level,
    ("scatter", "linear"): one_after_the_other,
    ("scatter", "binomial"): tree_of_blocks,
    ("scatter", "gloo"): at_once,
    ("all_gather", "ring"): one_after_the_other,
    ("all_gather", "recursive_doubling"): tree_of_blocks,
    ("all_gather", "bruck"): tree_of_blocks,
    ("all_gather", "neighbour_exchange"): neighbour_exchange,
    ("all_gather", "gather_broadcast"): gather_broadcast,
}
"""Forms by collective and algorithm."""


def textbook_seconds(
    collective: str,
    algorithm: str,
    n_ranks: int,
    nbytes: int,
    segments: int,
    loggp: LogGP,
    parameters: Mapping[str, Any] | None = None,
) -> float | None:
    """The textbook's time (s), None if there is no form for this algorithm.

    α is the latency and both overheads, β the gap per byte.
    """
    form = FORMS.get((collective, algorithm))
    if form is None:
        return None
    if n_ranks == 1:
        return 0.0
    alpha = loggp.L + 2 * loggp.o
    case = Case(n_ranks, nbytes, segments, alpha, loggp.G, parameters or {}, loggp.o, loggp.g)
    return form(case)


BEST_SEGMENTS: Final[Mapping[str, Callable[[Case], float]]] = {
    "chain": lambda c: sqrt((c.p - 2) * c.n * c.beta / c.alpha),
    "binary": lambda c: sqrt((c.p.bit_length() - 2) * c.n * c.beta / c.alpha),
    "split_binary": lambda c: 2 * sqrt((c.p.bit_length() - 2) * c.n * c.beta / (2 * c.alpha)),
    "circulant": lambda c: sqrt((c.levels - 1) * c.n * c.beta / c.alpha),
    "two_trees": lambda c: 2 * sqrt(c.levels * c.n * c.beta / (2 * c.alpha)),
}
"""The number of segments that makes the textbook's form least, as a real number.

S* = √(a·nβ/α) where the form is (a + S)(α + nβ/S), and 2k* = 2√(a·nβ/2α) where k segments in each
half give (a + k)(α + nβ/2k). Two trees have 2(L + k), so a = L. Without latency there is no best.
"""


def best_segments(algorithm: str, n_ranks: int, nbytes: int, loggp: LogGP) -> int:
    """The whole number of segments that makes the textbook's form of a broadcast least.

    It is even for algorithms that cut the message into halves first.

    >>> best_segments("chain", 8, 1 << 20, LogGP(L=10e-6, G=0.8e-9))
    22

    Raises:
        ValueError: The algorithm is not segmented, or there is no latency, so that more segments
            are always better.
    """
    if algorithm not in BEST_SEGMENTS:
        known = ", ".join(BEST_SEGMENTS)
        raise ValueError(f"algorithm must be one of {known}, got {algorithm!r}")
    alpha = loggp.L + 2 * loggp.o
    if not alpha > 0:
        raise ValueError(f"the latency L + 2 o must be above 0, got {alpha}")
    if n_ranks == 1:
        return 1

    def seconds(segments: int) -> float:
        return FORMS["broadcast", algorithm](Case(n_ranks, nbytes, segments, alpha, loggp.G, {}))

    step = 2 if algorithm in ("split_binary", "two_trees") else 1
    star = BEST_SEGMENTS[algorithm](Case(n_ranks, nbytes, 1, alpha, loggp.G, {}))
    below = max(step, step * int(star / step))
    return min(below, below + step, key=seconds)  # the form is convex: the best one is next to S*
