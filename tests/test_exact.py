"""Exact forms: equal to the simulation to the picosecond, and to what can be worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost.exact import EXACT, Form, exact_ps
from collsim.cost.ideal import Case, Ideal
from collsim.errors import ScenarioError
from collsim.network import Model, connect
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

star = TOPOLOGIES["star"]
MAY_OVERTAKE = {
    ("broadcast", "circulant"),
    ("broadcast", "split_binary"),
    ("broadcast", "scatter_rd_all_gather"),
}
PROTOCOLS: Final[tuple[Literal["rendezvous", "eager"], ...]] = ("rendezvous", "eager")
MICROSECOND = 10**6  # in picoseconds


def own_parameters(draw: st.DrawFn, name: str, p: int) -> dict[str, Any]:
    """What an algorithm is given beside the ranks: sometimes nothing, so that defaults hold."""
    if name == "knomial":
        return {"k": draw(st.integers(2, 6))}
    if name == "postal":
        return {"latency": draw(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.7, 20.0]))}
    if name == "logp_optimal" and draw(st.booleans()):
        return {"parents": [draw(st.integers(0, max(0, v - 1))) for v in range(p)]}
    if name == "two_level" and draw(st.booleans()):
        ranks = draw(st.permutations(range(p)))
        cuts = [0, *sorted(draw(st.lists(st.integers(0, p), max_size=4))), p]
        return {"groups": [ranks[a:b] for a, b in pairwise(cuts)]}
    return {}


@st.composite
def questions(draw: st.DrawFn, row: tuple[str, str]) -> dict[str, Any]:
    """Ranks, root, sizes (often few bytes, or none), segments, network and parameters."""
    collective, name = row
    rule = COLLECTIVES[collective].algorithms[name].ranks
    p = draw(st.integers(1, 12).filter(rule.allows))
    return {
        "row": row,
        "p": p,
        "root": draw(st.integers(0, p - 1)) if COLLECTIVES[collective].rooted else 0,
        "nbytes": draw(st.one_of(st.integers(0, 30), st.integers(0, 9999), st.just(5040))),
        "segments": draw(st.integers(1, 7)),
        "latency": draw(st.sampled_from([0.0, 1e-9, 1e-7, 1e-6, 1e-5])),  # s, of each link
        "bandwidth": draw(st.sampled_from([7.7e8, 1e9, 1.25e9, 3e9])),
        "parameters": own_parameters(draw, name, p),
    }


def simulated(question: dict[str, Any], protocol: Any) -> int:
    collective, name = question["row"]
    definition, p = COLLECTIVES[collective], question["p"]
    schedule = trace(
        definition,
        definition.algorithms[name],
        p,
        root=question["root"],
        segments=question["segments"],
        **question["parameters"],
    )
    graph = star(hosts=p, bandwidth=question["bandwidth"], latency=question["latency"])
    model = Model(sharing="fifo", protocol=protocol)
    network = connect(graph, tuple(f"h{i}" for i in range(p)), model)
    return simulate(schedule, network, question["nbytes"]).makespan_ps


def worked_out(question: dict[str, Any], protocol: Any) -> int | None:
    collective, name = question["row"]
    algorithm, p = COLLECTIVES[collective].algorithms[name], question["p"]
    return exact_ps(
        collective,
        name,
        p,
        question["nbytes"],
        algorithm.chunks(p, question["segments"]),
        Ideal(2 * round(question["latency"] * 1e12), question["bandwidth"], protocol),
        question["root"],
        question["parameters"],
    )


def check(question: dict[str, Any]) -> None:
    """Hold a form to the simulation, under both protocols."""
    for protocol in PROTOCOLS:
        found = worked_out(question, protocol)
        if found is None:
            assert protocol == "eager"
            assert question["row"] in MAY_OVERTAKE
        else:
            assert found == simulated(question, protocol), protocol


@pytest.mark.parametrize("row", EXACT, ids=" ".join)
@given(data=st.data())
def test_a_form_equals_the_simulation_to_the_picosecond(
    row: tuple[str, str], data: st.DataObject
) -> None:
    check(data.draw(questions(row)))


def test_every_algorithm_on_one_channel_has_a_form() -> None:
    single = {
        (collective.name, name)
        for collective in COLLECTIVES.values()
        for name, algorithm in collective.algorithms.items()
        if algorithm.channels == 1
    }

    assert set(EXACT) == single


QUESTION = {
    "p": 8,
    "root": 0,
    "nbytes": 10_001,
    "segments": 5,
    "latency": 2e-6,
    "bandwidth": 1.25e9,
    "parameters": {},
}


def alpha_twice(form: Form, case: Case) -> int:
    return (form(case) or 0) + case.alpha


def one_byte_less(form: Form, case: Case) -> int | None:
    return form(replace(case, nbytes=case.nbytes - 1))


def one_picosecond_more(form: Form, case: Case) -> int:
    return (form(case) or 0) + 1


def other_protocol(form: Form, case: Case) -> int | None:
    swapped = PROTOCOLS[case.ideal.protocol == "rendezvous"]
    return form(replace(case, ideal=replace(case.ideal, protocol=swapped)))


MISTAKES = [
    *((row, mistake) for row in EXACT for mistake in (alpha_twice, one_byte_less)),
    *((row, one_picosecond_more) for row in EXACT),
    (("broadcast", "chain"), other_protocol),
    (("broadcast", "binary"), other_protocol),
]


@pytest.mark.parametrize(("row", "mistake"), MISTAKES)
def test_the_comparison_sees_a_form_with_a_mistake(
    row: tuple[str, str], mistake: Callable[..., int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {**QUESTION, "row": row}
    check(question)

    monkeypatch.setitem(cast(dict, EXACT), row, partial(mistake, EXACT[row]))

    with pytest.raises(AssertionError):
        check(question)


TEN_GIGABIT = {protocol: Ideal(10 * MICROSECOND, 1.25e9, protocol) for protocol in PROTOCOLS}


@pytest.mark.parametrize(
    ("name", "chunks", "protocol", "microseconds"),
    [
        ("flat", 1, "rendezvous", 5882.0),
        ("flat_at_once", 1, "eager", 5882.0),
        ("chain", 22, "rendezvous", 1347.6),
        ("chain", 22, "eager", 1137.6),
        ("binomial", 1, "rendezvous", 2546.6),
        ("binomial", 1, "eager", 2546.6),
        ("gloo", 1, "rendezvous", 2546.6),
        ("scatter_rd_all_gather", 8, "rendezvous", 1528.0),
        ("scatter_ring_all_gather", 8, "rendezvous", 1568.0),
        ("circulant", 13, "rendezvous", 1117.9),
    ],
)
def test_one_mebibyte_on_eight_ranks_of_ten_gigabit_ethernet(
    name: str, chunks: int, protocol: Any, microseconds: float
) -> None:
    found = exact_ps("broadcast", name, 8, 1 << 20, chunks, TEN_GIGABIT[protocol])

    assert found is not None
    assert found / MICROSECOND == pytest.approx(microseconds, abs=0.06)


ALPHA, BYTE = 7000, 1000  # ps: 7 ns, and 1 GB/s


def expected(name: str, p: int, n: int, s: int, protocol: str) -> int:
    """The formulas that docstrings state for equal chunks: n bytes, or n a rank; p = 2^L."""
    log = p.bit_length() - 1
    takes, alpha = n * BYTE, ALPHA
    piece, share = takes // s, takes // p
    match name:
        case "flat" | "linear":
            return alpha + (p - 1) * takes
        case "chain" if protocol == "rendezvous":
            return (p - 2 + s) * (alpha + piece)
        case "chain":
            return (p - 1) * alpha + (p - 2 + s) * piece
        case "binomial" | "binomial_halving":
            return log * (alpha + takes)
        case "scatter_ring_all_gather":
            return (log + p - 1) * alpha + 2 * (p - 1) * share
        case "scatter_rd_all_gather":
            return 2 * log * alpha + 2 * (p - 1) * share
        case "circulant":
            return (log - 1 + s) * (alpha + piece)
        case "ring":
            return (p - 1) * (alpha + takes)
        case "recursive_doubling" | "bruck":
            return log * alpha + (p - 1) * takes
        case "neighbour_exchange":
            return p // 2 * alpha + (p - 1) * takes
        case "gather_broadcast":
            return 2 * log * alpha + (p - 1 + p * log) * takes
    raise NotImplementedError(name)


@pytest.mark.parametrize("p", [2, 4, 32, 4096])
@pytest.mark.parametrize(
    ("collective", "name", "protocols"),
    [
        ("broadcast", "flat", PROTOCOLS),
        ("broadcast", "chain", PROTOCOLS),
        ("broadcast", "binomial", PROTOCOLS),
        ("broadcast", "binomial_halving", PROTOCOLS),
        ("broadcast", "scatter_ring_all_gather", ("rendezvous",)),
        ("broadcast", "scatter_rd_all_gather", ("rendezvous",)),
        ("broadcast", "circulant", ("rendezvous",)),
        ("scatter", "linear", PROTOCOLS),
        ("all_gather", "ring", PROTOCOLS),
        ("all_gather", "recursive_doubling", PROTOCOLS),
        ("all_gather", "bruck", PROTOCOLS),
        ("all_gather", "neighbour_exchange", PROTOCOLS),
        ("all_gather", "gather_broadcast", ("rendezvous",)),
    ],
)
def test_equal_chunks_take_what_the_formula_says_also_on_thousands_of_ranks(
    collective: str, name: str, protocols: tuple[Any, ...], p: int
) -> None:
    n, s = 3 * 4096, p if name.startswith("scatter") and collective == "broadcast" else 64
    for protocol in protocols:
        ideal = Ideal(ALPHA, 1e9, protocol)

        assert exact_ps(collective, name, p, n, s, ideal) == expected(name, p, n, s, protocol)


def test_a_full_scatter_tree_pays_a_latency_a_level() -> None:
    found = exact_ps("scatter", "binomial", 4096, 5, 1, Ideal(ALPHA, 1e9), root=17)

    assert found == 12 * ALPHA + 4095 * 5 * BYTE


def test_an_eager_gather_takes_blocks_as_they_come() -> None:
    """Five ranks: 1 and 4 send at once, and 2, when it has the block of 3, before these are in."""
    m = 10 * BYTE
    down = 2 * ALPHA + 3 * 5 * m
    found = {
        protocol: exact_ps("all_gather", "gather_broadcast", 5, 10, 1, Ideal(ALPHA, 1e9, protocol))
        for protocol in PROTOCOLS
    }

    assert found["rendezvous"] == 3 * ALPHA + 4 * m + down  # from 1, then 2 (with 3), then 4
    assert found["eager"] == ALPHA + 4 * m + down  # the link of 0 is busy from the first byte on


def test_an_eager_message_that_overtakes_leaves_no_exact_form() -> None:
    found = [
        exact_ps("broadcast", "circulant", 10, 5000, 8, Ideal(0, 1e9, protocol))
        for protocol in PROTOCOLS
    ]

    assert found[0] is not None
    assert found[1] is None


@given(st.sampled_from(list(EXACT)), st.sampled_from(PROTOCOLS), st.data())
def test_more_latency_and_more_bytes_never_end_earlier(
    row: tuple[str, str], protocol: str, data: st.DataObject
) -> None:
    assume(protocol == "rendezvous" or row not in MAY_OVERTAKE)
    question = data.draw(questions(row))
    more = {**question, "nbytes": question["nbytes"] + 1, "latency": question["latency"] + 1e-9}
    before, after = (worked_out(q, protocol) for q in (question, more))

    assert before is not None
    assert after is not None
    assert before <= after


def test_algorithms_on_several_channels_have_no_exact_form() -> None:
    assert exact_ps("broadcast", "two_trees", 8, 100, 2, Ideal(0, 1e9)) is None
    assert exact_ps("broadcast", "unheard_of", 8, 100, 2, Ideal(0, 1e9)) is None


def test_one_rank_takes_no_time() -> None:
    for collective, name in EXACT:
        for protocol in TEN_GIGABIT:
            assert exact_ps(collective, name, 1, 100, 1, TEN_GIGABIT[protocol]) == 0


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"n_ranks": 0}, "n_ranks must be at least 1, got 0"),
        ({"nbytes": -1}, "nbytes must be at least 0, got -1"),
        ({"n_chunks_per_block": 0}, "n_chunks must be at least 1, got 0"),
        ({"root": 8}, "root must be a rank, 0 to 7, got 8"),
        ({"n_ranks": 6}, "scatter_rd_all_gather needs a power of two ranks, got 6"),
        ({"algorithm": "knomial", "parameters": {"k": 1}}, "k must be at least 2, got 1"),
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], complaint: str) -> None:
    arguments = {
        "collective": "broadcast",
        "algorithm": "scatter_rd_all_gather",
        "n_ranks": 8,
        "nbytes": 100,
        "n_chunks_per_block": 8,
        "ideal": Ideal(0, 1e9),
    }
    with pytest.raises(ValueError, match=complaint):
        exact_ps(**{**arguments, **changed})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((-1, 1e9), "alpha_ps must not be negative, got -1"),
        ((0, 0.0), "bandwidth must be above 0, got 0.0"),
        ((0, 1e9, "late"), "protocol must be rendezvous or eager, got 'late'"),
    ],
)
def test_an_impossible_network_is_refused(arguments: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Ideal(*arguments)


@pytest.mark.parametrize("name", ["ring", "bruck"])
def test_a_run_of_weeks_is_refused(name: str) -> None:
    with pytest.raises(ScenarioError, match="23 days"):
        exact_ps("all_gather", name, 8, 1 << 40, 1, Ideal(0, 1e5))
