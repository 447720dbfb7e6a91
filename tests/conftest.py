"""What all tests share: hypothesis profiles, golden files, and how missing torch is treated."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from collsim.cli import main

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be missing (CI=true), a skip of real ranks or the browser is a failure."""
    report = yield
    needed = item.get_closest_marker("gloo") or item.get_closest_marker("browser")
    if report.skipped and needed and os.environ.get("CI") == "true":
        report.outcome = "failed"
    return report


def collsim(
    *arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> tuple[int, str, str]:
    """Run the command in this process: exit code, output, errors."""
    monkeypatch.setattr(sys, "argv", ["collsim", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(ended.value.code or 0), captured.out, captured.err


@pytest.fixture
def run(monkeypatch, capsys):
    """The command in this process: exit code, output, errors."""
    return lambda *arguments: collsim(*arguments, monkeypatch=monkeypatch, capsys=capsys)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write golden files anew.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> "Golden":
    return Golden(bool(request.config.getoption("--update-golden")))


class Golden:
    """Compares text with a file in tests/golden; with --update-golden it writes it and fails."""

    def __init__(self, update: bool) -> None:
        self.update = update

    def check(self, name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if self.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            pytest.fail(f"wrote {path.name}: look at the diff")
        assert text == path.read_text(encoding="utf-8")
