"""Words for what becomes of a rank, before a run and after it: one spelling for every reader."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from collsim.gloo.outcomes import Fate, Kind
from collsim.mistakes.mistake import Mistake

End = Literal["right", "silently wrong", "wrong", "raises", "left alone", "dies"]

_ENDS: Final[Mapping[Kind, End]] = {
    "raised": "raises",
    "timed out": "left alone",
    "lost a peer": "left alone",
    "hung": "left alone",
    "killed": "dies",
    "aborted": "dies",
}
"""How each kind of fate ends for the reader; a return depends on value and warning."""

_SAID: Final[Mapping[Kind, str]] = {
    "raised": "an error",
    "timed out": "times out",
    "lost a peer": "loses its connection to another rank",
    "hung": "says nothing at all",
    "killed": "its process is killed",
    "aborted": "its process aborts",
}


def documented(mistake: Mistake, rank: int) -> tuple[tuple[End, ...], str]:
    """How a rank may end, and the details."""
    expected, right = mistake.expected[rank], mistake.right[rank]
    kinds: list[Kind] = [kind for kind in _SAID if kind in expected.kinds]
    ends = [_ENDS[kind] for kind in kinds]
    said = [_SAID[kind] for kind in kinds]
    if said and expected.says:
        said[-1] += f": “{expected.says}”"
    if "returned" in expected.kinds:
        value = right if expected.value is None else expected.value
        warning = "" if kinds else expected.says
        ends.insert(0, _end_of_value(value, right, warning))
        said.insert(0, f"holds {_held(value, right, warning)}")
    return tuple(dict.fromkeys(ends)), ", or ".join(said)


def observed(fate: Fate, right: tuple[float, ...]) -> tuple[End, str]:
    """How a rank ended, and the details."""
    if fate.kind == "returned":
        value = tuple(fate.value)
        return _end_of_value(value, right, fate.text), _held(value, right, fate.text)
    return _ENDS[fate.kind], f"{fate.kind}: {fate.text}"


def happens(mistake: Mistake) -> tuple[End, ...]:
    """What can be seen of a mistake on its ranks; "right" only if there is nothing else."""
    found = [end for rank in range(len(mistake.right)) for end in documented(mistake, rank)[0]]
    return tuple(dict.fromkeys(end for end in found if end != "right")) or ("right",)


def source(function: Callable[..., Any]) -> str:
    """A function's code without its docstring: a mistake's title says the same.

    >>> source(source).splitlines()[1]
    '    code = textwrap.dedent(inspect.getsource(function))'
    """
    code = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(code).body
    assert isinstance(definition, ast.FunctionDef)
    lines = code.splitlines()
    if ast.get_docstring(definition) is not None:
        first = definition.body[0]
        del lines[first.lineno - 1 : first.end_lineno]
    return "\n".join(lines)


def _end_of_value(value: tuple[float, ...], right: tuple[float, ...], warning: str) -> End:
    if value == right:
        return "right"
    return "wrong" if warning else "silently wrong"


def _held(value: tuple[float, ...], right: tuple[float, ...], warning: str) -> str:
    """What a rank holds, what it should hold if that differs, and of what it warned."""
    held = _numbers(value)
    if value != right:
        held += f" instead of {_numbers(right)}"
    return f"{held} (it warned: {warning})" if warning else held


def _numbers(values: tuple[float, ...]) -> str:
    return "[" + ", ".join(f"{value:.10g}" for value in values) + "]"
