"""α and β from measured times: t(m) = α + m/B, fitted so that each size counts alike."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt

from collsim.errors import ScenarioError
from collsim.units import spell_size, spell_time

Floats = npt.NDArray[np.float64]

FEWEST_SIZES: Final = 3
HOLD_OUT_FROM: Final = 6
"""Sizes from which on every third is kept out of the fit."""

SCALE: Final = 0.05
"""Relative errors beyond it count less and less: neither a stall nor sizes of which a switch lets
through a burst are properties of a link."""

NEGLIGIBLE: Final = 0.05
FAR: Final = 1.3


@dataclass(frozen=True)
class Point:
    """One size, and what a message of it took.

    Attributes:
        nbytes: Bytes.
        seconds: The median of its measured times.
        is_held_out: Whether the fit has not seen it.
    """

    nbytes: int
    seconds: float
    is_held_out: bool = False


@dataclass(frozen=True)
class Fit:
    """A line through measured times.

    Attributes:
        alpha: Seconds of a message without bytes.
        bandwidth: Bytes/s, 1/β.
        alpha_range: Least and greatest α if any one size is left out.
        bandwidth_range: The same for the bandwidth.
        points: What was measured, by size.
        notes: What the sizes do not tell.
    """

    alpha: float
    bandwidth: float
    alpha_range: tuple[float, float]
    bandwidth_range: tuple[float, float]
    points: tuple[Point, ...]
    notes: tuple[str, ...]

    def predict(self, nbytes: int) -> float:
        """Seconds that a message takes by the line."""
        return self.alpha + nbytes / self.bandwidth

    def errors(self, held_out: bool) -> list[float]:
        """Predicted over measured less 1, of points that the fit has seen or has not."""
        return [
            self.predict(point.nbytes) / point.seconds - 1
            for point in self.points
            if point.is_held_out == held_out
        ]


def fit(times: Iterable[tuple[int, float]]) -> Fit:
    """Fit a line to times.

    Made least is Cauchy's loss of the logarithms of predicted over measured: small and large
    messages weigh the same, and outliers hardly. Least squares of the seconds themselves would fit
    the largest messages only.

    Args:
        times: Bytes and seconds, several of a size allowed; medians stand for sizes.

    Raises:
        ScenarioError: Fewer than three sizes, a time that is not positive, or times that do not
            grow with the size.
    """
    by_size: dict[int, list[float]] = {}
    for nbytes, seconds in times:
        if not (seconds > 0 and np.isfinite(seconds)):
            raise ScenarioError(f"must be positive, got {seconds} s for {nbytes:,} bytes", "times")
        by_size.setdefault(nbytes, []).append(seconds)
    if len(by_size) < FEWEST_SIZES:
        raise ScenarioError(
            f"at least {FEWEST_SIZES} different ones are needed, got {len(by_size)}", "sizes"
        )
    points = [
        Point(nbytes, median(found), _is_held_out(number, len(by_size)))
        for number, (nbytes, found) in enumerate(sorted(by_size.items()))
    ]
    seen = [point for point in points if not point.is_held_out]
    alpha, bandwidth = _line(seen, _start(seen))
    start = alpha, 1 / bandwidth
    others = [_line(seen[:one] + seen[one + 1 :], start) for one in range(len(seen))]
    others.append((alpha, bandwidth))
    alphas, bandwidths = zip(*others, strict=True)
    return Fit(
        alpha=alpha,
        bandwidth=bandwidth,
        alpha_range=(min(alphas), max(alphas)),
        bandwidth_range=(min(bandwidths), max(bandwidths)),
        points=tuple(points),
        notes=_notes(alpha, bandwidth, points),
    )


def _is_held_out(number: int, n: int) -> bool:
    """Every third size, never the least or the greatest: nothing is extrapolated."""
    return n >= HOLD_OUT_FROM and number % 3 == 2 and number < n - 1


def _line(points: Sequence[Point], start: tuple[float, float]) -> tuple[float, float]:
    """α (s) and bandwidth (bytes/s), from an α and a β near to them."""
    from scipy.optimize import least_squares  # late: a third of a second

    sizes = np.array([point.nbytes for point in points], float)
    seconds = np.array([point.seconds for point in points])

    def errors(logs: Floats) -> Floats:
        alpha, per_byte = np.exp(logs)
        off: Floats = np.log((alpha + sizes * per_byte) / seconds)
        return off

    found = least_squares(errors, np.log(start), loss="cauchy", f_scale=SCALE)
    alpha, per_byte = np.exp(found.x)
    return float(alpha), float(1 / per_byte)


def _start(points: Sequence[Point]) -> tuple[float, float]:
    """A line near enough to begin from: the fastest message, and the median of all slopes.

    The latter is the estimate by Theil and Sen, which outliers do not move.
    """
    sizes = np.array([point.nbytes for point in points], float)
    seconds = np.array([point.seconds for point in points])
    first, second = np.triu_indices(len(sizes), 1)
    slopes = (seconds[second] - seconds[first]) / (sizes[second] - sizes[first])
    per_byte = float(np.median(slopes))
    if per_byte <= 0:
        raise ScenarioError("must grow with the size, but larger messages took no longer", "times")
    return float(seconds.min()), per_byte


def _notes(alpha: float, bandwidth: float, points: Sequence[Point]) -> tuple[str, ...]:
    least, most = points[0].nbytes, points[-1].nbytes
    notes = []
    if alpha < NEGLIGIBLE * least / bandwidth:
        notes.append("α is hardly seen in these times: measure smaller messages as well")
    if most / bandwidth < NEGLIGIBLE * alpha:
        notes.append("the bandwidth is hardly seen in these times: measure larger messages as well")
    off = {point: (alpha + point.nbytes / bandwidth) / point.seconds for point in points}
    worst = max(points, key=lambda point: abs(math.log(off[point])))
    if not 1 / FAR < off[worst] < FAR:
        notes.append(
            f"{spell_size(worst.nbytes)} took {spell_time(worst.seconds)}, {1 / off[worst]:.2f} of "
            "the line's time: α + m/B does not hold for every size here"
        )
    if len(points) < HOLD_OUT_FROM:
        notes.append(f"nothing was held out of the fit, which takes {HOLD_OUT_FROM} sizes or more")
    return tuple(notes)
