"""Scatter: a block for each rank, all on the root, goes where it belongs."""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.collectives.contracts import block_per_rank, own_block, root_only
from collsim.program import Algorithm, Collective, Rank, Recv, Send, Step


def linear(me: Rank) -> Iterator[Step]:
    """Send each rank its block from the root, one after the other.

    Rounds: p - 1
    Messages: p - 1
    Bytes sent by the root: (p - 1) * n
    Bytes sent by another rank: 0
    Makespan: alpha + (p - 1) * n * beta
    Good when: blocks are large: every byte crosses the root's link just once.
    Poor when: blocks are tiny and ranks are many: the root pays an overhead for each.
    Also called: flat; Open MPI's scatter algorithm 1 (basic linear).
    Reference: Chan, Heimlich, Purkayastha, van de Geijn: Collective Communication: Theory,
        Practice, and Experience, Concurrency and Computation: Practice and Experience 19(13), 2007.
    """
    if me.virtual == 0:
        for virtual in range(1, me.n_ranks):
            dst = me.actual(virtual)
            yield Send(dst, me.block(dst)), f"the root sends rank {dst} its block"
    else:
        yield Recv(me.root, me.block(me.rank)), f"rank {me.rank} receives its block from the root"


def gloo(me: Rank) -> Iterator[Step]:
    """Start the sends of all blocks together, as gloo does.

    Rounds: 1
    Messages: p - 1
    Bytes sent by the root: (p - 1) * n
    Bytes sent by another rank: 0
    Makespan: alpha + (p - 1) * n * beta
    Good when: blocks are large, or the root has a link of its own to each rank.
    Poor when: blocks are tiny and ranks are many: the root pays an overhead for each.
    Also called: at once; what `torch.distributed.scatter` does with the backend gloo; Open MPI's
        scatter algorithm 3 (linear, non-blocking).
    Reference: gloo's source, gloo/scatter.cc.
    """
    if me.virtual > 0:
        yield Recv(me.root, me.block(me.rank)), f"rank {me.rank} receives its block from the root"
    elif me.n_ranks > 1:
        others = [me.actual(virtual) for virtual in range(1, me.n_ranks)]
        sends = (Send(dst, me.block(dst)) for dst in others)
        yield *sends, "the root sends all ranks their blocks at once"


def binomial(me: Rank) -> Iterator[Step]:
    """Send half of the blocks to the rank half-way, and let both halves do the same.

    The ranks below a rank are a run of virtual numbers. Where the run goes on from the last rank to
    rank 0, its blocks are two ranges, which travel as two messages of one step. With rank 0 as the
    root no run does, so there are p − 1 messages.

    Rounds: L
    Messages: at most p - 2 + floor(log2(p))
    Bytes sent by the root: (p - 1) * n
    Bytes sent by another rank: at most (2 ** (L - 1) - 1) * n
    Makespan: floor(log2(p)) * alpha + (p - 1) * n * beta
    Good when: blocks are small and ranks are many: the root sends only L messages.
    Poor when: blocks are large: most of them cross several links, one after the other.
    Also called: minimum spanning tree scatter; what MPICH always does; Open MPI's algorithm 2.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    span = 1  # this rank sees to the virtual numbers v … v + span − 1
    while span < me.n_ranks and me.virtual & span == 0:
        span *= 2
    if me.virtual > 0:
        parent, count = me.actual(me.virtual - span), min(span, me.n_ranks - me.virtual)
        receives = (Recv(parent, part) for part in run_of_blocks(me, me.rank, count))
        text = f"rank {me.rank} receives {spell_count(count)} from rank {parent}"
        yield *receives, text
    while span > 1:
        span //= 2
        if me.virtual + span < me.n_ranks:
            child = me.actual(me.virtual + span)
            count = min(span, me.n_ranks - me.virtual - span)
            sends = (Send(child, part) for part in run_of_blocks(me, child, count))
            text = f"rank {me.rank} hands {spell_count(count)} over to rank {child}"
            yield *sends, text


def run_of_blocks(me: Rank, first: int, count: int) -> list[range]:
    """The chunks of `count` ranks from rank `first` on: one range, or two where rank 0 follows."""
    last = first + count
    if last <= me.n_ranks:
        return [me.block(first, last)]
    return [me.block(first, me.n_ranks), me.block(0, last - me.n_ranks)]


def spell_count(n_blocks: int) -> str:
    """A number of blocks as labels name it: "1 block", "3 blocks"."""
    return f"{n_blocks} block{'s' if n_blocks > 1 else ''}"


def binomial_messages(n_ranks: int, chunks: int) -> int:
    """Messages of `binomial` with the root for which they are most.

    The runs that are two ranges are those of the ranks between the root and rank 0 in the tree,
    one for each further bit of rank 0's virtual number; at most ⌊log2 p⌋ bits are set.
    """
    return n_ranks - 1 + max(0, n_ranks.bit_length() - 2)


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "linear": Algorithm(linear, messages=lambda p, _: p - 1),
    "binomial": Algorithm(binomial, messages=binomial_messages),
    "gloo": Algorithm(gloo, messages=lambda p, _: p - 1),
}
"""Scatters."""

SCATTER: Final = Collective(
    name="scatter",
    before=root_only,
    after=own_block,
    blocks=block_per_rank,
    rooted=True,
    algorithms=ALGORITHMS,
)
"""The contract of scatter and its algorithms."""
