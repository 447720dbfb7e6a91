"""The best segment: as good as brute force, and where theory says it is."""

from math import ceil, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost.exact import exact_ps
from collsim.cost.ideal import Ideal
from collsim.cost.segments import FORMS, MAX_SEGMENTS, best_segment, candidates
from collsim.network import Model, connect
from collsim.program import LogGP
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

BANDWIDTH = 1.25e9
APPROXIMATE = {  # form: the most that its choice may cost beside the best one
    ("broadcast", "two_trees", "rendezvous"): 0.1,
    ("broadcast", "circulant", "eager"): 0.1,
}
ROWS = [
    (collective.name, name)
    for collective in COLLECTIVES.values()
    for name, algorithm in collective.algorithms.items()
    if algorithm.is_segmented
]


def machine(alpha: float) -> LogGP:
    return LogGP(L=alpha, G=1 / BANDWIDTH)


def simulated(
    collective: str, name: str, p: int, nbytes: int, segment: int, alpha: float, protocol
) -> float:
    definition = COLLECTIVES[collective]
    algorithm = definition.algorithms[name]
    schedule = trace(definition, algorithm, p, segments=max(1, ceil(nbytes / segment)))
    graph = TOPOLOGIES["star"](hosts=p, bandwidth=BANDWIDTH, latency=alpha / 2)
    model = Model(sharing="fifo", protocol=protocol)
    network = connect(graph, tuple(f"h{i}" for i in range(p)), model)
    return simulate(schedule, network, nbytes).makespan


def test_every_segmented_algorithm_has_a_form_for_both_protocols() -> None:
    assert set(FORMS) == {(*row, protocol) for row in ROWS for protocol in ("rendezvous", "eager")}


@pytest.mark.parametrize("key", FORMS, ids=" ".join)
@pytest.mark.parametrize("p", [2, 3, 5, 8, 11])
@pytest.mark.parametrize("alpha", [1e-6, 1e-5])
def test_no_other_candidate_is_faster_in_the_simulation(
    key: tuple[str, str, str], p: int, alpha: float
) -> None:
    collective, name, protocol = key
    nbytes = 1 << 15

    chosen = best_segment(collective, name, p, nbytes, machine(alpha), protocol)

    sizes = candidates(nbytes)
    assert chosen in sizes
    makespans = {
        size: simulated(collective, name, p, nbytes, size, alpha, protocol) for size in sizes
    }
    allowed = min(makespans.values()) * (1 + APPROXIMATE.get(key, 1e-9)) + 5e-12
    assert makespans[chosen] <= allowed, makespans


@given(
    st.sampled_from([key for key in FORMS if key not in APPROXIMATE]),
    st.integers(2, 40),
    st.integers(1, 20),
    st.sampled_from([0, 3, 10, 14, 20, 50, 1000]),
)
def test_forms_are_exact_for_equal_segments(
    key: tuple[str, str, str], p: int, segments: int, alpha: int
) -> None:
    """Nanoseconds: a segment has ten bytes, of one each."""
    collective, name, protocol = key
    s = COLLECTIVES[collective].algorithms[name].chunks(p, segments)
    ideal = Ideal(alpha * 1000, 1e9, protocol)  # type: ignore[arg-type]

    exact = exact_ps(collective, name, p, 10 * s, s, ideal)

    form = FORMS[key](p, s, alpha * 1e-9, 10e-9)
    if exact is None:  # several channels, or eager messages that overtake
        return
    if (name, protocol) == ("split_binary", "eager"):
        assert form >= exact * 1e-12 * (1 - 1e-9)
    else:
        assert form == pytest.approx(exact * 1e-12, rel=1e-9, abs=5e-12)


@pytest.mark.parametrize("p", [4, 16, 100])
@pytest.mark.parametrize("alpha", [1e-6, 1e-5, 1e-4])
def test_a_chain_is_cut_into_about_as_many_segments_as_theory_says(p: int, alpha: float) -> None:
    """S* = √((p − 2)nβ/α); the nearest power of two is within a factor of √2 in makespan terms."""
    nbytes = 1 << 20
    best = sqrt((p - 2) * nbytes / BANDWIDTH / alpha)

    found = nbytes / best_segment("broadcast", "chain", p, nbytes, machine(alpha), "rendezvous")

    assert min(best, MAX_SEGMENTS) / 2 < found < 2 * best


@given(st.sampled_from(list(FORMS)), st.integers(1, 20), st.integers(0, 1 << 34))
def test_there_are_at_most_1024_segments_of_at_least_a_kibibyte(
    key: tuple[str, str, str], p: int, nbytes: int
) -> None:
    collective, name, protocol = key

    segment = best_segment(collective, name, p, nbytes, machine(1e-6), protocol)

    if segment != max(1, nbytes):
        assert segment >= 1024
        assert segment & (segment - 1) == 0
        assert ceil(nbytes / segment) <= MAX_SEGMENTS


@pytest.mark.parametrize(
    ("nbytes", "sizes"),
    [
        (0, [1]),
        (1, [1]),
        (1024, [1024]),
        (1025, [1025, 1024]),
        (5000, [5000, 4096, 2048, 1024]),
        (1 << 20, [1 << i for i in range(20, 9, -1)]),
        ((1 << 20) + 1, [(1 << 20) + 1, *(1 << i for i in range(20, 10, -1))]),
    ],
)
def test_powers_of_two_and_the_whole_message_are_tried(nbytes: int, sizes: list[int]) -> None:
    assert candidates(nbytes) == sizes


def test_where_segments_change_nothing_the_message_stays_whole() -> None:
    """Two ranks, eager: every cut takes α + nβ."""
    assert best_segment("broadcast", "chain", 2, 10**6, machine(1e-5), "eager") == 10**6
    assert best_segment("broadcast", "chain", 1, 10**6, machine(1e-5), "eager") == 10**6


def test_overhead_and_gap_make_segments_larger() -> None:
    for slower in (LogGP(1e-5, o=1e-5, G=1 / BANDWIDTH), LogGP(1e-5, g=5e-5, G=1 / BANDWIDTH)):
        fine, coarse = (
            best_segment("broadcast", "chain", 8, 1 << 20, loggp, "eager")
            for loggp in (machine(1e-5), slower)
        )
        assert coarse > fine


@pytest.mark.parametrize(
    "key",
    [
        ("broadcast", "unheard_of", "eager"),
        ("broadcast", "binomial", "eager"),
        ("scatter", "chain", "eager"),
        ("broadcast", "chain", "late"),
    ],
    ids=" ".join,
)
def test_without_a_form_it_says_which_there_are(key: tuple[str, str, str]) -> None:
    collective, name, protocol = key
    with pytest.raises(ValueError, match=r"no segments to choose for .*broadcast chain rendezvous"):
        best_segment(collective, name, 8, 1 << 20, machine(1e-5), protocol)


def test_ranks_are_positive() -> None:
    with pytest.raises(ValueError, match="n_ranks must be at least 1, got 0"):
        best_segment("broadcast", "chain", 0, 1 << 20, machine(1e-5), "eager")
