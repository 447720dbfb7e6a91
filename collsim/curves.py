"""Makespan against message size, and where one algorithm overtakes another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from collsim.runner import run
from collsim.scenario import Scenario


@dataclass(frozen=True)
class Curves:
    """Makespans of several algorithms over message sizes.

    Attributes:
        sizes: Bytes of the collective's argument, ascending.
        makespans: Seconds at each size, by algorithm; NaN where it could not run.
        bound: The lower bound (s) at each size.
    """

    sizes: tuple[int, ...]
    makespans: Mapping[str, tuple[float, ...]]
    bound: tuple[float, ...]

    def crossovers(self) -> list[tuple[float, str, str]]:
        """Where the fastest algorithm changes: (bytes, from, to), sizes interpolated in logs."""
        found = []
        for i in range(len(self.sizes) - 1):
            before, after = self.fastest(i), self.fastest(i + 1)
            if before != after:
                found.append((self._meeting(i, before, after), before, after))
        return found

    def fastest(self, i: int) -> str:
        """The fastest algorithm at the i-th size."""
        return min(self.makespans, key=lambda name: (_or_inf(self.makespans[name][i]), name))

    def _meeting(self, i: int, one: str, other: str) -> float:
        """The size between two points at which two curves meet, both straight in log-log."""
        gaps = [log(self.makespans[other][j] / self.makespans[one][j]) for j in (i, i + 1)]
        part = gaps[0] / (gaps[0] - gaps[1])
        low, high = log(self.sizes[i]), log(self.sizes[i + 1])
        return exp(low + part * (high - low))


def _or_inf(seconds: float) -> float:
    return seconds if seconds == seconds else float("inf")


def size_curves(
    scenario: Scenario, sizes: Sequence[int], progress: Callable[[float], None] = lambda part: None
) -> Curves:
    """Run a scenario at each size.

    Args:
        scenario: Which algorithms, on what; its own size does not count.
        sizes: Bytes of the collective's argument, ascending and above 0.
        progress: Called with the part that is done, 0 to 1.

    Raises:
        ScenarioError: The scenario cannot run.
    """
    makespans: dict[str, list[float]] = {}
    bound = []
    for i, nbytes in enumerate(sizes):
        result = run(scenario.model_copy(update={"nbytes": nbytes}))
        bound.append(result.bound.seconds)
        for one in result.runs:
            column = makespans.setdefault(one.plan.title, [float("nan")] * len(sizes))
            column[i] = one.timeline.makespan
        progress((i + 1) / len(sizes))
    frozen = {name: tuple(column) for name, column in makespans.items()}
    return Curves(tuple(sizes), frozen, tuple(bound))
