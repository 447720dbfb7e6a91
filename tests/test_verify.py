"""Verification: it passes what is right in every legal order, and fails on what is wrong."""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.errors import ContractError
from collsim.program import ALL, Algorithm, Rank, Recv, Send, Step
from collsim.schedule import Schedule
from collsim.tracing import trace
from collsim.verification import check_contract, initial_buffers, random_order, verify

BROADCAST = COLLECTIVES["broadcast"]
ROWS = [(c, name) for c in COLLECTIVES.values() for name in c.algorithms]


@given(st.sampled_from(ROWS), st.data())
def test_every_algorithm_keeps_its_contract_in_any_legal_order(
    row: tuple, data: st.DataObject
) -> None:
    collective, name = row
    algorithm = collective.algorithms[name]
    p = data.draw(st.integers(1, 17).filter(algorithm.ranks.allows))
    root = data.draw(st.integers(0, p - 1)) if collective.rooted else 0
    schedule = trace(collective, algorithm, p, root=root, segments=data.draw(st.integers(1, 6)))
    nbytes = data.draw(st.integers(0, 70))
    buffers = verify(schedule, nbytes=nbytes, seed=data.draw(st.integers(0, 99)))
    assert len(buffers) == p
    assert {len(buffer) for buffer in buffers} == {nbytes * collective.blocks(p)}


def incomplete(me: Rank) -> Iterator[Step]:
    """Forgets the last rank."""
    if me.rank == 0:
        for dst in range(1, me.n_ranks - 1):
            yield Send(dst, ALL)
    elif me.rank < me.n_ranks - 1:
        yield Recv(0, ALL)


def forgets_a_chunk(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, range(0, 2))
    else:
        yield Recv(0, range(0, 2))


def from_the_wrong_root(me: Rank) -> Iterator[Step]:
    """Right only for root 0; sends nothing that it lacks, because it sends nothing."""
    if me.rank == me.root == 0:
        yield Send(1, ALL)
    elif me.root == 0:
        yield Recv(0, ALL)


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        (incomplete, {"n_ranks": 4}, "rank 3 does not hold chunk 0 of 1"),
        (forgets_a_chunk, {"n_ranks": 2, "segments": 3}, "rank 1 does not hold chunk 2 of 3"),
        (from_the_wrong_root, {"n_ranks": 2, "root": 1}, "rank 0 does not hold chunk 0 of 1"),
    ],
)
def test_a_program_that_misses_something_fails(program, arguments: dict, message: str) -> None:
    schedule = trace(BROADCAST, program, **arguments)
    with pytest.raises(ContractError, match=message):
        verify(schedule)


def exchanged(schedule: Schedule) -> Schedule:
    """The schedule with two messages of different chunks exchanged: legal steps, wrong bytes."""
    first = schedule.first_chunk.copy()
    first[[0, 1]] = first[[1, 0]]
    return replace(schedule, first_chunk=first)


def test_dropped_and_exchanged_messages_are_found() -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["chain"], 3, segments=2)
    verify(schedule)
    columns = ("src", "dst", "channel", "first_chunk", "chunk_count", "src_step", "dst_step")
    dropped = replace(schedule, **{name: getattr(schedule, name)[1:] for name in columns})
    with pytest.raises(ContractError):
        verify(dropped)
    with pytest.raises(ContractError):
        verify(exchanged(schedule))


def test_a_race_between_channels_is_found_in_some_order() -> None:
    """Channel 1 sends, at once, what only channel 0 receives; a lucky order hides it."""

    def racy(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, 0)
        elif me.rank == 1:
            yield Recv(0, 0)
            yield Send(2, 0)
        elif me.rank == 2:
            yield Recv(1, 0)

    schedule = trace(BROADCAST, Algorithm(racy), 3)
    steps = schedule.steps
    raced = replace(schedule, steps=replace(steps, previous=np.full(len(steps), -1)))
    with pytest.raises(ContractError, match="rank 2 does not hold chunk 0"):
        verify(raced, orders=30)


@given(st.sampled_from(ROWS), st.data())
def test_random_orders_are_legal_and_complete(row: tuple, data: st.DataObject) -> None:
    collective, name = row
    algorithm = collective.algorithms[name]
    p = data.draw(st.integers(1, 9).filter(algorithm.ranks.allows))
    schedule = trace(collective, algorithm, p, segments=data.draw(st.integers(1, 3)))
    order = list(random_order(schedule, random.Random(data.draw(st.integers(0, 99)))))
    assert sorted(order) == sorted(
        (t, read) for t in range(len(schedule)) for read in (True, False)
    )
    when = {event: moment for moment, event in enumerate(order)}
    steps = schedule.steps
    ends = [max([-1, *(when[t.id, True] for t in schedule if t.src_step == s),
                 *(when[t.id, False] for t in schedule if t.dst_step == s)])
            for s in range(len(steps))]  # fmt: skip
    for t in schedule:
        assert when[t.id, True] < when[t.id, False]
        for step, event in ((t.src_step, (t.id, True)), (t.dst_step, (t.id, False))):
            previous = steps.previous[step]
            assert previous < 0 or ends[previous] < when[event]


def test_memory_at_the_start_is_noise_except_what_a_rank_holds() -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 3, root=1)
    buffers = initial_buffers(schedule, 64)
    with pytest.raises(ContractError, match=r"6\d of its bytes are wrong"):
        check_contract(schedule, 64, buffers)
    check_contract(schedule, 64, (buffers[1],) * 3)
    assert (initial_buffers(schedule, 64, seed=1)[1] != buffers[1]).any()


def test_no_orders_is_a_misuse() -> None:
    schedule = trace(BROADCAST, BROADCAST.algorithms["flat"], 2)
    with pytest.raises(ValueError, match="orders must be at least 1, got 0"):
        verify(schedule, orders=0)
