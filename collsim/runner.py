"""Run a scenario: trace each algorithm, verify it, simulate it, and hold it to its bound."""

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from math import ceil
from typing import TYPE_CHECKING, Any

from collsim.cluster import build_network
from collsim.cost.bounds import Bound, lower_bound
from collsim.cost.segments import best_segment
from collsim.cost.textbook import textbook_seconds
from collsim.critical_path import spell_path
from collsim.errors import CollsimError, ScenarioError, ScheduleError
from collsim.network import Network
from collsim.program import Algorithm, Setting, segmented
from collsim.scenario import AlgorithmChoice, Scenario
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.timeline import Timeline
from collsim.tracing import trace
from collsim.units import spell_size
from collsim.verification import verify

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Plan:
    """One algorithm of a scenario, with all that tracing it needs.

    Attributes:
        choice: As the scenario names it.
        algorithm: Its row.
        segments: Into how many pieces a block is cut.
        parameters: The program's own parameters.
        note: What the reader should know about how it was set up, "" if nothing.
    """

    choice: AlgorithmChoice
    algorithm: Algorithm
    segments: int
    parameters: dict[str, Any]
    note: str = ""

    @property
    def title(self) -> str:
        """Name and given parameters, as tables show them."""
        given = ", ".join(f"{key}={value}" for key, value in self.choice.parameters.items())
        return f"{self.choice.name} ({given})" if given else self.choice.name


@dataclass(frozen=True)
class Run:
    """One algorithm's result.

    Attributes:
        plan: What was run.
        schedule: Its messages.
        timeline: When they moved, predicted.
        textbook: The textbook's one-port time (s) for this network's α and β, None if it has none.
    """

    plan: Plan
    schedule: Schedule
    timeline: Timeline
    textbook: float | None


@dataclass(frozen=True)
class Result:
    """A scenario's result.

    Attributes:
        scenario: What was asked.
        network: What it ran on.
        bound: What no algorithm can beat.
        runs: One for each algorithm, in the scenario's order.
        skipped: Algorithms that `algorithm: all` left out, with the reason.
    """

    scenario: Scenario
    network: Network
    bound: Bound
    runs: tuple[Run, ...]
    skipped: tuple[tuple[str, str], ...] = field(default=())

    @property
    def provenance(self) -> dict[str, str]:
        """What made these numbers."""
        return provenance(self.scenario)

    @property
    def best(self) -> Run:
        """The run with the least makespan, the first of them."""
        return min(self.runs, key=lambda run: run.timeline.makespan_ps)

    def rows(self) -> list[dict[str, Any]]:
        """One mapping for each algorithm: the numbers that tables and JSON show."""
        return [_row(run, self.bound) for run in self.runs]

    def to_frame(self) -> "pd.DataFrame":
        """One row for each algorithm, times in seconds."""
        import pandas as pd  # late: half a second

        return pd.DataFrame(self.rows())


def provenance(scenario: Scenario) -> dict[str, str]:
    """What makes a scenario's numbers: version, scenario, model, protocol."""
    options = scenario.network
    return {
        "collsim": version("collsim"),
        "scenario": scenario.digest,
        "model": f"{options.sharing}, engine simpy",
        "protocol": options.protocol,
    }


def _row(run: Run, bound: Bound) -> dict[str, Any]:
    timeline = run.timeline
    return {
        "algorithm": run.plan.title,
        "makespan_s": timeline.makespan,
        "lower_bound_s": bound.seconds,
        "over_bound": timeline.makespan / bound.seconds if bound.seconds else None,
        "textbook_s": run.textbook,
        "root_return_s": timeline.root_return,
        "rounds": run.schedule.n_rounds,
        "messages": len(run.schedule),
        "payload_bytes": int(run.schedule.message_bytes(timeline.nbytes).sum()),
        "segments": run.schedule.n_chunks // _blocks(run.schedule),
        "algbw_Bps": timeline.algbw if timeline.makespan_ps else None,
        "busbw_Bps": timeline.busbw if timeline.makespan_ps else None,
        "bottleneck": timeline.bottleneck,
        "bottleneck_use": next(iter(timeline.link_use.values()), None),
        "critical_path": spell_path(timeline),
        "finish_s": timeline.finish.tolist(),
        "verified": True,
        "note": run.plan.note,
    }


def _blocks(schedule: Schedule) -> int:
    return schedule.collective.blocks(schedule.n_ranks)


def run(scenario: Scenario, progress: Callable[[str], None] = lambda title: None) -> Result:
    """Run every algorithm of a scenario: trace, verify, simulate.

    Args:
        scenario: What to run.
        progress: Called with each algorithm's name before it starts.

    Raises:
        CollsimError: The scenario cannot be run, or an algorithm is wrong. With ``algorithm: all``
            those that are not made for this number of ranks are left out instead.
    """
    network = build_network(scenario)
    found, skipped = plans(scenario, network)
    bound = lower_bound(scenario.definition, network, scenario.nbytes, scenario.root)
    loggp = network.loggp(scenario.root)
    runs = []
    for plan in found:
        progress(plan.title)
        schedule = verified_schedule(scenario, plan)
        timeline = simulate(schedule, network, scenario.nbytes)
        textbook = textbook_seconds(
            scenario.collective, plan.choice.name, scenario.ranks, scenario.nbytes, plan.segments,
            loggp, plan.parameters,
        )  # fmt: skip
        runs.append(Run(plan, schedule, timeline, textbook))
    return Result(scenario, network, bound, tuple(runs), tuple(skipped))


def plans(scenario: Scenario, network: Network) -> tuple[list[Plan], list[tuple[str, str]]]:
    """The algorithms of a scenario that can run, and those that cannot with the reason.

    Raises:
        ScenarioError: One that the scenario names itself cannot run, or none can.
    """
    found, skipped = [], []
    for choice in scenario.choices:
        plan = make_plan(scenario, choice, network)
        reason = _unfit(scenario, plan)
        if not reason:
            found.append(plan)
        elif scenario.algorithm == "all":
            skipped.append((plan.title, reason))
        else:
            raise ScenarioError(f"{plan.title} {reason}", "algorithm")
    if not found:
        reasons = "; ".join(f"{title} {reason}" for title, reason in skipped)
        raise ScenarioError(f"none can run: {reasons}", "algorithm")
    return found, skipped


def verified_schedule(scenario: Scenario, plan: Plan) -> Schedule:
    """Trace one algorithm and verify it.

    Raises:
        CollsimError: The program makes a mistake, or does not do what the collective promises.
    """
    schedule = trace_plan(scenario, plan)
    verify(schedule, nbytes=_verified_bytes(schedule), orders=_orders(schedule))
    return schedule


def _orders(schedule: Schedule) -> int:
    """Random orders to verify: fewer for large schedules, so that it stays a part of the run."""
    return 3 if len(schedule) <= 20_000 else 1


def _verified_bytes(schedule: Schedule) -> int:
    """Bytes of the argument for `verify`: eight a chunk, or one where that would be too many."""
    per_chunk = 8 if schedule.n_chunks * schedule.n_ranks <= 1 << 24 else 1
    return per_chunk * (schedule.n_chunks // _blocks(schedule))


def _unfit(scenario: Scenario, plan: Plan) -> str:
    """Why an algorithm cannot run here, "" if it can."""
    rule = plan.algorithm.ranks
    if not rule.allows(scenario.ranks):
        return f"needs {rule.text}, got {scenario.ranks}"
    if plan.algorithm.messages is not None:
        chunks = plan.algorithm.chunks(scenario.ranks, plan.segments)
        count = plan.algorithm.messages(scenario.ranks, chunks)
        if count > scenario.max_messages:
            return (
                f"would send {count:,} messages, more than {scenario.max_messages:,}; larger "
                "segments or fewer ranks send fewer, max_messages raises the limit"
            )
    return ""


def make_plan(scenario: Scenario, choice: AlgorithmChoice, network: Network) -> Plan:
    """Settle segments and parameters of one algorithm.

    Raises:
        ScenarioError: A program's file cannot be read.
    """
    algorithm = (
        _load_program(scenario, choice.name)
        if choice.is_file
        else scenario.definition.algorithms[choice.name]
    )
    loggp = network.loggp(scenario.root)
    segments, note = 1, ""
    if algorithm.is_segmented and scenario.segment == "best" and not choice.is_file:
        segment = best_segment(
            scenario.collective, choice.name, scenario.ranks, scenario.nbytes, loggp,
            scenario.network.protocol,
        )  # fmt: skip
        segments = max(1, ceil(scenario.nbytes / segment))
        note = f"segments of {spell_size(segment)}, the best on an ideal network of this α and β"
    elif algorithm.is_segmented and isinstance(scenario.segment, int):
        segments = max(1, ceil(scenario.nbytes / scenario.segment))
    elif isinstance(scenario.segment, int):
        note = "not segmented: sends each block whole"
    parameters: dict[str, Any] = {}
    if algorithm.prepare is not None:
        setting = Setting(scenario.ranks, scenario.root, network.groups, loggp, scenario.nbytes)
        parameters.update(algorithm.prepare(setting))
    parameters.update(choice.parameters)
    return Plan(choice, algorithm, segments, parameters, note)


def trace_plan(scenario: Scenario, plan: Plan) -> Schedule:
    """The schedule of one algorithm.

    Raises:
        ScheduleError: The program makes a mistake.
        ScenarioError: A parameter is wrong.
    """
    try:
        return trace(
            scenario.definition,
            plan.algorithm,
            scenario.ranks,
            root=scenario.root,
            segments=plan.segments,
            max_messages=scenario.max_messages,
            **plan.parameters,
        )
    except ScheduleError as error:
        cause = error.__cause__
        if plan.choice.parameters and isinstance(cause, TypeError | ValueError):
            raise ScenarioError(str(cause), f"algorithm.{plan.choice.name}") from None
        raise


def _load_program(scenario: Scenario, name: str) -> Algorithm:
    """A program, or a row, from a user's own file, "my_tree.py:my_tree"."""
    file, _, function = name.rpartition(":")
    path = scenario.folder / file
    if not path.is_file():
        raise ScenarioError(f"{path} is not a file", "algorithm")
    if not re.fullmatch(r"[A-Za-z_]\w*", function):
        raise ScenarioError(f"expected FILE.py:FUNCTION, got {name!r}", "algorithm")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{path} is not a Python file", "algorithm")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except CollsimError:
        raise
    except Exception as error:
        raise ScenarioError(f"{path} cannot be imported: {error!r}", "algorithm") from error
    found = getattr(module, function, None)
    if isinstance(found, Algorithm):
        return found
    if callable(found):
        return Algorithm(found, chunks=segmented)
    raise ScenarioError(f"{path} has no function {function!r}", "algorithm")
