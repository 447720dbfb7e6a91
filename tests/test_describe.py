"""Docstrings as data: their fields, their formulas, and whether what these say is so.

`Star` is an independent oracle of the makespan: integer time, an ideal star, rendezvous.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives.broadcast import BROADCAST
from collsim.collectives.broadcast.trees import binomial, flat
from collsim.collectives.describe import FORMULAS, Formula, describe, evaluate
from collsim.program import Rank, Step
from collsim.schedule import Schedule
from collsim.tracing import trace

FIELDS = """Rounds: p - 1
Messages: p - 1
Bytes sent by each rank: n
Makespan: about alpha +
    n * beta
Good when: always.
Poor when: never.
Also called: nothing.
Reference: none."""


def documented(text: str | None) -> Iterator[Step]:
    """Make a program with a docstring."""

    def program(me: Rank) -> Iterator[Step]:
        yield from ()

    program.__doc__ = text
    return program  # type: ignore[return-value]


def test_a_docstring_is_read_field_by_field() -> None:
    found = describe(flat)

    assert found.summary == "Send from the root to every other rank, one after the other."
    assert found.details == ()
    assert list(found.formulas) == [
        "Rounds",
        "Messages",
        "Bytes sent by the root",
        "Bytes sent by another rank",
        "Makespan",
    ]
    assert found.formulas["Makespan"] == Formula(
        "alpha + (p - 1) * n * beta", "", "alpha + (p - 1) * n * beta"
    )
    assert found.notes["Also called"] == "linear with blocking sends."


def test_paragraphs_and_long_fields_become_one_line() -> None:
    found = describe(binomial)

    assert len(found.details) == 1
    assert "highest bit. For a power" in found.details[0]
    assert found.formulas["Makespan"].text.endswith(
        "n * beta), (1 + floor(log2(p - 2**(L - 1)))) * alpha + L * n * beta)"
    )
    assert found.formulas["Bytes sent by another rank"].bound == "at most"


def test_a_collective_without_a_root_has_its_own_field() -> None:
    found = describe(documented(f"Do it.\n\nAs said.\n\n{FIELDS}"))  # type: ignore[arg-type]

    assert found.formulas["Bytes sent by each rank"].value(p=4, n=3) == 3
    assert found.formulas["Makespan"] == Formula(
        "about alpha + n * beta", "about", "alpha + n * beta"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "program has no docstring"),
        (FIELDS, "lacks a first sentence"),
        ("Do it.\n\n" + FIELDS.replace("Rounds: p - 1\n", ""), "lacks Rounds"),
        ("Do it.\n\n" + FIELDS.replace("Bytes sent by each rank: n\n", ""), "lacks Bytes sent by"),
        ("Do it.\n\n" + FIELDS.replace("Good when", "Fine when"), "has 'Fine when: always.'"),
        ("Do it.\n\n" + FIELDS + "\nRounds: 2", "has 'Rounds: 2'"),
        ("Do it.\n\nIt is so.", "has 'It is so.'"),
    ],
)
def test_an_incomplete_docstring_is_refused(text: str | None, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        describe(documented(text))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(p - 2 + S) * n / S", 45.0),
        ("-p + 2**3 % 5", -2),
        ("ceil(log2(p)) + floor(7 / 2)", 6),
        ("ceil(log2(243) / log2(3))", 5),  # 5.000000000000001 in floating point
        ("floor(log2(1331) / log2(11))", 3),  # 2.9999999999999996 in floating point
        ("max(1, min(p, S), 2)", 4),
    ],
)
def test_arithmetic_is_evaluated(expression: str, value: float) -> None:
    assert evaluate(expression, {"p": 5, "S": 4, "n": 180 / 7}) == pytest.approx(value)


@pytest.mark.parametrize(
    "expression",
    [
        "q + 1",
        "open('x')",
        "p.real",
        "__import__('os')",
        "p if p else 1",
        "[p]",
        "max(p, key=p)",
        "'p'",
        "True",
        "p +",
        "",
        "1; 2",
    ],
)
def test_anything_else_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        evaluate(expression, {"p": 5})


def test_one_rank_alone_sends_nothing() -> None:
    assert Formula("p + S", "", "p + S").value(p=1, S=4) == 0


def test_what_must_be_seen_elsewhere_has_no_value() -> None:
    assert Formula("see there", "see", "there").value(p=4) is None


def test_ranks_are_positive() -> None:
    with pytest.raises(ValueError, match="p must be at least 1, got 0"):
        Formula("p", "", "p").value(p=0)


@given(st.integers(2, 10**6))
def test_rounds_of_a_tree_double_at_least_to_p(p: int) -> None:
    rounds = Formula("L", "", "L").value(p=p)

    assert rounds is not None
    assert 2 ** (rounds - 1) < p <= 2**rounds


def run(
    name: str, n_ranks: int, *, root: int = 0, segments: int = 1, **parameters: Any
) -> Schedule:
    """Trace an algorithm of the table."""
    row = BROADCAST.algorithms[name]
    return trace(BROADCAST, row, n_ranks, root=root, segments=segments, **parameters)


@dataclass
class Star:
    """Plays a schedule on an ideal star: `latency` and, for each byte, one unit of time.

    A message starts when both of its steps have begun. The sender's link carries one message at a
    time, in order of (time, transfer id), and so does the receiver's.
    """

    schedule: Schedule
    nbytes: int
    latency: int
    informed: dict[int, int] = field(default_factory=dict)
    makespan: int = 0

    def __post_init__(self) -> None:
        schedule = self.schedule
        self.ends = list(zip(schedule.src_step.tolist(), schedule.dst_step.tolist(), strict=True))
        self.operations: dict[int, list[int]] = {}
        for transfer, ends in enumerate(self.ends):
            for step in ends:
                self.operations.setdefault(step, []).append(transfer)
        previous = schedule.steps.previous.tolist()
        self.following = {before: step for step, before in enumerate(previous) if before >= 0}
        self.undone = {step: len(found) for step, found in self.operations.items()}
        self.begun: set[int] = set()
        self.events: list[tuple[int, int, int]] = []
        for step, before in enumerate(previous):
            if before < 0:
                self.begin(step, 0)
        self.play()

    def begin(self, step: int, now: int) -> None:
        self.begun.add(step)
        for transfer in self.operations[step]:
            if self.begun.issuperset(self.ends[transfer]):
                heapq.heappush(self.events, (now, transfer, 0))

    def end_one(self, step: int, now: int) -> None:
        self.undone[step] -= 1
        if self.undone[step] == 0 and step in self.following:
            self.begin(self.following[step], now)

    def play(self) -> None:
        length = self.schedule.message_bytes(self.nbytes).tolist()
        up, down = Counter[int](), Counter[int]()
        n_received = 0
        while self.events:
            now, transfer, stage = heapq.heappop(self.events)
            src, dst = int(self.schedule.src[transfer]), int(self.schedule.dst[transfer])
            if stage == 0:
                start = max(now, up[src])
                up[src] = start + length[transfer]
                heapq.heappush(self.events, (start + self.latency, transfer, 1))
                heapq.heappush(self.events, (up[src], transfer, 2))
            elif stage == 1:
                down[dst] = max(now, down[dst]) + length[transfer]
                heapq.heappush(self.events, (down[dst], transfer, 3))
            else:
                self.end_one(self.ends[transfer][stage - 2], now)
                self.makespan = now
            if stage == 3:
                self.informed[dst] = now
                n_received += 1
        assert n_received == len(self.schedule)


def check(formula: Formula, observed: float, what: str, **names: float) -> None:
    """Hold a formula of a docstring to what was observed."""
    value = formula.value(**names)  # type: ignore[arg-type]
    message = f"{what} is {observed}, not {formula.text} = {value}, for {names}"
    match formula.bound:
        case "":
            assert value == pytest.approx(observed, rel=1e-12), message
        case "at most":
            assert value is not None
            assert observed <= value * (1 + 1e-12), message
        case "at least":
            assert value is not None
            assert observed >= value * (1 - 1e-12), message
        case _:
            assert formula.bound == "see", message


@pytest.mark.parametrize("name", BROADCAST.algorithms)
def test_the_formulas_of_the_docstring_hold(name: str) -> None:
    row = BROADCAST.algorithms[name]
    formulas = describe(row.program).formulas
    for p in (*range(2, 20), 23, 31, 32, 33):
        if not row.ranks.allows(p):
            continue
        for segments in (1, 2, 3, 8, 13) if row.is_segmented else (1,):
            root = 2 * p // 3
            schedule = run(name, p, root=root, segments=segments)
            nbytes = 60 * schedule.n_chunks
            sent = schedule.bytes_matrix(nbytes).sum(axis=1).tolist()
            sizes = {"p": p, "n": nbytes, "S": schedule.n_chunks, "k": 4}
            observed = {
                "Rounds": schedule.n_rounds,
                "Messages": len(schedule),
                "Bytes sent by the root": sent.pop(root),
                "Bytes sent by another rank": max(sent),
            }
            assert {*formulas} == {*observed, "Makespan"} <= {*FORMULAS}
            for what, value in observed.items():
                check(formulas[what], value, what, **sizes)
            for alpha in (0, 7, 60, 150, 10**6):
                makespan = Star(schedule, nbytes, alpha).makespan
                check(formulas["Makespan"], makespan, "Makespan", alpha=alpha, beta=1, **sizes)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_full_knomial_tree_takes_the_time_of_its_bound(k: int, levels: int) -> None:
    schedule = run("knomial", k**levels, k=k)
    formula = describe(BROADCAST.algorithms["knomial"].program).formulas["Makespan"]

    assert Star(schedule, 60, 7).makespan == formula.value(p=k**levels, n=60, k=k, alpha=7, beta=1)
    assert schedule.n_rounds == levels


@pytest.mark.parametrize("p", [3, 7, 15, 31])
@pytest.mark.parametrize("alpha", [0, 10, 60, 100])
def test_a_full_binary_tree_takes_the_time_of_its_bound(p: int, alpha: int) -> None:
    schedule = run("binary", p, segments=5)
    formula = describe(BROADCAST.algorithms["binary"].program).formulas["Makespan"]

    makespan = Star(schedule, 300, alpha).makespan

    assert makespan == formula.value(p=p, n=300, S=5, alpha=alpha, beta=1)


MICROSECOND = 10**6  # in picoseconds


@pytest.mark.parametrize(
    ("name", "segments", "microseconds"),
    [
        ("flat", 1, 5882.0),
        ("flat_at_once", 1, 5882.0),
        ("binomial", 1, 2546.6),
        ("chain", 22, 1347.6),
        ("scatter_rd_all_gather", 1, 1528.0),
        ("scatter_ring_all_gather", 1, 1568.0),
        ("circulant", 13, 1117.9),
    ],
)
def test_a_mebibyte_to_eight_ranks_on_ten_gigabit_ethernet(
    name: str, segments: int, microseconds: float
) -> None:
    schedule = run(name, 8, segments=segments)

    star = Star(schedule, 800 * 2**20, 10 * MICROSECOND)  # 800 units a byte: 0.8 ns

    assert star.makespan / MICROSECOND == pytest.approx(microseconds, abs=0.05)
