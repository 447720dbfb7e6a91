"""The textbook's column: the golden tables, and the best numbers of segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost.textbook import BEST_SEGMENTS, FORMS, Case, best_segments, textbook_seconds
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
    for p, nbytes, loggp, table in (
        (8, 1 << 20, SLOW, G5),
        (16, 1 << 10, SLOW, G6),
        (64, 64 << 20, FAST, G7),
    )
    for (name, segments), microseconds in table.items()
]


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

        def seconds(segments: float, name: str = name) -> float:
            pairs = max(2, 2 * round(segments / 2))
            return FORMS["broadcast", name](Case(p, nbytes, pairs, SLOW.L, SLOW.G, {}))

        at_best = min(seconds(2 * (star // 2)), seconds(2 * (star // 2) + 2))
        assert at_best <= seconds(star * factor) * (1 + 1e-9)


def test_every_algorithm_has_a_form_or_is_left_out_on_purpose() -> None:
    without = {(c.name, name) for c in COLLECTIVES.values() for name in c.algorithms} - FORMS.keys()
    assert without == {
        ("broadcast", "gloo"),
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


@pytest.mark.parametrize(
    ("name", "at_1_mib", "at_64_mib"),
    [("chain", 22, 258), ("circulant", 13, 73), ("two_trees", 2 * 11, 2 * 57)],
)
def test_the_golden_tables_use_the_best_numbers_of_segments(
    name: str, at_1_mib: int, at_64_mib: int
) -> None:
    assert best_segments(name, 8, 1 << 20, SLOW) == at_1_mib
    assert best_segments(name, 64, 64 << 20, FAST) == at_64_mib


@given(
    st.sampled_from([*BEST_SEGMENTS]),
    st.integers(1, 300),
    st.integers(0, 1 << 22),
    st.integers(1, 400),
)
def test_no_number_of_segments_beats_the_best_one(
    name: str, p: int, nbytes: int, other: int
) -> None:
    if name in ("split_binary", "two_trees"):
        other += other % 2
    best = best_segments(name, p, nbytes, SLOW)

    fastest, slower = (
        textbook_seconds("broadcast", name, p, nbytes, segments, SLOW) for segments in (best, other)
    )

    assert fastest is not None
    assert slower is not None
    assert fastest <= slower * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "loggp", "complaint"),
    [
        ("binomial", SLOW, "algorithm must be one of chain, .*, got 'binomial'"),
        ("chain", LogGP(L=0.0, G=1e-9), "L \\+ 2 o must be above 0, got 0"),
    ],
)
def test_where_there_is_no_best_number_of_segments(name: str, loggp: LogGP, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        best_segments(name, 8, 1 << 20, loggp)


def test_sixteen_ranks_tell_two_trees_from_a_chain() -> None:
    """At p = 8 both have 6 + 22 rounds; at p = 16 it is 8 + 22 against 14 + 22."""
    each = 10e-6 + 2**20 / 22 * 0.8e-9
    for name, rounds in (("two_trees", 30), ("chain", 36)):
        found = textbook_seconds("broadcast", name, 16, 1 << 20, 22, SLOW)
        assert found == pytest.approx(rounds * each)


@pytest.mark.parametrize(("p", "cycles"), [(2, 10), (4, 18), (8, 24), (16, 32), (32, 38), (64, 46)])
def test_the_machine_of_the_logp_paper(p: int, cycles: int) -> None:
    machine = LogGP(L=6, o=2, g=4)

    assert textbook_seconds("broadcast", "logp_optimal", p, 0, 1, machine) == cycles
    assert textbook_seconds("broadcast", "postal", p, 0, 1, machine) == cycles


def test_an_overhead_and_bytes_keep_a_sender_busy_beyond_the_gap() -> None:
    """Each send takes 2 + 3 and arrives after 2 + 6 + 3 + 2: two ranks hear at 13 and 18."""
    machine = LogGP(L=6, o=2, g=1, G=1)

    assert textbook_seconds("broadcast", "logp_optimal", 3, 3, 1, machine) == 18


@pytest.mark.parametrize("latency", [1, 2, 3, 7])
def test_postal_follows_the_recursion_of_its_paper(latency: int) -> None:
    """N(t) = 1 for t < λ, N(t) = N(t − 1) + N(t − λ): all know at the first t with N(t) ≥ p."""
    known = [1] * latency
    while known[-1] < 200:
        known.append(known[-1] + known[-latency])
    machine = LogGP(L=latency - 1, G=1)  # one byte occupies for 1 and flies for λ
    for p in range(2, 200):
        first = next(t for t, count in enumerate(known) if count >= p)
        assert textbook_seconds("broadcast", "postal", p, 1, 1, machine) == first


@pytest.mark.parametrize(
    ("collective", "name", "microseconds"),
    [
        ("scatter", "linear", 7 * (10 + 0.8)),
        ("scatter", "gloo", 10 + 7 * 0.8),
        ("scatter", "binomial", 3 * 10 + 7 * 0.8),
        ("all_gather", "ring", 7 * (10 + 0.8)),
        ("all_gather", "recursive_doubling", 3 * 10 + 7 * 0.8),
        ("all_gather", "bruck", 3 * 10 + 7 * 0.8),
        ("all_gather", "neighbour_exchange", 4 * 10 + 7 * 0.8),
        ("all_gather", "gather_broadcast", 3 * 10 + 7 * 0.8 + 3 * (10 + 8 * 0.8)),
    ],
)
def test_eight_blocks_of_a_thousand_bytes(collective: str, name: str, microseconds: float) -> None:
    found = textbook_seconds(collective, name, 8, 1000, 1, SLOW)

    assert found is not None
    assert found * 1e6 == pytest.approx(microseconds)


def test_an_odd_number_of_segments_counts_as_the_next_even_one_where_there_are_halves() -> None:
    for name in ("split_binary", "two_trees"):
        odd, even = (textbook_seconds("broadcast", name, 9, 1 << 20, s, SLOW) for s in (5, 6))
        assert odd == even


def test_binary_trees_by_hand() -> None:
    """p = 7, 4 segments of 1000 bytes: 2 (1 + 4) × 10.8; halves: 2 (1 + 2) × 10.8 + 10 + 1.6."""
    binary = textbook_seconds("broadcast", "binary", 7, 4000, 4, SLOW)
    split_binary = textbook_seconds("broadcast", "split_binary", 7, 4000, 4, SLOW)

    assert binary == pytest.approx(108e-6)
    assert split_binary == pytest.approx(76.4e-6)
