"""Broadcasts that cut the message into segments and keep several on their way."""

from collections.abc import Iterator, Mapping
from typing import Final

from collsim.program import Algorithm, Rank, Recv, Send, Step, segmented


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
    before, after = me.actual(me.virtual - 1), me.actual(me.virtual + 1)
    is_first, is_last = me.virtual == 0, me.virtual == me.n_ranks - 1
    for s in range(me.n_chunks + 1):
        passes_on = Send(after, s - 1) if s > 0 and not is_last else None
        receives = Recv(before, s) if s < me.n_chunks and not is_first else None
        match passes_on, receives:
            case Send(), Recv():
                text = f"rank {me.rank} receives segment {s} and passes segment {s - 1} on"
                yield passes_on, receives, text
            case Send(), None:
                yield passes_on, f"rank {me.rank} passes segment {s - 1} on to rank {after}"
            case None, Recv():
                yield receives, f"rank {me.rank} receives segment {s} from rank {before}"


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "chain": Algorithm(chain, messages=lambda p, c: (p - 1) * c, chunks=segmented),
}
"""Segmented broadcasts."""
