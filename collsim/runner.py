"""Run a scenario: trace each algorithm, verify it, simulate it, and hold it to its bound."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from collsim.cluster import build_network
from collsim.cost.bounds import Bound, lower_bound
from collsim.cost.exact import exact_ps
from collsim.cost.ideal import Ideal
from collsim.cost.textbook import textbook_seconds
from collsim.critical_path import spell_path
from collsim.engines import play
from collsim.network import Model, Network, picoseconds
from collsim.planning import Plan, plans, verified_schedule
from collsim.scenario import Scenario
from collsim.schedule import Schedule
from collsim.timeline import Timeline

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """One algorithm's result.

    Attributes:
        plan: What was run.
        schedule: Its messages.
        timeline: When they moved, predicted.
        textbook: The textbook's one-port time (s) for this network's α and β, None if it has none.
        exact: The closed form of the simulated model (s), None where there is none: the network
            must be an ideal star.
    """

    plan: Plan
    schedule: Schedule
    timeline: Timeline
    textbook: float | None
    exact: float | None


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
        return provenance(self.scenario, [run.timeline for run in self.runs])

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


def provenance(scenario: Scenario, timelines: Iterable[Timeline]) -> dict[str, str]:
    """What makes a scenario's numbers: version, scenario, model, protocol, engine."""
    return {
        "collsim": version("collsim"),
        "scenario": scenario.digest,
        "model": scenario.network.sharing,
        "protocol": scenario.network.protocol,
        "engine": " and ".join(sorted({timeline.engine for timeline in timelines})),
    }


def _row(run: Run, bound: Bound) -> dict[str, Any]:
    timeline = run.timeline
    return {
        "algorithm": run.plan.title,
        "makespan_s": timeline.makespan,
        "lower_bound_s": bound.seconds,
        "over_bound": timeline.makespan / bound.seconds if bound.seconds else None,
        "exact_s": run.exact,
        "textbook_s": run.textbook,
        "root_return_s": timeline.root_return,
        "rounds": run.schedule.n_rounds,
        "messages": len(run.schedule),
        "payload_bytes": int(run.schedule.message_bytes(timeline.nbytes).sum()),
        "segments": run.schedule.chunks_per_block,
        "algbw_Bps": timeline.algbw if timeline.makespan_ps else None,
        "busbw_Bps": timeline.busbw if timeline.makespan_ps else None,
        "bottleneck": timeline.bottleneck,
        "bottleneck_use": next(iter(timeline.link_use.values()), None),
        "critical_path": spell_path(timeline),
        "finish_s": timeline.finish.tolist(),
        "verified": True,
        "note": run.plan.note,
    }


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
        timeline = play(scenario.engine, schedule, network, scenario.nbytes)
        textbook = textbook_seconds(
            scenario.collective, plan.choice.name, scenario.ranks, scenario.nbytes, plan.segments,
            loggp, plan.parameters,
        )  # fmt: skip
        exact = _exact_seconds(scenario, plan, network)
        runs.append(Run(plan, schedule, timeline, textbook, exact))
    return Result(scenario, network, bound, tuple(runs), tuple(skipped))


def _exact_seconds(scenario: Scenario, plan: Plan, network: Network) -> float | None:
    """The exact form's makespan (s), if the network is one that it holds for."""
    ideal = _ideal(network)
    if ideal is None or plan.choice.is_file or scenario.acks:
        return None
    chunks = plan.algorithm.chunks(scenario.ranks, plan.segments)
    found = exact_ps(
        scenario.collective, plan.choice.name, scenario.ranks, scenario.nbytes, chunks, ideal,
        scenario.root, plan.parameters,
    )  # fmt: skip
    return None if found is None else found / 1e12


def _ideal(network: Network) -> Ideal | None:
    """The network as an ideal star: equal links, one rank a host, fifo, nothing else; else None."""
    model = network.model
    plain = Model(sharing="fifo", protocol=model.protocol, routing=model.routing, seed=model.seed)
    links = {
        (about["bandwidth"], about["latency"], about.get("duplex", "full"))
        for _, _, about in network.graph.edges(data=True)
    }
    is_star = network.graph.graph.get("kind") == "star" and len(links) == 1
    if model != plain or not is_star or len(network.groups) != network.n_ranks:
        return None
    ((bandwidth, latency, duplex),) = links
    if duplex != "full":
        return None
    return Ideal(2 * picoseconds(latency), bandwidth, model.protocol)
