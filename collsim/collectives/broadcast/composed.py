"""Broadcasts made of a scatter and an all_gather (van de Geijn's idea).

The message is cut into a block for each rank: block v belongs to virtual number v. Each rank gets
its block first, and then they all collect each other's.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.program import POWER_OF_TWO, Algorithm, Rank, Recv, Send, Step, one_per_rank


def scatter_ring_all_gather(me: Rank) -> Iterator[Step]:
    """Scatter the message down a binomial tree, then pass the blocks round a ring.

    Rounds: L + p - 1
    Messages: (p - 1) * (p + 1)
    Bytes sent by the root: 2 * (p - 1) * n / p
    Bytes sent by another rank: at most (p - 1 + 2**(L - 1) - 1) * n / p
    Makespan: (floor(log2(p)) + p - 1) * alpha + 2 * (p - 1) / p * n * beta
    Good when: the message is large and there are not too many ranks.
    Poor when: the message is small: every rank pays p − 1 latencies in the ring.
    Also called: van de Geijn's algorithm; Open MPI's broadcast algorithm 9; what MPICH does with
        large messages.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    yield from scatter_phase(me)
    yield from ring_phase(me)


def scatter_rd_all_gather(me: Rank) -> Iterator[Step]:
    """Scatter the message down a binomial tree, then gather it by recursive doubling.

    Rounds: 2 * L
    Messages: p - 1 + p * L
    Bytes sent by the root: 2 * (p - 1) * n / p
    Bytes sent by another rank: at most (p - 1 + 2**(L - 1) - 1) * n / p
    Makespan: 2 * L * alpha + 2 * (p - 1) / p * n * beta
    Good when: the message is of middle size: the root sends it less than twice, in 2 L rounds.
    Poor when: the message is very large, or ranks that are far apart share thin links.
    Also called: van de Geijn's algorithm; Open MPI's broadcast algorithm 8; what MPICH does with
        messages of middle size.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    yield from scatter_phase(me)
    yield from doubling_phase(me)


def scatter_phase(me: Rank) -> Iterator[Step]:
    """Give each rank its block, down a binomial tree: half of the blocks go on at each turn."""
    span = 1  # this rank passes on the blocks up to v + span − 1
    while span < me.n_ranks and me.virtual & span == 0:
        span *= 2
    if me.virtual > 0:
        parent = me.actual(me.virtual - span)
        text = f"scatter: rank {me.rank} receives its share of the blocks from rank {parent}"
        yield Recv(parent, blocks(me, me.virtual, span)), text
    while span > 1:
        span //= 2
        if me.virtual + span < me.n_ranks:
            child = me.actual(me.virtual + span)
            text = f"scatter: rank {me.rank} gives half of its blocks to rank {child}"
            yield Send(child, blocks(me, me.virtual + span, span)), text


def ring_phase(me: Rank) -> Iterator[Step]:
    """Pass the blocks on to the right, one each step, until every rank has seen all of them."""
    p, v = me.n_ranks, me.virtual
    left, right = me.actual(v - 1), me.actual(v + 1)
    for i in range(p - 1):
        mine, theirs = (v - i) % p, (v - i - 1) % p
        text = f"ring step {i + 1}: rank {me.rank} passes block {mine} on, block {theirs} comes in"
        yield Send(right, blocks(me, mine, 1)), Recv(left, blocks(me, theirs, 1)), text


def doubling_phase(me: Rank) -> Iterator[Step]:
    """Swap all that one has with a rank at twice the distance each time (p a power of two)."""
    for i in range((me.n_ranks - 1).bit_length()):
        have = 1 << i
        mine = me.virtual & -have  # the first block of the `have` that this rank has
        theirs = mine ^ have
        peer = me.actual(me.virtual ^ have)
        text = f"doubling step {i + 1}: rank {me.rank} and rank {peer} swap their {have} blocks"
        yield Send(peer, blocks(me, mine, have)), Recv(peer, blocks(me, theirs, have)), text


def blocks(me: Rank, first: int, count: int) -> range:
    """The chunks of up to `count` blocks, from that of virtual number `first`."""
    last = min(first + count, me.n_ranks)
    return range(first * me.n_chunks // me.n_ranks, last * me.n_chunks // me.n_ranks)


def scatter_and_ring(n_ranks: int, chunks: int) -> int:
    """Messages of `scatter_ring_all_gather`."""
    return (n_ranks - 1) * (n_ranks + 1)


def scatter_and_doubling(n_ranks: int, chunks: int) -> int:
    """Messages of `scatter_rd_all_gather`."""
    return n_ranks - 1 + n_ranks * (n_ranks - 1).bit_length()


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "scatter_ring_all_gather": Algorithm(
        scatter_ring_all_gather, messages=scatter_and_ring, chunks=one_per_rank
    ),
    "scatter_rd_all_gather": Algorithm(
        scatter_rd_all_gather,
        messages=scatter_and_doubling,
        chunks=one_per_rank,
        ranks=POWER_OF_TWO,
    ),
}
"""Broadcasts in two phases."""
