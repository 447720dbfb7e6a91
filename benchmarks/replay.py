"""The compiled replay beside the SimPy model: `python benchmarks/replay.py` prints one table.

Medians of three runs, engines in turn, in one process; compiling is not counted.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from collsim.collectives import COLLECTIVES
from collsim.network import Model, Network, connect
from collsim.replay import replay
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

REPEATS = 3
MOST_FOR_SIMPY = 300_000


def seconds(engine: Callable[..., Any], schedule: Schedule, network: Network) -> float:
    """Wall time of one run of 64 KiB."""
    start = time.perf_counter()
    engine(schedule, network, 64_000)
    return time.perf_counter() - start


def case(
    collective: str,
    name: str,
    p: int,
    kind: str,
    sharing: str,
    segments: int = 1,
    **parameters: int,
) -> tuple[str, Schedule, Network]:
    """A schedule on a network, with its title."""
    table = COLLECTIVES[collective]
    schedule = trace(table, table.algorithms[name], p, segments=segments, max_messages=2_000_000)
    graph = TOPOLOGIES[kind](**parameters)
    hosts = tuple(node for node, about in graph.nodes(data=True) if about["kind"] == "host")
    network = connect(graph, hosts[:p], Model(sharing=sharing))  # type: ignore[arg-type]
    return f"{name}, {p} ranks, {kind}, {sharing}", schedule, network


def cases() -> list[tuple[str, Schedule, Network]]:
    """The workloads."""
    broadcast, gather = "broadcast", "all_gather"
    spine = {"leaves": 8, "spines": 2, "hosts_per_leaf": 8, "oversubscription": 4}
    return [
        case(broadcast, "binomial", 1024, "star", "fifo", hosts=1024),
        case(broadcast, "chain", 1024, "star", "fifo", 64, hosts=1024),
        case(gather, "ring", 512, "star", "fifo", hosts=512),
        case(gather, "ring", 512, "star", "fair", hosts=512),
        case(broadcast, "scatter_ring_all_gather", 128, "fat_tree", "fifo", k=8),
        case(broadcast, "chain", 64, "leaf_spine", "fair", 64, **spine),
        case(gather, "ring", 1024, "star", "fifo", hosts=1024),
    ]


def main() -> None:
    """Measure everything and print it."""
    table = Table("workload", "messages", "× SimPy", "replay", "messages/s", "SimPy")
    for title, schedule, network in cases():
        replay(schedule, network, 64_000)  # compiled and routed once
        fast, slow = [], []
        for _ in range(REPEATS):
            fast.append(seconds(replay, schedule, network))
            if len(schedule) <= MOST_FOR_SIMPY:
                slow.append(seconds(simulate, schedule, network))
        quick = statistics.median(fast)
        ratio = f"{statistics.median(slow) / quick:.0f}" if slow else "–"
        row = (f"{quick * 1e3:,.1f} ms", f"{len(schedule) / quick:,.0f}")
        taken = f"{statistics.median(slow) * 1e3:,.0f} ms" if slow else "–"
        table.add_row(title, f"{len(schedule):,}", ratio, *row, taken)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
