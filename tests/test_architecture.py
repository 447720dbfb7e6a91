"""House rules as tests: sizes of files and functions, imports, names, late imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import collsim

PACKAGE = Path(collsim.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 350
MOST_FUNCTION_LINES = 55  # with its docstring; programs and models read best in one piece


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_small_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
    assert path.stem not in {"utils", "helpers", "common", "manager", "base", "data", "info"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_functions_are_short(path: Path) -> None:
    long = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            lines = (node.end_lineno or 0) - node.lineno + 1 - len(doc.splitlines())
            if lines > MOST_FUNCTION_LINES:
                long.append(f"{node.name}: {lines} lines")
    assert not long


def test_public_names_are_sorted_and_all_there() -> None:
    assert list(collsim.__all__) == sorted(collsim.__all__)
    for public in collsim.__all__:
        assert getattr(collsim, public) is not None


def test_imports_point_one_way() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    if not Path(command[0]).exists():
        pytest.skip("import-linter is not installed")
    found = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("statement", "late"),
    [
        ("import collsim.cli", {"torch", "streamlit", "matplotlib", "pandas", "simpy", "networkx"}),
        ("import collsim.runner", {"torch", "streamlit", "matplotlib", "pandas"}),
        ("import collsim.gloo", {"torch", "streamlit", "matplotlib", "pandas"}),
    ],
)
def test_heavy_libraries_are_imported_only_when_used(statement: str, late: set[str]) -> None:
    code = f"{statement}; import sys; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not late & set(found.stdout.split())
