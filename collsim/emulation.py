"""Run a scenario on real gloo ranks that live in a shaped network, and hold the model to it.

The network of the lab is one that the model knows: its rates are set, its latency is measured
before the runs. So predicted and measured times may be compared, which on loopback they may not.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from collsim.checking import compare, inputs_of
from collsim.cluster import build_network
from collsim.engines import play
from collsim.errors import ScenarioError
from collsim.gloo import Execution
from collsim.gloo.execute import LONGEST_TIMEOUT
from collsim.gloo.lab import Shape, lab_network, shape_of
from collsim.gloo.shaping import GOODPUTS, Means, Shaped, measure_alpha, shaped_group
from collsim.machine import describe_machine
from collsim.network import Network
from collsim.ordering import crossing_pairs, sends_in_turn
from collsim.planning import Plan, plans, verified_schedule
from collsim.runner import provenance
from collsim.scenario import Scenario
from collsim.schedule import Schedule

REPETITIONS: Final = 5
MOST_SECONDS: Final = 3600.0
"""Predicted seconds of all runs together beyond which they are refused."""

WHOLE: Final = 0.05
"""Part of the prediction that messages sent whole may be off by."""

IN_PIECES: Final = 0.15
"""The same where messages are cut: every step's small costs add up."""

NATIVE: Final = (0.75, 1.10)
"""Native gloo's time as parts of the fair-share prediction: TCP shares an uplink unevenly."""


class Record(BaseModel):
    """What a real run gave: unchangeable, and checked when it is read from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LabRow(Record):
    """One algorithm in the lab.

    Attributes:
        algorithm: Its title, and how it was run.
        tensors_equal: Whether every rank held, byte for byte, what it should.
        difference: What differed, "" if nothing.
        bytes_equal: Whether the kernel counted the predicted bytes between every pair, each time.
        wire_bytes_predicted: Bytes between each pair, a row sends; headers included.
        wire_bytes_measured: Those that were received.
        predicted_s: Makespan (s) by fair sharing.
        serial_s: What native gloo would take (s) if it sent to one child after the other; None for
            programs, which state their order.
        measured_s: The median repetition's time (s).
        repetitions_s: Each repetition's time (s).
        low: Least part of the prediction that the model stands for, None if for none.
        high: Greatest part of it.
        limit: What the model leaves out here, "" if nothing that is known.
    """

    algorithm: str
    tensors_equal: bool
    difference: str
    bytes_equal: bool
    wire_bytes_predicted: tuple[tuple[int, ...], ...]
    wire_bytes_measured: tuple[tuple[int, ...], ...]
    predicted_s: float
    serial_s: float | None
    measured_s: float
    repetitions_s: tuple[float, ...]
    low: float | None
    high: float | None
    limit: str

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured_s / self.predicted_s

    @property
    def spread(self) -> float:
        """Longest less shortest repetition, as a part of the median."""
        return (max(self.repetitions_s) - min(self.repetitions_s)) / self.measured_s

    @property
    def is_within(self) -> bool | None:
        """Whether it lies in the band that the model stands for; None if there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.ratio <= self.high


class LabResult(Record):
    """All runs of a scenario in the lab.

    Attributes:
        provenance: Version, scenario's digest, machine and date.
        scenario: What was asked, as a scenario file would say it.
        question: The scenario's.
        shape: The rates of the lab.
        means: How its network was shaped.
        alpha_s: Seconds of a message of one byte there, measured.
        repetitions: How often each algorithm was run.
        algorithms: One row for each run.
        skipped: Algorithms that were left out, with the reason.
    """

    kind: Literal["lab"] = "lab"
    provenance: dict[str, str]
    scenario: dict[str, Any]
    question: str
    shape: Shape
    means: Means
    alpha_s: float
    repetitions: int
    algorithms: tuple[LabRow, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def tensors_equal(self) -> bool:
        """Whether all runs gave the right tensors."""
        return all(row.tensors_equal for row in self.algorithms)

    @property
    def bytes_equal(self) -> bool:
        """Whether all runs sent the predicted bytes between every pair."""
        return all(row.bytes_equal for row in self.algorithms)

    @property
    def transfer(self) -> float:
        """Seconds in which the root could send the argument once, headers taken off."""
        root = self.scenario["root"]
        rate = self.shape.up[root] if self.shape.up else max(self.shape.pairs[root])
        return float(self.scenario["nbytes"] / (GOODPUTS[self.means] * rate))

    def to_mapping(self) -> dict[str, Any]:
        """What `check --lab --json` writes; `model_validate` reads it."""
        return self.model_dump(mode="json")


def check_in_lab(
    scenario: Scenario,
    progress: Callable[[str], None] = lambda title: None,
    *,
    repetitions: int = REPETITIONS,
    timeout: float = 30.0,
) -> LabResult:
    """Run a scenario on real gloo ranks in a network shaped like its topology.

    Args:
        scenario: What to run; a star or a full mesh, one rank a host.
        progress: Called with what is under way.
        repetitions: How often each algorithm runs; medians are compared.
        timeout: Seconds that one algorithm may take beyond twice its prediction.

    Raises:
        ScenarioError: The lab cannot be like this network, or the runs would take too long.
        ExecutionUnavailable: There is no torch, or this machine makes no lab.
        ExecutionError: A rank died, hung or raised.
    """
    network = build_network(scenario)
    shape = shape_of(network)
    found, skipped = plans(scenario, network)
    schedules = [ordered_schedule(scenario, plan) for plan in found]
    guess = lab_network(network, 0.0)
    expected = [play(scenario.engine, one, guess, scenario.nbytes) for one in schedules]
    longest = [timeline.makespan for timeline in expected]
    total = repetitions * sum(longest)
    if total > MOST_SECONDS:
        raise ScenarioError(
            f"the runs would take {total:,.0f} s, more than {MOST_SECONDS:,.0f}; send less, or "
            "choose fewer algorithms",
            "nbytes",
        )
    patience = min(LONGEST_TIMEOUT, timeout + 2 * repetitions * max(longest))
    with shaped_group(shape, timeout=patience) as shaped:
        progress("latency")
        alpha = measure_alpha(shaped.group)
        rows: list[LabRow] = []
        for plan, schedule in zip(found, schedules, strict=True):
            progress(plan.title)
            rows += _emulate(scenario, plan, schedule, network, alpha, shaped, repetitions)
    return LabResult(
        provenance={**provenance(scenario, expected), **describe_machine()},
        scenario=scenario.model_dump(mode="json"),
        question=scenario.question,
        shape=shape,
        means=shaped.means,
        alpha_s=alpha,
        repetitions=repetitions,
        algorithms=tuple(rows),
        skipped=tuple(skipped),
    )


def ordered_schedule(scenario: Scenario, plan: Plan) -> Schedule:
    """The schedule, with acknowledgements where real sends would else leave its order."""
    schedule = verified_schedule(scenario, plan)
    if plan.choice.name == "gloo" or scenario.acks or not sends_in_turn(schedule):
        return schedule
    return verified_schedule(scenario.model_copy(update={"acks": True}), plan)


def _emulate(
    scenario: Scenario,
    plan: Plan,
    schedule: Schedule,
    network: Network,
    alpha: float,
    shaped: Shaped,
    repetitions: int,
) -> Iterator[LabRow]:
    """Run one algorithm over isend/irecv, and gloo's own once more as torch's collective."""
    group, goodput = shaped.group, GOODPUTS[shaped.means]
    fair, fifo = (
        play(scenario.engine, schedule, lab_network(network, alpha, kind, goodput), scenario.nbytes)
        for kind in ("fair", "fifo")
    )
    inputs = inputs_of(scenario, schedule)
    execution = group.execute(schedule, scenario.nbytes, inputs=inputs, repetitions=repetitions)
    is_gloo = plan.choice.name == "gloo"
    acks = " with acks" if schedule.algorithm.endswith("with acks") else ""
    title = f"{plan.title} (ours)" if is_gloo else f"{plan.title}{acks}"
    yield _row(scenario, schedule, title, execution, fair.makespan)
    if is_gloo:
        native = group.native(
            schedule,
            scenario.nbytes,
            dtype=scenario.dtype,
            inputs=inputs,
            repetitions=repetitions,
        )
        title = f"{plan.title} (torch's native)"
        row = _row(scenario, schedule, title, native, fair.makespan)
        # Between one child after the other and all children at once; TCP shares unevenly.
        serial = min(fair.makespan, fifo.makespan)
        low = max(NATIVE[0], (1 - WHOLE) * serial / fair.makespan)
        yield row.model_copy(update={"serial_s": serial, "low": low, "high": NATIVE[1]})


def _row(
    scenario: Scenario, schedule: Schedule, title: str, execution: Execution, predicted: float
) -> LabRow:
    checked = compare(scenario, schedule, title, execution, predicted)
    crossing = crossing_pairs(schedule)
    allowed = WHOLE if schedule.n_chunks == 1 else IN_PIECES
    return LabRow(
        algorithm=title,
        tensors_equal=checked.tensors_equal,
        difference=checked.difference,
        bytes_equal=checked.bytes_equal,
        wire_bytes_predicted=checked.wire_predicted.tolist(),
        wire_bytes_measured=checked.wire_measured.tolist(),
        predicted_s=predicted,
        serial_s=None,
        measured_s=checked.measured,
        repetitions_s=execution.makespans,
        low=None if crossing else 1 - allowed,
        high=None if crossing else 1 + allowed,
        limit=_limit(crossing),
    )


def _limit(crossing: list[tuple[int, int]]) -> str:
    if not crossing:
        return ""
    first, second = crossing[0]
    return (
        f"ranks {first} and {second} send to each other on several channels: a receiver's word "
        "that it is ready stands behind its own data, which the model leaves out"
    )
