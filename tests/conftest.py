"""What all tests share: hypothesis profiles, golden files, and how missing torch is treated."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

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
