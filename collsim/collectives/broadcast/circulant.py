"""Träff's broadcast on circulant graphs: as few rounds as there can be, for any number of ranks.

With q = ⌈log2 p⌉, rank r sends in round i to r + skip[i mod q] and receives from r − skip[i mod q].
Which block it sends is what the schedules below say. They count blocks from the first one of a
phase of q rounds: a rank gets one block b ≥ 0 that is fresh from the root in each phase, the same
in all of them (its *first block*), and otherwise blocks −q … −1 of the phase before.

Reference: J. L. Träff, doi 10.1145/3735139; correctness and bounds are proved there.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from collsim.collectives.broadcast.pipelined import each_chunk_to_each
from collsim.program import Algorithm, Rank, Recv, Send, Step, segmented


def circulant(me: Rank) -> Iterator[Step]:
    """Send and receive one segment in each round, with neighbours at roughly doubling distances.

    Rounds: L - 1 + S
    Messages: (p - 1) * S
    Bytes sent by the root: (L - 1 + S) * n / S
    Bytes sent by another rank: at most (L - 2 + S) * n / S
    Makespan: at most (L - 1 + S) * (alpha + n / S * beta)
    Good when: the message is large, or not: no algorithm with one send and one receive at a time
        needs fewer rounds.
    Poor when: distant ranks share thin links, because every rank sends to L others.
    Also called: round-optimal n-block broadcast; in MPICH, circ_graph.
    Reference: Träff's round-optimal broadcast schedules on circulant graphs, 2025,
        doi 10.1145/3735139.
    """
    if me.n_ranks == 1:
        return
    *skip, _ = skips(me.n_ranks)
    q, last = len(skip), me.n_chunks - 1
    rounds = q + last
    idle = -last % q  # rounds left out of the first phase, so that the last one is whole
    sends = send_schedule(me.n_ranks, me.virtual)
    receives = receive_schedule(me.n_ranks, me.virtual)
    for i in range(rounds):
        phase, k = divmod(i + idle, q)
        fresh = phase * q - idle  # the block that is number 0 in this phase
        to, source = me.actual(me.virtual + skip[k]), me.actual(me.virtual - skip[k])
        sent, received = min(fresh + sends[k], last), min(fresh + receives[k], last)
        step: list[Send | Recv] = []
        if sent >= 0 and to != me.root:
            step.append(Send(to, sent))
        if received >= 0 and me.virtual > 0:
            step.append(Recv(source, received))
        if step:
            yield *step, f"round {i + 1} of {rounds}: {_narrate(me.rank, step)}"


def _narrate(rank: int, step: list[Send | Recv]) -> str:
    parts = [
        f"segment {operation.chunks} to rank {operation.dst}"
        if isinstance(operation, Send)
        else f"segment {operation.chunks} from rank {operation.src}"
        for operation in step
    ]
    return f"rank {rank}: {', '.join(parts)}"


def skips(n_ranks: int) -> list[int]:
    """The distances skip[0] = 1, …, skip[q] = n_ranks: each half of the next one, rounded up."""
    found = [n_ranks]
    while found[0] > 1:
        found.insert(0, -(-found[0] // 2))
    return found


def first_block(n_ranks: int, virtual: int) -> int:
    """The block that a rank gets fresh from the root in each phase; q for the root itself.

    Written as a sum of skips, largest first, the rank's number ends with skip[first block].
    """
    skip = skips(n_ranks)
    block = len(skip) - 1
    for k in range(len(skip) - 2, -1, -1):
        if skip[k] <= virtual:
            virtual -= skip[k]
            block = k
    return block


@lru_cache(maxsize=1 << 16)
def receive_schedule(n_ranks: int, virtual: int) -> tuple[int, ...]:
    """The block that a rank receives in each round of a phase (meaningless for the root).

    In round k the rank seeks another one, at least skip[k] before it on the ring, whose first
    block it has not got yet. It walks paths of skips that start from the root one lap earlier,
    longest skips first, so that the ranks found come ever earlier on the ring.
    """
    skip = skips(n_ranks)
    q, own = len(skip) - 1, first_block(n_ranks, virtual)
    end = n_ranks + virtual
    missing = [block for block in range(q, -1, -1) if block != own]
    found: list[int] = []
    earliest = 2 * n_ranks

    def search(here: int) -> None:
        nonlocal earliest
        for block in tuple(missing):
            there = here + skip[block]
            if block not in missing or there > end - skip[len(found)] or there >= earliest:
                continue
            if there <= end - skip[len(found) + 1]:
                search(there)  # from there one may come nearer
            if not missing or here > end - skip[len(found) + 1]:
                return
            found.append(block)
            missing.remove(block)
            earliest = there

    search(0)
    return tuple(own if block == q else block - q for block in found)


def send_schedule(n_ranks: int, virtual: int) -> tuple[int, ...]:
    """The block that a rank sends in each round of a phase: what its neighbour receives."""
    *skip, _ = skips(n_ranks)
    if virtual == 0:
        return tuple(range(len(skip)))
    receivers = [(virtual + distance) % n_ranks for distance in skip]
    return tuple(receive_schedule(n_ranks, receiver)[k] for k, receiver in enumerate(receivers))


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "circulant": Algorithm(circulant, messages=each_chunk_to_each, chunks=segmented),
}
"""Broadcast in the least number of rounds."""
