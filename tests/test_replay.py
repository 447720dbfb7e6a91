"""The replay against the SimPy model: every time of every message, step and hop is equal."""

import random
import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collsim.network
import collsim.replay
from collsim import compiling
from collsim.collectives import COLLECTIVES
from collsim.collectives.contracts import everything, one_block
from collsim.compiling import linked
from collsim.errors import ScheduleError, SimulationStalled
from collsim.network import Model, Network, connect
from collsim.program import Algorithm, Collective, Rank, Recv, Send, Step
from collsim.replay import clock, compiled_loop, filling, replay, world
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.timeline import Timeline
from collsim.topology import TOPOLOGIES, override
from collsim.tracing import trace

ANYTHING = Collective("anything", everything, everything, one_block, rooted=False)
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
TOPOLOGY_CASES: list[tuple[str, dict]] = [
    ("star", {"hosts": 4}),
    ("ring", {"hosts": 5}),
    ("ring", {"hosts": 5, "directions": 1}),
    ("torus", {"dims": (2, 3)}),
    ("leaf_spine", {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "oversubscription": 3}),
    ("dragonfly", {"p": 1, "a": 2, "h": 1}),
    ("multi_gpu", {"nodes": 2, "gpus_per_node": 2}),
    ("two_sites", {"hosts_per_site": 2}),
]


def difference(one: Timeline, other: Timeline) -> str:
    """The first column in which two timelines differ, "" if none."""
    for name in ("released", "started", "left", "arrived", "done", "step_begin", "step_end"):
        if (getattr(one, name) != getattr(other, name)).any():
            return name
    assert one.hops is not None
    assert other.hops is not None
    for name in ("first", "link", "start", "end", "service_ps", "latency_ps"):
        if (getattr(one.hops, name) != getattr(other.hops, name)).any():
            return f"hops.{name}"
    return ""


def random_schedule(rng: random.Random, p: int, n_channels: int) -> Schedule | None:
    """Random messages, put into random steps at both ends; None if that deadlocks."""
    chunks = 4
    steps: dict[tuple[int, int], list[list[Send | Recv]]] = {}
    for _ in range(rng.randrange(1, 25)):
        src, dst = rng.sample(range(p), 2)
        channel = rng.randrange(n_channels)
        first = rng.randrange(chunks)
        moved = range(first, rng.randrange(first, chunks + 1))
        for rank, operation in ((src, Send(dst, moved)), (dst, Recv(src, range(0)))):
            own = steps.setdefault((rank, channel), [])
            wanted = operation if isinstance(operation, Send) else Recv(src, moved)
            joins = own and isinstance(wanted, Send) == isinstance(own[-1][0], Send)
            last = own[-1] if own else []
            torn = isinstance(wanted, Recv) and any(overlaps(wanted, other) for other in last)
            if joins and not torn and rng.random() < 0.5:
                own[-1].append(wanted)
                continue
            own.append([wanted])

    def program(me: Rank) -> Iterator[Step]:
        for step in steps.get((me.rank, me.channel), []):
            yield tuple(step)

    try:
        return trace(
            ANYTHING, Algorithm(program, channels=n_channels, chunks=lambda p, s: chunks), p
        )
    except ScheduleError:
        return None


def overlaps(one: Recv, other: Send | Recv) -> bool:
    assert isinstance(one.chunks, range)
    assert isinstance(other.chunks, range)
    return bool(set(one.chunks) & set(other.chunks))


def random_network(rng: random.Random, p: int) -> Network:
    kind, parameters = rng.choice(TOPOLOGY_CASES)
    graph = TOPOLOGIES[kind](**parameters)
    if rng.random() < 0.3:
        graph = override(graph, {"*": {"latency": 0.0}})
    if rng.random() < 0.2 and "directions" not in parameters:
        graph = override(graph, {"*": {"duplex": "half"}})
    hosts = [node for node, about in graph.nodes(data=True) if about["kind"] == "host"]
    sharing = rng.choice(["fifo", "fair"])
    model = Model(
        sharing=sharing,  # type: ignore[arg-type]
        protocol=rng.choice(["rendezvous", "eager"]),
        eager_limit=rng.choice([None, 0, 500]),
        overhead=rng.choice([0.0, 1e-6]),
        gap=rng.choice([0.0, 2e-6]),
        control=rng.choice([0.0, 1e-6]),
        store_and_forward=sharing == "fifo" and rng.random() < 0.3,
    )
    return connect(graph, tuple(rng.choice(hosts) for _ in range(p)), model)


def outcome(engine, schedule: Schedule, network: Network, nbytes: int) -> Timeline | str:
    try:
        timeline: Timeline = engine(schedule, network, nbytes)
        return timeline
    except (ScheduleError, SimulationStalled) as error:
        return str(error)


def agree(rng: random.Random) -> bool:
    """Whether both engines agree on one random case; also on how it fails."""
    p = rng.randrange(2, 6)
    schedule = random_schedule(rng, p, rng.randrange(1, 4))
    if schedule is None:
        return True
    network, nbytes = random_network(rng, p), rng.choice([0, 1, 7, 1000, 100_000])
    slow, fast = (outcome(engine, schedule, network, nbytes) for engine in (simulate, replay))
    if isinstance(slow, str) or isinstance(fast, str):
        return slow == fast
    return difference(slow, fast) == ""


@pytest.mark.parametrize("seed", range(8))
def test_random_schedules_on_random_networks_agree_to_the_bit(seed: int) -> None:
    rng = random.Random(seed)
    wrong = [case for case in range(500) if not agree(rng)]
    assert not wrong


ROWS = [(c, name) for c in COLLECTIVES.values() for name in c.algorithms]


@given(st.sampled_from(ROWS), st.data())
def test_every_algorithm_agrees_to_the_bit(row: tuple, data: st.DataObject) -> None:
    collective, name = row
    algorithm = collective.algorithms[name]
    p = data.draw(st.integers(1, 12).filter(algorithm.ranks.allows))
    root = data.draw(st.integers(0, p - 1)) if collective.rooted else 0
    schedule = trace(collective, algorithm, p, root=root, segments=data.draw(st.integers(1, 5)))
    network = random_network(random.Random(data.draw(st.integers(0, 999))), p)
    nbytes = data.draw(st.integers(0, 5000))
    assert difference(simulate(schedule, network, nbytes), replay(schedule, network, nbytes)) == ""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where numba is not installed."""
    monkeypatch.setattr(compiling, "has_numba", lambda: False)


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is else compiled, in Python, so that single functions can be replaced."""
    monkeypatch.setattr(
        collsim.replay, "compiled", lambda functions: linked(functions)[functions[-1].__name__]
    )
    compiled_loop.cache_clear()
    yield
    compiled_loop.cache_clear()


@pytest.mark.usefixtures("plain")
def test_without_numba_the_same_code_runs_in_plain_python() -> None:
    rng = random.Random(99)
    assert all(agree(rng) for _ in range(200))
    found = replay(*contended("fifo"), 1000)
    assert found.engine == "replay (plain)"


@pytest.mark.usefixtures("uncompiled")
def test_what_is_compiled_agrees_uncompiled_as_well() -> None:
    rng = random.Random(98)
    assert all(agree(rng) for _ in range(200))


def test_short_queues_overflow_into_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "LONGEST_QUEUE", 2)
    rng = random.Random(97)
    assert all(agree(rng) for _ in range(500))


def test_numba_is_there_where_tests_run() -> None:
    assert compiling.has_numba()
    assert replay(*contended("fifo"), 1000).engine == "replay (compiled)"


def contended(sharing: str) -> tuple[Schedule, Network]:
    """Two channels of one rank ask for its link at the same instant, again and again."""
    all_gather = COLLECTIVES["all_gather"]
    schedule = trace(all_gather, all_gather.algorithms["gloo"], 4)
    graph = TOPOLOGIES["star"](hosts=4, bandwidth=3e9, latency=0.0)
    hosts = ("h0", "h1", "h2", "h3")
    return schedule, connect(graph, hosts, Model(sharing=sharing))  # type: ignore[arg-type]


def later_first(time: int, key: int, other_time: int, other_key: int) -> bool:
    """A broken rule for ties: the higher transfer first."""
    return time < other_time or (time == other_time and key > other_key)


def put_anyhow(ticking: clock.Clock, transfer: int, stage: int, time: int) -> None:
    """A broken queue: events are appended even if they are earlier than the last."""
    head, tail = ticking.head[stage], ticking.tail[stage]
    if tail == head:
        ticking.front_time[stage], ticking.front_transfer[stage] = time, transfer
    place = stage * (ticking.mask + 1) + (tail & ticking.mask)
    ticking.time[place], ticking.transfer[place] = time, transfer
    ticking.tail[stage] = tail + 1


def replaced(functions: tuple, name: str, broken: object) -> tuple:
    """The functions of a loop with one replaced; it takes the name of the one it replaces."""
    broken.__name__ = name  # type: ignore[attr-defined]
    return tuple(broken if function.__name__ == name else function for function in functions)


def broken_seeds() -> list[int]:
    """Seeds of random cases in which the two engines differ."""
    return [seed for seed in range(100) if not agree(random.Random(seed))]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("name", "broken"), [("comes_before", later_first), ("put", put_anyhow)], ids=["tie", "queue"]
)
def test_the_comparison_notices_a_broken_clock(
    name: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broken_seeds() == []
    compiled_loop.cache_clear()
    monkeypatch.setattr(collsim.replay, "CLOCK", replaced(collsim.replay.CLOCK, name, broken))
    assert broken_seeds() != []


def test_the_comparison_notices_a_broken_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, network = contended("fifo")
    expected = simulate(schedule, network, 1001)
    assert difference(expected, replay(schedule, network, 1001)) == ""
    monkeypatch.setattr(
        collsim.network, "transmission_ps", lambda n, b: (n * 1e12 / b).astype(np.int64)
    )
    assert difference(expected, replay(schedule, network, 1001)) != ""


@pytest.mark.usefixtures("uncompiled")
def test_the_comparison_notices_a_broken_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fix_first(world: world.World, flows: world.Flows, fullest: int) -> None:
        """A broken filling: only the first flow of a full link is fixed at its part."""
        filling.fix(world, flows, fullest)
        flows.new_rate[flows.owner[flows.head[fullest]]] *= 0.5

    loops = {"fair": replaced(collsim.replay.LOOPS["fair"], "fix", fix_first)}
    monkeypatch.setattr(collsim.replay, "LOOPS", collsim.replay.LOOPS | loops)
    assert broken_seeds() != []


@pytest.mark.usefixtures("uncompiled")
def test_sharing_only_what_changed_gives_what_sharing_everything_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_that_flow = runpy.run_path(str(BENCHMARKS / "filling.py"))["find_component"]
    loops = {"fair": replaced(collsim.replay.LOOPS["fair"], "find_component", all_that_flow)}
    monkeypatch.setattr(collsim.replay, "LOOPS", collsim.replay.LOOPS | loops)
    assert broken_seeds() == []


def test_a_deadlock_is_refused_with_the_same_words() -> None:
    def ring(me: Rank) -> Iterator[Step]:
        yield Send((me.rank + 1) % 3, 0)
        yield Recv((me.rank - 1) % 3, 0)

    schedule = trace(ANYTHING, ring, 3)
    network = connect(TOPOLOGIES["star"](hosts=3), ("h0", "h1", "h2"), Model())
    with pytest.raises(ScheduleError, match="deadlock under rendezvous"):
        replay(schedule, network, 100)


def test_equal_sizes_share_fairly_at_scale() -> None:
    """A ring of 64 under fair: every round takes one block's time, as in the closed form."""
    all_gather = COLLECTIVES["all_gather"]
    schedule = trace(all_gather, all_gather.algorithms["ring"], 64)
    graph = TOPOLOGIES["star"](hosts=64, bandwidth=1e9, latency=1e-6)
    network = connect(graph, tuple(f"h{i}" for i in range(64)), Model())
    found = replay(schedule, network, 10_000)
    assert found.makespan == pytest.approx(63 * (10e-6 + 2e-6), rel=1e-9)
    assert (np.diff(np.unique(found.left)) > 0).all()
