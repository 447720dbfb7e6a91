"""What commands have in common: arguments, and how they load and show work."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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


def load(file: Path, settings: tuple[str, ...]) -> "Scenario":
    """The scenario in a file, with the changes of --set."""
    from collsim.scenario import load_scenario

    return load_scenario(file, settings)


def with_progress(work: Callable[[Callable[[str], None]], Any], verb: str) -> Any:
    """Do `work` while the terminal, if there is one, says what is under way."""
    from collsim import report

    screen = report.console(to_stderr=True)
    if not screen.is_terminal:
        return work(lambda title: None)
    with screen.status(f"{verb} …") as status:
        return work(lambda title: status.update(f"{verb} {title} …"))
