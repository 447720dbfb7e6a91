"""The commands that run real gloo processes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collsim.cli_shared import FILE, JSON, SETTINGS, load, with_progress
from collsim.errors import ScenarioError

if TYPE_CHECKING:
    from collsim.gloo import Leader


@click.command()
@FILE
@SETTINGS
@JSON
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Draw the runs here.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for a run.")
@click.option("--lab", is_flag=True, help="Run in a network shaped like FILE's, and compare times.")
@click.option("--recorded", is_flag=True, help="Show the lab's run that ships with collsim.")
@click.option(
    "--repetitions",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Runs of each, with --lab.",
)
@click.pass_obj
def check(
    leader: "Leader | None",
    file: Path,
    settings: tuple[str, ...],
    json_file: Path | None,
    picture: Path | None,
    timeout: float,
    lab: bool,
    recorded: bool,
    repetitions: int,
) -> None:
    """Run FILE's algorithms on real gloo processes, and compare tensors and bytes.

    The processes are made here, or are those of torchrun:
    torchrun --nnodes 2 ... -m collsim check FILE.
    """
    from collsim import check_plots, lab_report, report
    from collsim.export import to_json, write_whole
    from collsim.plots import check_format

    if picture:
        check_format(picture)
    scenario = load(file, settings)
    checked: Any
    if recorded:
        from collsim.recorded import recorded_run

        checked = recorded_run(scenario)
    elif lab:
        _refuse_lab(leader)
        from collsim.emulation import check_in_lab

        checked = with_progress(
            lambda p: check_in_lab(scenario, p, repetitions=repetitions, timeout=timeout), "running"
        )
    else:
        from collsim.checking import check as check_on
        from collsim.gloo import forked_group

        start = leader.group if leader else forked_group
        checked = with_progress(
            lambda p: check_on(scenario, p, timeout=timeout, start=start), "running"
        )
    if lab or recorded:
        report.console().print(lab_report.lab_report(checked, recorded))
    else:
        report.console().print(report.check_report(checked))
    if json_file:
        write_whole(json_file, to_json(checked.to_mapping()))
    if picture:
        check_plots.save_check(checked, picture, recorded)
    if not (checked.tensors_equal and checked.bytes_equal):
        sys.exit(1)


@click.command()
@FILE
@SETTINGS
@JSON
def lab(file: Path, settings: tuple[str, ...], json_file: Path | None) -> None:
    """Shape a network like FILE's on this machine, and measure what each pair gets."""
    from collsim import lab_report, report, survey
    from collsim.export import to_json, write_whole

    scenario = load(file, settings)
    found = with_progress(lambda p: survey.survey_lab(scenario, p), "measuring")
    report.console().print(lab_report.survey_report(found))
    if json_file:
        write_whole(json_file, to_json(found.to_mapping()))


@click.command()
@click.argument("name", required=False)
@JSON
def mistakes(name: str | None, json_file: Path | None) -> None:
    """Make mistakes on real gloo ranks: all of them, or NAME with its code and remedy."""
    from collsim import mistakes_report, report
    from collsim.export import to_json, write_whole
    from collsim.mistakes import MISTAKES, find, reproduce_all

    chosen = MISTAKES if name is None else (find(name),)
    lessons = with_progress(lambda p: list(reproduce_all(chosen, p)), "making the mistake")
    shown = mistakes_report.overview if name is None else lambda all: mistakes_report.detail(all[0])
    report.console().print(shown(lessons))
    if json_file:
        write_whole(json_file, to_json({"mistakes": [each.to_mapping() for each in lessons]}))
    if not all(lesson.agrees for lesson in lessons):
        sys.exit(1)


@click.command()
@click.option("--ranks", type=click.IntRange(2, 64), help="How many ranks.  [default: 4]")
@click.option("--from", "times", type=click.Path(path_type=Path), help="Read measured times here.")
@click.option("--lab", type=click.Path(path_type=Path), help="Measure in this scenario's lab.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the network here.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write each time here.")
@JSON
@click.pass_obj
def calibrate(
    leader: "Leader | None",
    ranks: int | None,
    times: Path | None,
    lab: Path | None,
    output: Path | None,
    table: Path | None,
    json_file: Path | None,
) -> None:
    """Fit latency and bandwidth to real runs, for scenarios to include.

    The runs are made here, or between the ranks of torchrun, or read from a file.
    """
    from collsim import calibration, calibration_report, report
    from collsim.export import to_json, write_whole

    if times and (lab or table):
        raise ScenarioError("with it nothing is measured: leave out --lab and --csv", "--from")
    if lab and ranks:
        raise ScenarioError("the scenario of --lab says how many: leave it out", "--ranks")
    if times:
        found = calibration.calibrate_from(times, ranks)
    elif lab:
        _refuse_lab(leader)
        found = with_progress(lambda p: calibration.calibrate_lab(load(lab, ()), p), "measuring")
    elif leader:
        found = with_progress(
            lambda p: calibration.calibrate_torchrun(leader, ranks, p), "measuring"
        )
    else:
        found = with_progress(lambda p: calibration.calibrate_here(ranks or 4, p), "measuring")
    report.console().print(calibration_report.calibration_report(found))
    for file, text in ((output, found.block), (table, found.csv)):
        if file:
            write_whole(file, text())
            click.echo(f"wrote {file}")
    if json_file:
        write_whole(json_file, to_json(found.to_mapping()))


def _refuse_lab(leader: "Leader | None") -> None:
    """A lab makes its own ranks."""
    if leader:
        raise ScenarioError("a lab starts its own ranks: leave out torchrun", "--lab")
