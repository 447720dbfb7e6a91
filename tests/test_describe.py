"""Docstrings as data: the fields, and formulas that can do nothing but arithmetic."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives.broadcast.trees import binomial, flat
from collsim.collectives.describe import Formula, describe, evaluate
from collsim.program import Rank, Step

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
    assert found.notes["Also called"].startswith("linear; Open MPI's")


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
        ("ceil(log2(125) / log2(5))", 3),  # 3.0000000000000004 in floating point
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
