"""Plain functions, compiled by numba where it is installed.

numba is imported when something is compiled: that takes a quarter of a second.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

Function = Callable[..., Any]


def has_numba() -> bool:
    """Whether functions can be compiled."""
    return find_spec("numba") is not None


def linked(
    functions: Sequence[Function], wrap: Callable[[Function], Function] = lambda function: function
) -> Mapping[str, Function]:
    """Copies of functions that call each other's copies, by name.

    Args:
        functions: Each after those that it calls.
        wrap: What becomes of each copy.
    """
    made: dict[str, Function] = {}
    for function in functions:
        assert isinstance(function, FunctionType)
        names = {**function.__globals__, **made}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        made[function.__name__] = wrap(copy)
    return made


def compiled(functions: Sequence[Function]) -> Function:
    """The last of some functions, compiled with those that it calls; kept on disk.

    numba looks only at the file of a function to see whether its copy on disk is still good. Here
    the digest of all files that take part belongs to the function, so no old copy is ever run.

    Args:
        functions: Each after those that it calls; the last takes any positional arguments.
    """
    import numba  # late: a quarter of a second

    # Functions allocate nothing, so nothing is counted; only the entry is called from Python.
    entry: dict[str, Any] = {"_nrt": False}
    inner = entry | {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = linked(functions, numba.njit(**inner))
    files = sorted({function.__code__.co_filename for function in functions})
    texts = [Path(file).read_bytes() for file in files]
    digest = int(hashlib.sha256(b"\0".join(texts)).hexdigest()[:15], 16)
    function: Function = numba.njit(cache=True, **entry)(
        _entry(made[functions[-1].__name__], digest)
    )
    return function


def run(*arguments: Any) -> None:
    """Stands for the function that an entry calls."""


def _entry(function: Function, digest: int) -> Function:
    """Calls a function; its copy on disk is found by the digest, which it closes over."""

    def call(*arguments: Any) -> None:
        if digest:
            run(*arguments)

    names = {**globals(), "run": function}  # a closure over `run` would have a new key each time
    return FunctionType(call.__code__, names, function.__name__, None, call.__closure__)
