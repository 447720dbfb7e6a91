"""Runs as the player reads them: flat columns of integers, differences of neighbours, in JSON."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collsim.critical_path import critical_path
from collsim.errors import ScenarioError
from collsim.network import PICOSECONDS, Network
from collsim.player.source import function_lines
from collsim.plots import positions
from collsim.runner import Result, Run
from collsim.units import spell_bandwidth, spell_size, spell_time

MOST_MESSAGES: Final = 100_000
"""Messages that one animation holds; more would be a picture of nothing."""

_NUMBER: Final = re.compile(r"\d+")

TICKS: Final = 2_000_000
"""Into how many ticks the longest run is divided, at most about twice as many."""


def payload(result: Result, runs: Sequence[Run] | None = None) -> str:
    """Runs of one scenario for the player, to be shown on one clock.

    Times count ticks of `tick` picoseconds. Columns hold differences of neighbours: short numbers.

    Args:
        result: The scenario's result.
        runs: Which of its runs; all if not given.

    Raises:
        ScenarioError: They have more messages than one animation can hold.
    """
    chosen = result.runs if runs is None else runs
    count = sum(len(run.schedule) for run in chosen)
    if count > MOST_MESSAGES:
        raise ScenarioError(
            f"{count:,} messages are too many to animate, the most is {MOST_MESSAGES:,}; "
            "use larger segments, fewer ranks or one algorithm",
            "algorithm",
        )
    scenario = result.scenario
    longest = max(run.timeline.makespan_ps for run in chosen)
    tick = max(1, longest // TICKS)
    shared = {
        "tick": tick,
        "id": f"{scenario.digest} {' '.join(run.plan.title for run in chosen)}",
        "question": scenario.question,
        "about": (
            f"{scenario.collective} of {spell_size(scenario.nbytes)}, {scenario.ranks} ranks, "
            f"{result.network.graph.graph.get('name', 'topology')}"
        ),
        "bound": round(result.bound.seconds * 1e12) // tick,
        "boundReason": result.bound.reason,
        "provenance": ", ".join(f"{key} {value}" for key, value in result.provenance.items()),
        **_places(result.network, tick),
        "runs": [_run(run, tick) for run in chosen],
    }
    return json.dumps(shared, ensure_ascii=False, separators=(",", ":"))


def _places(network: Network, tick: int) -> dict[str, Any]:
    """Nodes with their positions, and links between them."""
    where = positions(network)
    ranks = {network.placement[group[0]]: list(group) for group in network.groups}
    names = list(where)
    index = {name: i for i, name in enumerate(names)}
    xs = np.array([where[name] for name in names], np.float64)
    spread = np.ptp(xs, axis=0)
    unit = (xs - xs.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    unit[:, spread == 0] = 0.5
    links: list[list[int]] = [[-1, -1] for _ in network.links.names]
    for (u, v), link in network.links.index.items():
        links[link] = [index[u], index[v]]
    for host, link in network.links.memory.items():
        links[link] = [index[host], index[host]]
    return {
        "nodes": [
            [name, int(network.graph.nodes[name]["kind"] == "host"), *np.round(place, 4).tolist(),
             ranks.get(name, [])]
            for name, place in zip(names, unit, strict=True)
        ],
        "aspect": float(np.clip(spread[0] / spread[1], 0.4, 2.5)) if spread.all() else 1.0,
        "links": links,
        "linkNames": list(network.links.names),
        "linkLatency": np.round(network.links.latency * PICOSECONDS / tick).tolist(),
        "linkRates": [spell_bandwidth(float(rate)) for rate in network.links.bandwidth],
    }  # fmt: skip


def _run(run: Run, tick: int) -> dict[str, Any]:
    schedule, timeline = run.schedule, run.timeline
    steps = schedule.steps
    hops = timeline.hops
    assert hops is not None, "simulated runs know their hops"
    held = [
        schedule.collective.before(rank, schedule.n_ranks, schedule.root, schedule.n_chunks)
        for rank in range(schedule.n_ranks)
    ]
    return {
        "name": run.plan.title,
        "makespan": int(_ticks(np.array(timeline.makespan_ps), tick)),
        "spelled": spell_time(timeline.makespan),
        "ranks": schedule.n_ranks,
        "chunks": schedule.n_chunks,
        "held": [[chunks.start, chunks.stop] for chunks in held],
        "finish": _ticks(timeline.finish_ps, tick).tolist(),
        "path": [leg.transfer for leg in critical_path(timeline)],
        "busy": (timeline.link_busy_ps / max(1, timeline.makespan_ps)).round(4).tolist(),
        "src": _deltas(schedule.src),
        "dst": _deltas(schedule.dst),
        "first": _deltas(schedule.first_chunk),
        "count": _deltas(schedule.chunk_count),
        "bytes": _deltas(schedule.message_bytes(timeline.nbytes)),
        **{
            name: _deltas(_ticks(getattr(timeline, name), tick))
            for name in ("released", "started", "left", "arrived", "done")
        },
        "hopFirst": _deltas(hops.first),
        "hopLink": _deltas(hops.link),
        "hopStart": _deltas(_ticks(hops.start, tick)),
        "hopEnd": _deltas(_ticks(hops.end, tick)),
        "srcStep": _deltas(schedule.src_step),
        **_labels(steps.label),
        "stepRank": _deltas(steps.rank),
        "stepChannel": _deltas(steps.channel),
        "stepBegin": _deltas(_ticks(timeline.step_begin, tick)),
        "stepEnd": _deltas(_ticks(timeline.step_end, tick)),
        "stepLine": _deltas(steps.line),
        "stepSource": _deltas(steps.source),
        "sources": [
            function_lines(source, int(steps.line[np.argmax(steps.source == i)]))
            for i, source in enumerate(steps.sources)
        ],
    }


def _labels(labels: Sequence[str]) -> dict[str, Any]:
    """Labels as texts with gaps, and the numbers that fill them: most differ in numbers only."""
    texts: dict[str, int] = {}
    which: list[int] = []
    numbers: list[int] = []
    for label in labels:
        which.append(texts.setdefault(_NUMBER.sub("#", label.replace("#", "№")), len(texts)))
        numbers.extend(int(digits) for digits in _NUMBER.findall(label))
    return {
        "labels": list(texts),
        "stepLabel": _deltas(np.array(which, np.int64)),
        "labelNumbers": _deltas(np.array(numbers, np.int64)),
    }


def _ticks(column: npt.NDArray[np.int64], tick: int) -> npt.NDArray[np.int64]:
    """Times in ticks: finer than any screen shows, and shorter to write than picoseconds."""
    return np.asarray((column + tick // 2) // tick, np.int64)


def _deltas(column: npt.NDArray[np.int64]) -> list[int]:
    """The first value, then differences."""
    deltas: list[int] = np.diff(column, prepend=0).tolist()
    return deltas
