"""Broadcasts down the tree that is best when a message is under way for longer than it is sent.

A sender is free again after the *occupancy*, but its message is received only after the *flight*.
So the ranks that were informed early should go on sending, and have more children than the later
ones. The more latency outweighs sending, the flatter the best tree.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from collsim.collectives.broadcast.trees import one_per_receiver
from collsim.program import ALL, Algorithm, LogGP, Rank, Recv, Send, Setting, Step

TEXTBOOK_MACHINE: Final = LogGP(L=6, o=2, g=4)
"""The machine of the paper's example, in cycles: eight ranks are informed at time 24."""

ROUNDING: Final = 1e-9
"""Sums of the same times in another order may differ by this much (units of occupancy)."""


def logp_optimal(me: Rank, parents: Sequence[int] | None = None) -> Iterator[Step]:
    """Let every informed rank inform others without pause, whoever can do it soonest.

    `parents` gives for each virtual number the one that informs it (the root's own entry is not
    read); a rank's children are informed in order of their numbers. It is made for the network at
    hand, or, where there is none, for the machine of the paper's example.

    Rounds: at least L
    Messages: p - 1
    Bytes sent by the root: at most (p - 1) * n
    Bytes sent by another rank: at most (p - 2) * n
    Makespan: see greedy_tree, whose last time it is
    Good when: the message is small and latency is known.
    Poor when: the message is large: ranks that send little waste bandwidth.
    Also called: optimal broadcast tree.
    Reference: Karp, Sahay, Santos, Schauser: Optimal Broadcast and Summation in the LogP Model,
        SPAA 1993; Culler et al.: LogP: Towards a Realistic Model of Parallel Computation,
        PPoPP 1993.
    """
    if parents is None:
        flight, occupancy = TEXTBOOK_MACHINE.flight(0), TEXTBOOK_MACHINE.occupancy(0)
        parents = greedy_tree(me.n_ranks, flight, occupancy)[0]
    if len(parents) != me.n_ranks:
        raise ValueError(f"parents must name one for each of {me.n_ranks}, got {len(parents)}")
    if me.virtual > 0:
        if not 0 <= parents[me.virtual] < me.n_ranks:
            allowed = f"virtual numbers, 0 to {me.n_ranks - 1}"
            got = f"{parents[me.virtual]} for number {me.virtual}"
            raise ValueError(f"parents must be {allowed}, got {got}")
        parent = me.actual(parents[me.virtual])
        yield Recv(parent, ALL), f"rank {me.rank} hears of rank {parent}"
    for virtual in range(1, me.n_ranks):
        if parents[virtual] == me.virtual:
            child = me.actual(virtual)
            yield Send(child, ALL), f"rank {me.rank} tells rank {child}, number {virtual} to know"


def postal(me: Rank, latency: float = 2.0) -> Iterator[Step]:
    """Split the uninformed ranks so that both parts are done at the same time.

    `latency` is λ, how many messages a rank can send until its first one is received. With λ = 1
    the tree is binomial, with λ = 2 its parts are Fibonacci numbers, with λ ≥ p it is flat.

    Rounds: at least L
    Messages: p - 1
    Bytes sent by the root: at most (p - 1) * n
    Bytes sent by another rank: at most (p - 2) * n
    Makespan: see greedy_tree, whose last time it is
    Good when: the message is small and latency is known.
    Poor when: the message is large: ranks that send little waste bandwidth.
    Also called: Fibonacci tree, generalised Fibonacci tree.
    Reference: Bar-Noy, Kipnis: Designing Broadcasting Algorithms in the Postal Model for
        Message-Passing Systems, SPAA 1992.
    """
    if not latency > 0:
        raise ValueError(f"latency must be above 0, got {latency}")
    parent, holder, end = 0, 0, me.n_ranks
    while holder != me.virtual:  # `holder` informs all ranks before `end`
        split = holder + _kept(end - holder, me.n_ranks, latency)
        if me.virtual < split:
            end = split
        else:
            parent, holder = holder, split
    if me.virtual > 0:
        yield Recv(me.actual(parent), ALL), f"rank {me.rank} hears of rank {me.actual(parent)}"
    while end - me.virtual > 1:
        split = me.virtual + _kept(end - me.virtual, me.n_ranks, latency)
        child, others = me.actual(split), end - split - 1
        text = f"rank {me.rank} tells rank {child}, which will see to {others} others"
        yield Send(child, ALL), text
        end = split


def _kept(size: int, n_ranks: int, latency: float) -> int:
    """How many of `size` ranks the first keeps: those whom it can inform from its next send on."""
    informed = greedy_tree(n_ranks, latency, 1.0)[1]
    return max(1, bisect_right(informed, informed[size - 1] - 1.0 + ROUNDING))


@lru_cache(maxsize=64)
def greedy_tree(
    n_ranks: int, flight: float, occupancy: float
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The tree in which the next rank is always informed as early as can be.

    Args:
        n_ranks: Number of ranks.
        flight: From a send's start to the end of its receive (in any unit).
        occupancy: From one send's start to the next one's (same unit).

    Returns:
        The parent of each rank, 0 for the root's, and when each is informed. Ranks are numbered in
        the order in which they are informed.
    """
    parents, informed = [0], [0.0]
    soonest = [(flight, 0)]  # when the next message of a rank is received
    for rank in range(1, n_ranks):
        time, parent = soonest[0]
        parents.append(parent)
        informed.append(time)
        heapq.heapreplace(soonest, (time + occupancy, parent))
        heapq.heappush(soonest, (time + flight, rank))
    return tuple(parents), tuple(informed)


def tree_for(setting: Setting) -> dict[str, object]:
    """The parents of the tree that is best for a network and message."""
    flight, occupancy = (f(setting.nbytes) for f in (setting.loggp.flight, setting.loggp.occupancy))
    return {"parents": greedy_tree(setting.n_ranks, flight, occupancy)[0]}


def latency_for(setting: Setting) -> dict[str, object]:
    """The postal latency of a network and message; more than n_ranks makes no difference."""
    flight, occupancy = (f(setting.nbytes) for f in (setting.loggp.flight, setting.loggp.occupancy))
    if flight >= occupancy * setting.n_ranks:
        return {"latency": float(setting.n_ranks)}
    return {"latency": flight / occupancy or 1.0}


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "postal": Algorithm(postal, messages=one_per_receiver, prepare=latency_for),
    "logp_optimal": Algorithm(logp_optimal, messages=one_per_receiver, prepare=tree_for),
}
"""Broadcasts down trees that are optimal for a given latency."""
