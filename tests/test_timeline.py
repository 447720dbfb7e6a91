"""Timelines: the derived numbers against hand-worked runs."""

from itertools import pairwise

import numpy as np
import pytest

from collsim.collectives import COLLECTIVES
from collsim.critical_path import critical_path, spell_path
from collsim.network import Model, connect
from collsim.simulation import simulate
from collsim.timeline import UNOBSERVED, Timeline, seconds
from collsim.topology import TOPOLOGIES
from collsim.tracing import trace

BROADCAST = COLLECTIVES["broadcast"]


def run(name: str, p: int, nbytes: int, segments: int = 1, **model) -> Timeline:
    graph = TOPOLOGIES["star"](hosts=p, bandwidth=1e9, latency=0.5e-6)
    network = connect(graph, tuple(f"h{i}" for i in range(p)), Model(**model))
    schedule = trace(BROADCAST, BROADCAST.algorithms[name], p, segments=segments)
    return simulate(schedule, network, nbytes)


def test_flat_by_hand() -> None:
    """Three messages of 1000 B at 1 GB/s and 1 µs: they leave at 1, 2, 3 µs, arrive 1 µs later."""
    timeline = run("flat", 4, 1000, sharing="fifo")
    assert timeline.finish.tolist() == pytest.approx([3e-6, 2e-6, 3e-6, 4e-6])
    assert timeline.makespan == pytest.approx(4e-6)
    assert timeline.root_return == pytest.approx(3e-6)
    assert timeline.waiting.tolist() == pytest.approx([0, 0, 1e-6, 2e-6])
    assert timeline.bottleneck == "h0→s0"
    assert timeline.link_use["h0→s0"] == pytest.approx(3 / 4)
    assert timeline.link_use["s0→h1"] == pytest.approx(1 / 4)
    assert timeline.algbw == pytest.approx(1000 / 4e-6)
    assert timeline.busbw == timeline.algbw


def test_bus_bandwidth_of_a_gather_takes_what_a_rank_has_already_off() -> None:
    """nccl-tests: (p − 1)/p of all blocks over the makespan."""
    timeline = run("flat", 4, 1000, sharing="fifo")
    gather = COLLECTIVES["all_gather"]
    graph = TOPOLOGIES["star"](hosts=4, bandwidth=1e9, latency=0.5e-6)
    network = connect(graph, ("h0", "h1", "h2", "h3"), Model(sharing="fifo"))
    timeline = simulate(trace(gather, gather.algorithms["ring"], 4), network, 1000)
    assert timeline.makespan == pytest.approx(6e-6)
    assert timeline.algbw == pytest.approx(4000 / 6e-6)
    assert timeline.busbw == pytest.approx(3000 / 6e-6)


def test_the_critical_path_of_a_chain_follows_the_last_segment() -> None:
    timeline = run("chain", 3, 2000, segments=2, sharing="fifo")
    legs = critical_path(timeline)
    ends = [(timeline.schedule[leg.transfer].dst, leg.end_ps) for leg in legs]
    assert ends == [(1, 2_000_000), (1, 4_000_000), (2, 6_000_000)]
    assert [leg.begin_ps for leg in legs] == [0, 2_000_000, 4_000_000]
    assert spell_path(timeline) == "0→1 × 2 until 4 µs, 1→2 until 6 µs"


def test_the_critical_path_goes_through_queues() -> None:
    """All sends posted at once: the last waits for the link, behind all others."""
    timeline = run("flat_at_once", 4, 1000, sharing="fifo")
    legs = critical_path(timeline)
    assert [timeline.schedule[leg.transfer].dst for leg in legs] == [1, 2, 3]
    assert [leg.waits_for for leg in legs] == ["h0→s0", "h0→s0", ""]
    assert [leg.end_ps for leg in legs] == [1_000_000, 2_000_000, 4_000_000]
    assert "(then h0→s0 is free)" in spell_path(timeline)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("protocol", ["rendezvous", "eager"])
@pytest.mark.parametrize("name", list(BROADCAST.algorithms))
def test_a_critical_path_leads_from_zero_to_the_makespan(
    name: str, sharing: str, protocol: str
) -> None:
    timeline = run(name, 8, 5000, segments=3, sharing=sharing, protocol=protocol, overhead=1e-6)
    legs = critical_path(timeline)
    assert legs[0].begin_ps == 0
    assert legs[-1].end_ps == timeline.makespan_ps
    for leg in legs:
        assert leg.begin_ps <= leg.end_ps
    for one, following in pairwise(legs):
        if not one.waits_for:
            assert following.begin_ps >= one.end_ps


def test_a_long_path_is_shortened_in_the_middle() -> None:
    text = spell_path(run("chain", 12, 10_000, segments=10), most=4)
    assert text.count("until") == 4
    assert "… 7 more …" in text


def test_nothing_sent_has_no_path() -> None:
    assert spell_path(run("flat", 1, 1000)) == "nothing is sent"
    assert run("flat", 1, 1000).link_use == {}


def test_what_was_not_observed_is_nan() -> None:
    timeline = run("flat", 3, 1000)
    unknown = np.full(2, UNOBSERVED)
    measured = Timeline(
        schedule=timeline.schedule, kind="measured", engine="test", nbytes=1000,
        released=unknown, started=unknown, left=timeline.left, arrived=unknown,
        done=timeline.done, step_begin=timeline.step_begin, step_end=timeline.step_end,
    )  # fmt: skip
    assert np.isnan(seconds(unknown)).all()
    assert np.isnan(measured.waiting).all()
    assert (measured.link_use, measured.bottleneck) == ({}, "")
    assert spell_path(measured) == "not observed"
    assert measured.makespan == timeline.makespan
    assert measured.to_frame()["started"].isna().all()


def test_a_frame_has_a_row_a_message() -> None:
    frame = run("chain", 3, 2000, segments=2).to_frame()
    assert frame["dst"].tolist() == [1, 1, 2, 2]
    assert frame["nbytes"].tolist() == [1000] * 4
    assert frame["done"].max() == pytest.approx(6e-6)
    assert frame["label"][0] == "rank 0 passes segment 0 on to rank 1"
