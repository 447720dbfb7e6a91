"""How a scenario's algorithms are set up: programs found, segments and parameters settled."""

import importlib.util
import re
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from collsim.cost.segments import best_segment
from collsim.errors import CollsimError, ScenarioError, ScheduleError
from collsim.network import Network
from collsim.ordering import with_acks
from collsim.program import Algorithm, Setting, segmented
from collsim.scenario import AlgorithmChoice, Scenario
from collsim.schedule import Schedule
from collsim.tracing import trace
from collsim.units import spell_size
from collsim.verification import verify


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
    """Trace one algorithm, with acknowledgements if the scenario wants them, and verify it.

    Raises:
        CollsimError: The program makes a mistake, or does not do what the collective promises.
    """
    schedule = trace_plan(scenario, plan)
    if scenario.acks:
        schedule = with_acks(schedule)
    verify(schedule, nbytes=_verified_bytes(schedule), orders=_orders(schedule))
    return schedule


def _orders(schedule: Schedule) -> int:
    """Random orders to verify: fewer for large schedules, so that it stays a part of the run."""
    return 3 if len(schedule) <= 20_000 else 1


def _verified_bytes(schedule: Schedule) -> int:
    """Bytes of the argument for `verify`: eight a chunk, or one where that would be too many."""
    per_chunk = 8 if schedule.n_chunks * schedule.n_ranks <= 1 << 24 else 1
    return per_chunk * schedule.chunks_per_block


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
        load_program(scenario.folder, choice.name)
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
        note = "not segmented, each block is sent whole"
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


def load_program(folder: Path, name: str) -> Algorithm:
    """A program, or a row, from a user's own file, "my_tree.py:my_tree".

    Raises:
        ScenarioError: There is no such file or function.
    """
    file, _, function = name.rpartition(":")
    path = folder / file
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
