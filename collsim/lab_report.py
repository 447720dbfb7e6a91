"""What the terminal shows of runs in the lab: predicted against measured, and why they differ."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collsim.emulation import IN_PIECES, WHOLE, LabResult, LabRow
from collsim.gloo.shaping import Means
from collsim.report import first_pair, verdict
from collsim.survey import Survey
from collsim.units import spell_bandwidth, spell_size, spell_time

LIMITS = (
    f"Bands: ±{WHOLE:.0%} for messages sent whole; ±{IN_PIECES:.0%} for messages in pieces, where "
    "each step also costs acknowledgements and headers that wait behind data, which the model "
    "leaves out: larger pieces come closer."
)
PLACES: Final[dict[Means, str]] = {
    "namespaces": "each in a network of its own",
    "pacing": "on loopback, the kernel pacing each pair's connection",
}
PACING = (
    "Pacing sends up to 64 KiB at once before it slows a message down: small messages and pieces "
    "arrive early."
)

MOST_COLUMNS: Final = 8
"""Ranks up to which a survey shows every pair."""


def lab_report(result: LabResult, recorded: bool = False) -> RenderableType:
    """Runs in the lab as a table, with what the model leaves out.

    Args:
        result: The runs.
        recorded: Whether they were made earlier, and elsewhere perhaps.
    """
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("algorithm")
    for name in ("tensors", "bytes"):
        table.add_column(name, no_wrap=True)
    for name in ("predicted", "recorded" if recorded else "measured", "ratio", "spread", "band"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result.algorithms:
        table.add_row(
            row.algorithm,
            verdict(row.tensors_equal),
            verdict(row.bytes_equal),
            spell_time(row.predicted_s),
            spell_time(row.measured_s),
            f"{row.ratio:.3f}",
            f"{row.spread:.1%}",
            _band(row),
        )
    return Group(_heading(result), table, *_remarks(result))


def _heading(result: LabResult) -> Text:
    scenario = result.scenario
    text = Text()
    if result.question:
        text.append(f"{result.question}\n", style="bold")
    text.append(
        f"{scenario['collective']} of {spell_size(scenario['nbytes'])} on {scenario['ranks']} real "
        f"gloo ranks, {PLACES[result.means]}: {_rates(result)}, "
        f"{spell_time(result.alpha_s)} a message; medians of {result.repetitions}"
    )
    return text


def _rates(result: LabResult) -> str:
    """The lab's rates: the common one, and which ranks differ."""
    shape = result.shape
    if not shape.up:
        rates = [rate for row in shape.pairs for rate in row if rate]
        least, most = spell_bandwidth(min(rates)), spell_bandwidth(max(rates))
        return f"{least} a pair" if least == most else f"{least} to {most} a pair"
    both = list(zip(shape.up, shape.down, strict=True))
    usual = max(both, key=both.count)
    others = [f"rank {rank} {_up_down(*one)}" for rank, one in enumerate(both) if one != usual]
    return ", ".join([f"{_up_down(*usual)} a rank", *others])


def _up_down(up: float, down: float) -> str:
    if up == down:
        return spell_bandwidth(up)
    return f"{spell_bandwidth(up)} up and {spell_bandwidth(down)} down"


def _band(row: LabRow) -> Text:
    if row.low is None or row.high is None:
        return Text("none", "dim")
    spelled = f"{row.low:.2f}–{row.high:.2f}"
    return Text(f"{spelled} ✓", "green") if row.is_within else Text(f"{spelled} ✗", "bold red")


def _remarks(result: LabResult) -> Iterator[Text]:
    rows = result.algorithms
    yield from (Text(row.difference, "red") for row in rows if row.difference)
    for row in rows:
        if not row.bytes_equal:
            yield Text(
                f"{row.algorithm}: {first_pair(row.wire_bytes_predicted, row.wire_bytes_measured)}",
                "red",
            )
    for title, reason in result.skipped:
        yield Text(f"{title} left out: it {reason}", "yellow")
    banded = [row for row in rows if row.is_within is not None]
    within = sum(abs(row.ratio - 1) <= WHOLE for row in rows)
    held = sum(bool(row.is_within) for row in banded)
    yield Text(
        f"\n{held} of {len(banded)} within their bands; {within} of {len(rows)} within ±{WHOLE:.0%}"
    )
    yield from _native_story(result)
    yield Text(LIMITS, "dim")
    if result.means == "pacing":
        yield Text(PACING, "dim")
    for row in rows:
        if row.limit:
            yield Text(f"{row.algorithm}: {row.limit}", "dim")
    yield Text(", ".join(f"{key} {value}" for key, value in result.provenance.items()), "dim")


def _native_story(result: LabResult) -> Iterator[Text]:
    """How many times the argument could have left the root while native gloo was at it."""
    if result.scenario["collective"] != "broadcast":
        return
    best = min(result.algorithms, key=lambda row: row.measured_s)
    once = result.transfer
    for row in result.algorithms:
        if row.serial_s is None:
            continue
        story = f"{row.algorithm} took {row.measured_s / once:.1f} transfers' time. "
        if row.serial_s < (1 - WHOLE) * row.predicted_s:
            story += (
                "A rank sends to all its children at once and they share its uplink, so the branch "
                f"with most below it waits for the others: {row.predicted_s / once:.1f} transfers "
                f"if they share evenly, {row.serial_s / once:.1f} if they were served one after "
                "the other. "
            )
        if best is not row:
            story += f"{best.algorithm} took {best.measured_s / once:.1f}."
        yield Text(story)


def survey_report(survey: Survey) -> RenderableType:
    """A lab's rates as a table: what each rank sends to each other, and how far from asked."""
    n = survey.shape.n_ranks
    machine = ", ".join(f"{key} {value}" for key, value in survey.machine.items())
    return Group(
        Text(
            f"Measured between {n} ranks, {PLACES[survey.means]}, one stream at a time: Mbit/s "
            "with all headers counted, and how far that is from what was asked",
            "bold",
        ),
        _pairs_table(survey) if n <= MOST_COLUMNS else _senders_table(survey),
        Text(
            f"{spell_time(survey.alpha_s)} a message of one byte. Furthest from what was asked: "
            f"{survey.furthest - 1:+.1%}"
        ),
        Text(machine, "dim"),
    )


def _pairs_table(survey: Survey) -> Table:
    """A row for each rank that sends, a column for each that receives."""
    n = survey.shape.n_ranks
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("from \\ to", no_wrap=True)
    for rank in range(n):
        table.add_column(f"rank {rank}", justify="right", no_wrap=True)
    for src in range(n):
        pairs = zip(survey.measured[src], survey.asked[src], strict=True)
        cells = [_against(found, asked, "\n") if asked else "–" for found, asked in pairs]
        table.add_row(f"rank {src}", *cells)
    return table


def _senders_table(survey: Survey) -> Table:
    """A row for each rank that sends, with the least and the most of its streams."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("from", no_wrap=True)
    for name in ("least", "to", "most", "to"):
        table.add_column(name, justify="right", no_wrap=True)
    for src, (found, asked) in enumerate(zip(survey.measured, survey.asked, strict=True)):
        ratios = {dst: found[dst] / asked[dst] for dst in range(len(asked)) if asked[dst]}
        ends = (min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__))
        cells = [(_against(found[dst], asked[dst]), f"rank {dst}") for dst in ends]
        table.add_row(f"rank {src}", *cells[0], *cells[1])
    return table


def _against(found: float, asked: float, between: str = " ") -> str:
    return f"{found * 8 / 1e6:.4g}{between}{found / asked - 1:+.1%}"
