"""Find a network's latency and bandwidth from real runs, and say how far to trust them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from collsim.calibration.block import ASSUMED, Link, block, block_text, link_of
from collsim.calibration.files import What, read_times
from collsim.calibration.fit import Fit, fit
from collsim.calibration.measure import Message, lab_group, measure
from collsim.cluster import build_network
from collsim.collectives import COLLECTIVES
from collsim.engines import play
from collsim.errors import ScenarioError
from collsim.gloo import Leader, RankGroup, forked_group
from collsim.gloo.lab import shape_of
from collsim.machine import describe_machine
from collsim.scenario import Scenario, parse_scenario
from collsim.tracing import trace

__all__ = [
    "Calibration",
    "HeldOut",
    "calibrate",
    "calibrate_from",
    "calibrate_here",
    "calibrate_lab",
    "calibrate_torchrun",
]


@dataclass(frozen=True)
class HeldOut:
    """A run that the fit has not seen: torch's own broadcast.

    Attributes:
        nbytes: Its bytes.
        predicted: Seconds on the fitted network.
        measured: Median seconds.
    """

    nbytes: int
    predicted: float
    measured: float


@dataclass(frozen=True)
class Calibration:
    """A fitted network.

    Attributes:
        source: Where the times come from.
        what: Whose times these are.
        n_ranks: How many ranks took part, 0 if that is not known.
        fit: The line through the times.
        link: What one message costs.
        messages: Each measured message; () if the times were read from a file.
        broadcasts: Runs that the fit has not seen.
        machines: Name of each rank's machine; () if that is this one, or not known.
        is_loopback: Whether messages went over no link at all.
        provenance: Machine, versions and date.
    """

    source: str
    what: What
    n_ranks: int
    fit: Fit
    link: Link
    messages: tuple[Message, ...]
    broadcasts: tuple[HeldOut, ...]
    machines: tuple[str, ...]
    is_loopback: bool
    provenance: dict[str, str]

    def block(self) -> str:
        """Scenario fields as YAML, which any scenario can include."""
        about = {
            "fitted to": f"{self.source}: {ASSUMED[self.what]}",
            "made with": ", ".join(" ".join(one) for one in self.provenance.items()),
        }
        return block_text(block(self.link), about)

    def csv(self) -> str:
        """Each measured message as a line, in a form that `calibrate_from` reads."""
        lines = [f"{one.peer},{one.nbytes},{one.seconds!r}" for one in self.messages]
        return "\n".join(["peer,bytes,seconds", *lines, ""])

    def to_mapping(self) -> dict[str, Any]:
        """What `calibrate --json` writes."""
        return {**asdict(self), "scenario": block(self.link)}


def calibrate(
    n_ranks: int,
    start: Callable[..., AbstractContextManager[RankGroup]],
    progress: Callable[[str], None] = lambda title: None,
    source: str = "",
    is_loopback: bool | None = None,
) -> Calibration:
    """Measure messages between real ranks, fit a network, and hold it to broadcasts.

    Args:
        n_ranks: How many ranks, two or more.
        start: Makes a group of them, from their number and the timeout.
        progress: Called with what is under way.
        source: What to say of where they ran; their machines, if "".
        is_loopback: Whether messages go over no link at all there; whether all are on this
            machine, if None.

    Raises:
        ScenarioError: The times do not allow a fit.
        ExecutionUnavailable: There is no torch, or no lab.
        ExecutionError: A rank died, hung or raised.
    """
    measured = measure(n_ranks, start, progress)
    fitted = fit((one.nbytes, one.seconds) for one in measured.messages)
    link = link_of(fitted, "message", n_ranks)
    between = f"measured between {len(set(measured.machines))} machines"
    return Calibration(
        source=source or (between if measured.machines else "measured on loopback"),
        what="message",
        n_ranks=n_ranks,
        fit=fitted,
        link=link,
        messages=measured.messages,
        broadcasts=tuple(_held_out(link, n_ranks, measured.broadcasts)),
        machines=measured.machines,
        is_loopback=not measured.machines if is_loopback is None else is_loopback,
        provenance=describe_machine(),
    )


def calibrate_here(
    n_ranks: int, progress: Callable[[str], None] = lambda title: None
) -> Calibration:
    """Calibrate between ranks that are forked here, on loopback."""
    return calibrate(n_ranks, forked_group, progress)


def calibrate_torchrun(
    leader: Leader, n_ranks: int | None, progress: Callable[[str], None] = lambda title: None
) -> Calibration:
    """Calibrate between the ranks that torchrun has started.

    Raises:
        ScenarioError: It has started only one, or another number than `n_ranks`.
        ExecutionError: A rank hung or raised.
    """
    if leader.n_ranks < 2:
        raise ScenarioError("torchrun must start 2 or more, it has started 1", "ranks")
    return calibrate(n_ranks or leader.n_ranks, leader.group, progress)


def calibrate_lab(
    scenario: Scenario, progress: Callable[[str], None] = lambda title: None
) -> Calibration:
    """Calibrate in a scenario's lab, where it is known what should be found.

    Raises:
        ScenarioError: The lab cannot be like the scenario's network.
        ExecutionUnavailable: There is no torch, or no lab.
    """
    shape = shape_of(build_network(scenario))

    def start(n_ranks: int, *, timeout: float) -> AbstractContextManager[RankGroup]:
        return lab_group(shape, timeout=timeout)

    return calibrate(shape.n_ranks, start, progress, "measured in a shaped network", False)


def calibrate_from(path: Path, n_ranks: int | None = None) -> Calibration:
    """Fit a network to a file of measured times.

    Args:
        path: A table of bytes and seconds, or the output of OSU's or NVIDIA's benchmarks.
        n_ranks: How many ranks took part, if the file does not say.

    Raises:
        ScenarioError: The file cannot be read, or its times do not allow a fit.
    """
    times = read_times(path)
    n = n_ranks or times.n_ranks
    fitted = fit(times.rows)
    return Calibration(
        source=f"{path.name}, {times.source}",
        what=times.what,
        n_ranks=n,
        fit=fitted,
        link=link_of(fitted, times.what, n),
        messages=(),
        broadcasts=(),
        machines=(),
        is_loopback=False,
        provenance={"date": describe_machine()["date"]},
    )


def _held_out(
    link: Link, n_ranks: int, broadcasts: Iterable[tuple[int, float]]
) -> "Iterable[HeldOut]":
    """What the fitted network predicts for gloo's broadcast, beside what was measured."""
    collective = COLLECTIVES["broadcast"]
    schedule = trace(collective, collective.algorithms["gloo"], n_ranks)
    fields = {"collective": "broadcast", "algorithm": "gloo", "ranks": n_ranks, "nbytes": 1}
    network = build_network(parse_scenario({**fields, **block(link)}))
    for nbytes, seconds in broadcasts:
        yield HeldOut(nbytes, play("auto", schedule, network, nbytes).makespan, seconds)
