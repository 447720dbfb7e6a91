"""Scatter: who gets what in any legal order, and what the docstrings say of each algorithm.

`replay` is an oracle of its own: it knows steps and sets of chunks, no engine and no bytes.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives.describe import describe
from collsim.collectives.scatter import SCATTER
from collsim.program import Collective, segmented
from collsim.schedule import Schedule
from collsim.tracing import trace
from tests.test_describe import Star, check

NAMES = tuple(SCATTER.algorithms)
HEADERS, GRANT = 96, 48  # bytes of gloo on the wire beside each message, and back for it


def run(name: str, p: int, root: int = 0) -> Schedule:
    return trace(SCATTER, SCATTER.algorithms[name], p, root=root)


def replay(schedule: Schedule, seed: int) -> list[set[int]]:
    """Deliver the messages in a random legal order; the chunks each rank holds at the end.

    A message may go when both of its steps have begun, and carries what its channel held when the
    sender's step began.
    """
    steps, rng = schedule.steps, random.Random(seed)
    undone = Counter(schedule.src_step.tolist()) + Counter(schedule.dst_step.tolist())
    held = {
        (rank, channel): set(
            schedule.collective.before(rank, schedule.n_ranks, schedule.root, schedule.n_chunks)
        )
        for rank in range(schedule.n_ranks)
        for channel in range(schedule.n_channels)
    }
    came: dict[int, set[int]] = {step: set() for step in range(len(steps))}
    waiting = list(schedule)
    while waiting:
        rng.shuffle(waiting)
        left = []
        for message in waiting:
            ends = (message.src_step, message.dst_step)
            if any(undone[int(steps.previous[step])] for step in ends):  # of −1 there is none
                left.append(message)
                continue
            assert held[message.src, message.channel].issuperset(message.chunks)
            came[message.dst_step].update(message.chunks)
            for step in ends:
                undone[step] -= 1
                if not undone[step]:
                    held[int(steps.rank[step]), int(steps.channel[step])] |= came[step]
        assert len(left) < len(waiting), "no message can go"
        waiting = left
    channels = range(schedule.n_channels)
    return [set().union(*(held[r, c] for c in channels)) for r in range(schedule.n_ranks)]


def docstring_holds(collective: Collective, name: str, p: int, root: int) -> None:
    """Hold every formula of a docstring to the schedule and to its time on an ideal star."""
    row = collective.algorithms[name]
    formulas = describe(row.program).formulas
    schedule = trace(collective, row, p, root=root)
    for nbytes in (60, 61):  # an odd block has two unequal halves
        sent = schedule.bytes_matrix(nbytes).sum(axis=1).tolist()
        observed = {"Rounds": schedule.n_rounds, "Messages": len(schedule)}
        if collective.rooted:
            observed["Bytes sent by the root"] = sent.pop(root)
            observed["Bytes sent by another rank"] = max(sent)
        else:
            observed["Bytes sent by each rank"] = max(sent)
            assert formulas["Bytes sent by each rank"].bound or len(set(sent)) == 1
        assert {*formulas} == {*observed, "Makespan"}
        for what, value in observed.items():
            check(formulas[what], value, what, p=p, n=nbytes)
        for alpha in (0, 7, 30, 31, 60, 10**6):
            makespan = Star(schedule, nbytes, alpha).makespan
            check(formulas["Makespan"], makespan, "Makespan", p=p, n=nbytes, alpha=alpha, beta=1)


def labels_are_plain(schedule: Schedule) -> None:
    """Hold each step's label to naming its rank, in grammatical words."""
    for rank, label in zip(schedule.steps.rank.tolist(), schedule.steps.label, strict=True):
        assert f"rank {rank}" in label or (rank == schedule.root and "the root" in label)
        assert " 1 blocks" not in label


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_every_rank_gets_its_block_in_any_legal_order(name: str, data: st.DataObject) -> None:
    p = data.draw(st.integers(1, 17), "ranks")
    root, chunks = data.draw(st.integers(0, p - 1), "root"), data.draw(st.integers(1, 4), "chunks")
    row = replace(SCATTER.algorithms[name], chunks=segmented)
    schedule = trace(SCATTER, row, p, root=root, segments=chunks)

    held = replay(schedule, data.draw(st.integers(0, 99), "seed"))

    assert schedule.rendezvous_deadlock == ""
    for rank in range(p):
        assert held[rank].issuperset(range(rank * chunks, (rank + 1) * chunks))
        assert name == "binomial" or rank == root or len(held[rank]) == chunks


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", range(2, 18))
def test_the_formulas_of_the_docstring_hold(name: str, p: int) -> None:
    for root in range(p):
        docstring_holds(SCATTER, name, p, root)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [1, 2, 3, 8, 13, 16])
def test_the_table_counts_the_messages_of_the_root_that_needs_most(name: str, p: int) -> None:
    messages = SCATTER.algorithms[name].messages

    assert messages is not None
    assert messages(p, 1) == max(len(run(name, p, root)) for root in range(p))


@pytest.mark.parametrize("name", NAMES)
def test_labels_say_which_rank_does_what(name: str) -> None:
    for root in (0, 5):
        labels_are_plain(run(name, 13, root))


@pytest.mark.parametrize("p", range(2, 18))
def test_a_run_of_blocks_that_wraps_is_two_messages_of_one_step(p: int) -> None:
    """Rank 0 stands at p − root in virtual order; the runs of all ranks above it wrap."""
    for root in range(p):
        schedule = run("binomial", p, root)
        n_above = max(0, ((p - root) % p).bit_count() - 1)  # between the root and rank 0

        assert len(schedule) == p - 1 + n_above
        assert len(set(schedule.src_step.tolist())) == p - 1
        for step in set(schedule.src_step.tolist()):
            parts = [m.chunks for m in schedule if m.src_step == step]
            assert len({m.dst for m in schedule if m.src_step == step}) == 1
            assert len(parts) == 1 or (parts[0].stop, parts[1].start) == (p, 0)


@pytest.mark.parametrize("p", [2, 4, 8, 16])
def test_the_first_child_of_a_binomial_scatter_passes_nearly_half_of_all_blocks_on(p: int) -> None:
    formula = describe(SCATTER.algorithms["binomial"].program).formulas[
        "Bytes sent by another rank"
    ]

    sent = run("binomial", p).bytes_matrix(10).sum(axis=1).tolist()

    assert max(sent[1:]) == formula.value(p=p, n=10) == 10 * (p // 2 - 1)


def test_binomial_with_six_ranks_by_hand() -> None:
    """With root 2, rank 0 is virtual number 4 and sees to rank 1; with root 3, rank 5 sees to 0."""
    sent = [(m.src, m.dst, m.chunks) for m in run("binomial", 6, root=2)]

    assert sorted(sent, key=lambda row: row[:2]) == [
        (0, 1, range(1, 2)),
        (2, 0, range(0, 2)),
        (2, 3, range(3, 4)),
        (2, 4, range(4, 6)),
        (4, 5, range(5, 6)),
    ]
    wrapping = [(m.src, m.dst, m.chunks) for m in run("binomial", 6, root=3) if m.dst == 5]
    assert wrapping == [(3, 5, range(5, 6)), (3, 5, range(0, 1))]


def test_gloo_sends_the_bytes_that_were_measured() -> None:
    """Four ranks, root 1, 10^6 bytes: 1,000,096 to each of the others and 48 back."""
    schedule = run("gloo", 4, root=1)
    count = schedule.bytes_matrix(1) * HEADERS  # one message a pair, if any

    wire = schedule.bytes_matrix(10**6) + count + count.T // HEADERS * GRANT

    assert wire.tolist() == [
        [0, 48, 0, 0],
        [1_000_096, 0, 1_000_096, 1_000_096],
        [0, 48, 0, 0],
        [0, 48, 0, 0],
    ]


@pytest.mark.parametrize(("name", "n_steps"), [("linear", 7), ("gloo", 1)])
def test_linear_waits_after_each_send_and_gloo_does_not(name: str, n_steps: int) -> None:
    schedule = run(name, 8, root=3)

    assert len({m.src_step for m in schedule}) == n_steps
    assert schedule.n_rounds == n_steps
