"""Exact forms of what moves a block for each rank: scatters, all_gathers, and both together.

m are the bytes of a block, p the ranks, L = ⌈log2 p⌉.
"""

from functools import cache

import numpy as np

from collsim.cost.ideal import Case, Clock, Ints

# Scatter.


def scatter_at_once(case: Case) -> int:
    """Blocks leave one after the other, started in turn or together: α + (p − 1)mβ."""
    if case.n_ranks == 1:
        return 0
    return case.alpha + (case.n_ranks - 1) * case.takes(case.nbytes)


def scatter_binomial(case: Case) -> int | None:
    """Half of the blocks leave first, then half of the rest: ⌊log2 p⌋α + (p − 1)mβ."""
    p, clock = case.n_ranks, Clock(case)
    for span in _halves(p):
        dst = np.arange(span, p, 2 * span)
        count = np.minimum(span, p - dst)
        first, second = _parts(case, (dst + case.root) % p, count)
        clock.round(dst - span, dst, first + second, first)
    return clock.makespan()


def _halves(p: int) -> list[int]:
    """The powers of two below p, the largest first."""
    return [1 << i for i in reversed(range((p - 1).bit_length()))]


def _parts(case: Case, first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Times (ps) of a run of blocks from rank `first` on: up to the last rank, and round the end.

    Each is a message; the second one may have no blocks, and is not sent then.
    """
    before = np.minimum(count, case.n_ranks - first)
    nbytes = float(case.nbytes)  # as integers, the bytes of many blocks could overflow
    return case.takes_each(before * nbytes), case.takes_each((count - before) * nbytes)


# All_gather. Where all ranks do the same, rounds follow each other alike under both protocols.


def ring(case: Case) -> int:
    """In each of p − 1 rounds, all ranks pass on a block: (p − 1)(α + mβ)."""
    return (case.n_ranks - 1) * (case.alpha + case.takes(case.nbytes))


def recursive_doubling(case: Case) -> int:
    """In each of L rounds, all ranks swap twice as many blocks: Lα + (p − 1)mβ."""
    counts = _halves(case.n_ranks)
    return len(counts) * case.alpha + sum(case.takes(n * case.nbytes) for n in counts)


def bruck(case: Case) -> int | None:
    """The same for any p, the last round having what remains: Lα + (p − 1)mβ.

    A run of blocks that wraps is two messages, which may take a picosecond more than one: so ranks
    are not all alike.
    """
    p, clock = case.n_ranks, Clock(case)
    ranks = np.arange(p)
    for have in reversed(_halves(p)):
        first, second = _parts(case, ranks, np.full(p, min(have, p - have)))
        clock.round(ranks, (ranks - have) % p, first + second, np.where(second > 0, first, 0))
    return clock.makespan()


def neighbour_exchange(case: Case) -> int:
    """All ranks swap a block, and then two in each round: p/2·α + (p − 1)mβ."""
    if case.n_ranks == 1:
        return 0
    one, pair = case.takes(case.nbytes), case.takes(2 * case.nbytes)
    return case.alpha + one + (case.n_ranks // 2 - 1) * (case.alpha + pair)


def gather_broadcast(case: Case) -> int:
    """Up a binomial tree and down again: ⌊log2 p⌋α + L·pmβ after the gather.

    Rendezvous: a rank takes in one child's blocks after the other, Lα + (p − 1)mβ for p = 2^L. If
    eager, they queue at its link in the order in which they come.
    """
    p, alpha = case.n_ranks, case.alpha
    is_eager = case.ideal.protocol == "eager"

    @cache
    def gathered(size: int) -> int:
        """When the first of `size` ranks has the blocks of all."""
        children = [min(span, size - span) for span in reversed(_halves(size))]
        sent = [(gathered(child), case.takes(child * case.nbytes)) for child in children]
        now = 0
        for ready, takes in sorted(sent) if is_eager else sent:
            now = max(now, ready + alpha) + takes if is_eager else max(now, ready) + alpha + takes
        return now

    down = (p.bit_length() - 1) * alpha + (p - 1).bit_length() * case.takes(p * case.nbytes)
    return gathered(p) + down


# Broadcast as a scatter and an all_gather.


def scatter_ring_all_gather(case: Case) -> int | None:
    """Halves down a binomial tree, then p − 1 rounds in which every rank passes a block on.

    Equal blocks: (⌊log2 p⌋ + p − 1)α + 2(p − 1)/p·nβ.
    """
    p, clock = case.n_ranks, Clock(case)
    _scatter_shares(case, clock)
    ranks = np.arange(p)
    shares = _takes_shares(case, ranks, 1)
    for i in range(p - 1):
        clock.round(ranks, (ranks + 1) % p, shares[(ranks - i) % p])
    return clock.makespan()


def scatter_rd_all_gather(case: Case) -> int | None:
    """Halves down a binomial tree, then L rounds in which partners swap all that they have.

    Equal blocks: 2Lα + 2(p − 1)/p·nβ.
    """
    p, clock = case.n_ranks, Clock(case)
    _scatter_shares(case, clock)
    ranks = np.arange(p)
    for have in reversed(_halves(p)):
        clock.round(ranks, ranks ^ have, _takes_shares(case, ranks & -have, have))
    return clock.makespan()


def _scatter_shares(case: Case, clock: Clock) -> None:
    """Give each rank its share of one message, as `scatter_binomial` does."""
    for span in _halves(case.n_ranks):
        dst = np.arange(span, case.n_ranks, 2 * span)
        clock.round(dst - span, dst, _takes_shares(case, dst, span))


def _takes_shares(case: Case, first: Ints, count: int) -> Ints:
    """Times (ps) of up to `count` of p shares of one message, from share `first` on."""
    p, n_chunks = case.n_ranks, case.n_chunks
    ends = np.minimum(first + count, p) * n_chunks // p
    return case.takes_each(case.offsets[ends] - case.offsets[first * n_chunks // p])
