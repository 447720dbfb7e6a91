"""Mistakes on real ranks do what is documented, and the comparison can fail."""

import inspect
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from collsim import cli, mistakes_report, report
from collsim.errors import ExecutionError, ExecutionUnavailable, ScenarioError
from collsim.gloo import misuse
from collsim.gloo.execute import GlooServer
from collsim.gloo.outcomes import Fate, of_death, of_error
from collsim.mistakes import MISTAKES, Expected, Lesson, Mistake, diagnosis, find, reproduce

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
    ],
)
def test_a_wrong_expectation_is_noticed(wrong: Expected, fate: Fate) -> None:
    assert not wrong.agrees(fate)


def test_errors_and_deaths_are_told_apart() -> None:
    said = ["raised RuntimeError: Connection closed by peer", "raised X: Timed out", "raised X: y"]
    assert [of_error(text).kind for text in said] == ["lost a peer", "timed out", "raised"]
    died = ["died: signal SIGABRT (what)", "died: signal SIGKILL"]
    assert [of_death(text).kind for text in died] == ["aborted", "killed"]


@pytest.mark.parametrize("mistake", MISTAKES, ids=NAMES)
def test_collsim_tells_before_or_says_why_it_cannot(mistake: Mistake) -> None:
    if mistake.diagnose:
        assert "rank" in mistake.diagnose() or "root" in mistake.diagnose()
    assert bool(mistake.diagnose) != bool(mistake.blind)


def test_lessons_are_complete() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for mistake in MISTAKES:
        assert mistake.work in misuse.EVERY
        assert len(mistake.right) == len(mistake.expected) == 4


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"'swaped-order'.*swapped-order"):
        find("swaped-order")
    with pytest.raises(ScenarioError, match="root-outside"):
        find("???")


def lesson_with(fate: Fate) -> Lesson:
    return Lesson(find("column"), (fate,) * 4, "")


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
