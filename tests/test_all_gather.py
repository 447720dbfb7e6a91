"""All_gather: everyone gets everything in any legal order, and what the docstrings say."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives.all_gather import ALL_GATHER
from collsim.errors import ScheduleError
from collsim.program import segmented
from collsim.schedule import Schedule
from collsim.tracing import trace
from tests.test_describe import Star
from tests.test_scatter import GRANT, HEADERS, docstring_holds, labels_are_plain, replay

TABLE = ALL_GATHER.algorithms
NAMES = tuple(TABLE)


def run(name: str, p: int) -> Schedule:
    return trace(ALL_GATHER, TABLE[name], p)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_every_rank_gets_every_block_in_any_legal_order(name: str, data: st.DataObject) -> None:
    row = TABLE[name]
    p = data.draw(st.integers(1, 17).filter(row.ranks.allows), "ranks")
    if name != "gloo":  # which is made for halves
        row = replace(row, chunks=segmented)
    schedule = trace(ALL_GATHER, row, p, segments=data.draw(st.integers(1, 4), "chunks"))

    held = replay(schedule, data.draw(st.integers(0, 99), "seed"))

    assert schedule.rendezvous_deadlock == ""
    assert held == [set(range(schedule.n_chunks))] * p


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", range(2, 18))
def test_the_formulas_of_the_docstring_hold(name: str, p: int) -> None:
    if TABLE[name].ranks.allows(p):
        docstring_holds(ALL_GATHER, name, p, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [1, 2, 4, 8, 16])
def test_the_table_counts_the_messages(name: str, p: int) -> None:
    messages = TABLE[name].messages

    assert messages is not None
    assert messages(p, 1) == len(run(name, p))


@pytest.mark.parametrize("name", NAMES)
def test_no_block_comes_twice_but_in_a_broadcast(name: str) -> None:
    came = Counter((m.dst, chunk) for m in run(name, 8) for chunk in m.chunks)

    assert max(came.values()) == (2 if name == "gather_broadcast" else 1)


@pytest.mark.parametrize("name", NAMES)
def test_labels_say_which_rank_does_what(name: str) -> None:
    labels_are_plain(run(name, 8))


@pytest.mark.parametrize(
    ("name", "p", "message"),
    [
        ("recursive_doubling", 6, "recursive_doubling needs a power of two ranks, got 6"),
        ("neighbour_exchange", 5, "neighbour_exchange needs an even number of ranks, or one, got"),
    ],
)
def test_a_number_of_ranks_that_does_not_fit_is_told(name: str, p: int, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        run(name, p)


@pytest.mark.parametrize("name", ["ring", "gloo"])
def test_rings_only_ever_send_to_the_right(name: str) -> None:
    assert {(m.dst - m.src) % 9 for m in run(name, 9)} == {1}


def test_neighbour_exchange_only_ever_talks_to_neighbours() -> None:
    assert {(m.dst - m.src) % 10 for m in run("neighbour_exchange", 10)} == {1, 9}


@pytest.mark.parametrize("p", [5, 8, 13])
def test_bruck_gets_blocks_from_twice_as_far_in_each_round(p: int) -> None:
    schedule = run("bruck", p)

    for m in schedule:
        assert (m.src - m.dst) % p == 1 << int(schedule.round[m.id])


def test_recursive_doubling_swaps_over_twice_the_distance_in_each_round() -> None:
    schedule = run("recursive_doubling", 16)

    for m in schedule:
        assert m.src ^ m.dst == 1 << int(schedule.round[m.id])


@pytest.mark.parametrize("p", [2, 7, 12])
def test_gather_broadcast_goes_up_and_down_the_same_tree(p: int) -> None:
    schedule = run("gather_broadcast", p)
    everything = range(schedule.n_chunks)
    down = {(m.src, m.dst) for m in schedule if m.chunks == everything}
    up = {(m.dst, m.src) for m in schedule if m.chunks != everything}

    assert up == down
    assert len(down) == p - 1


@pytest.mark.parametrize("p", [3, 4, 8])
@pytest.mark.parametrize(("alpha", "nbytes"), [(10, 1000), (500, 1000), (0, 60)])
def test_gloo_hides_latency_up_to_the_time_of_half_a_block(p: int, alpha: int, nbytes: int) -> None:
    """Two halves on their way hide an α of up to nβ/2 in all rounds but the first."""
    halves, whole = (Star(run(name, p), nbytes, alpha).makespan for name in ("gloo", "ring"))

    assert halves == (p - 1) * nbytes + alpha
    assert halves == whole - (p - 2) * alpha


def test_gloo_sends_the_bytes_that_were_measured() -> None:
    """Four ranks of 10^6 bytes: 3,000,576 to the right in six messages, and 288 back."""
    schedule = run("gloo", 4)
    messages = np.zeros((4, 4), np.int64)
    np.add.at(messages, (schedule.src, schedule.dst), 1)

    wire = schedule.bytes_matrix(10**6) + HEADERS * messages + GRANT * messages.T

    for rank in range(4):
        assert messages[rank, (rank + 1) % 4] == 6
        assert wire[rank, (rank + 1) % 4] == 3_000_576
        assert wire[rank, (rank - 1) % 4] == 288
    assert wire.sum() == 4 * (3_000_576 + 288)


@pytest.mark.parametrize(("nbytes", "sizes"), [(7, {3, 4}), (1, {0, 1}), (0, {0}), (8, {4})])
def test_gloo_halves_odd_blocks_downwards_then_upwards(nbytes: int, sizes: set[int]) -> None:
    schedule = run("gloo", 3)
    found = schedule.message_bytes(nbytes)

    assert set(found.tolist()) == sizes
    assert set(found[schedule.channel == 0].tolist()) == {min(sizes)}
