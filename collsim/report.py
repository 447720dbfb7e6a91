"""What the terminal shows: tables and sentences about results."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from collsim.critical_path import spell_path
from collsim.runner import Result, Run
from collsim.timeline import Timeline
from collsim.units import spell_bandwidth, spell_size, spell_time

if TYPE_CHECKING:
    from collsim.checking import CheckResult


def result_report(result: Result, width: int = 110) -> RenderableType:
    """A result as a table of at most `width` columns, and in words."""
    return Group(_heading(result), _table(result, width), *_remarks(result))


def _heading(result: Result) -> Text:
    scenario = result.scenario
    text = Text()
    if scenario.question:
        text.append(f"{scenario.question}\n", style="bold")
    root = f" from rank {scenario.root}" if scenario.definition.rooted else ""
    text.append(
        f"{scenario.collective} of {spell_size(scenario.nbytes)}{root}, {scenario.ranks} ranks on "
        f"{result.network.graph.graph.get('name', 'a topology')}, {scenario.network.sharing} "
        f"sharing, {scenario.network.protocol}"
    )
    return text


def _table(result: Result, width: int) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False)
    wide = width >= 105
    names = ["makespan", "× bound", *["textbook"] * wide, "rounds", "messages"]
    names += ["segments", "algbw"] * wide
    table.add_column("algorithm")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("busiest link", no_wrap=True)
    for run in result.runs:
        cells = _cells(result, run)
        is_best = run is result.best and len(result.runs) > 1
        shown = (run.plan.title, *(cells[name] for name in names), cells["busiest link"])
        table.add_row(*shown, style="bold green" if is_best else "")
    return table


def _cells(result: Result, run: Run) -> dict[str, str]:
    """One algorithm's numbers, by column."""
    timeline, bound = run.timeline, result.bound.seconds
    busiest = next(iter(timeline.link_use.items()), None)
    return {
        "makespan": spell_time(timeline.makespan),
        "× bound": f"{timeline.makespan / bound:.2f}" if bound else "–",
        "textbook": "–" if run.textbook is None else spell_time(run.textbook),
        "rounds": f"{run.schedule.n_rounds:,}",
        "messages": f"{len(run.schedule):,}",
        "segments": f"{run.schedule.chunks_per_block:,}",
        "algbw": spell_bandwidth(timeline.algbw) if timeline.makespan_ps else "–",
        "busiest link": f"{busiest[0]} ({busiest[1]:.0%})" if busiest else "–",
    }


def _remarks(result: Result) -> Iterator[Text]:
    best = result.best
    timeline = best.timeline
    bound = result.bound
    yield Text(f"\nLower bound: {spell_time(bound.seconds)} ({bound.reason})")
    if len(result.runs) > 1:
        yield Text(f"Fastest: {best.plan.title}, {_against_others(result)}")
    last = int(np.argmax(timeline.finish_ps))
    root = f", the root returns after {spell_time(timeline.root_return)}"
    who = f"{best.plan.title}: rank {last} finishes last"
    yield Text(f"{who}{root if result.scenario.definition.rooted else ''}")
    yield Text(f"Its critical path: {spell_path(timeline)}")
    agree = [run.plan.title for run in result.runs if run.exact == run.timeline.makespan]
    if agree:
        yield Text(f"Equal to the closed form, to the picosecond: {', '.join(agree)}")
    notes: dict[str, list[str]] = {}
    for run in result.runs:
        notes.setdefault(run.plan.note, []).append(run.plan.title)
    for note, titles in notes.items():
        if note:
            yield Text(f"{', '.join(titles)}: {note}", style="dim")
    for title, reason in result.skipped:
        yield Text(f"{title} left out: it {reason}", style="yellow")
    yield Text(
        "Verified: each algorithm delivered every byte in random legal orders. "
        + ", ".join(f"{key} {value}" for key, value in result.provenance.items()),
        style="dim",
    )


def _against_others(result: Result) -> str:
    """By how much the fastest leads."""
    others = [run for run in result.runs if run is not result.best]
    second = min(others, key=lambda run: run.timeline.makespan_ps)
    if not result.best.timeline.makespan_ps:
        return "nothing takes time here"
    ratio = second.timeline.makespan_ps / result.best.timeline.makespan_ps
    if ratio == 1:
        return f"level with {second.plan.title}"
    return f"{ratio:.2f} × as fast as {second.plan.title}"


def check_report(result: "CheckResult") -> RenderableType:
    """Real runs as a table, with small tensors before and after."""
    scenario = result.scenario
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("algorithm")
    table.add_column("tensors")
    table.add_column("bytes on the wire")
    table.add_column("measured" if result.machines else "measured on loopback", justify="right")
    table.add_column("predicted", justify="right")
    if result.machines:
        table.add_column("ratio", justify="right")
    for one in result.checked:
        ratio = f"{one.measured / one.predicted:.2f}" if one.predicted else "–"
        table.add_row(
            one.title,
            verdict(one.tensors_equal),
            verdict(one.bytes_equal),
            spell_time(one.measured),
            spell_time(one.predicted),
            *([ratio] if result.machines else []),
        )
    heading = Text()
    if scenario.question:
        heading.append(f"{scenario.question}\n", style="bold")
    heading.append(
        f"{scenario.collective} of {spell_size(scenario.nbytes)} ({scenario.dtype}) on "
        f"{scenario.ranks} real gloo ranks on {_places(result)}"
    )
    remarks = [Text(one.difference, style="red") for one in result.checked if one.difference]
    remarks += [
        Text(f"{title} left out: it {reason}", "yellow") for title, reason in result.skipped
    ]
    remarks += [
        Text(f"{one.title}: {first_pair(one.wire_predicted, one.wire_measured)}", "red")
        for one in result.checked
        if not one.bytes_equal
    ]
    loopback = "loopback has no links, so its times show that it ran"
    cluster = "measured is on these machines, whose network `collsim calibrate` can fit"
    story = Text(
        f"Predicted is on the scenario's network; {cluster if result.machines else loopback}. "
        "Bytes between every pair are those of TCP, headers and control messages included.",
        "dim",
    )
    return Group(heading, table, *remarks, _tensors(result), story)


def _places(result: "CheckResult") -> str:
    """The machines of the ranks."""
    if not result.machines:
        return "this machine"
    names = [f"{name} ({count})" for name, count in Counter(result.machines).items()]
    return f"{len(names)} machines: {', '.join(names)}"


def verdict(equal: bool) -> Text:
    """Equal or not, in its colour."""
    return Text("equal", "green") if equal else Text("DIFFER", "bold red")


def first_pair(predicted: npt.ArrayLike, measured: npt.ArrayLike) -> str:
    """The first pair of ranks whose bytes, each int[n_ranks, n_ranks], are not as predicted."""
    expected, counted = np.asarray(predicted), np.asarray(measured)
    src, dst = (int(i) for i in np.argwhere(expected != counted)[0])
    return (
        f"rank {src} sent rank {dst} {counted[src, dst]:,} bytes, "
        f"{expected[src, dst]:,} were predicted"
    )


def _tensors(result: "CheckResult") -> RenderableType:
    """Each rank's tensor before and after the first run, if there are few ranks."""
    first = result.checked[-1]
    if len(first.before) > 8:
        return Text()
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("rank", "before", "after"):
        table.add_column(column)
    for rank, (before, after) in enumerate(zip(first.before, first.after, strict=True)):
        table.add_row(str(rank), before, after)
    return Group(Text(f"\nTensors, {first.title}:"), table)


def sketch(run: Run, width: int = 72) -> Text:
    """Each rank's time as a row of signs: what it sends and receives when."""
    timeline = run.timeline
    text = Text(f"\n{run.plan.title}: each row a rank, time to the right\n", style="bold")
    sending, receiving = _activity(timeline, width)
    signs = np.array([" ", "▀", "▄", "█"])[sending + 2 * receiving]
    digits = len(str(len(signs) - 1))
    for rank, row in enumerate(signs):
        text.append(f"{rank:>{digits}} ", style="dim")
        text.append("".join(row) + "\n", style="cyan")
    scale = f"0{spell_time(timeline.makespan):>{width - 1}}"
    text.append(" " * (digits + 1) + scale + "\n", style="dim")
    text.append("▀ sends   ▄ receives   █ both at once", style="dim")
    return text


def _activity(timeline: Timeline, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of `width` slices of time each rank sends and receives in: two bool[n_ranks, width]."""
    schedule = timeline.schedule
    scale = width / max(1, timeline.makespan_ps)
    sending = np.zeros((schedule.n_ranks, width), np.int64)
    receiving = np.zeros((schedule.n_ranks, width), np.int64)
    rows = zip(
        schedule.src, schedule.dst, timeline.started, timeline.left, timeline.done, strict=True
    )
    for src, dst, started, left, done in rows:
        first = int(started * scale)
        sending[src, first : max(first + 1, int(left * scale))] = 1
        receiving[dst, first : max(first + 1, int(done * scale))] = 1
    return sending, receiving


def console(to_stderr: bool = False) -> Console:
    """A console as wide as the terminal; 110 columns where there is none."""
    found = Console(stderr=to_stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=to_stderr, highlight=False, width=110)
