"""Mistakes on real ranks do what is documented, and the comparison can fail."""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from collsim import cli, mistakes_report, report
from collsim.errors import ExecutionError, ExecutionUnavailable, ScenarioError
from collsim.gloo import misuse
from collsim.gloo.execute import GlooServer
from collsim.gloo.outcomes import Fate, of_death, of_error
from collsim.gloo.progress import Self
from collsim.mistakes import MISTAKES, Expected, Lesson, Mistake, diagnosis, find, reproduce
from tests import gloo_faults

NAMES = [mistake.id for mistake in MISTAKES]


@pytest.fixture(scope="module")
def server() -> Iterator[GlooServer]:
    pytest.importorskip("torch")
    with GlooServer() as server:
        yield server


def children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.mark.gloo
@pytest.mark.parametrize("mistake", MISTAKES, ids=NAMES)
def test_a_mistake_does_what_is_documented(mistake: Mistake, server: GlooServer) -> None:
    lesson = reproduce(mistake, server)
    assert lesson.agrees, [lesson.spell(rank) for rank in range(4)]
    assert not children(server.pid), "ranks are left"
    assert not list(Path.cwd().glob("core*"))


@pytest.mark.gloo
def test_no_mistake_is_right_on_every_rank(server: GlooServer) -> None:
    right = ((1.0,) * 4,) * 4
    correct = replace(MISTAKES[0], work=misuse.correct, right=right, diagnose=diagnosis.correct)
    lesson = reproduce(correct, server)
    assert [lesson.spell(rank) for rank in range(4)] == ["right: [1, 1, 1, 1]"] * 4
    assert lesson.diagnosis == ""
    assert not lesson.agrees, "every rank was expected to raise, and none did"


@pytest.mark.gloo
def test_of_the_collectives_only_all_gather_copies_columns(server: GlooServer) -> None:
    def held(work: Callable[[Self], Any]) -> list[Any]:
        arguments = [{"mistake": work}] * 4
        fates = server.probe("collsim.gloo.misuse:attempt", arguments, patience=4, timeout=1.5)
        return [fate.value for fate in fates]

    assert held(gloo_faults.gathers_columns) == [[1, 2, 3, 4, 3, 6, 9, 12]] * 4
    columns = [[1, 5], [2, 6], [3, 7], [4, 8]]
    neighbours = [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert held(gloo_faults.scatters_columns) == neighbours != columns


@pytest.mark.gloo
def test_a_server_that_has_a_group_probes_nothing(server: GlooServer) -> None:
    with server.group(2), pytest.raises(ValueError, match="has a group"):
        server.probe("collsim.gloo.misuse:attempt", [{}], patience=1, timeout=1)


@pytest.mark.gloo
def test_a_rank_that_says_nothing_is_hung_and_is_gone_afterwards(server: GlooServer) -> None:
    arguments = [{"seconds": 30.0 * rank} for rank in range(2)]
    fates = server.probe("tests.gloo_faults:snooze", arguments, patience=0.5, timeout=1)
    assert [fate.kind for fate in fates] == ["returned", "hung"]
    assert not children(server.pid)


@pytest.mark.gloo
def test_ranks_that_cannot_join_are_an_error(server: GlooServer) -> None:
    def join_in_no_time() -> None:
        for _ in range(8):  # a wait that has nothing to wait for succeeds, now and then
            server.probe("collsim.gloo.misuse:attempt", [{}] * 2, patience=1, timeout=1e-9)

    with pytest.raises(ExecutionError, match="joining the group"):
        join_in_no_time()
    assert not children(server.pid)


@pytest.mark.parametrize(
    ("wrong", "fate"),
    [
        (Expected(frozenset({"raised"})), Fate("returned", value=[1.0])),
        (Expected(frozenset({"returned"}), (1.0,)), Fate("returned", value=[2.0])),
        (Expected(frozenset({"raised"}), says="root"), Fate("raised", "ValueError: size")),
        (Expected(frozenset({"aborted"})), Fate("killed", "signal SIGKILL")),
        (Expected(frozenset({"returned"}), (1.0,), "not in"), Fate("returned", value=[1.0])),
    ],
)
def test_a_wrong_expectation_is_noticed(wrong: Expected, fate: Fate) -> None:
    assert not wrong.agrees(fate)


def test_errors_and_deaths_are_told_apart() -> None:
    said = ["raised RuntimeError: Connection closed by peer", "raised X: Timed out", "raised X: y"]
    assert [of_error(text).kind for text in said] == ["lost a peer", "timed out", "raised"]
    died = ["died: signal SIGABRT (what)", "died: signal SIGKILL"]
    assert [of_death(text).kind for text in died] == ["aborted", "killed"]


def test_places_in_gloos_source_are_left_out() -> None:
    place = "[../third_party/gloo/gloo/transport/tcp/pair.cc:553] "
    assert of_error(f"raised RuntimeError: {place}Connection closed by peer [::1]:7").text == (
        "RuntimeError: Connection closed by peer [::1]:7"
    )
    failed = "what():  [enforce fail at /pytorch/gloo/pair.cc:456] 16 vs 8"
    assert of_death(f"died: signal SIGABRT ({failed})").text == "signal SIGABRT (what():  16 vs 8)"
    group = "<torch.distributed.distributed_c10d.ProcessGroup object at 0x7f1a>"
    said = of_error(f"raised ValueError: Global rank 2 is not part of group {group}").text
    assert said == "ValueError: Global rank 2 is not part of group"


@pytest.mark.parametrize("mistake", MISTAKES, ids=NAMES)
def test_collsim_tells_before_or_says_why_it_cannot(mistake: Mistake) -> None:
    if mistake.diagnose:
        assert "rank" in mistake.diagnose() or "root" in mistake.diagnose()
    assert bool(mistake.diagnose) != bool(mistake.blind)


def test_lessons_are_complete() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for mistake in MISTAKES:
        assert len(mistake.right) == len(mistake.expected) == 4
        lesson = Lesson(mistake, (), "")
        for line in (lesson.code + lesson.diagnosed_code).splitlines():
            assert len(line) <= 80, "a line is broken in a narrow terminal"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"'swaped-order'.*swapped-order"):
        find("swaped-order")
    with pytest.raises(ScenarioError, match="root-outside"):
        find("???")


def lesson_with(fate: Fate, name: str = "column") -> Lesson:
    mistake = find(name)
    return Lesson(mistake, (fate,) * 4, mistake.diagnose() if mistake.diagnose else "")


def test_a_warning_is_shown_and_is_not_silence() -> None:
    warned = lesson_with(Fate("returned", "no member", [4.0] * 4), "call-from-outside")
    assert warned.spell(3) == "wrong: [4, 4, 4, 4] instead of [1, 1, 1, 1] (it warned: no member)"
    assert not warned.is_silent
    assert lesson_with(Fate("returned", value=[4.0] * 4), "call-from-outside").is_silent
    assert not lesson_with(Fate("returned", value=[1.0] * 4), "call-from-outside").is_silent


@pytest.mark.parametrize("width", [80, 110])
def test_the_report_shows_the_program_that_collsim_diagnosed(width: int) -> None:
    lesson = lesson_with(Fate("returned", value=[1.0] * 4), "rank-missing")
    screen = Console(width=width, highlight=False)
    with screen.capture() as captured:
        screen.print(mistakes_report.detail(lesson))
    shown = captured.get()
    for line in inspect.getsource(diagnosis.rank_missing).splitlines():
        assert line in shown
    (number,) = re.findall(r"line (\d+)", lesson.diagnosis)
    assert re.search(rf"^ *{number}  .*yield tuple\(Send", shown, re.MULTILINE)
    assert "which never receives it" in " ".join(shown.split())


def test_the_report_says_why_collsim_does_not_foresee_a_mistake() -> None:
    screen = report.console()
    with screen.capture() as captured:
        screen.print(mistakes_report.detail(lesson_with(Fate("raised", "X"), "call-from-outside")))
    assert f"does not foresee it: {find('call-from-outside').blind}." in captured.get()


def test_the_report_says_what_is_not_as_documented() -> None:
    screen = report.console()
    with screen.capture() as captured:
        screen.print(mistakes_report.detail(lesson_with(Fate("raised", "ValueError: odd"))))
        screen.print(mistakes_report.overview([lesson_with(Fate("raised", "ValueError: odd"))]))
    shown = captured.get()
    assert "This is not as documented." in shown
    assert "raised: ValueError: odd" in shown
    assert "NO" in shown
    assert inspect.getsource(misuse.column).splitlines()[-1] in shown


@pytest.mark.parametrize(("fate", "code"), [("right", 0), ("wrong", 1)])
def test_the_command_exits_by_what_was_observed(
    fate: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [(10, 20, 30, 40), *((10, 20, 3, 4),) * 3] if fate == "right" else [(0,)] * 4
    fates = tuple(Fate("returned", value=value) for value in values)
    lesson = Lesson(find("column"), fates, "")
    monkeypatch.setattr("collsim.mistakes.reproduce_all", lambda chosen, progress: iter([lesson]))
    file = tmp_path / "lessons.json"
    found = CliRunner().invoke(cli.commands, ["mistakes", "column", "--json", os.fspath(file)])
    assert found.exit_code == code, found.output
    (kept,) = json.loads(file.read_text())["mistakes"]
    assert kept["id"] == "column"
    assert kept["as_documented"] == (code == 0)


def test_without_gloo_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    found = CliRunner().invoke(cli.commands, ["mistakes"])
    assert isinstance(found.exception, ExecutionUnavailable)


@pytest.mark.parametrize("arguments", [["mistakes"], ["mistakes", "column"]])
def test_without_torch_the_command_fails_with_one_sentence(
    arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch today')")
    found = subprocess.run(
        [sys.executable, "-m", "collsim", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(tmp_path), *sys.path])},
    )
    assert found.returncode == 1
    assert found.stdout == ""
    said = "real gloo runs need torch with gloo (no torch today): pip install 'collsim[gloo]'"
    assert found.stderr == f"failed: {said}\n"
