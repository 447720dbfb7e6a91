"""The README is true: its commands print what it shows, and its programs run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```\n\$ collsim ([^\n]+)\n(.*?)```", README, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
TIMES = re.compile(r"\d[\d.]* [nµm]?s\b")


def collsim(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "collsim", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


@pytest.mark.parametrize(("arguments", "shown"), CONSOLE)
def test_commands_print_what_the_readme_shows(arguments: str, shown: str) -> None:
    if arguments.startswith(("check", "mistakes")):
        pytest.importorskip("torch")
    if arguments.startswith("check"):
        shown = TIMES.sub("some time", shown)
    found = collsim(*shlex.split(arguments))
    printed = found.stdout
    if arguments.startswith("check"):
        printed = TIMES.sub("some time", printed)
    assert lines(printed) == lines(shown)


def test_the_readme_shows_commands_at_all() -> None:
    shown = [arguments.split()[0] for arguments, _ in CONSOLE]
    assert shown == ["run", "check", "check", "mistakes"]
    assert len(PYTHON) == 3


def test_the_python_tour_runs_and_its_comments_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict = {}
    exec(PYTHON[0], names)
    assert names["result"].best.plan.title == "chain"
    assert "# 'chain'" in PYTHON[0]
    exec(PYTHON[1], names)
    assert repr(eval("simulate(schedule, network, 1 << 20).makespan", names)).startswith(
        "0.00254658"
    )
    assert "# 0.00254658…" in PYTHON[1]


def test_the_algorithm_of_twenty_lines_works_everywhere(tmp_path: Path) -> None:
    program = PYTHON[2]
    assert len(program.strip().splitlines()) <= 20
    (tmp_path / "my_tree.py").write_text(program)
    (scenario,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "mine.yaml").write_text(scenario)
    ran = collsim("run", "mine.yaml", folder=tmp_path)
    assert ran.returncode == 0
    assert re.search(r"^my_tree.py:ternary +\d", ran.stdout, re.MULTILINE)
    for arguments in (
        ("verify", "mine.yaml"),
        ("plot", "mine.yaml", "-o", "mine.png"),
        ("export", "mine.yaml", "--to", "goal", "--set", "algorithm=my_tree.py:ternary"),
        ("explain", "my_tree.py:ternary"),
    ):
        assert collsim(*arguments, folder=tmp_path).returncode == 0, arguments

    (said,) = re.findall(r"^failed: .*", README, re.MULTILINE)
    broken = program.replace("3 * me.virtual + 4", "3 * me.virtual + 3")
    (tmp_path / "my_tree.py").write_text(broken)
    failed = collsim("verify", "mine.yaml", folder=tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.strip() == said


@pytest.mark.gloo
def test_the_algorithm_of_twenty_lines_runs_on_real_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "my_tree.py").write_text(PYTHON[2])
    (scenario,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "mine.yaml").write_text(scenario)
    checked = collsim("check", "mine.yaml", folder=tmp_path)
    assert checked.returncode == 0
    assert re.search(r"^my_tree.py:ternary \(by isend/irecv\) +equal", checked.stdout, re.MULTILINE)


def test_files_and_links_of_the_readme_exist() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert len(pictures) == 2
    assert all((ROOT / picture).exists() for picture in pictures)
    for word in re.findall(r"scenarios/[\w-]+\.\w+", README):
        assert (ROOT / word).exists() or word == "scenarios/…", word
