"""What the docstring of an algorithm says, as data: its formulas and when it is good.

An algorithm's docstring has a first sentence, perhaps paragraphs, and then fields: `FORMULAS` and
`NOTES` below. A formula is an expression in

* p (ranks, at least 2: one rank alone sends nothing), L = ⌈log2 p⌉,
* n (bytes of the collective's argument), S (chunks that the argument is cut into),
* k (the algorithm's own parameter), alpha (latency, s) and beta (s/byte),
* and the functions ceil, floor, log2, min and max;

alone, or after ``at most``, ``at least`` or ``about``. ``see …`` stands where there is no closed
form. The makespan is that of an ideal star under rendezvous, where a message of m bytes takes
alpha + m * beta, and a rank's link carries one message after the other each way.
"""

import ast
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from collsim.program import Program

BYTES: Final = (
    "Bytes sent by the root",
    "Bytes sent by another rank",
    "Bytes sent by each rank",
)
FORMULAS: Final = ("Rounds", "Messages", *BYTES, "Makespan")
"""The fields that hold a formula. Of the bytes, those that the collective has."""

NOTES: Final = ("Good when", "Poor when", "Also called", "Reference")
"""The fields that hold prose."""

BOUNDS: Final = ("at most", "at least", "about")
"""What may stand before an expression."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of a docstring.

    Attributes:
        text: As written.
        bound: "" where the expression is exact, one of `BOUNDS`, or "see" where there is none.
        expression: The expression, or what to see.
    """

    text: str
    bound: str
    expression: str

    def value(
        self,
        *,
        p: int,
        n: float = 0,
        S: int = 1,
        k: float = 2,
        alpha: float = 0.0,
        beta: float = 0.0,
    ) -> float | None:
        """The value of the expression for p ranks; None where there is no expression."""
        if p < 1:
            raise ValueError(f"p must be at least 1, got {p}")
        if self.bound == "see":
            return None
        if p == 1:
            return 0
        length = (p - 1).bit_length()
        names = {"p": p, "n": n, "S": S, "L": length, "k": k, "alpha": alpha, "beta": beta}
        return evaluate(self.expression, names)


@dataclass(frozen=True, slots=True)
class Description:
    """What the docstring of an algorithm says.

    Attributes:
        summary: The first sentence.
        details: The paragraphs after it, each as one line.
        formulas: Formulas by field.
        notes: Prose by field.
    """

    summary: str
    details: tuple[str, ...]
    formulas: Mapping[str, Formula]
    notes: Mapping[str, str]


def describe(program: Program) -> Description:
    """Read the docstring of an algorithm.

    Raises:
        ValueError: There is none, or a field is missing, unreadable or there twice.
    """
    name = getattr(program, "__name__", "program")
    text = inspect.getdoc(program)
    if not text:
        raise ValueError(f"{name} has no docstring")
    *prose, table = text.split("\n\n")
    fields = _fields(table, name)
    missing = {*FORMULAS, *NOTES} - {*BYTES} - fields.keys()
    if not prose or missing or not fields.keys() & {*BYTES}:
        lacking = sorted(missing) or ["a first sentence" if not prose else BYTES[0]]
        raise ValueError(f"the docstring of {name} lacks {', '.join(lacking)}")
    summary, *details = (" ".join(paragraph.split()) for paragraph in prose)
    return Description(
        summary=summary,
        details=tuple(details),
        formulas={field: _formula(fields[field]) for field in FORMULAS if field in fields},
        notes={field: fields[field] for field in NOTES},
    )


def _fields(table: str, name: str) -> dict[str, str]:
    """The fields of a docstring; lines that are indented go on with the field before."""
    fields: dict[str, str] = {}
    field = ""
    for line in table.splitlines():
        if line.startswith(" ") and field:
            fields[field] += f" {line.strip()}"
            continue
        field, colon, rest = line.partition(":")
        if not colon or field not in {*FORMULAS, *NOTES} or field in fields:
            known = ", ".join((*FORMULAS, *NOTES))
            raise ValueError(f"the docstring of {name} has {line!r}; the fields are {known}, once")
        fields[field] = rest.strip()
    return fields


def _formula(text: str) -> Formula:
    if text.startswith("see "):
        return Formula(text, "see", text.removeprefix("see "))
    bound = next((bound for bound in BOUNDS if text.startswith(f"{bound} ")), "")
    return Formula(text, bound, text.removeprefix(bound).strip())


ROUNDING: Final = 1e-9
"""Logarithms this close to a whole number are meant to be whole."""

_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "ceil": lambda x: math.ceil(x - ROUNDING),
    "floor": lambda x: math.floor(x + ROUNDING),
    "log2": math.log2,
    "min": min,
    "max": max,
}
_OPERATORS: Final[Mapping[type[ast.AST], Callable[..., float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}


def evaluate(expression: str, names: Mapping[str, float]) -> float:
    """The value of an arithmetic expression, which may hold `names` and nothing else by name.

    >>> evaluate("(p - 1) * ceil(log2(p))", {"p": 5})
    12

    Raises:
        ValueError: It is not such an expression.
    """

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.UnaryOp(op=op, operand=x) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(x))
            case ast.BinOp(left=x, op=op, right=y) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(x), value(y))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value, args))
        raise ValueError(f"{ast.unparse(node)!r} has no meaning in the formula {expression!r}")

    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"not a formula: {expression!r} ({error.msg})") from error
    return value(tree.body)
