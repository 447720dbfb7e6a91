"""LogGOPSim's model of exported schedules: where it agrees with collsim, and where it cannot."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.export import goal
from collsim.network import Model, connect
from collsim.runner import run
from collsim.scenario import load_scenario
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace
from tests.loggops import LogGOPS, Stuck, end_times
from tests.test_goal import ROWS, Row, schedules

G = 1000  # picoseconds a byte: 1 GB/s


README_TREE = (
    "num_ranks 8\n"
    "rank 0 {\na: recv 1024b from 4\nb: recv 1024b from 2\nc: recv 1024b from 1\n}\n"
    "rank 1 {\na: recv 1024b from 5\nb: recv 1024b from 3\nc: send 1024b to 0\n"
    "c requires a\nc requires b\n}\n"
    "rank 2 {\na: recv 1024b from 6\nb: send 1024b to 0\nb requires a\n}\n"
    "rank 3 {\na: recv 1024b from 7\nb: send 1024b to 1\nb requires a\n}\n"
) + "".join(f"rank {rank} {{\nsend 1024b to {rank - 4}\n}}\n" for rank in range(4, 8))


def test_the_interpreter_gives_the_times_in_loggopsims_readme() -> None:
    found = end_times(README_TREE, LogGOPS(L=2500, o=1500, g=1000, G=6, S=65535))

    assert found == [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500]


def test_the_interpreter_gives_the_time_of_loggopsims_dissemination() -> None:
    lines = ["num_ranks 16"]
    for rank in range(16):
        lines.append(f"rank {rank} {{")
        for i in range(4):
            distance = 1 << i
            lines.append(f"s{i}: send 1b to {(rank + distance) % 16} tag {i}")
            lines.append(f"r{i}: recv 1b from {(rank - distance) % 16} tag {i}")
            if i:
                lines += [f"s{i} requires r{i - 1}", f"r{i} requires r{i - 1}"]
        lines.append("}")

    assert set(end_times("\n".join(lines), LogGOPS(2500, 1500, 1000, 6))) == {22000}


ONE = "num_ranks 2\nrank 0 {\nsend 11b to 1\n}\nrank 1 {\ncalc 500\nrecv 11b from 0\n}\n"
TWO = ONE.replace("send 11b to 1", "a: send 11b to 1\nb: send 1b to 1\nb requires a").replace(
    "recv 11b from 0", "recv 11b from 0\nrecv 1b from 0"
)


@pytest.mark.parametrize(
    ("text", "machine", "expected"),
    [
        (ONE.replace("calc 500\n", ""), LogGOPS(L=100, o=7, g=5, G=3), [7, 144]),
        (ONE.replace("calc 500\n", ""), LogGOPS(L=100, o=7, g=5, G=3, O=2), [27, 144]),
        (ONE.replace("calc 500\n", ""), LogGOPS(L=100, o=7, g=5, G=3, O=4), [47, 154]),
        (ONE, LogGOPS(L=100, o=7, g=5, G=3), [7, 537]),  # the CPU is taken when it arrives
        (ONE, LogGOPS(L=100, o=7, g=5, G=3, duplex=True), [7, 500]),
        (TWO, LogGOPS(L=100, o=7, g=5, G=3, S=11), [42, 544]),  # the NIC is taken for 5 + 10 · 3
        (
            TWO,
            LogGOPS(L=100, o=7, g=5, G=3, S=10),
            [507, 614],
        ),  # a rendezvous waits for its receive
    ],
)
def test_the_interpreter_on_one_and_two_messages(
    text: str, machine: LogGOPS, expected: list[int]
) -> None:
    assert end_times(text, machine) == expected


def test_the_interpreter_sees_what_never_ends() -> None:
    waits = (
        "num_ranks 2\n"
        "rank 0 {\na: send 8b to 1\nb: recv 8b from 1\na requires b\ncalc 5\n}\n"
        "rank 1 {\na: send 8b to 0\nb: recv 8b from 0\na requires b\n}\n"
    )
    with pytest.raises(Stuck, match="4 operations never ended"):
        end_times(waits, LogGOPS(1, 1, 1, 1))


# What LogGOPSim says of an exported schedule, on a star of one host a rank, `fifo`, `eager`.

TREES: list[Row] = [
    ("broadcast", "flat"),
    ("broadcast", "binomial"),
    ("broadcast", "binomial_halving"),
    ("broadcast", "postal"),
    ("broadcast", "logp_optimal"),
    ("broadcast", "two_level"),
    ("scatter", "linear"),
]
ONE_SIZE: list[Row] = [*TREES, ("all_gather", "ring")]
"""One operation in each direction a step, messages of one size: equal for every L, o, g and G."""

DOUBLING: list[Row] = [
    ("broadcast", "scatter_rd_all_gather"),
    ("all_gather", "recursive_doubling"),
    ("all_gather", "neighbour_exchange"),
]
"""The same, of several sizes: g must not count for any of them."""

AT_ONCE: list[Row] = [("broadcast", "flat_at_once"), ("broadcast", "gloo"), ("scatter", "gloo")]
"""All sends of a rank start together."""

WITHOUT_OVERHEAD: list[Row] = [
    ("broadcast", "knomial"),
    ("broadcast", "chain"),
    ("broadcast", "binary"),
    ("scatter", "binomial"),
    ("all_gather", "gather_broadcast"),
]
"""Equal as long as the CPU costs nothing."""

HELD_CPU: list[Row] = [
    ("broadcast", "split_binary"),
    ("broadcast", "scatter_ring_all_gather"),
    ("all_gather", "bruck"),
    ("all_gather", "gloo"),
]
"""LogGOPSim is later where a rank has to send while a message comes in; equal with `duplex`."""

TIES: list[Row] = [("broadcast", "two_trees"), ("broadcast", "circulant")]
"""Beside that, messages of two senders reach a rank at one instant; each picks its own order."""


def test_each_algorithm_is_compared() -> None:
    groups = [ONE_SIZE, DOUBLING, AT_ONCE, WITHOUT_OVERHEAD, HELD_CPU, TIES]

    assert Counter(row for group in groups for row in group) == Counter(ROWS)


def collsim_ps(schedule: Schedule, nbytes: int, latency: int, o: int = 0, g: int = 0) -> int:
    """The makespan; `latency` of each of a route's two links, all in picoseconds."""
    p = schedule.n_ranks
    model = Model(sharing="fifo", protocol="eager", overhead=o * 1e-12, gap=g * 1e-12)
    graph = TOPOLOGIES["star"](hosts=p, bandwidth=1e12 / G, latency=latency * 1e-12)
    return simulate(
        schedule, connect(graph, tuple(f"h{i}" for i in range(p)), model), nbytes
    ).makespan_ps


def loggops_ps(
    schedule: Schedule,
    nbytes: int,
    latency: int,
    o: int = 0,
    g: int = 0,
    *,
    at_once: bool = False,
    duplex: bool = False,
) -> int:
    """The same by LogGOPSim's model, with the parameters that `goal` documents."""
    size = max(schedule.message_bytes(nbytes).tolist(), default=1)
    apart = max(g, o, size * G) if at_once else max(g, o + size * G)  # from send to send
    machine = LogGOPS(L=2 * latency + G, o=o, g=apart - (size - 1) * G, G=G, duplex=duplex)
    return max(end_times(goal(schedule, nbytes), machine))


latencies = st.sampled_from([0, 1, 1000, 10**5, 10**6, 10**7])
overheads = st.sampled_from([0, 1, 1000, 77_777, 10**6, 10**7])


def equal_chunks(draw: st.DataObject, schedule: Schedule) -> int:
    """Bytes with which all chunks are equal."""
    return schedule.chunks_per_block * draw.draw(st.sampled_from([1, 2, 77, 1000]))


@pytest.mark.parametrize("row", ONE_SIZE, ids=" ".join)
@given(data=st.data())
def test_one_message_size_takes_the_same_in_both(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes = data.draw(st.integers(0, 3000))
    network = data.draw(latencies), data.draw(overheads), data.draw(overheads)

    assert loggops_ps(schedule, nbytes, *network) == collsim_ps(schedule, nbytes, *network)


@pytest.mark.parametrize("row", DOUBLING, ids=" ".join)
@given(data=st.data())
def test_swaps_take_the_same_in_both(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes = equal_chunks(data, schedule)
    latency, o = data.draw(latencies), data.draw(overheads)
    smallest = min(schedule.message_bytes(nbytes).tolist(), default=1)
    g = data.draw(st.integers(0, o + smallest * G))

    assert loggops_ps(schedule, nbytes, latency, o, g) == collsim_ps(
        schedule, nbytes, latency, o, g
    )


@pytest.mark.parametrize("row", AT_ONCE, ids=" ".join)
@given(data=st.data())
def test_sends_started_together_take_the_same_in_both(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes = data.draw(st.integers(0, 3000))
    network = data.draw(latencies), data.draw(overheads), data.draw(overheads)

    found = loggops_ps(schedule, nbytes, *network, at_once=True)

    assert found == collsim_ps(schedule, nbytes, *network)


@pytest.mark.parametrize("row", WITHOUT_OVERHEAD, ids=" ".join)
@given(data=st.data())
def test_without_overhead_equal_chunks_take_the_same_in_both(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes, latency = equal_chunks(data, schedule), data.draw(latencies)

    assert loggops_ps(schedule, nbytes, latency) == collsim_ps(schedule, nbytes, latency)


MAY_OVERTAKE = {("broadcast", "scatter_rd_all_gather")}  # where blocks are a few bytes


@pytest.mark.parametrize("row", [row for row in ROWS if row not in TIES], ids=" ".join)
@given(data=st.data())
def test_where_receiving_holds_no_cpu_all_take_the_same(row: Row, data: st.DataObject) -> None:
    schedule = data.draw(schedules(row))
    nbytes = data.draw(st.integers(0, 3000))
    if row in MAY_OVERTAKE:
        nbytes = schedule.n_chunks * (nbytes // schedule.n_chunks)
    latency = data.draw(latencies)

    found = loggops_ps(schedule, nbytes, latency, duplex=True)

    assert found == collsim_ps(schedule, nbytes, latency)


@pytest.mark.parametrize(
    ("row", "p", "segments", "nbytes", "latency", "o", "collsim", "loggopsim"),
    [
        # A rank sends while a message comes in: its CPU is held.
        (("broadcast", "split_binary"), 5, 3, 400, 0, 0, 700_000, 800_000),
        (("broadcast", "scatter_ring_all_gather"), 3, 1, 300, 10_000, 0, 460_000, 480_000),
        (("all_gather", "bruck"), 4, 1, 100, 10_000, 0, 340_000, 460_000),
        (("all_gather", "gloo"), 2, 1, 200, 10_000, 0, 220_000, 240_000),
        (("broadcast", "two_trees"), 4, 1, 200, 10_000, 0, 440_000, 460_000),
        # The same with a receive's overhead in the middle of a pipeline.
        (("broadcast", "chain"), 3, 2, 200, 5000, 20_000, 420_000, 439_000),
        # Both kinds of step in one program: g cannot be right for both.
        (("broadcast", "binary"), 3, 1, 100, 5000, 20_000, 250_000, 270_000),
        (("broadcast", "knomial"), 3, 1, 100, 5000, 20_000, 250_000, 270_000),
        # A receive's overhead: when the message has come, or when its step takes it.
        (("all_gather", "gather_broadcast"), 3, 1, 100, 5000, 20_000, 920_000, 940_000),
        # Messages of two senders at one instant.
        (("broadcast", "circulant"), 3, 3, 300, 100_000, 0, 900_000, 1_000_000),
    ],
)
def test_what_differs_does_so(
    row: Row, p: int, segments: int, nbytes: int, latency: int, o: int, collsim: int, loggopsim: int
) -> None:
    collective = COLLECTIVES[row[0]]
    schedule = trace(collective, collective.algorithms[row[1]], p, segments=segments)

    assert collsim_ps(schedule, nbytes, latency, o) == collsim
    assert loggops_ps(schedule, nbytes, latency, o) == loggopsim


def test_the_command_line_in_the_readme_is_right() -> None:
    root = Path(__file__).parent.parent
    said = re.search(
        r"LogGOPSim -f \S+ -L (\d+) -o (\d+) -g (\d+) -G (\d+)", (root / "README.md").read_text()
    )
    assert said is not None
    scenario = load_scenario(root / "scenarios/one-switch.yaml")
    network = scenario.network.model_copy(update={"sharing": "fifo", "protocol": "eager"})
    eager = scenario.model_copy(update={"network": network})

    runs = {one.plan.title: one for one in run(eager).runs}

    for name in ("binomial", "flat", "gloo"):
        text = goal(runs[name].schedule, scenario.nbytes)
        latency, overhead, gap, per_byte = map(int, said.groups())
        found = max(end_times(text, LogGOPS(latency, overhead, gap, per_byte)))
        assert found == runs[name].timeline.makespan_ps


@pytest.mark.skipif(
    not (shutil.which("txt2bin") and shutil.which("LogGOPSim")),
    reason="LogGOPSim and its txt2bin are not on PATH",
)
@pytest.mark.parametrize("row", ONE_SIZE, ids=" ".join)
@pytest.mark.parametrize("p", [5, 20])
def test_loggopsim_itself_says_the_same(row: Row, p: int, tmp_path: Path) -> None:
    collective, latency = COLLECTIVES[row[0]], 5_000_000
    schedule = trace(collective, collective.algorithms[row[1]], p)
    text, binary = tmp_path / "x.goal", tmp_path / "x.bin"
    text.write_text(goal(schedule, 1000))
    subprocess.run(["txt2bin", "-i", text, "-o", binary], check=True, timeout=60)
    options = ["-L", 2 * latency + G, "-o", 0, "-g", G, "-G", G, "-S", 1 << 30]

    said = subprocess.run(
        ["LogGOPSim", "-f", binary, *map(str, options)],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip

    ends = re.findall(r"^(?:Host \d+|Maximum finishing time at host \d+): (\d+)", said, re.M)
    assert max(map(int, ends)) == collsim_ps(schedule, 1000, latency)
