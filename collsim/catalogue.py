"""What there is to choose from, as tables and explanations for the terminal."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import collsim
from collsim import scenario as scenario_module
from collsim.collectives import COLLECTIVES
from collsim.collectives.describe import describe
from collsim.errors import ScenarioError
from collsim.planning import load_program
from collsim.program import ANY_RANKS, Algorithm, Collective
from collsim.scenario import load_scenario
from collsim.topology import LINK_PRESETS, MACHINE_PRESETS, TOPOLOGIES
from collsim.units import spell_bandwidth, spell_time


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def algorithms() -> RenderableType:
    """Every algorithm of every collective."""
    table = _table("collective", "algorithm", "ranks", "segmented", "what it does")
    for collective in COLLECTIVES.values():
        for name, row in collective.algorithms.items():
            segmented = "yes" if row.is_segmented else ""
            ranks = "any" if row.ranks is ANY_RANKS else row.ranks.text
            table.add_row(collective.name, name, ranks, segmented, row.summary)
    return table


def topologies() -> RenderableType:
    """Every kind of topology with its keys."""
    table = _table("kind", "what it is", "keys and defaults")
    for kind, builder in TOPOLOGIES.items():
        keys = ", ".join(
            name if p.default is p.empty else f"{name}={_spell(name, p.default)}"
            for name, p in inspect.signature(builder).parameters.items()
        )
        table.add_row(kind, (builder.__doc__ or "").strip().split("\n")[0], keys)
    return table


def _spell(name: str, value: object) -> str:
    """A default as a scenario would give it."""
    if isinstance(value, int | float) and name.endswith("bandwidth"):
        return spell_bandwidth(value)
    if isinstance(value, int | float) and name.endswith("latency"):
        return spell_time(value)
    return str(value)


def presets() -> RenderableType:
    """Typical links and machines, with sources."""
    links = _table("link", "bandwidth", "latency", "source")
    for name, link in LINK_PRESETS.items():
        links.add_row(name, spell_bandwidth(link.bandwidth), spell_time(link.latency), link.source)
    machines = _table("machine", "kind", "source")
    for name, machine in MACHINE_PRESETS.items():
        machines.add_row(name, machine.kind, machine.source)
    note = Text("Typical figures; your own measurements are better.\n", style="dim")
    return Group(links, Text(), machines, Text(), note)


def scenarios_folder() -> Path:
    """Where the scenarios that come with collsim are.

    Raises:
        ScenarioError: They were not installed.
    """
    import sys

    beside = Path(collsim.__file__).parent.parent / "scenarios"
    installed = Path(sys.prefix) / "share" / "collsim" / "scenarios"
    for folder in (beside, installed):
        if folder.is_dir():
            return folder
    raise ScenarioError(f"no scenarios in {beside} or {installed}")


def scenarios() -> RenderableType:
    """The scenarios that come with collsim, with the question that each answers."""
    table = _table("file", "question")
    folder = scenarios_folder()
    for path in sorted(folder.glob("*.yaml")):
        table.add_row(path.name, load_scenario(path).question)
    return Group(Text(f"in {folder}", style="dim"), table)


def defaults() -> RenderableType:
    """What holds where a scenario is silent."""
    table = _table("key", "default")
    fields = {**scenario_module.Scenario.model_fields}
    del fields["network"]
    network = scenario_module.NetworkOptions.model_fields
    fields.update({f"network.{name}": info for name, info in network.items()})
    for name, info in fields.items():
        if not info.is_required():
            table.add_row(name, "none" if info.default in (None, "") else str(info.default))
    from collsim.topology import DEFAULT_MEMORY_BANDWIDTH, DEFAULT_MEMORY_LATENCY

    memory = f"{spell_bandwidth(DEFAULT_MEMORY_BANDWIDTH)}, {spell_time(DEFAULT_MEMORY_LATENCY)}"
    table.add_row("memory of a host (ranks on it meet there)", memory)
    table.add_row("routing", "the fewest links; dimension order on mesh, torus, hypercube")
    table.add_row("segment: best", "the best of 1 KiB, 2 KiB, … on an ideal network, at most 1024")
    return table


TABLES: Final[Mapping[str, Callable[[], RenderableType]]] = {
    "algorithms": algorithms,
    "topologies": topologies,
    "presets": presets,
    "scenarios": scenarios,
    "defaults": defaults,
}
"""What `collsim list` shows."""


def explanation(name: str, collective: str | None) -> RenderableType:
    """What an algorithm does, its formulas, and its source; a user's own file's as well.

    Raises:
        ScenarioError: There is none, or several collectives have one of this name.
    """
    if ":" in name:
        row = load_program(Path(), name)
        story = inspect.getdoc(row.program) or "It has no docstring."
        return Group(Text(f"{name}\n", style="bold"), Text(f"{story}\n"), _source(row))
    owner, row = _find(name, collective)
    about = describe(row.program)
    table = _table("", "")
    rows = {name: formula.text for name, formula in about.formulas.items()}
    for label, value in {**rows, "Ranks": row.ranks.text, **about.notes}.items():
        table.add_row(Text(label, style="bold"), value)
    symbols = "p ranks, n bytes of the argument, S segments, L = ⌈log2 p⌉, alpha s, beta s/B"
    return Group(
        Text(f"{owner.name}: {name}", style="bold"),
        Text(about.summary),
        *map(Text, about.details),
        Text(),
        table,
        Text(symbols + "\n", style="dim"),
        _source(row),
    )


def _source(row: Algorithm) -> Syntax:
    """The program's source, without the docstring that was already shown."""
    source = inspect.getsource(row.program)
    if row.program.__doc__:
        first, _, rest = source.partition('"""')
        source = (first.rstrip() + rest.partition('"""')[2]).rstrip() + "\n"
    return Syntax(source, "python", background_color="default")


def _find(name: str, collective: str | None) -> tuple[Collective, Algorithm]:
    if collective is not None and collective not in COLLECTIVES:
        allowed = ", ".join(COLLECTIVES)
        raise ScenarioError(f"{collective!r} is unknown; use one of {allowed}", "collective")
    owners = [c for c in COLLECTIVES.values() if collective in (None, c.name)]
    found = [c for c in owners if name in c.algorithms]
    if not found:
        known = sorted({algorithm for c in owners for algorithm in c.algorithms})
        raise ScenarioError(f"{name!r} is unknown; use one of {', '.join(known)}", "algorithm")
    if len(found) > 1:
        names = " or ".join(c.name for c in found)
        raise ScenarioError(f"{names} have a {name!r}; choose with --collective", "algorithm")
    return found[0], found[0].algorithms[name]
