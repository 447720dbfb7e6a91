"""The lines of the functions that yielded steps, so that the player can light the current one."""

import ast
import linecache
from functools import lru_cache
from typing import Any

from collsim.schedule import Source


@lru_cache(maxsize=64)
def function_lines(source: Source, line: int) -> dict[str, Any] | None:
    """The function around a line of a file: its lines without the docstring, and their numbers.

    None if the file cannot be read or parsed any more.
    """
    linecache.checkcache(source.file)
    lines = linecache.getlines(source.file)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name == source.function
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not found:
        return None
    node = found[-1]  # the innermost
    skipped = range(0)
    if ast.get_docstring(node):
        skipped = range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    shown = [n for n in range(node.lineno, (node.end_lineno or 0) + 1) if n not in skipped]
    return {"numbers": shown, "text": [lines[n - 1].rstrip("\n") for n in shown]}
