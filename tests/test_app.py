"""The app's pages without a browser: they run, say mistakes plainly, and show what was computed."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from collsim.curves import Curves, size_curves
from collsim.errors import ExecutionUnavailable, ScenarioError
from collsim.scenario import parse_scenario
from collsim.ui.choice import for_browser

ROOT = Path(__file__).parent.parent
GOOD = {
    "algorithm": ["flat", "binomial"],
    "ranks": 4,
    "nbytes": 1000,
    "topology": {"kind": "star", "bandwidth": "10 Gbit/s", "latency": "5 us"},
}


def page(name: str) -> AppTest:
    script = f"from collsim.ui import {name}\n{name}.page()\n"
    return AppTest.from_string(script, default_timeout=60)


@pytest.mark.parametrize("name", ["watch", "race", "curves", "check", "learn"])
def test_every_page_runs_without_a_fault(name: str) -> None:
    found = page(name).run()
    assert not found.exception
    assert not found.error


def test_the_app_itself_opens_on_watch() -> None:
    found = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not found.exception
    assert found.sidebar.selectbox[0].label == "Scenario"


@pytest.mark.parametrize(
    "scenario", sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
)
def test_every_scenario_can_be_watched(scenario: str) -> None:
    found = page("watch").run()
    found.sidebar.selectbox(key="scenario").set_value(scenario).run()
    assert not found.exception
    assert not found.error


def test_another_algorithm_and_size_change_the_numbers() -> None:
    found = page("watch").run()
    before = [text.value for text in found.markdown]
    found.sidebar.selectbox(key="algorithm-broadcast").set_value("binomial").run()
    found.sidebar.selectbox(key="size").set_value("64 KiB").run()
    after = [text.value for text in found.markdown]
    assert not found.exception
    assert "**5.882 ms**" in before
    assert "**187.3 µs**" in after


def test_the_race_says_who_wins_and_why() -> None:
    found = page("race").run()
    assert any("**chain wins** after 1.373 ms" in text.value for text in found.markdown)
    found.sidebar.multiselect(key="racing-broadcast").set_value(["flat"]).run()
    assert "Choose two to four" in found.info[0].value


def test_a_lesson_reveals_only_after_a_guess() -> None:
    found = page("learn").run()
    found.segmented_control(key="lesson").set_value("Flat against binomial").run()
    assert not found.success
    found.radio(key="learn-guess").set_value("2.3 times").run()
    assert "Right: 5.882 ms against 2.547 ms, 2.3 times" in found.success[0].value
    found.radio(key="learn-guess").set_value("7 times").run()
    assert found.info[0].value.startswith("Not quite")


def test_check_shows_recorded_runs_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = page("check")
    found.query_params["scenario"] = "lab-eight"
    found.run()
    assert not found.exception
    heading = found.markdown[-1].value
    assert "Recorded: 7 of 7 real runs took the predicted time within 5%" in heading
    assert list(found.dataframe[0].value.columns)[4] == "recorded"
    monkeypatch.setattr("collsim.ui.check.check", no_torch)
    found.button[0].click().run()
    assert found.warning[0].value == "there is no torch. The simulation needs neither."
    assert found.markdown[-1].value == heading


def no_torch(*_: object) -> None:
    raise ExecutionUnavailable("there is no torch")


def test_check_says_which_scenarios_have_recorded_runs() -> None:
    found = page("check").run()
    assert "[lab-four](?scenario=lab-four)" in found.caption[-1].value


@pytest.mark.gloo
def test_check_runs_real_processes_from_the_page() -> None:
    pytest.importorskip("torch")
    found = page("check").run()
    found.button[0].click().run()
    assert not found.exception
    assert "Every rank of every run holds the right bytes." in found.success[0].value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "evil.py:main"}, "algorithm: programs in files run from the command line"),
        ({"topology": {"file": "/etc/passwd"}}, "topology.file: topology files are read from"),
        ({"ranks": 1000}, "ranks: the app draws at most 256, got 1000"),
        ({"nbytes": "10 Gb"}, "nbytes: '10 Gb' counts bits"),
    ],
)
def test_what_a_browser_may_not_ask_for(change: dict, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        for_browser({**GOOD, **change})


def test_limits_of_the_browser_cannot_be_raised_by_the_file() -> None:
    assert for_browser({**GOOD, "max_messages": 50_000_000}).max_messages == 20_000


def test_curves_hold_the_runs_and_name_the_crossover() -> None:
    parts: list[float] = []
    scenario = parse_scenario({**GOOD, "ranks": 8, "network": {"sharing": "fifo"}})
    curves = size_curves(scenario, [1 << 10, 1 << 12, 1 << 14], parts.append)
    assert parts == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    alpha, beta = 10e-6, 0.8e-9
    for size, flat, binomial in zip(
        curves.sizes, curves.makespans["flat"], curves.makespans["binomial"], strict=True
    ):
        assert flat == pytest.approx(alpha + 7 * size * beta, rel=1e-6)
        assert binomial == pytest.approx(3 * (alpha + size * beta), rel=1e-6)
    ((meeting, before, after),) = curves.crossovers()
    assert (before, after) == ("flat", "binomial")
    assert meeting == pytest.approx(2 * alpha / (4 * beta), rel=0.05)  # α + 7nβ = 3α + 3nβ


def test_an_algorithm_that_could_not_run_at_a_size_never_counts_as_fastest() -> None:
    curves = Curves((1, 2), {"a": (float("nan"), 1.0), "b": (2.0, 2.0)}, (0.5, 0.5))
    assert curves.fastest(0) == "b"
    assert curves.fastest(1) == "a"


def test_the_payload_of_a_page_is_json() -> None:
    found = page("watch").run()
    texts = [json.dumps(str(node)) for node in found.main]
    assert texts
