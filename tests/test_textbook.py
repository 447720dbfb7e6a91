"""The textbook's column: the golden tables, and the best numbers of segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost.textbook import BEST_SEGMENTS, FORMS, Case, textbook_seconds
from collsim.program import LogGP

SLOW = LogGP(L=10e-6, G=0.8e-9)
FAST = LogGP(L=5e-6, G=0.08e-9)

G5 = {
    ("flat", 1): 5942.0,
    ("flat_at_once", 1): 5882.0,
    ("binomial", 1): 2546.6,
    ("chain", 22): 1347.6,
    ("scatter_rd_all_gather", 1): 1528.0,
    ("scatter_ring_all_gather", 1): 1568.0,
    ("circulant", 13): 1117.9,
    ("two_trees", 22): 1347.6,
}
G6 = {
    ("flat", 1): 162.3,
    ("flat_at_once", 1): 22.3,
    ("binomial", 1): 43.28,
    ("circulant", 1): 43.28,
    ("scatter_rd_all_gather", 1): 81.5,
    ("scatter_ring_all_gather", 1): 191.5,
}
G7 = {
    ("binomial", 1): 32242,
    ("chain", 258): 8259,
    ("scatter_rd_all_gather", 1): 10630,
    ("scatter_ring_all_gather", 1): 10915,
    ("circulant", 73): 6126,
    ("two_trees", 114): 6564,
}
CASES = [
    (p, nbytes, loggp, name, segments, microseconds)
    for p, nbytes, loggp, table in ((8, 1 << 20, SLOW, G5), (16, 1 << 10, SLOW, G6), (64, 64 << 20, FAST, G7))
    for (name, segments), microseconds in table.items()
]  # fmt: skip


@pytest.mark.parametrize(("p", "nbytes", "loggp", "name", "segments", "microseconds"), CASES)
def test_golden_tables(
    p: int, nbytes: int, loggp: LogGP, name: str, segments: int, microseconds: float
) -> None:
    found = textbook_seconds("broadcast", name, p, nbytes, segments, loggp)
    assert found is not None
    digits = len(str(microseconds).partition(".")[2]) if isinstance(microseconds, float) else 0
    assert found * 1e6 == pytest.approx(microseconds, abs=0.5 * 10**-digits + 1e-6)


@pytest.mark.parametrize(
    ("name", "p", "nbytes", "loggp", "segments"),
    [("chain", 8, 1 << 20, SLOW, 22), ("circulant", 8, 1 << 20, SLOW, 13),
     ("two_trees", 8, 1 << 20, SLOW, 22), ("chain", 64, 64 << 20, FAST, 258),
     ("circulant", 64, 64 << 20, FAST, 73), ("two_trees", 64, 64 << 20, FAST, 114)],
)  # fmt: skip
def test_best_numbers_of_segments_round_to_the_golden_ones(
    name: str, p: int, nbytes: int, loggp: LogGP, segments: int
) -> None:
    case = Case(p, nbytes, 1, loggp.L, loggp.G, {})
    assert BEST_SEGMENTS[name](case) == pytest.approx(segments, abs=1.0)


@given(st.integers(3, 64), st.integers(1 << 16, 1 << 26), st.floats(0.5, 2))
def test_no_other_number_of_segments_is_better(p: int, nbytes: int, factor: float) -> None:
    for name, best in BEST_SEGMENTS.items():
        case = Case(p, nbytes, 1, SLOW.L, SLOW.G, {})
        star = best(case)
        at_best, elsewhere = (
            FORMS["broadcast", name](Case(p, nbytes, max(1, round(s)), SLOW.L, SLOW.G, {}))
            for s in (star, star * factor)
        )
        assert at_best <= elsewhere * 1.01


def test_every_algorithm_has_a_form_or_is_left_out_on_purpose() -> None:
    without = {
        (c.name, name) for c in COLLECTIVES.values() for name in c.algorithms
    } - FORMS.keys()
    assert without == {
        ("broadcast", "gloo"),
        ("broadcast", "logp_optimal"),
        ("broadcast", "postal"),
        ("all_gather", "gloo"),
    }
    assert textbook_seconds("broadcast", "gloo", 8, 1000, 1, SLOW) is None


def test_knomial_two_level_and_one_rank() -> None:
    def seconds(name: str, p: int, **parameters) -> float | None:
        return textbook_seconds("broadcast", name, p, 0, 1, SLOW, parameters)

    assert seconds("knomial", 125, k=5) == pytest.approx(12 * 10e-6)
    assert seconds("knomial", 126, k=5) == pytest.approx(16 * 10e-6)
    assert seconds("two_level", 16, groups=[range(8), range(8, 16)]) == pytest.approx(4 * 10e-6)
    assert seconds("two_level", 16) == pytest.approx(4 * 10e-6)
    assert seconds("binomial", 1) == 0
