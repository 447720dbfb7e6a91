"""The command line: `collsim run scenarios/one-switch.yaml`.

Exit codes: 0; 1 for what ran and failed, or disagreed; 2 for bad input; 130 when interrupted.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collsim.errors import CollsimError, ScenarioError

if TYPE_CHECKING:
    from collsim.scenario import Scenario

FILE = click.argument("file", type=click.Path(path_type=Path))
SETTINGS = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change the scenario: --set ranks=16 --set network.sharing=fifo",
)
JSON = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the results here as JSON."
)


def main() -> None:
    """Run the command line; errors become one line and an exit code."""
    try:
        code = commands.main(prog_name="collsim", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except ScenarioError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except CollsimError as error:
        click.echo(f"failed: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="collsim")
def commands() -> None:
    """Simulate, verify, draw and really run collective communication."""


@commands.command()
@FILE
@SETTINGS
@JSON
@click.option(
    "--engine",
    type=click.Choice(["auto", "simpy", "replay"]),
    default="auto",
    help="The model in SimPy, or compiled; both give the same.",
)
@click.option("--sketch", is_flag=True, help="Draw who sends and receives when, as text.")
def run(
    file: Path, settings: tuple[str, ...], json_file: Path | None, engine: str, sketch: bool
) -> None:
    """Simulate the scenario in FILE and compare its algorithms."""
    from collsim import report, runner
    from collsim.export import result_mapping, to_json, write_whole

    if engine != "auto":
        settings = (*settings, f"engine={engine}")
    scenario = _load(file, settings)
    result = _with_progress(lambda progress: runner.run(scenario, progress), "simulating")
    screen = report.console()
    screen.print(report.result_report(result, screen.width))
    if sketch:
        for each in result.runs:
            screen.print(report.sketch(each))
    if json_file:
        write_whole(json_file, to_json(result_mapping(result)))


@commands.command()
@FILE
@SETTINGS
def verify(file: Path, settings: tuple[str, ...]) -> None:
    """Check that each algorithm of FILE delivers every byte in any legal order."""
    from collsim import planning, report
    from collsim.cluster import build_network

    scenario = _load(file, settings)
    plans, skipped = planning.plans(scenario, build_network(scenario))
    screen = report.console()
    for plan in plans:
        schedule = planning.verified_schedule(scenario, plan)
        screen.print(f"{plan.title}: {len(schedule):,} messages, every byte delivered")
        if schedule.rendezvous_deadlock:
            screen.print(f"  but {schedule.rendezvous_deadlock}", style="yellow")
    for title, reason in skipped:
        screen.print(f"{title} left out: it {reason}", style="yellow")


@commands.command(name="list")
@click.argument(
    "what", type=click.Choice(["algorithms", "topologies", "presets", "scenarios", "defaults"])
)
def list_command(what: str) -> None:
    """List what there is to choose from."""
    from collsim import catalogue, report

    report.console().print(catalogue.TABLES[what]())


@commands.command()
@click.argument("algorithm")
@click.option("--collective", help="Which collective's, if several have one of this name.")
def explain(algorithm: str, collective: str | None) -> None:
    """Say what ALGORITHM does, what it costs, when it is good, and show its program."""
    from collsim import catalogue, report

    report.console().print(catalogue.explanation(algorithm, collective))


@commands.command()
@FILE
@SETTINGS
@click.option("--to", "form", type=click.Choice(["json", "csv", "perfetto", "goal"]), required=True)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), help="Write here; the screen if not given."
)
def export(file: Path, settings: tuple[str, ...], form: str, output: Path | None) -> None:
    """Write the simulated messages of FILE for other tools.

    perfetto opens at ui.perfetto.dev, goal is the input of LogGOPSim, csv has a row a message.
    """
    from collsim import export as exporter
    from collsim import runner

    result = _with_progress(lambda p: runner.run(_load(file, settings), p), "simulating")
    text = exporter.export(result, form)
    if output is None:
        click.echo(text, nl=False)
    else:
        exporter.write_whole(output, text)
        click.echo(f"wrote {output}")


@commands.command()
@FILE
@SETTINGS
@click.option(
    "-o", "output", type=click.Path(path_type=Path), required=True, help=".png, .svg or .pdf"
)
def plot(file: Path, settings: tuple[str, ...], output: Path) -> None:
    """Draw who sends when, and how loaded each link is."""
    from collsim import plots, runner

    plots.check_format(output)
    result = _with_progress(lambda p: runner.run(_load(file, settings), p), "simulating")
    plots.save_plot(result, output)
    click.echo(f"wrote {output}")


@commands.command()
@FILE
@SETTINGS
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, help=".html")
def play(file: Path, settings: tuple[str, ...], output: Path) -> None:
    """Animate FILE's algorithms on one clock, in a page that opens anywhere."""
    from collsim import runner
    from collsim.export import write_whole
    from collsim.player import standalone_page

    if output.suffix != ".html":
        raise ScenarioError(f"cannot write {output}: the name must end in .html")
    result = _with_progress(lambda p: runner.run(_load(file, settings), p), "simulating")
    write_whole(output, standalone_page(result))
    click.echo(f"wrote {output}")


@commands.command()
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
def check(
    file: Path,
    settings: tuple[str, ...],
    json_file: Path | None,
    picture: Path | None,
    timeout: float,
    lab: bool,
    recorded: bool,
    repetitions: int,
) -> None:
    """Run FILE's algorithms on real gloo processes here, and compare tensors and bytes."""
    from collsim import check_plots, lab_report, report
    from collsim.export import to_json, write_whole
    from collsim.plots import check_format

    if picture:
        check_format(picture)
    scenario = _load(file, settings)
    checked: Any
    if recorded:
        from collsim.recorded import recorded_run

        checked = recorded_run(scenario)
    elif lab:
        from collsim.emulation import check_in_lab

        checked = _with_progress(
            lambda p: check_in_lab(scenario, p, repetitions=repetitions, timeout=timeout), "running"
        )
    else:
        from collsim.checking import check as check_here

        checked = _with_progress(lambda p: check_here(scenario, p, timeout=timeout), "running")
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


@commands.command()
@FILE
@SETTINGS
@JSON
def lab(file: Path, settings: tuple[str, ...], json_file: Path | None) -> None:
    """Shape a network like FILE's on this machine, and measure what each pair gets."""
    from collsim import lab_report, report, survey
    from collsim.export import to_json, write_whole

    scenario = _load(file, settings)
    found = _with_progress(lambda p: survey.survey_lab(scenario, p), "measuring")
    report.console().print(lab_report.survey_report(found))
    if json_file:
        write_whole(json_file, to_json(found.to_mapping()))


@commands.command()
@click.argument("name", required=False)
@JSON
def mistakes(name: str | None, json_file: Path | None) -> None:
    """Make mistakes on real gloo ranks: all of them, or NAME with its code and remedy."""
    from collsim import mistakes_report, report
    from collsim.export import to_json, write_whole
    from collsim.mistakes import MISTAKES, find, reproduce_all

    chosen = MISTAKES if name is None else (find(name),)
    lessons = _with_progress(lambda p: list(reproduce_all(chosen, p)), "making the mistake")
    shown = mistakes_report.overview if name is None else lambda all: mistakes_report.detail(all[0])
    report.console().print(shown(lessons))
    if json_file:
        write_whole(json_file, to_json({"mistakes": [each.to_mapping() for each in lessons]}))
    if not all(lesson.agrees for lesson in lessons):
        sys.exit(1)


@commands.command()
@click.option("--ranks", type=click.IntRange(2, 64), help="How many ranks.  [default: 4]")
@click.option("--from", "times", type=click.Path(path_type=Path), help="Read measured times here.")
@click.option("--lab", type=click.Path(path_type=Path), help="Measure in this scenario's lab.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the network here.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write each time here.")
@JSON
def calibrate(
    ranks: int | None,
    times: Path | None,
    lab: Path | None,
    output: Path | None,
    table: Path | None,
    json_file: Path | None,
) -> None:
    """Fit latency and bandwidth to real runs, here or in a file, for scenarios to include."""
    from collsim import calibration, calibration_report, report
    from collsim.export import to_json, write_whole

    if times and (lab or table):
        raise ScenarioError("with it nothing is measured: leave out --lab and --csv", "--from")
    if lab and ranks:
        raise ScenarioError("the scenario of --lab says how many: leave it out", "--ranks")
    if times:
        found = calibration.calibrate_from(times, ranks)
    elif lab:
        found = _with_progress(lambda p: calibration.calibrate_lab(_load(lab, ()), p), "measuring")
    else:
        found = _with_progress(lambda p: calibration.calibrate_here(ranks or 4, p), "measuring")
    report.console().print(calibration_report.calibration_report(found))
    for file, text in ((output, found.block), (table, found.csv)):
        if file:
            write_whole(file, text())
            click.echo(f"wrote {file}")
    if json_file:
        write_whole(json_file, to_json(found.to_mapping()))


def _load(file: Path, settings: tuple[str, ...]) -> "Scenario":
    from collsim.scenario import load_scenario

    return load_scenario(file, settings)


def _with_progress(work: Callable[[Callable[[str], None]], Any], verb: str) -> Any:
    """Do `work` while the terminal, if there is one, says what is under way."""
    from collsim import report

    screen = report.console(to_stderr=True)
    if not screen.is_terminal:
        return work(lambda title: None)
    with screen.status(f"{verb} …") as status:
        return work(lambda title: status.update(f"{verb} {title} …"))
