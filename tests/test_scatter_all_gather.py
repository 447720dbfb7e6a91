"""Scatter and all_gather through the verifier and the simulation: contracts and makespans."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.collectives.describe import describe
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
