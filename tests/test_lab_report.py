"""Reports and pictures of real runs: what is equal looks equal, and what is not is pointed at."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console, RenderableType

from collsim.check_plots import draw_check, save_check
from collsim.checking import Checked, CheckResult
from collsim.emulation import LabResult
from collsim.errors import ScenarioError
from collsim.gloo.lab import Shape
from collsim.lab_report import lab_report, survey_report
from collsim.recorded import recorded_runs
from collsim.scenario import load_scenario
from collsim.survey import Survey

SCENARIOS = Path(__file__).parent.parent / "scenarios"
RUNS = recorded_runs()


def shown(what: RenderableType, width: int = 160) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def changed(run: LabResult, number: int, **fields: Any) -> LabResult:
    rows = list(run.algorithms)
    rows[number] = rows[number].model_copy(update=fields)
    return run.model_copy(update={"algorithms": tuple(rows)})


def line_of(text: str, title: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{title} ")]
    return line


def test_the_report_counts_what_lies_in_its_band_and_tells_native_gloos_story() -> None:
    run = RUNS["lab-eight"]
    text = shown(lab_report(run))
    rows = run.algorithms
    assert f"{len(rows)} of {len(rows)} within their bands" in text
    assert "25 Mbit/s a rank" in text
    assert "gloo (torch's native) took 6.0 transfers' time" in text
    assert "3.0 if they were served one after the other" in text
    assert "DIFFER" not in text


def test_a_run_off_its_band_or_with_other_bytes_or_tensors_is_marked() -> None:
    run = RUNS["lab-four"]
    first = run.algorithms[0]
    late = changed(run, 0, measured_s=first.predicted_s * 1.06)
    assert "✗" in line_of(shown(lab_report(late)), first.algorithm)
    assert "✗" not in shown(lab_report(run))
    measured = np.array(first.wire_bytes_measured)
    measured[0, 2] += 1
    text = shown(lab_report(changed(run, 0, bytes_equal=False, wire_bytes_measured=measured)))
    assert "DIFFER" in line_of(text, first.algorithm)
    expected = first.wire_bytes_predicted[0][2]
    assert f"rank 0 sent rank 2 {expected + 1:,} bytes, {expected:,} were predicted" in text
    wrong = changed(run, 1, tensors_equal=False, difference="flat: rank 3 holds 7, not 8")
    text = shown(lab_report(wrong))
    assert "flat: rank 3 holds 7, not 8" in text
    assert not wrong.tensors_equal
    assert not changed(run, 0, bytes_equal=False).bytes_equal


def test_what_the_model_leaves_out_has_no_band_and_a_reason() -> None:
    text = shown(lab_report(RUNS["lab-four"]), 400)
    assert line_of(text, "two_trees").rstrip().endswith("none")
    assert "two_trees: ranks 2 and 3 send to each other on several channels" in text


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape(up=(1e7, 1e7, 5e6), down=(1e7, 1e7, 5e6)), "80 Mbit/s a rank, rank 2 40 Mbit/s"),
        (Shape(up=(1e7, 5e6), down=(2e7, 5e6)), "80 Mbit/s up and 160 Mbit/s down a rank, rank 1"),
        (Shape(pairs=((0, 1e7), (1e7, 0))), "80 Mbit/s a pair"),
        (Shape(pairs=((0, 1e7), (5e6, 0))), "40 Mbit/s to 80 Mbit/s a pair"),
    ],
)
def test_the_heading_says_the_labs_rates(shape: Shape, words: str) -> None:
    run = RUNS["lab-four"].model_copy(update={"shape": shape, "question": ""})
    assert words in shown(lab_report(run), 300)
    assert run.transfer > 0


def test_algorithms_left_out_are_listed_and_a_scatter_has_no_story() -> None:
    run = RUNS["lab-four"]
    scenario = {**run.scenario, "collective": "scatter"}
    skipped = (("two_trees", "needs 4 ranks or more"),)
    text = shown(lab_report(run.model_copy(update={"scenario": scenario, "skipped": skipped})))
    assert "two_trees left out: it needs 4 ranks or more" in text
    assert "transfers' time" not in text


def survey(n: int, rates: dict[tuple[int, int], float]) -> Survey:
    asked = [[0.0 if src == dst else 1.25e6 for dst in range(n)] for src in range(n)]
    measured = [row[:] for row in asked]
    for (src, dst), rate in rates.items():
        measured[src][dst] = rate
    return Survey.model_validate(
        {
            "scenario": {},
            "machine": {"machine": "2 × Fast"},
            "shape": {"up": [1.25e6] * n, "down": [1.25e6] * n},
            "means": "namespaces",
            "alpha_s": 1e-4,
            "asked": asked,
            "measured": measured,
        }
    )


@pytest.mark.parametrize("n", [8, 9])
def test_a_survey_shows_the_link_that_is_off(n: int) -> None:
    text = shown(survey_report(survey(n, {(3, 1): 1.0e6, (3, 2): 1.3e6})), 80)
    assert "Furthest from what was asked: -20.0%" in text
    assert "-20.0%" in text.split("100 µs")[0]
    assert max(map(len, text.splitlines())) <= 80
    if n > 8:
        assert line_of(text, "rank 3").split() == [
            *("rank", "3", "8", "-20.0%", "rank", "1", "10.4", "+4.0%", "rank", "2")
        ]


def test_the_picture_shows_times_ratios_and_each_runs_bytes_twice() -> None:
    run = RUNS["lab-four"]
    figure = draw_check(run, recorded=True)
    times, ratios, *matrices = figure.axes
    assert times.get_ylabel() == "recorded"
    legend = times.get_legend()
    assert legend is not None
    words = {text.get_text() for text in legend.get_texts()}
    assert words == {"within ±5%", "further off", "±5%"}
    assert len(ratios.get_yticklabels()) == len(run.algorithms)
    titled = [axes for axes in matrices if axes.get_title()]
    assert len(titled) == 2 * len(run.algorithms)
    assert not [line for axes in matrices for line in axes.lines], "nothing is framed in red"
    assert draw_check(RUNS["lab-eight"]).axes[0].get_ylabel() == "measured"


def checked(off: int) -> CheckResult:
    bytes_ = np.array([[0, 100], [48, 0]])
    one = Checked(
        title="flat",
        tensors_equal=True,
        difference="",
        bytes_equal=not off,
        wire_predicted=bytes_,
        wire_measured=bytes_ + np.array([[0, off], [0, 0]]),
        predicted=1.0,
        measured=1.0,
        before=(),
        after=(),
    )
    scenario = load_scenario(SCENARIOS / "article-example.yaml")
    return CheckResult(scenario=scenario, checked=(one,), skipped=(), predicted=())


def test_a_pair_that_differs_is_framed() -> None:
    for off in (0, 1):
        matrices = [axes for axes in draw_check(checked(off)).axes if axes.get_title()]
        assert [len(axes.lines) for axes in matrices] == [off, off]


def test_a_picture_needs_a_name_that_says_its_format(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"\.txt"):
        save_check(checked(0), tmp_path / "runs.txt")
    save_check(checked(0), tmp_path / "runs.pdf")
    assert (tmp_path / "runs.pdf").read_bytes().startswith(b"%PDF")
