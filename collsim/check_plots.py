"""Pictures of real runs in matplotlib: predicted against measured, and bytes between every pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from collsim.checking import CheckResult
from collsim.emulation import WHOLE, LabResult, LabRow
from collsim.plots import check_format, save_figure
from collsim.schedule import Ints
from collsim.units import spell_size, spell_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.ticker import FixedLocator

MOST_NUMBERS: Final = 4
"""Ranks up to which each pair's bytes are written into the matrix."""

AS_PREDICTED: Final = "#2b6cb0"
OFF: Final = "#c05621"


@dataclass(frozen=True)
class Matrices:
    """Bytes between every pair in one run: int[n_ranks, n_ranks], a row sends.

    Attributes:
        title: The algorithm, and how it was run.
        predicted: What the schedule makes, headers and control messages included.
        measured: What the kernel counted.
    """

    title: str
    predicted: Ints
    measured: Ints


def save_check(result: CheckResult | LabResult, path: Path, recorded: bool = False) -> None:
    """Draw real runs: their bytes, and in the lab their times too.

    Args:
        result: The runs.
        path: A name that ends in .png, .svg or .pdf.
        recorded: Whether they were made earlier, and elsewhere perhaps.

    Raises:
        ScenarioError: The file's name says no picture format, or it cannot be written.
    """
    check_format(path)
    save_figure(draw_check(result, recorded), path)


def draw_check(result: CheckResult | LabResult, recorded: bool = False) -> "Figure":
    """The times above if they may be compared; matrices of bytes side by side below."""
    from matplotlib.figure import Figure  # late: half a second

    matrices = _matrices_of(result)
    lines = -(-len(matrices) // 2)
    if not isinstance(result, LabResult):
        figure = Figure(figsize=(13, 3.1 * lines + 1), layout="constrained")
        draw_matrices(figure, matrices)
        figure.suptitle(result.scenario.question or _bytes_title(matrices), fontweight="bold")
        return figure
    tall = 2.0 + 0.32 * max(10, len(matrices))
    figure = Figure(figsize=(13, tall + 3.1 * lines + 1), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[tall, 3.1 * lines], squeeze=False)[:, 0]
    left, right = above.subplots(1, 2, width_ratios=[2, 3])
    draw_times(left, result.algorithms, "recorded" if recorded else "measured")
    draw_ratios(right, result.algorithms, "recorded" if recorded else "measured")
    draw_matrices(below, matrices)
    below.suptitle(_bytes_title(matrices))
    figure.suptitle(result.question or "Predicted and measured", fontsize=15, fontweight="bold")
    origin = ", ".join(f"{key} {value}" for key, value in result.provenance.items())
    figure.supxlabel(f"{'recorded; ' * recorded}{origin}", fontsize=8, color="0.4")
    return figure


def _matrices_of(result: CheckResult | LabResult) -> list[Matrices]:
    if isinstance(result, LabResult):
        return [
            Matrices(
                row.algorithm,
                np.array(row.wire_bytes_predicted),
                np.array(row.wire_bytes_measured),
            )
            for row in result.algorithms
        ]
    return [Matrices(one.title, one.wire_predicted, one.wire_measured) for one in result.checked]


def _bytes_title(matrices: Sequence[Matrices]) -> str:
    equal = sum(bool((one.predicted == one.measured).all()) for one in matrices)
    return (
        f"Bytes between every pair: predicted = counted by the kernel, {equal} of {len(matrices)}"
    )


def draw_times(axes: "Axes", rows: Sequence[LabRow], word: str = "measured") -> None:
    """Predicted against measured on log axes, with the band of ±5 %."""
    for is_near, colour, marker, label in (
        (True, AS_PREDICTED, "o", f"within ±{WHOLE:.0%}"),
        (False, OFF, "D", "further off"),
    ):
        here = [row for row in rows if (abs(row.ratio - 1) <= WHOLE) == is_near]
        if here:
            x, y = [row.predicted_s for row in here], [row.measured_s for row in here]
            axes.plot(x, y, marker, color=colour, markersize=8, alpha=0.8, label=label)
    every = [time for row in rows for time in (row.predicted_s, row.measured_s)]
    ends = np.array([min(every) / 1.3, max(every) * 1.3])
    axes.fill_between(
        ends, ends * (1 - WHOLE), ends * (1 + WHOLE), color="0.85", zorder=0, label=f"±{WHOLE:.0%}"
    )
    axes.plot(ends, ends, color="0.5", linewidth=0.8, zorder=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
        xlabel="predicted",
        ylabel=word,
        aspect="equal",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_ticks(ends))
        axis.set_minor_locator(_ticks(ends[:0]))
        axis.set_major_formatter(lambda value, _position: spell_time(value))
    axes.tick_params(axis="x", rotation=45)
    axes.legend(loc="upper left", frameon=False)


def _ticks(ends: np.ndarray) -> "FixedLocator":
    """Round times between two ends: some of each decade, more where there are few decades."""
    from matplotlib.ticker import FixedLocator

    if not len(ends):
        return FixedLocator([])
    decades = np.arange(np.floor(np.log10(ends[0])), np.ceil(np.log10(ends[1])) + 1)
    is_narrow = ends[1] < 20 * ends[0]
    steps = (1, 1.5, 2, 3, 4, 5, 7) if is_narrow else (1, 2, 5)
    times = [step * 10.0**decade for decade in decades for step in steps]
    return FixedLocator([time for time in times if ends[0] <= time <= ends[1]])


def draw_ratios(axes: "Axes", rows: Sequence[LabRow], word: str = "measured") -> None:
    """Each algorithm's time as a part of its prediction: every repetition, and the median."""
    ordered = sorted(rows, key=lambda row: row.predicted_s)
    axes.axvspan(1 - WHOLE, 1 + WHOLE, color="0.88", zorder=0)
    axes.axvline(1, color="0.5", linewidth=0.8)
    for place, row in enumerate(ordered):
        near = abs(row.ratio - 1) <= WHOLE
        colour = AS_PREDICTED if near else OFF
        parts = [time / row.predicted_s for time in row.repetitions_s]
        axes.plot(parts, [place] * len(parts), "|", color=colour, markersize=9)
        axes.plot(row.ratio, place, "o" if near else "D", color=colour, markersize=8, alpha=0.8)
    names = [f"{row.algorithm}  {spell_time(row.predicted_s)}" for row in ordered]
    axes.set_yticks(range(len(ordered)), names)
    axes.invert_yaxis()
    axes.set(xlabel=f"{word} / predicted (median; each run as a stroke)", title="")
    axes.spines[["top", "right"]].set_visible(False)


def draw_matrices(figure: "FigureBase", matrices: Sequence[Matrices]) -> None:
    """Two algorithms a line, each with its predicted and its measured bytes side by side."""
    lines = -(-len(matrices) // 2)
    axes = figure.subplots(lines, 4, squeeze=False)
    for place in axes.flat[2 * len(matrices) :]:
        place.set_axis_off()
    for number, one in enumerate(matrices):
        pair = axes.flat[2 * number : 2 * number + 2]
        most = max(1, int(one.predicted.max()), int(one.measured.max()))
        for place, values, word in zip(
            pair, (one.predicted, one.measured), ("predicted", "counted"), strict=True
        ):
            _draw_matrix(place, values, one.predicted != one.measured, most)
            place.set_title(f"{one.title}\n{word}", fontsize=9)


def _draw_matrix(axes: "Axes", values: Ints, differs: np.ndarray, most: int) -> None:
    """Bytes from each rank (row) to each (column); where two matrices differ, framed in red."""
    n = len(values)
    shown = np.ma.masked_equal(values, 0)
    axes.imshow(shown, cmap="Blues", vmin=-most / 3, vmax=most * 1.2)
    for src, dst in np.argwhere(differs):
        axes.plot(dst, src, "s", color="none", markeredgecolor="red", markersize=14)
    if n <= MOST_NUMBERS:
        for src, dst in np.argwhere(values):
            text = f"{values[src, dst]:,}"
            colour = "white" if values[src, dst] > most / 2 else "black"
            axes.text(dst, src, text, ha="center", va="center", fontsize=6.5, color=colour)
    axes.set_xlabel(f"receives (at most {spell_size(int(values.max()))})", fontsize=8)
    axes.set_ylabel("sends", fontsize=8)
    axes.set_xticks(range(n))
    axes.set_yticks(range(n))
    axes.tick_params(labelsize=7, length=0)
