"""Scatter and all_gather: their contracts, the numbers in their docstrings, gloo's bytes."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.collectives.describe import describe
from collsim.errors import ScheduleError
from collsim.network import Model, connect
from collsim.program import Algorithm
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace
from collsim.verification import verify

TABLES: Mapping[str, Mapping[str, Algorithm]] = {
    name: COLLECTIVES[name].algorithms for name in ("scatter", "all_gather")
}
ROWS = [(collective, name) for collective, table in TABLES.items() for name in table]
ALPHA, BETA = 10e-6, 0.8e-9


def traced(collective: str, name: str, p: int, root: int = 0) -> Schedule:
    return trace(COLLECTIVES[collective], TABLES[collective][name], p, root=root)


def fitting(*ranks: int) -> list[tuple[str, str, int]]:
    """Each algorithm with the numbers of ranks that it is made for."""
    return [(c, n, p) for c, n in ROWS for p in ranks if TABLES[c][n].ranks.allows(p)]


def holds(bound: str, said: float, found: float) -> bool:
    close = found == pytest.approx(said, rel=1e-6)
    match bound:
        case "at most":
            return found <= said or close
        case "at least":
            return found >= said or close
    return close


@pytest.mark.parametrize(("collective", "name"), ROWS)
@given(data=st.data())
def test_the_contract_holds_and_nothing_deadlocks(
    collective: str, name: str, data: st.DataObject
) -> None:
    allows = TABLES[collective][name].ranks.allows
    p = data.draw(st.integers(1, 17).filter(allows))
    root = data.draw(st.integers(0, p - 1)) if collective == "scatter" else 0
    schedule = traced(collective, name, p, root)
    assert schedule.rendezvous_deadlock == ""
    verify(schedule, nbytes=data.draw(st.integers(0, 33)), seed=data.draw(st.integers(0, 9)))


@pytest.mark.parametrize(("collective", "name", "p"), fitting(2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17))
def test_the_docstring_says_how_many_rounds_messages_and_bytes(
    collective: str, name: str, p: int
) -> None:
    row = TABLES[collective][name]
    formulas = describe(row.program).formulas
    n = 840
    for root in {0, p - 1} if collective == "scatter" else {0}:
        schedule = traced(collective, name, p, root)
        sent = schedule.bytes_matrix(n).sum(axis=1)
        found = {
            "Rounds": [schedule.n_rounds],
            "Messages": [len(schedule)],
            "Bytes sent by the root": [sent[root]],
            "Bytes sent by another rank": [*sent[:root], *sent[root + 1 :]],
            "Bytes sent by each rank": list(sent),
        }
        for field, values in found.items():
            if field in formulas:
                said = formulas[field].value(p=p, n=n)
                assert said is not None
                assert all(holds(formulas[field].bound, said, v) for v in values), field
                if not formulas[field].bound:
                    assert field == "Bytes sent by another rank" or max(values) == said
        assert row.messages is not None
        most = row.messages(p, schedule.n_chunks // p)
        assert len(schedule) <= most
        if formulas["Messages"].bound == "":
            assert len(schedule) == most


@pytest.mark.parametrize(("collective", "name", "p"), fitting(2, 3, 4, 6, 7, 8, 12, 16))
@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_the_docstring_says_how_long_it_takes_on_an_ideal_star(
    collective: str, name: str, p: int, n: int
) -> None:
    row = TABLES[collective][name]
    graph = TOPOLOGIES["star"](hosts=p, bandwidth=1 / BETA, latency=ALPHA / 2)
    network = connect(graph, tuple(f"h{i}" for i in range(p)), Model(sharing="fifo"))
    makespan = simulate(traced(collective, name, p), network, n).makespan
    formula = describe(row.program).formulas["Makespan"]
    said = formula.value(p=p, n=n, alpha=ALPHA, beta=BETA)
    assert said is not None
    assert holds(formula.bound, said, makespan), (said, makespan)


@pytest.mark.parametrize(
    ("name", "p", "message"),
    [
        ("recursive_doubling", 6, "recursive_doubling needs a power of two ranks, got 6"),
        ("neighbour_exchange", 5, "neighbour_exchange needs an even number of ranks, or one, got 5"),
    ],
)
def test_a_number_of_ranks_that_does_not_fit_is_told(name: str, p: int, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        traced("all_gather", name, p)


def test_gloos_all_gather_moves_the_bytes_that_gloo_was_seen_to_move() -> None:
    """Four ranks of 10^6 bytes: three blocks to the right in six messages (G12, less headers)."""
    schedule = traced("all_gather", "gloo", 4)
    matrix = schedule.bytes_matrix(10**6)
    for rank in range(4):
        assert matrix[rank, (rank + 1) % 4] == 3_000_000
        assert sum(t.src == rank for t in schedule) == 6
    assert matrix.sum() == 12_000_000
    assert sorted(set(schedule.message_bytes(7).tolist())) == [3, 4]


def test_gloos_scatter_sends_each_block_straight() -> None:
    matrix = traced("scatter", "gloo", 4, root=1).bytes_matrix(10**6)
    assert matrix[1].tolist() == [10**6, 0, 10**6, 10**6]
    assert matrix.sum() == 3 * 10**6


def test_neighbour_exchange_only_ever_talks_to_neighbours() -> None:
    schedule = traced("all_gather", "neighbour_exchange", 10)
    assert {(t.dst - t.src) % 10 for t in schedule} == {1, 9}
