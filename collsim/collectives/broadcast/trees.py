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
    Also called: linear; Open MPI's broadcast algorithm 1 (basic linear).
    Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
        MPICH, International Journal of High Performance Computing Applications 19(1), 2005.
    """
    if me.virtual == 0:
        for virtual in range(1, me.n_ranks):
            dst = me.actual(virtual)
            yield Send(dst, ALL), f"the root sends everything to rank {dst}"
    else:
        yield Recv(me.root, ALL), f"rank {me.rank} receives everything from the root"


def binomial(me: Rank) -> Iterator[Step]:
    """Double the number of informed ranks in each round, sending further each time.

    In round i the ranks with virtual number v < 2^i send to v + 2^i, so a rank's parent is v
    without its highest bit.

    Rounds: L
    Messages: p - 1
    Bytes sent by the root: L * n
    Bytes sent by another rank: at most (L - 1) * n
    Makespan: L * (alpha + n * beta)
    Good when: the message is small.
    Poor when: the message is large: each round repeats all of it.
    Also called: distance doubling; Open MPI's broadcast algorithm 6.
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


def gloo(me: Rank) -> Iterator[Step]:
    """Send down the binomial tree as gloo does: a rank's sends all start together.

    Rounds: L
    Messages: p - 1
    Bytes sent by the root: L * n
    Bytes sent by another rank: at most (L - 1) * n
    Makespan: at least L * (alpha + n * beta)
    Good when: the message is small.
    Poor when: the message is large: a rank's children share its link, so that even the first
        child, which has most to pass on, gets the message only when nearly all have it.
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
        to = ", ".join(map(str, children))
        yield *(Send(c, ALL) for c in children), f"rank {me.rank} sends to rank {to} at once"


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "flat": Algorithm(flat, messages=lambda p, _: p - 1),
    "binomial": Algorithm(binomial, messages=lambda p, _: p - 1),
    "gloo": Algorithm(gloo, messages=lambda p, _: p - 1),
}
"""Broadcasts down a tree."""
