"""Broadcasts that send the whole message down a tree."""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.program import ALL, Algorithm, Rank, Recv, Send, Step


def flat(me: Rank) -> Iterator[Step]:
    """Send from the root to every other rank, one after the other.

    Rounds: p - 1
    Messages: p - 1
    Bytes sent by the root: (p - 1) * n
    Bytes sent by another rank: 0
    Makespan: alpha + (p - 1) * n * beta
    Good when: there are two or three ranks, or the message is tiny.
    Poor when: there are many ranks: all bytes leave through the root's link.
    Also called: linear with blocking sends.
    Reference: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance Analysis of
        MPI Collective Operations, Cluster Computing 10(2), 2007.
    """
    if me.virtual == 0:
        for virtual in range(1, me.n_ranks):
            dst = me.actual(virtual)
            yield Send(dst, ALL), f"the root sends everything to rank {dst}"
    else:
        yield Recv(me.root, ALL), f"rank {me.rank} receives everything from the root"


def flat_at_once(me: Rank) -> Iterator[Step]:
    """Send from the root to every other rank, all at once.

    The bytes are those of `flat`, and they leave through the same link. What differs is when each
    rank has its copy: where messages share a link fairly, all of them arrive last.

    Rounds: 1
    Messages: p - 1
    Bytes sent by the root: (p - 1) * n
    Bytes sent by another rank: 0
    Makespan: alpha + (p - 1) * n * beta
    Good when: the message is tiny and starting a message costs the root little.
    Poor when: there are many ranks: all bytes leave through the root's link.
    Also called: linear with non-blocking sends; Open MPI's broadcast algorithm 1 (basic linear).
    Reference: Chan, Heimlich, Purkayastha, van de Geijn: Collective Communication: Theory,
        Practice, and Experience, Concurrency and Computation: Practice and Experience 19(13), 2007.
    """
    if me.virtual > 0:
        yield Recv(me.root, ALL), f"rank {me.rank} receives everything from the root"
    elif me.n_ranks > 1:
        others = [me.actual(virtual) for virtual in range(1, me.n_ranks)]
        yield *(Send(dst, ALL) for dst in others), "the root sends everything to all ranks at once"


def binomial(me: Rank) -> Iterator[Step]:
    """Double the number of informed ranks in each round, sending further each time.

    In round i the ranks with virtual number v < 2^i send to v + 2^i, so a rank's parent is v
    without its highest bit. For a power of two ranks the makespan is L * (alpha + n * beta).

    Rounds: L
    Messages: p - 1
    Bytes sent by the root: L * n
    Bytes sent by another rank: at most (L - 1) * n
    Makespan: max((L - 1) * (alpha + n * beta),
        (1 + floor(log2(p - 2**(L - 1)))) * alpha + L * n * beta)
    Good when: the message is small.
    Poor when: the message is large: each round repeats all of it.
    Also called: distance doubling; the tree of Open MPI's broadcast algorithm 6, which starts a
        rank's sends together, as `gloo` does.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    rounds = (me.n_ranks - 1).bit_length()
    first = me.virtual.bit_length()  # the round after the one in which this rank is informed
    if me.virtual > 0:
        parent = me.actual(me.virtual - (1 << (first - 1)))
        yield Recv(parent, ALL), f"round {first} of {rounds}: rank {me.rank} hears of rank {parent}"
    for i in range(first, rounds):
        if me.virtual + (1 << i) < me.n_ranks:
            child = me.actual(me.virtual + (1 << i))
            yield Send(child, ALL), f"round {i + 1} of {rounds}: rank {me.rank} tells rank {child}"


def binomial_halving(me: Rank) -> Iterator[Step]:
    """Hand half of the uninformed ranks to another rank, and go on with the other half.

    A rank's parent is v without its lowest set bit. The tree has the shape of `binomial`, but the
    long distances come first, so that most messages stay between neighbours.

    Rounds: L
    Messages: p - 1
    Bytes sent by the root: L * n
    Bytes sent by another rank: at most (L - 1) * n
    Makespan: floor(log2(p)) * alpha + L * n * beta
    Good when: the message is small, above all where neighbouring ranks share a host.
    Poor when: the message is large: each round repeats all of it.
    Also called: distance halving, recursive halving; MPICH's binomial tree.
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    span = 1  # this rank informs those up to v + span − 1
    while span < me.n_ranks and me.virtual & span == 0:
        span *= 2
    if me.virtual > 0:
        parent = me.actual(me.virtual - span)
        yield Recv(parent, ALL), f"rank {me.rank} hears of rank {parent}"
    while span > 1:
        span //= 2
        if me.virtual + span < me.n_ranks:
            child = me.actual(me.virtual + span)
            yield Send(child, ALL), f"rank {me.rank} tells rank {child}, {span} further on"


def knomial(me: Rank, k: int = 4) -> Iterator[Step]:
    """Multiply the number of informed ranks by k in each round, with k − 1 sends at once.

    A rank's parent is v without the lowest nonzero digit of v in base k. With k = 2 this is
    `binomial_halving`; with k = p it is `flat_at_once`.

    Rounds: ceil(log2(p) / log2(k))
    Messages: p - 1
    Bytes sent by the root: at most (k - 1) * ceil(log2(p) / log2(k)) * n
    Bytes sent by another rank: at most (k - 1) * (ceil(log2(p) / log2(k)) - 1) * n
    Makespan: at most ceil(log2(p) / log2(k)) * (alpha + (k - 1) * n * beta)
    Good when: the message is small and latency outweighs sending k − 1 copies.
    Poor when: the message is large: k − 1 copies leave through one link in each round.
    Also called: k-ary binomial tree; Open MPI's broadcast algorithm 7.
    Reference: Wickramasinghe, Lumsdaine: A Survey of Methods for Collective Communication
        Optimization and Tuning, arXiv:1611.06334, 2016.
    """
    if not isinstance(k, int) or k < 2:
        raise ValueError(f"k must be a whole number of at least 2, got {k!r}")
    span = 1
    while span < me.n_ranks and me.virtual % (span * k) == 0:
        span *= k
    if me.virtual > 0:
        parent = me.actual(me.virtual - me.virtual % (span * k))
        yield Recv(parent, ALL), f"rank {me.rank} hears of rank {parent}"
    while span > 1:
        end = min(me.virtual + span, me.n_ranks)
        span //= k
        children = [me.actual(virtual) for virtual in range(me.virtual + span, end, span)]
        if children:
            to = spell_ranks(children)
            yield *(Send(child, ALL) for child in children), f"rank {me.rank} tells {to} at once"


def gloo(me: Rank) -> Iterator[Step]:
    """Send down the tree of `binomial` as gloo does: a rank's sends all start together.

    The rounds are few because they do not count that a rank's sends share its link. Where messages
    share it one after the other, the makespan is that of `binomial`; where they share it fairly,
    as real ones nearly do, up to L * (L + 1) / 2 messages follow each other.

    Rounds: floor(log2(p))
    Messages: p - 1
    Bytes sent by the root: L * n
    Bytes sent by another rank: at most (L - 1) * n
    Makespan: max((L - 1) * (alpha + n * beta),
        (1 + floor(log2(p - 2**(L - 1)))) * alpha + L * n * beta)
    Good when: the message is small.
    Poor when: the message is large: a rank's children share its link, so that even the first
        child gets the message only when nearly all have it.
    Also called: what `torch.distributed.broadcast` does with the backend gloo.
    Reference: gloo's source, gloo/broadcast.cc.
    """
    rounds = (me.n_ranks - 1).bit_length()
    first = me.virtual.bit_length()
    if me.virtual > 0:
        parent = me.actual(me.virtual - (1 << (first - 1)))
        yield Recv(parent, ALL), f"rank {me.rank} receives everything from rank {parent}"
    distances = (1 << i for i in range(first, rounds))
    children = [me.actual(me.virtual + d) for d in distances if me.virtual + d < me.n_ranks]
    if children:
        to = spell_ranks(children)
        yield *(Send(child, ALL) for child in children), f"rank {me.rank} sends to {to} at once"


def spell_ranks(ranks: list[int]) -> str:
    """Ranks as labels name them: "rank 3", "ranks 3 and 5", "ranks 3, 5 and 6"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def one_per_receiver(n_ranks: int, chunks: int) -> int:
    """Messages of a broadcast that sends each rank everything at once."""
    return n_ranks - 1


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "flat": Algorithm(flat, messages=one_per_receiver),
    "flat_at_once": Algorithm(flat_at_once, messages=one_per_receiver),
    "binomial": Algorithm(binomial, messages=one_per_receiver),
    "binomial_halving": Algorithm(binomial_halving, messages=one_per_receiver),
    "knomial": Algorithm(knomial, messages=one_per_receiver),
    "gloo": Algorithm(gloo, messages=one_per_receiver),
}
"""Broadcasts down a tree."""
