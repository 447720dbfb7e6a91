"""The broadcasts: what arrives, how many messages, and what the papers say of them.

What the docstrings say of rounds, bytes and time is tested in `test_describe`.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.collectives.broadcast import BROADCAST
from collsim.collectives.broadcast.circulant import (
    first_block,
    receive_schedule,
    send_schedule,
    skips,
)
from collsim.collectives.broadcast.optimal import greedy_tree
from collsim.collectives.broadcast.trees import one_per_receiver
from collsim.collectives.broadcast.two_trees import (
    children_in_order,
    holder_of,
    parent_in_order,
    place_of,
)
from collsim.collectives.describe import describe
from collsim.errors import ScheduleError
from collsim.program import LogGP, Setting
from collsim.schedule import Schedule
from tests.test_describe import Star, run

NAMES = tuple(BROADCAST.algorithms)


def prepared(name: str, setting: Setting) -> Mapping[str, Any]:
    """The parameters that an algorithm gets for a network."""
    prepare = BROADCAST.algorithms[name].prepare
    return prepare(setting) if prepare else {}


def rows(schedule: Schedule) -> set[tuple[object, ...]]:
    """The transfers with ranks counted from the root, and where they stand in the programs."""
    p, position = schedule.n_ranks, schedule.steps.position
    return {
        (
            (t.src - schedule.root) % p,
            (t.dst - schedule.root) % p,
            t.channel,
            t.chunks,
            int(position[t.src_step]),
            int(position[t.dst_step]),
        )
        for t in schedule
    }


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, Schedule]:
    """Any algorithm, on any ranks, root, segments, hosts and network."""
    name = draw(st.sampled_from(NAMES))
    row = BROADCAST.algorithms[name]
    p = draw(st.integers(1, 40).filter(row.ranks.allows))
    root = draw(st.integers(0, p - 1))
    parameters: dict[str, Any] = {}
    if name == "knomial":
        parameters["k"] = draw(st.integers(2, 6))
    if row.prepare:
        times = st.floats(0, 10, allow_subnormal=False)
        host = draw(st.lists(st.integers(0, 5), min_size=p, max_size=p))
        groups = tuple(tuple(r for r in range(p) if host[r] == h) for h in dict.fromkeys(host))
        loggp = LogGP(draw(times), draw(times), draw(times), draw(times))
        setting = Setting(p, root, groups, loggp, draw(st.integers(0, 5)))
        parameters.update(prepared(name, setting))
    segments = draw(st.integers(1, 12))
    return name, run(name, p, root=root, segments=segments, **parameters)


@given(schedules())
def test_every_broadcast_delivers_every_chunk(case: tuple[str, Schedule]) -> None:
    _, schedule = case
    held: list[set[int]] = [set() for _ in range(schedule.n_ranks)]
    held[schedule.root] = set(range(schedule.n_chunks))

    for transfer in schedule:
        assert held[transfer.src].issuperset(transfer.chunks)
        held[transfer.dst].update(transfer.chunks)

    assert held == [set(range(schedule.n_chunks))] * schedule.n_ranks


@given(schedules())
def test_no_broadcast_deadlocks_under_rendezvous(case: tuple[str, Schedule]) -> None:
    _, schedule = case

    assert schedule.rendezvous_deadlock == ""


@given(schedules())
def test_only_an_all_gather_brings_a_chunk_twice(case: tuple[str, Schedule]) -> None:
    name, schedule = case
    n_received = int(schedule.chunk_count.sum())

    if "all_gather" in name and schedule.n_ranks > 2:
        assert n_received > (schedule.n_ranks - 1) * schedule.n_chunks
    if "all_gather" not in name:
        assert n_received == (schedule.n_ranks - 1) * schedule.n_chunks


@given(schedules())
def test_the_table_counts_the_messages(case: tuple[str, Schedule]) -> None:
    name, schedule = case
    messages = BROADCAST.algorithms[name].messages

    assert messages is not None
    assert messages(schedule.n_ranks, schedule.n_chunks) == len(schedule)


@given(schedules())
def test_every_step_says_which_rank_does_what(case: tuple[str, Schedule]) -> None:
    _, schedule = case
    steps = schedule.steps

    for rank, label in zip(steps.rank.tolist(), steps.label, strict=True):
        assert f"rank {rank}" in label or (rank == schedule.root and "the root" in label)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [1, 2, 3, 8, 13, 16])
def test_the_root_only_renames_the_ranks(name: str, p: int) -> None:
    if not BROADCAST.algorithms[name].ranks.allows(p):
        return
    for root in range(1, p):
        parameters: list[dict[str, Any]] = [{}, {}]
        if name == "two_level":
            groups = [range(first, min(first + 3, p)) for first in range(0, p, 3)]
            moved = [[(rank + root) % p for rank in group] for group in groups]
            parameters = [{"groups": groups}, {"groups": moved}]

        here = run(name, p, segments=5, **parameters[0])
        there = run(name, p, root=root, segments=5, **parameters[1])

        assert rows(there) == rows(here)


def test_the_table_has_all_broadcasts_with_a_description() -> None:
    assert " ".join(BROADCAST.algorithms) == (
        "flat flat_at_once binomial binomial_halving knomial gloo chain binary split_binary "
        "scatter_ring_all_gather scatter_rd_all_gather postal logp_optimal two_level two_trees "
        "circulant"
    )
    for name, row in BROADCAST.algorithms.items():
        assert row.program.__name__ == name
        assert describe(row.program).summary == row.summary


@pytest.mark.parametrize(("p", "parents"), [(8, [0, 0, 1, 0, 1, 2, 3]), (6, [0, 0, 1, 0, 1])])
def test_binomial_clears_the_highest_bit(p: int, parents: list[int]) -> None:
    found = {t.dst: t.src for t in run("binomial", p)}

    assert [found[rank] for rank in range(1, p)] == parents


@pytest.mark.parametrize(("p", "parents"), [(8, [0, 0, 2, 0, 4, 4, 6]), (6, [0, 0, 2, 0, 4])])
def test_binomial_halving_clears_the_lowest_bit(p: int, parents: list[int]) -> None:
    found = {t.dst: t.src for t in run("binomial_halving", p)}

    assert [found[rank] for rank in range(1, p)] == parents


@pytest.mark.parametrize(
    ("name", "by_block", "round_robin"), [("binomial", 4, 1), ("binomial_halving", 1, 4)]
)
def test_how_often_a_binomial_tree_crosses_between_two_hosts(
    name: str, by_block: int, round_robin: int
) -> None:
    schedule = run(name, 8)

    assert sum(t.src // 4 != t.dst // 4 for t in schedule) == by_block
    assert sum(t.src % 2 != t.dst % 2 for t in schedule) == round_robin


@pytest.mark.parametrize("p", range(2, 20))
def test_knomial_is_binomial_for_two_and_flat_for_p(p: int) -> None:
    assert rows(run("knomial", p, k=2)) == rows(run("binomial_halving", p))
    assert rows(run("knomial", p, k=p)) == rows(run("flat_at_once", p))


@pytest.mark.parametrize("p", range(2, 35))
def test_networkx_knows_no_faster_way_down_the_same_tree(p: int) -> None:
    for name in ("flat", "chain", "binomial", "binomial_halving", "two_level", "postal"):
        schedule = run(name, p)
        tree = nx.Graph((t.src, t.dst) for t in schedule)

        fastest = nx.tree_broadcast_time(tree, 0)

        if name == "postal":  # for a latency; networkx knows none
            assert schedule.n_rounds >= fastest
        else:
            assert schedule.n_rounds == fastest


@pytest.mark.parametrize(
    ("p", "logp_optimal", "binomial", "flat", "chain"),
    [
        (2, 10, 10, 10, 10),
        (4, 18, 20, 18, 30),
        (8, 24, 30, 34, 70),
        (13, None, 34, 54, 120),
        (16, 32, 40, 66, 150),
        (32, 38, None, None, None),
        (64, 46, None, None, None),
    ],
)
def test_the_machine_of_the_logp_paper(
    p: int, logp_optimal: int | None, binomial: int | None, flat: int | None, chain: int | None
) -> None:
    known = {"logp_optimal": logp_optimal, "binomial": binomial, "flat": flat, "chain": chain}
    for name, cycles in known.items():
        # On the star, flight = 6 + 4 and occupancy = 4, as 2o + L and g are.
        if cycles is not None:
            assert Star(run(name, p), 4, 6).makespan == cycles


def test_the_example_of_the_logp_paper() -> None:
    star = Star(run("logp_optimal", 8), 4, 6)

    assert sorted(star.informed.values()) == [10, 14, 18, 20, 22, 24, 24]
    assert greedy_tree(8, 10, 4)[1] == (0, 10, 14, 18, 20, 22, 24, 24)


@pytest.mark.parametrize(
    ("latency", "counts"),
    [
        (1, [1, 2, 4, 8, 16, 32, 64, 128]),
        (2, [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]),
        (3, [1, 1, 1, 2, 3, 4, 6, 9, 13, 19, 28, 41, 60]),
    ],
)
@pytest.mark.parametrize("name", ["postal", "logp_optimal"])
def test_how_many_know_in_the_postal_model(name: str, latency: int, counts: list[int]) -> None:
    p = counts[-1]
    setting = Setting(p, 0, (), LogGP(L=latency - 1, G=1), 1)

    star = Star(run(name, p, **prepared(name, setting)), 1, latency - 1)

    times = [0, *star.informed.values()]
    assert [sum(time <= t for time in times) for t in range(len(counts))] == counts


@given(
    st.integers(1, 60),
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from(["binomial", "flat", "chain", "binomial_halving", "postal"]),
)
def test_no_blocking_tree_beats_the_greedy_one(p: int, alpha: int, nbytes: int, other: str) -> None:
    setting = Setting(p, 0, (), LogGP(L=alpha, G=1), nbytes)
    parameters = prepared("logp_optimal", setting)

    best = Star(run("logp_optimal", p, **parameters), nbytes, alpha).makespan

    assert best == greedy_tree(p, alpha + nbytes, nbytes)[1][-1]
    assert best <= Star(run(other, p), nbytes, alpha).makespan


@given(st.integers(1, 60), st.integers(0, 40), st.integers(1, 20))
def test_postal_is_as_good_as_the_greedy_tree(p: int, alpha: int, nbytes: int) -> None:
    parameters = prepared("postal", Setting(p, 0, (), LogGP(L=alpha, G=1), nbytes))

    star = Star(run("postal", p, **parameters), nbytes, alpha)

    assert star.makespan == greedy_tree(p, alpha + nbytes, nbytes)[1][-1]


@pytest.mark.parametrize("name", ["postal", "logp_optimal"])
@pytest.mark.parametrize("latency", [0.0, 5e-6])
def test_empty_messages_without_overhead_make_the_latency_trees_flat(
    name: str, latency: float
) -> None:
    setting = Setting(9, 0, (), LogGP(L=latency, G=1e-9), 0)

    schedule = run(name, 9, **prepared(name, setting))

    assert {t.src for t in schedule} == {0}


def test_two_level_crosses_between_hosts_once_for_each_other_host() -> None:
    host_of = [0, 1, 2, 0, 1, 2, 0, 1, 3]
    groups = [[r for r in range(9) if host_of[r] == h] for h in range(4)]
    for root in range(9):
        schedule = run("two_level", 9, root=root, groups=groups)

        crossing = [t for t in schedule if host_of[t.src] != host_of[t.dst]]

        assert len(crossing) == 3
        assert {t.src for t in crossing if host_of[t.src] == host_of[root]} == {root}
        assert schedule.n_rounds <= 4


def test_two_level_with_one_rank_a_host_is_binomial() -> None:
    assert rows(run("two_level", 13, groups=[[r] for r in range(13)])) == rows(run("binomial", 13))


def test_the_in_order_tree_is_that_of_nccl() -> None:
    first = [parent_in_order(place, 7) for place in range(1, 8)]
    second = [7 - parent_in_order(7 - rank, 7) for rank in range(7)]

    assert first == [2, 4, 2, 0, 6, 4, 6]
    assert second == [1, 3, 1, 7, 5, 3, 5]


@pytest.mark.parametrize("n_places", range(1, 70))
def test_a_rank_is_a_leaf_of_one_of_the_two_trees(n_places: int) -> None:
    for v in range(1, n_places + 1):
        n_below = []
        for tree in range(2):
            place = place_of(v, n_places, tree)
            assert holder_of(place, n_places, tree) == v
            below = children_in_order(place, n_places)
            assert [parent_in_order(child, n_places) for child in below] == [place] * len(below)
            n_below.append(len(below))
        assert min(n_below) == 0
        assert max(n_below) <= 2


@pytest.mark.parametrize("p", range(3, 40))
def test_two_trees_each_carry_half(p: int) -> None:
    schedule = run("two_trees", p, segments=6)

    assert {(t.channel, t.chunks.start // 3) for t in schedule} == {(0, 0), (1, 1)}


@pytest.mark.parametrize(
    ("p", "known"),
    [
        (5, [1, 2, 3, 5]),
        (7, [1, 2, 4, 7]),
        (17, [1, 2, 3, 5, 9, 17]),
        (36, [1, 2, 3, 5, 9, 18, 36]),
    ],
)
def test_the_skips_of_the_paper(p: int, known: list[int]) -> None:
    assert skips(p) == known


@pytest.mark.parametrize("p", [*range(2, 130), 255, 256, 257, 1000, 1025])
def test_the_circulant_schedules_have_the_properties_of_the_paper(p: int) -> None:
    *skip, _ = skips(p)
    q = len(skip)
    receives = {v: receive_schedule(p, v) for v in range(1, p)}
    assert send_schedule(p, 0) == tuple(range(q))
    for v in range(1, p):
        own, sends = first_block(p, v), send_schedule(p, v)
        # A phase brings a fresh block, and all of the phase before but the one that was fresh.
        assert sorted(receives[v]) == sorted({own, *range(-q, 0)} - {own - q})
        for k in range(q):
            window = [*receives[v][k:], *(block + q for block in receives[v][:k])]
            assert len(set(window)) == q
            assert (v + skip[k]) % p == 0 or sends[k] == receives[(v + skip[k]) % p][k]
            # Sent is what came earlier in this phase, or what was fresh in the one before.
            assert (v + skip[k]) % p == 0 or sends[k] in {own - q, *receives[v][:k]}


@pytest.mark.parametrize("p", [2, 3, 5, 9, 13, 16, 17, 36, 41])
@pytest.mark.parametrize("segments", [1, 2, 5, 6, 11])
def test_circulant_needs_the_least_rounds_with_one_send_and_one_receive_each(
    p: int, segments: int
) -> None:
    schedule = run("circulant", p, segments=segments)

    assert schedule.n_rounds == (p - 1).bit_length() - 1 + segments
    assert max(Counter(schedule.src_step.tolist()).values()) == 1
    assert max(Counter(schedule.dst_step.tolist()).values()) == 1


@pytest.mark.parametrize(
    ("name", "parameters", "complaint"),
    [
        ("knomial", {"k": 1}, "k must be a whole number of at least 2, got 1"),
        ("postal", {"latency": 0.0}, "latency must be above 0, got 0"),
        ("logp_optimal", {"parents": [0, 0]}, "one for each of 6, got 2"),
        ("logp_optimal", {"parents": [0, 0, 0, 9, 1, 1]}, "got 9 for number 3"),
        ("two_level", {"groups": [[0, 1], [2, 3]]}, "each rank from 0 to 5 once"),
        ("scatter_rd_all_gather", {}, "needs a power of two ranks, got 6"),
    ],
)
def test_a_parameter_without_meaning_is_refused(
    name: str, parameters: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        run(name, 6, **parameters)


@pytest.mark.parametrize("name", NAMES)
def test_a_tree_sends_each_rank_one_message(name: str) -> None:
    if BROADCAST.algorithms[name].messages is not one_per_receiver:
        return
    schedule = run(name, 21, root=4)

    assert sorted([4, *schedule.dst.tolist()]) == list(range(21))
    assert nx.is_arborescence(nx.DiGraph((t.src, t.dst) for t in schedule))
