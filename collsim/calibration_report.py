"""What the terminal shows of a calibration: times, the line through them, how far it holds."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collsim.calibration import Calibration
from collsim.calibration.block import ASSUMED
from collsim.units import spell_bandwidth, spell_size, spell_time

NEAR: Final = 0.25
"""Relative error of broadcasts up to which the network is said to predict them."""


def calibration_report(found: Calibration) -> RenderableType:
    """A calibration as tables, each with what was kept out of the fit."""
    ranks = f", {found.n_ranks} ranks" if found.n_ranks else ""
    parts: list[RenderableType] = [
        Text(f"{found.source}{ranks}: {ASSUMED[found.what]}", "bold"),
        _points(found),
        _result(found),
    ]
    if found.broadcasts:
        parts += [Text("\ntorch's own broadcast, which the fit has not seen", "bold")]
        parts += [_broadcasts(found), _verdict(found)]
    parts += [Text(note, "yellow") for note in found.fit.notes]
    if found.machines:
        parts.append(Text(f"machines: {', '.join(found.machines)}", "dim"))
    origin = ", ".join(f"{key} {value}" for key, value in found.provenance.items())
    return Group(*parts, Text(origin, "dim"))


def _table(*columns: str) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _points(found: Calibration) -> Table:
    table = _table("size", "measured", "α + m/B", "off by", "")
    for point in found.fit.points:
        predicted = found.fit.predict(point.nbytes)
        table.add_row(
            spell_size(point.nbytes),
            spell_time(point.seconds),
            spell_time(predicted),
            f"{predicted / point.seconds - 1:+.1%}",
            Text("held out", "cyan") if point.is_held_out else "",
        )
    return table


def _result(found: Calibration) -> Text:
    fit, link = found.fit, found.link
    text = Text("\n")
    text.append(f"α = {spell_time(link.alpha)}, B = {spell_bandwidth(link.bandwidth)}", "bold")
    if found.what != "message":
        text.append(" for one message")
    low, high = (spell_time(alpha) for alpha in fit.alpha_range)
    least, most = (spell_bandwidth(rate) for rate in fit.bandwidth_range)
    text.append(
        f"\nWithout any one size the line's α would be {low} to {high}, its bandwidth {least} to "
        f"{most}. Root mean square error {_rms(fit.errors(False)):.1%}"
    )
    unseen = fit.errors(True)
    if unseen:
        text.append(f"; of sizes held out {_rms(unseen):.1%}, at most {_most(unseen):.1%}")
    return text


def _broadcasts(found: Calibration) -> Table:
    table = _table("size", "predicted", "measured", "ratio")
    for run in found.broadcasts:
        table.add_row(
            spell_size(run.nbytes),
            spell_time(run.predicted),
            spell_time(run.measured),
            f"{run.measured / run.predicted:.2f}",
        )
    return table


def _verdict(found: Calibration) -> Text:
    """Whether broadcasts may be predicted with it."""
    errors = [run.measured / run.predicted - 1 for run in found.broadcasts]
    if _most(errors) <= NEAR:
        return Text(f"It predicts broadcasts within {_most(errors):.0%}.", "green")
    words = f"Broadcasts are off by up to {_most(errors):.0%}"
    if found.is_loopback:
        words += (
            ": on loopback ranks share the processors and memory of one machine, and no model of "
            "links says how. Calibrate between machines to predict machines"
        )
    elif _most(errors[1:]) <= NEAR:
        words = (
            f"It predicts broadcasts of {spell_size(found.broadcasts[1].nbytes)} and more within "
            f"{_most(errors[1:]):.0%}; of the least, software between messages takes its part"
        )
    return Text(f"{words}.", "yellow")


def _rms(errors: Sequence[float]) -> float:
    return math.sqrt(fmean(error * error for error in errors))


def _most(errors: Sequence[float]) -> float:
    return max(abs(error) for error in errors)
