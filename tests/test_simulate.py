"""The model in SimPy: golden numbers, the rules of each network model, what must always hold."""

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.collectives.contracts import block_per_rank, everything, own_block
from collsim.errors import ScenarioError, ScheduleError, SimulationStalled
from collsim.network import Model, Network, connect, picoseconds, transmission_ps
from collsim.program import Collective, Program, Rank, Recv, Send, Step
from collsim.schedule import Schedule
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

BROADCAST = COLLECTIVES["broadcast"]
star = TOPOLOGIES["star"]
GATHER_ALL = Collective("all_gather", own_block, everything, block_per_rank, rooted=False)
GIGABYTE = 1e9


def on_star(p: int, bandwidth: float = 1.25e9, latency: float = 5e-6, **model) -> Network:
    hosts = tuple(f"h{i}" for i in range(p))
    return connect(star(hosts=p, bandwidth=bandwidth, latency=latency), hosts, Model(**model))


def broadcast(name: str, p: int, **arguments) -> Schedule:
    return trace(BROADCAST, BROADCAST.algorithms[name], p, **arguments)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize(
    ("name", "segments", "protocol", "microseconds"),
    [
        ("flat", 1, "rendezvous", 5882.0),
        ("chain", 22, "rendezvous", 1347.6),
        ("chain", 22, "eager", 1137.6),
        ("binomial", 1, "rendezvous", 2546.6),
        ("binomial", 1, "eager", 2546.6),
    ],
)
def test_one_mebibyte_on_eight_ranks_of_ten_gigabit_ethernet(
    sharing: str, name: str, segments: int, protocol: str, microseconds: float
) -> None:
    """The figures of G5 in our semantics: α 10 µs, β 0.8 ns/B."""
    network = on_star(8, sharing=sharing, protocol=protocol)
    timeline = simulate(broadcast(name, 8, segments=segments), network, 1 << 20)
    assert timeline.makespan * 1e6 == pytest.approx(microseconds, abs=0.06)


@pytest.mark.parametrize(
    ("p", "binomial", "flat", "chain"), [(8, 30, 34, 70), (16, 40, 66, 150), (13, 34, 54, 120)]
)
def test_logp_machine_with_L_6_g_4_o_2(p: int, binomial: int, flat: int, chain: int) -> None:  # noqa: N802
    """Culler et al., LogP (PPoPP 1993): the machine of their figure; times of G2."""
    network = on_star(p, bandwidth=1e30, latency=3.0, sharing="fifo", overhead=2.0, gap=4.0)
    for name, expected in (("binomial", binomial), ("flat", flat), ("chain", chain)):
        found = simulate(broadcast(name, p), network, 1).makespan
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("p", "messages"),
    [(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 5), (8, 6), (9, 7), (16, 10), (32, 15), (64, 21)],
)
def test_gloo_on_a_fair_star_pays_for_sharing_the_uplink(p: int, messages: int) -> None:
    """G8: in units of one message's time; d(d + 1)/2 for 2^d ranks."""
    network = on_star(p, bandwidth=GIGABYTE, latency=0.0)
    found = simulate(broadcast("gloo", p), network, 10**6).makespan
    assert found == pytest.approx(messages * 1e-3, rel=1e-9)


def test_a_message_crosses_two_links_in_latency_plus_transmission() -> None:
    timeline = simulate(broadcast("flat", 2), on_star(2, sharing="fifo"), 1000)
    assert timeline.left.tolist() == [800_000]
    assert timeline.done.tolist() == [10_800_000]
    assert timeline.hops is not None
    assert timeline.hops.start.tolist() == [0, 5_000_000]
    assert timeline.hops.end.tolist() == [800_000, 5_800_000]


def test_store_and_forward_transmits_once_a_link() -> None:
    network = on_star(2, sharing="fifo", store_and_forward=True)
    assert simulate(broadcast("flat", 2), network, 1000).done.tolist() == [11_600_000]


def test_cut_through_is_never_faster_than_the_slowest_link_before() -> None:
    """A slow link into a fast one: the last byte comes at the slow link's pace."""
    graph = star(hosts=2, bandwidth=GIGABYTE, latency=0.0)
    graph.edges["s0", "h1"]["bandwidth"] = 10 * GIGABYTE
    network = connect(graph, ("h0", "h1"), Model(sharing="fifo"))
    assert simulate(broadcast("flat", 2), network, 1000).done.tolist() == [1_000_000]


def test_hosts_that_share_a_trunk_finish_together_without_wasting_it() -> None:
    """Four 10 Gbit/s hosts send 1 MiB each to a 40 Gbit/s host: about 840 µs, not 1469."""
    graph = star(hosts=5, bandwidth=1.25e9, latency=0.0)
    graph.edges["s0", "h4"]["bandwidth"] = 5e9

    def inward(me: Rank) -> Iterator[Step]:
        if me.rank < 4:
            yield Send(4, me.rank)
        else:
            yield tuple(Recv(src, src) for src in range(4))

    schedule = trace(GATHER_ALL, inward, 5)
    for sharing in ("fifo", "fair"):
        network = connect(graph, tuple(f"h{i}" for i in range(5)), Model(sharing=sharing))
        assert simulate(schedule, network, 1 << 20).makespan == pytest.approx(838.86e-6, rel=1e-5)


def ring_send_first(me: Rank) -> Iterator[Step]:
    yield Send((me.rank + 1) % me.n_ranks, me.rank)
    left = (me.rank - 1) % me.n_ranks
    yield Recv(left, left)


def test_a_ring_that_sends_first_deadlocks_under_rendezvous_only() -> None:
    schedule = trace(GATHER_ALL, ring_send_first, 4)
    assert simulate(schedule, on_star(4, protocol="eager"), 1000).makespan > 0
    with pytest.raises(ScheduleError, match="deadlock under rendezvous: rank 0 in step 0"):
        simulate(schedule, on_star(4, protocol="rendezvous"), 1000)


def test_below_the_eager_limit_it_runs_and_above_it_stalls_with_a_message() -> None:
    schedule = trace(GATHER_ALL, ring_send_first, 4)
    assert simulate(schedule, on_star(4, eager_limit=1000), 1000).makespan > 0

    def one_large(me: Rank) -> Iterator[Step]:
        yield Send((me.rank + 1) % me.n_ranks, me.rank), Send((me.rank + 1) % me.n_ranks, range(0))
        left = (me.rank - 1) % me.n_ranks
        yield Recv(left, left), Recv(left, range(0))

    mixed = trace(GATHER_ALL, one_large, 4)
    with pytest.raises(SimulationStalled, match=r"0 of 8 messages were delivered.*only its sender"):
        simulate(mixed, on_star(4, eager_limit=0), 1000)


def late_receiver(me: Rank) -> Iterator[Step]:
    """Rank 1 first takes a message from rank 2, and only then that of rank 0."""
    if me.rank == 0:
        yield Send(1, range(0))
    elif me.rank == 1:
        yield Recv(2, 2)
        yield Recv(0, range(0))
    else:
        yield Send(1, 2)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_rendezvous_waits_for_the_receiver_and_eager_does_not(sharing: str) -> None:
    schedule = trace(GATHER_ALL, late_receiver, 3)
    first = 10_000_000 + 800_000  # rank 2's message of 1000 bytes
    times = {}
    for protocol in ("rendezvous", "eager"):
        timeline = simulate(schedule, on_star(3, sharing=sharing, protocol=protocol), 1000)
        times[protocol] = [int(getattr(timeline, name)[0]) for name in ("released", "left", "done")]
    assert times == {"rendezvous": [first, first, first + 10_000_000], "eager": [0, 0, first]}


def test_control_time_delays_each_rendezvous() -> None:
    network = on_star(8, sharing="fifo", control=2e-6)
    plain = simulate(broadcast("binomial", 8), on_star(8, sharing="fifo"), 1000)
    delayed = simulate(broadcast("binomial", 8), network, 1000)
    assert delayed.makespan_ps - plain.makespan_ps == 3 * 2_000_000


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_ranks_of_one_host_meet_in_its_memory(sharing: str) -> None:
    graph = star(hosts=2)
    graph.nodes["h0"].update(memory_bandwidth=GIGABYTE, memory_latency=1e-6)
    network = connect(graph, ("h0", "h0"), Model(sharing=sharing))  # type: ignore[arg-type]
    timeline = simulate(broadcast("flat", 2), network, 1000)
    assert timeline.done.tolist() == [2_000_000]
    assert timeline.bottleneck == "h0 memory"


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_messages_of_one_pair_keep_their_order_and_empty_ones_take_no_bandwidth(
    sharing: str,
) -> None:
    def three(me: Rank) -> Iterator[Step]:
        if me.rank == 0:
            yield Send(1, 0), Send(1, range(0)), Send(1, 1)
        else:
            yield Recv(0, 0), Recv(0, range(0)), Recv(0, 1)

    timeline = simulate(trace(BROADCAST, three, 2, segments=2), on_star(2, sharing=sharing), 2000)
    assert timeline.left.tolist() == [800_000, 800_000, 1_600_000]
    assert timeline.done.tolist() == [10_800_000, 10_800_000, 11_600_000]


def test_one_rank_has_nothing_to_do() -> None:
    timeline = simulate(broadcast("binomial", 1), on_star(1), 1000)
    assert timeline.makespan == 0
    assert np.isnan(timeline.algbw)


def test_a_run_beyond_integer_picoseconds_is_refused() -> None:
    with pytest.raises(ScenarioError, match="46 days"):
        simulate(broadcast("flat", 3), on_star(3, bandwidth=1e-3), 1 << 40)


def test_ranks_of_schedule_and_network_must_agree() -> None:
    with pytest.raises(ScenarioError, match="the schedule has 3 ranks, the network 4"):
        simulate(broadcast("flat", 3), on_star(4), 1)


models = st.builds(
    Model,
    sharing=st.sampled_from(["fifo", "fair"]),
    protocol=st.sampled_from(["rendezvous", "eager"]),
    eager_limit=st.sampled_from([None, 0, 100]),
    overhead=st.sampled_from([0.0, 1e-6]),
    gap=st.sampled_from([0.0, 3e-6]),
    control=st.sampled_from([0.0, 2e-6]),
)
ROWS = [(c, name) for c in COLLECTIVES.values() for name in c.algorithms]


@given(st.sampled_from(ROWS), st.data(), models)
def test_what_every_timeline_obeys(row: tuple, data: st.DataObject, model: Model) -> None:
    collective, name = row
    algorithm = collective.algorithms[name]
    p = data.draw(st.integers(1, 10).filter(algorithm.ranks.allows))
    root = data.draw(st.integers(0, p - 1)) if collective.rooted else 0
    schedule = trace(collective, algorithm, p, root=root, segments=data.draw(st.integers(1, 4)))
    graph = star(hosts=p, bandwidth=GIGABYTE, latency=data.draw(st.sampled_from([0.0, 1e-6])))
    network = connect(graph, tuple(f"h{i}" for i in range(p)), model)
    nbytes = data.draw(st.integers(0, 5000))
    t = simulate(schedule, network, nbytes)

    begin, end, steps = t.step_begin, t.step_end, schedule.steps
    overhead, gap = picoseconds(model.overhead), picoseconds(model.gap)
    follows = steps.previous >= 0
    assert (begin[~follows] == 0).all()
    assert (begin[follows] == end[steps.previous[follows]]).all()
    assert (t.released >= begin[schedule.src_step]).all()
    assert (t.started >= t.released + overhead).all()
    shortest = transmission_ps(schedule.message_bytes(nbytes), GIGABYTE)
    assert (t.left >= t.started + shortest).all()
    latency = 2 * picoseconds(graph.edges["h0", "s0"]["latency"]) if p > 1 else 0
    assert (t.arrived >= t.left + latency).all()
    assert (t.done >= np.maximum(t.arrived, begin[schedule.dst_step]) + overhead).all()
    for step in range(len(steps)):
        ends = [*t.left[schedule.src_step == step], *t.done[schedule.dst_step == step]]
        assert end[step] == max(ends)
    for rank in range(p):
        starts = np.sort(t.started[schedule.src == rank])
        if model.sharing == "fifo" and gap:
            assert (np.diff(starts) >= 0).all()
    if model.sharing == "fifo":
        assert_links_serve_one_at_a_time(t)
    again = simulate(schedule, network, nbytes)
    assert (again.done == t.done).all()


def assert_links_serve_one_at_a_time(timeline) -> None:
    hops = timeline.hops
    for link in set(hops.link.tolist()):
        own = hops.link == link
        order = np.argsort(hops.start[own], kind="stable")
        begins, takes = hops.start[own][order], hops.service_ps[own][order]
        assert (begins[1:] >= (begins + takes)[:-1]).all()


@given(st.integers(2, 9), st.integers(0, 4000), st.integers(1, 4))
def test_without_contention_both_sharing_models_agree_to_the_picosecond(
    p: int, nbytes: int, segments: int
) -> None:
    for name in ("flat", "chain", "binomial"):
        schedule = broadcast(name, p, segments=segments)
        fifo, fair = (simulate(schedule, on_star(p, sharing=s), nbytes) for s in ("fifo", "fair"))
        assert (fifo.done == fair.done).all()


def programs() -> list[Program]:
    return [row.program for row in BROADCAST.algorithms.values() if row.channels == 1]


# On several channels messages meet, and ties go by the numbers of ranks.
SINGLE = [n for n, row in BROADCAST.algorithms.items() if row.channels == 1 and not row.prepare]


@given(st.data())
def test_the_root_does_not_matter_on_a_symmetric_network(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(SINGLE))
    algorithm = BROADCAST.algorithms[name]
    p = data.draw(st.integers(2, 9).filter(algorithm.ranks.allows))
    segments = data.draw(st.integers(1, 4))
    at_zero, at_root = (
        simulate(broadcast(name, p, root=root, segments=segments), on_star(p, sharing="fifo"), 3000)
        for root in (0, data.draw(st.integers(1, p - 1)))
    )
    assert at_root.makespan_ps == at_zero.makespan_ps


@given(st.sampled_from(list(BROADCAST.algorithms)), st.integers(0, 4000), st.integers(0, 4000))
def test_more_bytes_never_finish_earlier(name: str, less: int, more: int) -> None:
    schedule = broadcast(name, 8)
    network = on_star(8, sharing="fifo")
    less, more = sorted((less, more))
    assert (
        simulate(schedule, network, less).makespan_ps
        <= simulate(schedule, network, more).makespan_ps
    )


def test_a_used_network_is_pickled_without_its_routes_and_gives_the_same() -> None:
    schedule, network = broadcast("binomial", 8), on_star(8)
    fresh = len(pickle.dumps(network))
    before = simulate(schedule, network, 1000)
    assert len(pickle.dumps(network)) == fresh
    copy = pickle.loads(pickle.dumps(network))
    assert (simulate(schedule, copy, 1000).done == before.done).all()
