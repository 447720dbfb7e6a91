"""Broadcasts that cut the message into segments and keep several on their way."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from collsim.collectives.broadcast.trees import spell_ranks
from collsim.program import Algorithm, Rank, Recv, Send, Step, halves, segmented


def stream(
    me: Rank, segments: range, parent: int | None, children: Sequence[int]
) -> Iterator[Step]:
    """Pass `segments` on from `parent` to all `children`, one segment after the other.

    While one segment comes in, the one before it goes out, to all children at once. The rank that
    has no parent holds the segments already.
    """
    to = spell_ranks([*children]) if children else ""
    for s in range(segments.start, segments.stop + 1):
        passes_on = [Send(child, s - 1) for child in children] if s > segments.start else []
        receives = Recv(parent, s) if parent is not None and s < segments.stop else None
        if passes_on and receives:
            text = f"rank {me.rank} passes segment {s - 1} on to {to} as segment {s} comes in"
            yield *passes_on, receives, text
        elif passes_on:
            yield *passes_on, f"rank {me.rank} passes segment {s - 1} on to {to}"
        elif receives:
            yield receives, f"rank {me.rank} receives segment {s} from rank {parent}"


def chain(me: Rank) -> Iterator[Step]:
    """Pass the message down a line of ranks, segment by segment.

    A rank passes segment s − 1 on while it receives segment s.

    Rounds: p - 2 + S
    Messages: (p - 1) * S
    Bytes sent by the root: n
    Bytes sent by another rank: at most n
    Makespan: (p - 2 + S) * (alpha + n / S * beta)
    Good when: the message is large and the ranks are few, or the network is a ring or a line.
    Poor when: there are many ranks: the first segment needs p − 1 hops.
    Also called: pipeline, pipelined ring; Open MPI's broadcast algorithms 2 and 3; with one
        segment, the unsegmented chain.
    Reference: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance Analysis of
        MPI Collective Operations, Cluster Computing 10(2), 2007.
    """
    parent = me.actual(me.virtual - 1) if me.virtual > 0 else None
    children = [me.actual(me.virtual + 1)] if me.virtual + 1 < me.n_ranks else []
    yield from stream(me, range(me.n_chunks), parent, children)


def binary(me: Rank) -> Iterator[Step]:
    """Pass the message down a binary tree, segment by segment.

    The children of v are 2v + 1 and 2v + 2, and each rank sends a segment to both at once.

    Rounds: floor(log2(p)) - 1 + S
    Messages: (p - 1) * S
    Bytes sent by the root: min(2, p - 1) * n
    Bytes sent by another rank: at most 2 * n
    Makespan: at most floor(log2(p)) * (alpha + 2 * n / S * beta)
        + (S - 1) * (n / S * beta + max(alpha, n / S * beta))
    Good when: the message is of middle size and there are many ranks.
    Poor when: the message is very large: each byte leaves a rank twice, so half the bandwidth of
        a chain is lost.
    Also called: pipelined binary tree; Open MPI's broadcast algorithm 5.
    Reference: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance Analysis of
        MPI Collective Operations, Cluster Computing 10(2), 2007.
    """
    v = me.virtual
    parent = me.actual((v - 1) // 2) if v > 0 else None
    children = [me.actual(child) for child in (2 * v + 1, 2 * v + 2) if child < me.n_ranks]
    yield from stream(me, range(me.n_chunks), parent, children)


def split_binary(me: Rank) -> Iterator[Step]:
    """Send one half down each side of a binary tree, then let the two sides swap halves.

    The odd virtual numbers are one side, the even ones the other, each a binary tree below the
    root; a rank swaps with its neighbour at the same place of the other side. With an even number
    of ranks the last one has no neighbour, and the root sends it the second half.

    Rounds: floor(log2(floor(p / 2))) + 1 + S / 2
    Messages: (p - 1) * (S / 2 + 1)
    Bytes sent by the root: (min(2, p - 1) + (p + 1) % 2) * n / 2
    Bytes sent by another rank: at most 3 / 2 * n
    Makespan: at most (1 + floor(log2(floor(p / 2)))) * (alpha + 2 * n / S * beta)
        + (S / 2 - 1) * (n / S * beta + max(alpha, n / S * beta)) + alpha + n / 2 * beta
    Good when: the message is large and there are many ranks.
    Poor when: the message is small: nothing is gained over `binary` but the swap is added.
    Also called: split-binary tree; Open MPI's broadcast algorithm 4.
    Reference: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance Analysis of
        MPI Collective Operations, Cluster Computing 10(2), 2007.
    """
    p, v = me.n_ranks, me.virtual
    middle = -(-me.n_chunks // 2)
    half = (range(middle), range(middle, me.n_chunks))
    if v == 0:
        sides = range(min(2, p - 1))
        for s in range(middle if p > 1 else 0):
            there = [side for side in sides if s < len(half[side])]
            sends = [Send(me.actual(1 + side), half[side][s]) for side in there]
            yield *sends, f"the root sends segment {s + 1} of each half down its side"
        if p % 2 == 0:
            last = me.actual(p - 1)
            yield Send(last, half[1]), f"the root sends the second half to rank {last}"
        return
    place, side = divmod(v - 1, 2)
    parent = 2 * ((place - 1) // 2) + 1 + side if place > 0 else 0
    children = [2 * child + 1 + side for child in (2 * place + 1, 2 * place + 2)]
    below = [me.actual(child) for child in children if child < p]
    yield from stream(me, half[side], me.actual(parent), below)
    if v == p - 1 and side == 0:
        yield Recv(me.root, half[1]), f"rank {me.rank} receives the second half from the root"
    else:
        other = me.actual(v + 1 - 2 * side)
        text = f"rank {me.rank} swaps halves with rank {other}"
        yield Send(other, half[side]), Recv(other, half[1 - side]), text


def each_chunk_to_each(n_ranks: int, chunks: int) -> int:
    """Messages of a broadcast that sends each rank every chunk by itself."""
    return (n_ranks - 1) * chunks


def half_by_chunks(n_ranks: int, chunks: int) -> int:
    """Messages of `split_binary`: half the chunks one by one, then the other half at once."""
    return (n_ranks - 1) * (chunks // 2 + 1)


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "chain": Algorithm(chain, messages=each_chunk_to_each, chunks=segmented),
    "binary": Algorithm(binary, messages=each_chunk_to_each, chunks=segmented),
    "split_binary": Algorithm(split_binary, messages=half_by_chunks, chunks=halves),
}
"""Segmented broadcasts."""
