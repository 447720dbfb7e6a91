"""Broadcast down two binary trees at once, each of which carries half of the message.

In a pipelined binary tree the leaves, half of the ranks, send nothing. Here every rank is a leaf
of at least one of the two trees, so that nearly all ranks send as much as they receive.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.collectives.broadcast.pipelined import each_chunk_to_each, stream
from collsim.program import Algorithm, Rank, Step, halves


def two_trees(me: Rank) -> Iterator[Step]:
    """Send each half of the message down a binary tree of its own, segment by segment.

    Both trees span the ranks other than the root, which feeds their tops. A rank that passes
    segments on in one tree is a leaf of the other.

    Rounds: floor(log2(p - 1)) + S / 2
    Messages: (p - 1) * S
    Bytes sent by the root: n
    Bytes sent by another rank: at most n
    Makespan: at most (floor(log2(p - 1)) + S / 2) * (alpha + 3 * n / S * beta)
    Good when: the message is large and there are many ranks: logarithmic latency at nearly full
        bandwidth.
    Poor when: the message is small, or there are few ranks: a chain is as fast and simpler.
    Also called: double binary tree; NCCL's tree (there for all_reduce).
    Reference: Sanders, Speck, Träff: Two-tree Algorithms for Full Bandwidth Broadcast, Reduction
        and Scan, Parallel Computing 35(12), 2009.
    """
    n_places, v = me.n_ranks - 1, me.virtual
    middle = -(-me.n_chunks // 2)
    half = range(middle) if me.channel == 0 else range(middle, me.n_chunks)
    if v == 0:
        parent, below = None, [top(n_places)] if n_places else []
    else:
        place = place_of(v, n_places, me.channel)
        parent = me.actual(holder_of(parent_in_order(place, n_places), n_places, me.channel))
        below = children_in_order(place, n_places)
    children = [me.actual(holder_of(place, n_places, me.channel)) for place in below]
    yield from stream(me, half, parent, children)


def top(n_places: int) -> int:
    """The place at the top of the tree: the highest power of two."""
    return 1 << (n_places.bit_length() - 1)


def parent_in_order(place: int, n_places: int) -> int:
    """The place above `place` in a binary tree whose places 1 … n_places stand in order.

    Odd places are leaves. A place that is an odd multiple of 2^i hangs below an odd multiple of
    2^(i + 1), or, where that is beyond the end, below the next one to its left; 0 is above the top.
    """
    bit = place & -place
    above = (place - bit) | 2 * bit
    return above if above <= n_places else place - bit


def children_in_order(place: int, n_places: int) -> list[int]:
    """The places below `place`: none for an odd one, else the left one and perhaps a right one."""
    step = (place & -place) // 2
    if step == 0:
        return []
    left = place - step
    while step and place + step > n_places:
        step //= 2
    return [left, place + step] if step else [left]


def place_of(virtual: int, n_places: int, tree: int) -> int:
    """Where a rank stands in a tree: its number in the first; mirrored or shifted in the second.

    Both turn odd places into even ones; mirroring does so for an even number of places only.
    """
    if tree == 0:
        return virtual
    return n_places + 1 - virtual if n_places % 2 == 0 else (virtual - 2) % n_places + 1


def holder_of(place: int, n_places: int, tree: int) -> int:
    """The virtual number of the rank at a place, the root for place 0: `place_of` undone."""
    if tree == 0 or place == 0:
        return place
    return n_places + 1 - place if n_places % 2 == 0 else place % n_places + 1


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "two_trees": Algorithm(two_trees, messages=each_chunk_to_each, chunks=halves, channels=2),
}
"""Broadcast down two trees."""
