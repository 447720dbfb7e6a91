"""All_gather: each rank's block, copied to every rank."""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.collectives.contracts import block_per_rank, everything, own_block
from collsim.collectives.scatter import run_of_blocks, spell_count
from collsim.program import (
    ALL,
    EVEN,
    POWER_OF_TWO,
    Algorithm,
    Collective,
    Rank,
    Recv,
    Send,
    Step,
    two,
)


def ring(me: Rank) -> Iterator[Step]:
    """Pass blocks round a ring: what came in last goes on next.

    Rounds: p - 1
    Messages: p * (p - 1)
    Bytes sent by each rank: (p - 1) * n
    Makespan: (p - 1) * (alpha + n * beta)
    Good when: blocks are large, or neighbours in the ring are close.
    Poor when: blocks are small and ranks are many: every rank pays p − 1 latencies.
    Also called: Open MPI's all_gather algorithm 4.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    p, left, right = me.n_ranks, (me.rank - 1) % me.n_ranks, (me.rank + 1) % me.n_ranks
    for i in range(p - 1):
        mine, theirs = (me.rank - i) % p, (me.rank - i - 1) % p
        text = f"round {i + 1} of {p - 1}: rank {me.rank} passes block {mine} on"
        yield Send(right, me.block(mine)), Recv(left, me.block(theirs)), text


def recursive_doubling(me: Rank) -> Iterator[Step]:
    """Swap all that one has with a rank at twice the distance each time.

    Rounds: L
    Messages: p * L
    Bytes sent by each rank: (p - 1) * n
    Makespan: L * alpha + (p - 1) * n * beta
    Good when: blocks are small, and the number of ranks is a power of two.
    Poor when: distant ranks share thin links: the last round sends half of everything across.
    Also called: Open MPI's all_gather algorithm 3.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    for i in range((me.n_ranks - 1).bit_length()):
        have = 1 << i
        first = me.rank & -have  # of the `have` blocks that this rank has
        theirs = first ^ have
        peer = me.rank ^ have
        each = spell_count(have)
        text = f"round {i + 1}: rank {me.rank} and rank {peer} swap all they have, {each} each"
        mine = me.block(first, first + have)
        yield Send(peer, mine), Recv(peer, me.block(theirs, theirs + have)), text


def bruck(me: Rank) -> Iterator[Step]:
    """Double what one has in each round, for any number of ranks: get it from further right.

    Rank r has the blocks from r on. It sends them to the rank as far to the left as it has blocks,
    and receives as many from the right. A run that goes on from the last block to block 0 travels
    as two messages of one step; the usual rotation at the end is not needed.

    Rounds: L
    Messages: p * L + p - 1 - L
    Bytes sent by each rank: (p - 1) * n
    Makespan: L * alpha + (p - 1) * n * beta
    Good when: blocks are small, whatever the number of ranks.
    Poor when: distant ranks share thin links: the last round sends up to half of everything across.
    Also called: dissemination all_gather; Open MPI's all_gather algorithm 2.
    Reference: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All
        Communications in Multiport Message-Passing Systems, IEEE Transactions on Parallel and
        Distributed Systems 8(11), 1997.
    """
    have = 1
    while have < me.n_ranks:
        count = min(have, me.n_ranks - have)
        dst, src = (me.rank - have) % me.n_ranks, (me.rank + have) % me.n_ranks
        sends = (Send(dst, part) for part in run_of_blocks(me, me.rank, count))
        receives = (Recv(src, part) for part in run_of_blocks(me, src, count))
        text = f"rank {me.rank} sends {spell_count(count)} to rank {dst}, gets {count} from {src}"
        yield *sends, *receives, text
        have += count


def bruck_messages(n_ranks: int, chunks: int) -> int:
    """Messages of `bruck`: a run of m blocks is two ranges for m − 1 of the ranks."""
    rounds = (n_ranks - 1).bit_length()
    return n_ranks * rounds + n_ranks - 1 - rounds


def neighbour_exchange(me: Rank) -> Iterator[Step]:
    """Swap with the neighbours on both sides in turn, two blocks at a time.

    First, ranks 2j and 2j + 1 swap their own blocks and have pair j. Then each swaps with its other
    neighbour, with the first one, and so on, always the pair that it got last.

    Rounds: p / 2
    Messages: p * p / 2
    Bytes sent by each rank: (p - 1) * n
    Makespan: p / 2 * alpha + (p - 1) * n * beta
    Good when: neighbours are close, as on a ring or a line; half the rounds of the ring.
    Poor when: blocks are small and ranks are many.
    Also called: Open MPI's all_gather algorithm 5.
    Reference: Chen, Zhang, Zhang, Yuan: Performance Evaluation of Allgather Algorithms on
        Terascale Linux Cluster with Fast Ethernet, HPC Asia 2005.
    """
    p, pair, is_odd = me.n_ranks, me.rank // 2, me.rank % 2
    sides = (1, -1) if not is_odd else (-1, 1)  # the partner of even rounds, and of odd ones
    if p > 1:
        peer = me.rank + sides[0]
        text = f"rank {me.rank} and rank {peer} swap their own blocks"
        yield Send(peer, me.block(me.rank)), Recv(peer, me.block(peer)), text
    last = pair
    for i in range(1, p // 2):
        peer = (me.rank + sides[i % 2]) % p
        distance = (i + 1) // 2 * (1 if i % 2 == is_odd else -1)
        comes = (pair + distance) % (p // 2)
        text = f"rank {me.rank} swaps the pair that it got last with rank {peer}"
        yield (
            Send(peer, me.block(2 * last, 2 * last + 2)),
            Recv(peer, me.block(2 * comes, 2 * comes + 2)),
            text,
        )
        last = comes


def gather_broadcast(me: Rank) -> Iterator[Step]:
    """Gather all blocks on rank 0 up a binomial tree, then broadcast them down the same tree.

    Rounds: 2 * L
    Messages: 2 * (p - 1)
    Bytes sent by each rank: at most p * L * n
    Makespan: (L + floor(log2(p))) * alpha + (p - 1 + p * L) * n * beta
    Good when: blocks are tiny and the number of messages counts.
    Poor when: blocks are large: all of them go down the tree, L times over.
    Also called: Open MPI's all_gather algorithm 1 (there with a linear gather).
    Reference: Chan, Heimlich, Purkayastha, van de Geijn: Collective Communication: Theory,
        Practice, and Experience, Concurrency and Computation: Practice and Experience 19(13), 2007.
    """
    span = 1
    while span < me.n_ranks and me.rank & span == 0:
        if me.rank + span < me.n_ranks:
            child, last = me.rank + span, min(me.rank + 2 * span, me.n_ranks)
            text = f"gather: rank {me.rank} collects the blocks of ranks {child} to {last - 1}"
            yield Recv(child, me.block(child, last)), text
        span *= 2
    if me.rank > 0:
        parent, last = me.rank - span, min(me.rank + span, me.n_ranks)
        text = f"gather: rank {me.rank} sends all that it has to rank {parent}"
        yield Send(parent, me.block(me.rank, last)), text
        yield Recv(parent, ALL), f"broadcast: rank {me.rank} receives everything of rank {parent}"
    while span > 1:
        span //= 2
        if me.rank + span < me.n_ranks:
            child = me.rank + span
            yield Send(child, ALL), f"broadcast: rank {me.rank} sends everything to rank {child}"


def gloo(me: Rank) -> Iterator[Step]:
    """Pass half blocks round a ring, two on their way at a time, as gloo does.

    The halves do not wait for each other: each is a channel of its own.

    Rounds: p - 1
    Messages: 2 * p * (p - 1)
    Bytes sent by each rank: (p - 1) * n
    Makespan: alpha + n * beta + (p - 2) * max(alpha + ceil(n / 2) * beta, n * beta)
    Good when: blocks are large: one half's latency hides behind the other's transmission.
    Poor when: blocks are small and ranks are many: every rank pays p − 1 latencies.
    Also called: what `torch.distributed.all_gather` does with the backend gloo.
    Reference: gloo's source, gloo/allgather.cc.
    """
    p, left, right = me.n_ranks, (me.rank - 1) % me.n_ranks, (me.rank + 1) % me.n_ranks
    for i in range(p - 1):
        mine, theirs = (me.rank - i) % p, (me.rank - i - 1) % p
        half = "first" if me.channel == 0 else "second"
        text = f"round {i + 1} of {p - 1}: rank {me.rank} passes the {half} half of block {mine} on"
        sent, received = me.block(mine)[me.channel], me.block(theirs)[me.channel]
        yield Send(right, sent), Recv(left, received), text


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "ring": Algorithm(ring, messages=lambda p, _: p * (p - 1)),
    "recursive_doubling": Algorithm(
        recursive_doubling, messages=lambda p, _: p * (p - 1).bit_length(), ranks=POWER_OF_TWO
    ),
    "bruck": Algorithm(bruck, messages=bruck_messages),
    "neighbour_exchange": Algorithm(
        neighbour_exchange, messages=lambda p, _: p * p // 2 if p > 1 else 0, ranks=EVEN
    ),
    "gather_broadcast": Algorithm(gather_broadcast, messages=lambda p, _: 2 * (p - 1)),
    "gloo": Algorithm(gloo, messages=lambda p, _: 2 * p * (p - 1), chunks=two, channels=2),
}
"""All_gathers."""

ALL_GATHER: Final = Collective(
    name="all_gather",
    before=own_block,
    after=everything,
    blocks=block_per_rank,
    rooted=False,
    algorithms=ALGORITHMS,
)
"""The contract of all_gather and its algorithms."""
