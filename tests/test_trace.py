"""Tracing: what a schedule says, and that each mistake of a program is caught with its place."""

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.collectives.contracts import block_per_rank, everything, own_block
from collsim.errors import ScheduleError
from collsim.ordering import with_acks
from collsim.program import ALL, Algorithm, Collective, Program, Rank, Recv, Send, Step
from collsim.schedule import Schedule
from collsim.tracing import trace

BROADCAST = COLLECTIVES["broadcast"]
GATHER_ALL = Collective("all_gather", own_block, everything, block_per_rank, rooted=False)


def right(me: Rank) -> int:
    return (me.rank + 1) % me.n_ranks


def left(me: Rank) -> int:
    return (me.rank - 1) % me.n_ranks


# Programs with one mistake each. All are broadcasts over three ranks and two chunks.


def send_nobody_receives(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, ALL)


def receive_nobody_answers(me: Rank) -> Iterator[Step]:
    if me.rank == 2:
        yield Recv(0, ALL)


def wrong_chunk(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, 0)
    elif me.rank == 1:
        yield Recv(0, 1)


def wrong_count(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, ALL)
    elif me.rank == 1:
        yield Recv(0, 0)


def sends_before_it_holds(me: Rank) -> Iterator[Step]:
    if me.rank == 1:
        yield Send(2, 1)
    elif me.rank == 2:
        yield Recv(1, 1)


def sends_what_the_same_step_receives(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, 0)
    elif me.rank == 1:
        yield Recv(0, 0), Send(2, 0)
    else:
        yield Recv(1, 0)


def sends_while_receiving(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, 0)
        yield Send(1, 0)
    elif me.rank == 1:
        yield Recv(0, 0)
        yield Recv(0, 0), Send(2, 0)
    else:
        yield Recv(1, 0)


def receives_twice_at_once(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, 0), Send(1, range(0, 2))
    elif me.rank == 1:
        yield Recv(0, 0), Recv(0, range(0, 2))


def everybody_waits(me: Rank) -> Iterator[Step]:
    yield Recv(left(me), 0)
    yield Send(right(me), 0)


def to_itself(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(0, ALL)


def to_rank_three(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(3, ALL)


def from_rank_minus_one(me: Rank) -> Iterator[Step]:
    if me.rank == 1:
        yield Recv(-1, ALL)


def chunk_two(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, 2)


def every_second_chunk(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, range(0, 2, 2))


def nothing(me: Rank) -> Iterator[Step]:
    yield ()


def only_a_label(me: Rank) -> Iterator[Step]:
    yield ("look",)


def a_number(me: Rank) -> Iterator[Step]:
    yield 7  # type: ignore[misc]


def without_end(me: Rank) -> Iterator[Step]:
    while me.rank == 0:
        yield Send(1, ALL)


def raises(me: Rank) -> Iterator[Step]:
    if me.rank == 0:
        yield Send(1, ALL)
    raise KeyError("lost")


def no_generator(me: Rank) -> Iterator[Step]:
    return [Send(1, ALL)]  # type: ignore[return-value]


def fails_at_once(me: Rank) -> Iterator[Step]:
    raise RuntimeError("broken")


KNOWN_BAD: list[tuple[Program, str]] = [
    (send_nobody_receives, r"rank 0, step 0 .*sends chunks 0–1 to rank 1, which never receives it"),
    (receive_nobody_answers, r"rank 2, step 0 .*receives chunks 0–1 from rank 0, .*never sends"),
    (wrong_chunk, r"rank 1, step 0 .*expects chunk 1 from rank 0, got chunk 0 \(sent by rank 0"),
    (wrong_count, r"rank 1, step 0 .*expects chunk 0 from rank 0, got chunks 0–1"),
    (sends_before_it_holds, r"rank 1, step 0: sends chunk 1 to rank 2 before it holds it"),
    (sends_what_the_same_step_receives, r"rank 1, step 0: sends chunk 0 to rank 2 before it holds"),
    (sends_while_receiving, r"rank 1, step 1: sends chunk 0 while receiving it"),
    (receives_twice_at_once, r"rank 1, step 0: receives chunk 0 twice at once"),
    (to_itself, r"rank 0, step 0: Send\(dst=0.*a rank cannot message itself"),
    (to_rank_three, r"rank 0, step 0: Send\(dst=3.*ranks are 0 to 2"),
    (from_rank_minus_one, r"rank 1, step 0: Recv\(src=-1.*ranks are 0 to 2"),
    (chunk_two, r"rank 0, step 0: .*chunks must be an index below 2, a range of step 1"),
    (every_second_chunk, r"rank 0, step 0: .*a range of step 1"),
    (nothing, r"rank 0, step 0: yields nothing"),
    (only_a_label, r"rank 0, step 0: yields nothing"),
    (a_number, r"rank 0, step 0: yields 7, not a Send or Recv"),
    (without_end, r"rank 0, step 2000: more than 1,000 messages.*does the program end"),
    (raises, r"raises fails for rank 0 after 1 steps: KeyError\('lost'\)"),
    (no_generator, r"gives list for rank 0; a program is a generator function"),
    (fails_at_once, r"fails for rank 0: RuntimeError\('broken'\)"),
]


@pytest.mark.parametrize(
    ("program", "message"), KNOWN_BAD, ids=lambda p: getattr(p, "__name__", "")
)
def test_each_mistake_of_a_program_is_named_with_its_place(program: Program, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        trace(BROADCAST, program, 3, segments=2, max_messages=1000)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_an_eager_deadlock_is_told_with_its_cycle() -> None:
    with pytest.raises(ScheduleError) as caught:
        trace(GATHER_ALL, waits_in_a_ring, 3)
    text = str(caught.value)
    for rank, peer in ((0, 2), (2, 1), (1, 0)):
        assert re.search(
            rf"rank {rank} in step 0 .*waits to receive chunk {peer} from rank {peer}", text
        )


def waits_in_a_ring(me: Rank) -> Iterator[Step]:
    yield Recv(left(me), left(me))
    yield Send(right(me), me.rank)


def sends_first_in_a_ring(me: Rank) -> Iterator[Step]:
    yield Send(right(me), me.rank)
    yield Recv(left(me), left(me))


def both_in_a_ring(me: Rank) -> Iterator[Step]:
    yield Send(right(me), me.rank), Recv(left(me), left(me)), f"rank {me.rank} turns"


def test_a_rendezvous_deadlock_is_recorded_with_its_cycle_and_does_not_stop_tracing() -> None:
    schedule = trace(GATHER_ALL, sends_first_in_a_ring, 3)
    for rank in range(3):
        expected = rf"rank {rank} in step 0 .*waits to send chunk {rank} to rank {(rank + 1) % 3}"
        assert re.search(expected, schedule.rendezvous_deadlock)
    assert schedule.round.tolist() == [-1, -1, -1]


def test_side_by_side_a_ring_does_not_deadlock() -> None:
    schedule = trace(GATHER_ALL, both_in_a_ring, 3)
    assert schedule.rendezvous_deadlock == ""
    assert schedule.n_rounds == 1
    assert schedule.steps.label == ["rank 0 turns", "rank 1 turns", "rank 2 turns"]


def test_a_step_knows_its_source_line_through_yield_from() -> None:
    def inner(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, ALL)
        elif me.rank == 1:
            yield Recv(0, ALL)

    def outer(me: Rank) -> Iterator[Step]:
        yield from inner(me)

    schedule = trace(BROADCAST, outer, 2)
    first = inner.__code__.co_firstlineno
    assert schedule.steps.line.tolist() == [first + 2, first + 4]
    assert [source.function for source in schedule.steps.sources] == ["inner"]
    assert "inner in test_trace.py, line" in schedule.steps.where(0)


def test_empty_messages_are_legal_and_need_not_agree_on_where_they_are_empty() -> None:
    def barrier(me: Rank) -> Iterator[Step]:
        yield Send(right(me), range(0)), Recv(left(me), range(1, 1))

    schedule = trace(GATHER_ALL, barrier, 3)
    assert schedule.message_bytes(100).tolist() == [0, 0, 0]


def test_channels_match_apart_and_a_channel_holds_only_what_it_received() -> None:
    def crossed(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, me.channel)
        else:
            yield Recv(0, me.channel)

    schedule = trace(BROADCAST, Algorithm(crossed, channels=2, chunks=lambda p, s: 2), 2)
    assert [(t.channel, t.chunks) for t in schedule] == [(0, range(0, 1)), (1, range(1, 2))]

    def borrows(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, me.channel)
        elif me.rank == 1:
            yield Recv(0, me.channel)
            yield Send(2, 1 - me.channel)

    with pytest.raises(ScheduleError, match="rank 1, step 1: sends chunk 1 to rank 2 before"):
        trace(BROADCAST, Algorithm(borrows, channels=2, chunks=lambda p, s: 2), 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_ranks": 0}, "n_ranks must be at least 1, got 0"),
        ({"n_ranks": 3, "root": 3}, "root must be a rank, 0 to 2, got 3"),
        ({"n_ranks": 3, "segments": 0}, "segments must be at least 1, got 0"),
    ],
)
def test_arguments_out_of_range_are_value_errors(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace(BROADCAST, BROADCAST.algorithms["flat"], **arguments)


def test_a_collective_without_root_refuses_one() -> None:
    with pytest.raises(ValueError, match="all_gather has no root, got root 1"):
        trace(GATHER_ALL, both_in_a_ring, 3, root=1)


ranks = st.integers(1, 12)


def tables() -> st.SearchStrategy[tuple[Collective, str]]:
    rows = [(c, name) for c in COLLECTIVES.values() for name in c.algorithms]
    return st.sampled_from(rows)


def drawn(data: st.DataObject) -> Schedule:
    collective, name = data.draw(tables())
    algorithm = collective.algorithms[name]
    p = data.draw(ranks.filter(algorithm.ranks.allows))
    root = data.draw(st.integers(0, p - 1)) if collective.rooted else 0
    return trace(collective, algorithm, p, root=root, segments=data.draw(st.integers(1, 5)))


@given(st.data())
def test_transfers_are_numbered_by_depth_then_source_channel_and_position(
    data: st.DataObject,
) -> None:
    schedule = drawn(data)
    steps = schedule.steps
    depth = np.zeros(len(steps), int)
    for _ in range(len(steps)):  # the definition, until nothing changes
        for step, previous in enumerate(steps.previous):
            if previous >= 0:
                senders = schedule.src_step[schedule.dst_step == previous]
                depth[step] = 1 + max([depth[previous], *depth[senders]])
    keys = [(depth[t.src_step], t.src, t.channel, t.src_step) for t in schedule]
    assert keys == sorted(keys)


@given(st.data())
def test_messages_of_a_pair_and_channel_match_in_order(data: st.DataObject) -> None:
    schedule = drawn(data)
    by_pair: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for t in schedule:
        by_pair.setdefault((t.src, t.dst, t.channel), []).append((t.src_step, t.dst_step))
        assert schedule.steps.rank[[t.src_step, t.dst_step]].tolist() == [t.src, t.dst]
    for matched in by_pair.values():
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(sorted(matched)))


@given(st.data(), st.integers(0, 1000))
def test_chunks_cover_the_message_without_gap_whatever_its_size(
    data: st.DataObject, nbytes: int
) -> None:
    schedule = drawn(data)
    offsets = schedule.offsets(nbytes)
    blocks = schedule.collective.blocks(schedule.n_ranks)
    per_block = schedule.n_chunks // blocks
    assert offsets[0] == 0
    assert offsets[-1] == blocks * nbytes
    assert (np.diff(offsets) >= 0).all()
    assert offsets[::per_block].tolist() == [b * nbytes for b in range(blocks + 1)]
    assert set(np.diff(offsets)) <= {nbytes // per_block, nbytes // per_block + 1}
    assert schedule.bytes_matrix(nbytes).sum() == schedule.message_bytes(nbytes).sum()


@given(st.data())
def test_acks_follow_every_message_backwards_and_are_empty(data: st.DataObject) -> None:
    schedule = drawn(data)
    acked = with_acks(schedule)
    assert len(acked) == 2 * len(schedule)
    assert (acked.bytes_matrix(1000) == schedule.bytes_matrix(1000)).all()
    acks = [t for t in acked if acked.steps.label[t.src_step] == "acknowledge"]
    assert sorted((t.dst, t.src) for t in acks) == sorted((t.src, t.dst) for t in schedule)
    for t in acks:
        assert len(t.chunks) == 0
        assert acked.steps.previous[t.src_step] in acked.dst_step
    for t in acked:
        if acked.steps.label[t.src_step] != "acknowledge":
            ack_step = acked.steps.previous.tolist().index(t.src_step)
            assert ack_step in acked.dst_step


def test_acks_that_would_wait_for_each_other_are_refused() -> None:
    """Two ranks send first and receive after: with acks each waits for the other's receipt."""

    def cross(me: Rank) -> Iterator[Step]:
        yield Send(right(me), me.rank)
        yield Recv(left(me), left(me))

    schedule = trace(GATHER_ALL, cross, 2)
    with pytest.raises(ScheduleError, match="deadlock, even if sends never wait"):
        with_acks(schedule)
