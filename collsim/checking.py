"""Run a scenario's algorithms on real gloo processes, and compare what they did.

Every algorithm runs over `isend`/`irecv`, step by step as simulated; the algorithm named gloo runs
a second time as torch's own collective. Each rank's tensor is compared byte for byte with the
contract. Times on one machine are those of loopback, where the processors are the resource and not
a network: they show that it ran, not how fast the scenario's network would be.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from collsim.cluster import build_network
from collsim.engines import play
from collsim.errors import ContractError, ScenarioError
from collsim.gloo import Execution, RankGroup, forked_group, native_wire_bytes, wire_bytes
from collsim.planning import Plan, plans, verified_schedule
from collsim.runner import provenance
from collsim.scenario import Scenario
from collsim.schedule import Ints, Schedule
from collsim.timeline import Timeline
from collsim.verification import Buffers, check_contract, initial_buffers

MAX_RANKS = 64
MAX_TOTAL_BYTES = 1 << 30
SHOWN = 6


@dataclass(frozen=True)
class Checked:
    """One real run.

    Attributes:
        title: The algorithm, and how it was run.
        tensors_equal: Whether every rank holds, byte for byte, what it should.
        difference: What differs, "" if nothing.
        bytes_equal: Whether the kernel counted, between every pair, just the bytes that the
            schedule makes, headers and control messages included.
        wire_predicted: Bytes between each pair that should be sent, row sends, column receives.
        wire_measured: Those that were received, in the first repetition where they differ.
        measured: Seconds from the barrier until the last rank was done.
        predicted: Makespan (s) on the scenario's network.
        before: Each rank's tensor at the start, as far as it is small enough to show.
        after: The same at the end.
    """

    title: str
    tensors_equal: bool
    difference: str
    bytes_equal: bool
    wire_predicted: Ints
    wire_measured: Ints
    measured: float
    predicted: float
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class CheckResult:
    """All real runs of a scenario.

    Attributes:
        scenario: What was run.
        checked: The runs.
        skipped: (title, reason) of what was left out.
        predicted: The simulated timelines.
        machines: Name of each rank's machine; () if all are on this one.
    """

    scenario: Scenario
    checked: tuple[Checked, ...]
    skipped: tuple[tuple[str, str], ...]
    predicted: tuple[Timeline, ...]
    machines: tuple[str, ...] = ()

    @property
    def tensors_equal(self) -> bool:
        """Whether all runs gave the right tensors."""
        return all(one.tensors_equal for one in self.checked)

    @property
    def bytes_equal(self) -> bool:
        """Whether all runs sent the predicted bytes between every pair."""
        return all(one.bytes_equal for one in self.checked)

    def to_mapping(self) -> dict[str, Any]:
        """What `check --json` writes."""
        return {
            "provenance": provenance(self.scenario, self.predicted),
            "scenario": self.scenario.model_dump(mode="json"),
            "machines": list(self.machines),
            "tensors_equal": self.tensors_equal,
            "bytes_equal": self.bytes_equal,
            "algorithms": [
                {
                    "algorithm": one.title,
                    "tensors_equal": one.tensors_equal,
                    "difference": one.difference,
                    "bytes_equal": one.bytes_equal,
                    "wire_bytes_predicted": one.wire_predicted.tolist(),
                    "wire_bytes_measured": one.wire_measured.tolist(),
                    "measured_s": one.measured,
                    "predicted_s": one.predicted,
                }
                for one in self.checked
            ],
            "skipped": [{"algorithm": title, "reason": reason} for title, reason in self.skipped],
        }


def check(
    scenario: Scenario,
    progress: Callable[[str], None] = lambda title: None,
    *,
    timeout: float = 30.0,
    start: Callable[..., AbstractContextManager[RankGroup]] = forked_group,
) -> CheckResult:
    """Run a scenario on real gloo ranks, on loopback unless `start` says where.

    Args:
        scenario: What to run.
        progress: Called with each algorithm's name before it starts.
        timeout: Seconds that one run may take.
        start: Makes the group of ranks, from their number and the timeout.

    Raises:
        ScenarioError: It is too large to run here.
        ExecutionUnavailable: There is no torch, or no gloo on this platform.
        ExecutionError: A rank died, hung or raised.
    """
    _check_size(scenario)
    network = build_network(scenario)
    found, skipped = plans(scenario, network)
    checked: list[Checked] = []
    predicted: list[Timeline] = []
    with start(scenario.ranks, timeout=timeout) as group:
        for plan in found:
            progress(plan.title)
            schedule = verified_schedule(scenario, plan)
            timeline = play(scenario.engine, schedule, network, scenario.nbytes)
            predicted.append(timeline)
            for how, execution in _executions(scenario, plan, schedule, group):
                title = f"{plan.title} ({how})"
                checked.append(compare(scenario, schedule, title, execution, timeline.makespan))
    return CheckResult(scenario, tuple(checked), tuple(skipped), tuple(predicted), group.machines)


def _check_size(scenario: Scenario) -> None:
    if scenario.ranks > MAX_RANKS:
        raise ScenarioError(
            f"real runs here have at most {MAX_RANKS}, got {scenario.ranks}", "ranks"
        )
    total = scenario.definition.nbytes_total(scenario.ranks, scenario.nbytes) * scenario.ranks
    if total > MAX_TOTAL_BYTES:
        raise ScenarioError(
            f"the ranks would hold {total:,} bytes together, more than {MAX_TOTAL_BYTES:,}",
            "nbytes",
        )


def _executions(
    scenario: Scenario, plan: Plan, schedule: Schedule, group: RankGroup
) -> "list[tuple[str, Execution]]":
    """Run one algorithm over isend/irecv, and gloo's own once more as torch's collective."""
    inputs = inputs_of(scenario, schedule)
    runs = [("by isend/irecv", group.execute(schedule, scenario.nbytes, inputs=inputs))]
    if plan.choice.name == "gloo":
        native = group.native(schedule, scenario.nbytes, dtype=scenario.dtype, inputs=inputs)
        runs = [("ours, by isend/irecv", runs[0][1]), ("torch's native", native)]
    return runs


def inputs_of(scenario: Scenario, schedule: Schedule) -> Buffers:
    """Each rank's memory at the start: random, or ones where it holds something, else zeros."""
    if scenario.fill == "random":
        return initial_buffers(schedule, scenario.nbytes)
    kind = _numpy_dtype(scenario.dtype) or np.dtype(np.uint8)
    offsets = schedule.offsets(scenario.nbytes)
    buffers = []
    for rank in range(schedule.n_ranks):
        held = schedule.collective.before(rank, schedule.n_ranks, schedule.root, schedule.n_chunks)
        buffer = np.zeros(offsets[-1], np.uint8)
        here = buffer[offsets[held.start] : offsets[held.stop]]
        here.view(kind)[:] = 1
        buffers.append(buffer)
    return tuple(buffers)


def _numpy_dtype(name: str) -> np.dtype | None:
    """numpy's type of this name, None for those that only torch has (bfloat16)."""
    try:
        return np.dtype(name)
    except TypeError:
        return None


def compare(
    scenario: Scenario, schedule: Schedule, title: str, execution: Execution, predicted: float
) -> Checked:
    """Hold a real run to the contract, and to the bytes that the schedule makes."""
    inputs = inputs_of(scenario, schedule)
    predict = native_wire_bytes if "native" in execution.timeline.engine else wire_bytes
    wire = predict(schedule, scenario.nbytes)
    differs = (execution.wire != wire).any((1, 2))
    difference = ""
    try:
        check_contract(schedule, scenario.nbytes, execution.buffers, inputs=inputs)
    except ContractError as error:
        difference = str(error)
    return Checked(
        title=title,
        tensors_equal=not difference,
        difference=difference,
        bytes_equal=not differs.any(),
        wire_predicted=wire,
        wire_measured=execution.wire[int(differs.argmax())],
        measured=execution.makespan,
        predicted=predicted,
        before=tuple(_spell(scenario, buffer) for buffer in inputs),
        after=tuple(_spell(scenario, buffer) for buffer in execution.buffers),
    )


def _spell(scenario: Scenario, buffer: npt.NDArray[np.uint8]) -> str:
    """The first elements of a tensor."""
    kind = _numpy_dtype(scenario.dtype)
    if kind is None or len(buffer) % kind.itemsize:
        return bytes(buffer[:SHOWN]).hex(" ") + (" …" if len(buffer) > SHOWN else "")
    values = buffer.view(kind)
    shown = ", ".join(f"{value:.4g}" for value in values[:SHOWN].tolist())
    return f"[{shown}{', …' if len(values) > SHOWN else ''}]"
