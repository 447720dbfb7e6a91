"""Exact forms of the broadcasts that keep several segments on their way.

Each runs through its rounds with the vectors of `Clock`: about p + S operations on arrays, so that
thousands of ranks and segments are a matter of a second.
"""

import numpy as np

from collsim.collectives.broadcast.circulant import receive_schedule, skips
from collsim.cost.ideal import Case, Clock, Ints


def chain(case: Case) -> int | None:
    """Segment s goes from rank v to v + 1 in round v + s.

    Equal segments: (p − 2 + S)(α + nβ/S) under rendezvous, where each round ends with an arrival;
    (p − 1)α + (p − 2 + S)nβ/S if eager, where segments follow each other without pause.
    """
    clock = Clock(case)
    for i in range(case.n_ranks - 2 + case.n_chunks):
        first, last = max(0, i - case.n_chunks + 1), min(i, case.n_ranks - 2)
        src = np.arange(first, last + 1)
        clock.round(src, src + 1, case.segments[i - src])
    return clock.makespan()


def binary(case: Case) -> int | None:
    """Segment s reaches the ranks of depth d in round d − 1 + s, the left child first.

    Equal segments, full tree of depth D: D(α + 2nβ/S) + (S − 1)(nβ/S + max(α, nβ/S)) under
    rendezvous; D(α + 2nβ/S) + (S − 1)2nβ/S if eager.
    """
    ranks = np.arange(1, case.n_ranks)
    clock = Clock(case)
    _stream(clock, (ranks - 1) // 2, [case.segments], np.zeros_like(ranks))
    return clock.makespan()


def split_binary(case: Case) -> int | None:
    """Two binary trees below the root, a half of the message each, and then a swap.

    Equal segments, two full trees of depth D − 1:
    D(α + 2nβ/S) + (S/2 − 1)(nβ/S + max(α, nβ/S)) + α + nβ/2 under rendezvous.
    """
    ranks = np.arange(1, case.n_ranks)
    middle = -(-case.n_chunks // 2)
    side = (ranks - 1) % 2
    place = (ranks - 1) // 2
    parents = np.where(place > 0, 2 * ((place - 1) // 2) + 1 + side, 0)
    clock = Clock(case)
    _stream(clock, parents, [case.segments[:middle], case.segments[middle:]], side)
    half = int(case.offsets[middle])
    takes = case.takes_each(np.array([half, case.nbytes - half]))
    other = ranks + 1 - 2 * side  # of the other side, at the same place
    alone = other == case.n_ranks  # the root makes up for it
    src = np.append(ranks[~alone], ranks[alone] * 0)
    dst = np.append(other[~alone], ranks[alone])
    clock.round(src, dst, takes[np.append(side[~alone], 1 - side[alone])])
    return clock.makespan()


def _stream(clock: Clock, parents: Ints, segments: list[Ints], kind: Ints) -> None:
    """Pass segments down a tree in which a rank has at most two children.

    Args:
        clock: The clock.
        parents: Parent of each rank from 1 on.
        segments: Time that each segment takes on a link (ps), for each kind.
        kind: Which of these each rank from 1 on receives.
    """
    ranks = np.arange(1, len(parents) + 1)
    depth = np.zeros(len(parents) + 1, np.int64)
    for rank, parent in enumerate(parents.tolist(), start=1):
        depth[rank] = depth[parent] + 1
    length = np.array([len(times) for times in segments])[kind]
    longest = max(map(len, segments))
    padded = np.zeros((len(segments), longest), np.int64)
    for row, times in zip(padded, segments, strict=True):
        row[: len(times)] = times
    for i in range(int(depth.max()) + longest - 1):
        segment = i + 1 - depth[1:]
        now = (segment >= 0) & (segment < length)
        src, dst = parents[now], ranks[now]
        clock.give(src, dst, padded[kind[now], segment[now]], _siblings(src))


def _siblings(parents: Ints) -> Ints:
    """Index of the other one with the same parent, or one's own; `parents` is any order."""
    order = np.argsort(parents, kind="stable")
    same = parents[order][1:] == parents[order][:-1]
    siblings = np.arange(len(parents))
    siblings[order[1:][same]] = order[:-1][same]
    siblings[order[:-1][same]] = order[1:][same]
    return siblings


def circulant(case: Case) -> int | None:
    """In round i, v sends to v + skip[i mod q] the block that this one's schedule asks for.

    Equal segments: at most (L − 1 + S)(α + nβ/S) under rendezvous.
    """
    p, last = case.n_ranks, case.n_chunks - 1
    clock = Clock(case)
    if p == 1:
        return 0
    *skip, _ = skips(p)
    q = len(skip)
    receives = np.array([receive_schedule(p, v) for v in range(p)])
    idle = -last % q
    everyone = np.arange(p)
    for i in range(q + last):
        phase, k = divmod(i + idle, q)
        block = np.minimum(phase * q - idle + receives[:, k], last)
        dst = everyone[(block >= 0) & (everyone > 0)]
        clock.round((dst - skip[k]) % p, dst, case.segments[block[dst]])
    return clock.makespan()
