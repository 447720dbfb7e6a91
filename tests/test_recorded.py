"""Recorded runs: what ships is what the command makes, and is shown as what it is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from collsim.cluster import build_network
from collsim.emulation import LabResult, LabRow, ordered_schedule
from collsim.engines import play
from collsim.gloo import wire_bytes
from collsim.gloo.lab import lab_network, shape_of
from collsim.planning import plans
from collsim.recorded import recorded_run, recorded_runs
from collsim.scenario import load_scenario

Command = Callable[..., tuple[int, str, str]]
SCENARIOS = Path(__file__).parent.parent / "scenarios"
NAMES = sorted(path.stem for path in SCENARIOS.glob("lab-*.yaml"))
RUNS = recorded_runs()


def test_every_lab_scenario_has_its_recorded_run() -> None:
    assert sorted(RUNS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_one_that_the_command_makes(name: str) -> None:
    """Rows, predictions and predicted bytes come out of today's code just as they were recorded."""
    scenario, run = load_scenario(SCENARIOS / f"{name}.yaml"), RUNS[name]
    assert recorded_run(scenario) == run
    network = build_network(scenario)
    assert run.shape == shape_of(network)
    assert {"machine", "kernel", "torch", "python", "date"} < run.provenance.keys()
    rows = iter(run.algorithms)
    for plan in plans(scenario, network)[0]:
        schedule = ordered_schedule(scenario, plan)
        fair, fifo = (
            play(scenario.engine, schedule, lab_network(network, run.alpha_s, sharing), run_bytes)
            for run_bytes in (scenario.nbytes,)
            for sharing in ("fair", "fifo")
        )
        row = next(rows)
        assert row.algorithm.startswith(plan.title)
        assert_row(row, run, fair.makespan, wire_bytes(schedule, scenario.nbytes).tolist())
        if plan.choice.name == "gloo":
            row = next(rows)
            assert row.serial_s == min(fair.makespan, fifo.makespan)
            assert_row(row, run, fair.makespan, None)
    assert not list(rows)


def assert_row(row: LabRow, run: LabResult, predicted: float, wire: list[list[int]] | None) -> None:
    assert row.predicted_s == predicted
    assert len(row.repetitions_s) == run.repetitions
    assert row.measured_s in row.repetitions_s
    assert row.tensors_equal
    assert row.bytes_equal
    assert wire is None or [list(line) for line in row.wire_bytes_predicted] == wire


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_lie_in_their_bands(name: str) -> None:
    for row in RUNS[name].algorithms:
        assert row.is_within is not False, f"{row.algorithm}: {row.ratio:.3f}"
        assert row.is_within or row.limit


def test_the_command_shows_a_recorded_run_as_recorded(run: Command, tmp_path: Path) -> None:
    picture = tmp_path / "runs.svg"
    code, out, _ = run(
        "check", str(SCENARIOS / "lab-eight.yaml"), "--recorded", "--plot", str(picture)
    )
    assert code == 0
    assert "recorded  ratio" in " ".join(out.split("\n")).replace("   ", "  ")
    assert f"date {RUNS['lab-eight'].provenance['date']}" in out.replace("\n", " ")
    assert "recorded" in picture.read_text()


def test_another_scenario_has_no_recorded_run(run: Command) -> None:
    code, _, err = run(
        "check", str(SCENARIOS / "lab-eight.yaml"), "--recorded", "--set", "nbytes=1 KiB"
    )
    assert code == 2
    assert "no run of just this scenario is recorded" in err
    assert "scenarios/lab-eight.yaml" in err
