"""The command line: `collsim run scenarios/one-switch.yaml`.

Exit codes: 0; 1 for what ran and failed, or disagreed; 2 for bad input; 130 when interrupted.
"""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from collsim.cli_gloo import calibrate, check, lab, mistakes
from collsim.cli_shared import FILE, JSON, SETTINGS, load, with_progress
from collsim.errors import CollsimError, ScenarioError


def main() -> None:
    """Run the command line; errors become one line and an exit code."""
    try:
        code = _main()
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


def _main() -> object:
    """Run the command; of ranks that torchrun started rank 0 alone does, and leads the others."""
    leader = None
    with ExitStack() as stack:
        if "TORCHELASTIC_RUN_ID" in os.environ:
            from collsim.gloo import torchrun_leader

            leader = stack.enter_context(torchrun_leader())
            if leader is None:
                return 0
        return commands.main(prog_name="collsim", standalone_mode=False, obj=leader)


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
    scenario = load(file, settings)
    result = with_progress(lambda progress: runner.run(scenario, progress), "simulating")
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

    scenario = load(file, settings)
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

    result = with_progress(lambda p: runner.run(load(file, settings), p), "simulating")
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
    result = with_progress(lambda p: runner.run(load(file, settings), p), "simulating")
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
    result = with_progress(lambda p: runner.run(load(file, settings), p), "simulating")
    write_whole(output, standalone_page(result))
    click.echo(f"wrote {output}")


for command in (check, lab, mistakes, calibrate):
    commands.add_command(command)
