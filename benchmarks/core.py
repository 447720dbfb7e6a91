"""How fast the core is here: `python benchmarks/core.py` prints one table.

Each figure is the median of three runs, in a process of its own where memory or start-up counts.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from collsim.collectives import COLLECTIVES
from collsim.network import Model, connect
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

BROADCAST = COLLECTIVES["broadcast"]
REPEATS = 3

MILLION = """
import resource
from collsim.collectives import COLLECTIVES
from collsim.tracing import trace
broadcast = COLLECTIVES["broadcast"]
schedule = trace(broadcast, broadcast.algorithms["chain"], 1001, segments=1000)
assert len(schedule) == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def median_seconds(work: Callable[[], object]) -> float:
    """Median wall time of `work`."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_process(*arguments: str) -> str:
    """Run Python with `arguments`; its output."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def chain(n_ranks: int, segments: int) -> Schedule:
    """A pipelined chain."""
    return trace(BROADCAST, BROADCAST.algorithms["chain"], n_ranks, segments=segments)


def messages_per_second(schedule: Schedule, sharing: str) -> float:
    """How many messages the SimPy model plays in a second, on a star."""
    graph = TOPOLOGIES["star"](hosts=schedule.n_ranks)
    hosts = tuple(f"h{rank}" for rank in range(schedule.n_ranks))
    network = connect(graph, hosts, Model(sharing=sharing))  # type: ignore[arg-type]
    simulate(schedule, network, 1 << 20)  # routes are found once
    return len(schedule) / median_seconds(lambda: simulate(schedule, network, 1 << 20))


def gloo_seconds() -> float | None:
    """Seconds to check one broadcast on eight real ranks once torch is imported; None without."""
    from collsim.errors import ExecutionUnavailable
    from collsim.gloo import GlooServer

    schedule = trace(BROADCAST, BROADCAST.algorithms["binomial"], 8)
    try:
        with GlooServer() as server:

            def check() -> None:
                with server.group(8) as group:
                    group.execute(schedule, 1024)

            check()
            return median_seconds(check)
    except ExecutionUnavailable:
        return None


def main() -> None:
    """Measure everything and print it."""
    scenario = str(Path(__file__).parent.parent / "scenarios" / "one-switch.yaml")
    table = Table("what", "here", "aim", title="collsim's core")
    schedule = chain(64, 512)
    rate = len(schedule) / median_seconds(lambda: chain(64, 512))
    table.add_row("trace, with labels and checks", f"{rate:,.0f} transfers/s", "≥ 100,000")
    memory = float(in_process("-c", MILLION))
    table.add_row("peak memory of a trace of 1,000,000", f"{memory:,.0f} MiB", "< 1024")
    for sharing, aim in (("fifo", "≥ 25,000"), ("fair", "reported")):
        rate = messages_per_second(schedule, sharing)
        table.add_row(f"simulate, {sharing}, on a star", f"{rate:,.0f} messages/s", aim)
    seconds = gloo_seconds()
    spelled = "no torch here" if seconds is None else f"{seconds:.2f} s"
    table.add_row("check on 8 gloo ranks, torch imported", spelled, "< 1 s")
    cold = median_seconds(lambda: in_process("-m", "collsim", "--help"))
    table.add_row("collsim --help, cold", f"{cold:.2f} s", "< 0.5 s")
    cold = median_seconds(lambda: in_process("-m", "collsim", "run", scenario))
    table.add_row("collsim run of a small scenario, cold", f"{cold:.2f} s", "< 1.5 s")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
