"""What a lab's links really carry: asked and measured rate between every pair of ranks."""

from collections.abc import Callable
from typing import Any, Final, Literal

from collsim.cluster import build_network
from collsim.emulation import Record
from collsim.gloo.lab import Shape, shape_of
from collsim.gloo.shaping import GOODPUTS, Means, measure_alpha, shaped_group
from collsim.machine import describe_machine
from collsim.scenario import Scenario

STREAM_SECONDS: Final = 0.15
"""How long one pair's stream takes: enough that bursts of 5 kB do not show."""


class Survey(Record):
    """The rates of a lab.

    Attributes:
        scenario: What was asked, as a scenario file would say it.
        machine: What it was measured on.
        shape: The rates that ranks or pairs were given.
        means: How the network was shaped.
        alpha_s: Seconds of a message of one byte.
        asked: Bytes/s from each rank (row) to each other, all headers counted.
        measured: The same as found, one stream at a time.
    """

    kind: Literal["survey"] = "survey"
    scenario: dict[str, Any]
    machine: dict[str, str]
    shape: Shape
    means: Means
    alpha_s: float
    asked: tuple[tuple[float, ...], ...]
    measured: tuple[tuple[float, ...], ...]

    @property
    def furthest(self) -> float:
        """The ratio of measured to asked that is furthest from 1."""
        ratios = [
            found / asked
            for row, asked_row in zip(self.measured, self.asked, strict=True)
            for found, asked in zip(row, asked_row, strict=True)
            if asked
        ]
        return max(ratios, key=lambda ratio: abs(ratio - 1))

    def to_mapping(self) -> dict[str, Any]:
        """What `lab --json` writes."""
        return self.model_dump(mode="json")


def survey_lab(
    scenario: Scenario,
    progress: Callable[[str], None] = lambda title: None,
    *,
    timeout: float = 30.0,
) -> Survey:
    """Make a scenario's lab and measure every pair in it, one after the other.

    Args:
        scenario: A star or a full mesh, one rank a host; its algorithms are not run.
        progress: Called with what is under way.
        timeout: Seconds that one pair may take.

    Raises:
        ScenarioError: The lab cannot be like this network.
        ExecutionUnavailable: There is no torch, or this machine makes no lab.
        ExecutionError: A rank died, hung or raised.
    """
    shape = shape_of(build_network(scenario))
    n = shape.n_ranks
    asked = [[_rate(shape, src, dst) for dst in range(n)] for src in range(n)]
    measured = [[0.0] * n for _ in range(n)]
    with shaped_group(shape, timeout=timeout) as shaped:
        group, goodput = shaped.group, GOODPUTS[shaped.means]
        progress("latency")
        alpha = measure_alpha(group)
        for src in range(n):
            progress(f"rank {src}'s links")
            for dst in range(n):
                if src == dst:
                    continue
                nbytes = round(asked[src][dst] * goodput * STREAM_SECONDS)
                arguments: dict[str, Any] = {"src": src, "dst": dst, "nbytes": nbytes}
                found = group.run("collsim.gloo.ranks:stream", [arguments] * n)
                measured[src][dst] = nbytes / goodput / (found[src][0] - 2 * alpha)
    return Survey(
        scenario=scenario.model_dump(mode="json"),
        machine=describe_machine(),
        shape=shape,
        means=shaped.means,
        alpha_s=alpha,
        asked=tuple(map(tuple, asked)),
        measured=tuple(map(tuple, measured)),
    )


def _rate(shape: Shape, src: int, dst: int) -> float:
    if src == dst:
        return 0.0
    return shape.pairs[src][dst] if shape.pairs else min(shape.up[src], shape.down[dst])
