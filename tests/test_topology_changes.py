"""Changed links, presets, and ranks on hosts."""

import math
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.errors import ScenarioError
from collsim.topology import (
    LINK_PRESETS,
    MACHINE_PRESETS,
    TOPOLOGIES,
    from_graph,
    full_mesh,
    groups,
    host_names,
    leaf_spine,
    line,
    link_table,
    multi_gpu,
    override,
    place,
    ring,
    star,
)


def changed(before: "nx.DiGraph[str]", after: "nx.DiGraph[str]") -> set[tuple[str, str]]:
    return {edge for edge in before.edges if before.edges[edge] != after.edges[edge]}


# overrides


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("h1", {("h1", "s0"), ("s0", "h1")}),
        ("h1-s0", {("h1", "s0"), ("s0", "h1")}),
        ("s0-h1", {("h1", "s0"), ("s0", "h1")}),
        ("s0 - h1", {("h1", "s0"), ("s0", "h1")}),
        ("h1->s0", {("h1", "s0")}),
        ("s0->h1", {("s0", "h1")}),
        ("s0", set(star(hosts=3).edges)),
        ("*", set(star(hosts=3).edges)),
    ],
)
def test_selectors_select(selector: str, expected: set[tuple[str, str]]) -> None:
    graph = star(hosts=3)

    after = override(graph, {selector: {"bandwidth": 7.0, "latency": 0.5}})

    assert changed(graph, after) == expected
    assert {(after.edges[e]["bandwidth"], after.edges[e]["latency"]) for e in expected} == {
        (7.0, 0.5)
    }


def test_the_graph_itself_stays_as_it_is() -> None:
    graph = star(hosts=3)

    override(graph, {"*": {"bandwidth": 7.0, "duplex": "half", "memory_bandwidth": 3.0}})

    assert list(graph.nodes(data=True)) == list(star(hosts=3).nodes(data=True))
    assert not changed(graph, star(hosts=3))


def test_later_changes_win() -> None:
    after = override(star(hosts=3), {"*": {"bandwidth": 1.0}, "h0": {"bandwidth": 2.0}})

    assert after.edges["h0", "s0"]["bandwidth"] == 2.0
    assert after.edges["h1", "s0"]["bandwidth"] == 1.0


def test_names_may_have_hyphens() -> None:
    graph: nx.Graph[str] = nx.Graph()
    for u, v in (("node-1", "tor-a"), ("node-2", "tor-a"), ("node", "1-tor-a"), ("node", "tor-a")):
        graph.add_edge(u, v, bandwidth=1.0, latency=0.0)
    topology = from_graph(graph)

    one_way = {("node-2", "tor-a"), ("tor-a", "node-2")}
    assert changed(topology, override(topology, {"node-2-tor-a": {"bandwidth": 2.0}})) == one_way
    assert changed(topology, override(topology, {"node-2": {"bandwidth": 2.0}})) == one_way
    with pytest.raises(ScenarioError, match="write node->1-tor-a or node-1->tor-a"):
        override(topology, {"node-1-tor-a": {"bandwidth": 2.0}})


def test_a_link_of_one_direction_is_changed_in_it() -> None:
    graph = ring(hosts=3, directions=1)

    assert changed(graph, override(graph, {"h1-h0": {"bandwidth": 2.0}})) == {("h0", "h1")}


def test_half_duplex_joins_both_directions_and_full_parts_them() -> None:
    graph = star(hosts=3)

    half = override(graph, {"*": {"duplex": "half"}})
    mixed = override(half, {"h0-s0": {"duplex": "full"}})

    assert [len(link_table(g)) for g in (graph, half, mixed)] == [6 + 3, 3 + 3, 4 + 3]


def test_one_direction_of_a_half_duplex_link_stands_for_both() -> None:
    half = override(full_mesh(hosts=2), {"h0": {"duplex": "half"}})

    after = override(half, {"h0->h1": {"bandwidth": 3.0}})

    assert after.edges["h0", "h1"] == after.edges["h1", "h0"]
    assert link_table(after).bandwidth[0] == 3.0


def test_memory_is_a_hosts() -> None:
    after = override(star(hosts=2), {"h1": {"memory_bandwidth": 3.0, "memory_latency": 0.5}})
    table = link_table(after)

    assert table.bandwidth[table.memory["h1"]] == 3.0
    assert table.latency[table.memory["h1"]] == 0.5
    assert table.bandwidth[table.memory["h0"]] != 3.0
    assert not changed(star(hosts=2), after)


@pytest.mark.parametrize(
    ("selector", "values", "message"),
    [
        ("h33", {}, "no node or link is called so; did you mean h3"),
        ("leaf0-spin1", {}, "did you mean .*leaf0-spine1"),
        ("leaf0->spin1", {}, "did you mean .*leaf0->spine1"),
        ("h0-h1", {}, "no node or link is called so"),
        (
            "zzzzzz",
            {},
            r"use a node \(h0\), a link \(h0-leaf0\), one direction \(h0->leaf0\) or \*",
        ),
        ("", {}, "no node or link is called so"),
        ("h0", {"bandwidth": 0}, "bandwidth must be a positive number of bytes/s, got 0"),
        ("h0", {"latency": math.nan}, "latency must be a number of seconds"),
        ("h0", {"duplex": "both"}, "duplex must be half or full, got 'both'"),
        ("h0", {"speed": 1}, "unknown key 'speed'; use bandwidth, latency, duplex"),
        ("h0->leaf0", {"duplex": "half"}, "duplex is of both directions, and this is h0->leaf0"),
        ("leaf0", {"memory_latency": 1e-6}, "memory_latency is a host's; this is no host"),
        ("h0-leaf0", {"memory_latency": 1e-6}, "memory_latency is a host's; this is no host"),
    ],
)
def test_bad_changes_are_named(selector: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        override(leaf_spine(), {selector: values})

    assert caught.value.field == f"topology.links.{selector}"


def test_half_duplex_needs_both_directions_alike() -> None:
    uneven = override(star(hosts=2), {"h0->s0": {"latency": 1e-3}})

    with pytest.raises(ScenarioError, match="half duplex needs the same latency both ways"):
        override(uneven, {"h0": {"duplex": "half"}})
    with pytest.raises(ScenarioError, match="duplex is of both directions, and this is h0->h1"):
        override(ring(hosts=3, directions=1), {"h0-h1": {"duplex": "half"}})
    evened = override(uneven, {"h0": {"duplex": "half", "latency": 1e-6}})
    assert evened.edges["s0", "h0"]["latency"] == 1e-6


def test_a_topology_without_links_has_nothing_to_change() -> None:
    with pytest.raises(ScenarioError, match=r"use a node \(u\)"):
        override(line(hosts=1), {"zzz": {}})


# presets


def test_link_presets_have_rates_sources_and_a_warning() -> None:
    assert {"1gbe", "10gbe", "25gbe", "100gbe", "200gbe", "400gbe", "loopback"} <= set(LINK_PRESETS)
    assert {"infiniband-hdr", "infiniband-ndr", "nvlink3", "nvlink4", "nvlink5"} <= set(
        LINK_PRESETS
    )
    for name, preset in LINK_PRESETS.items():
        assert preset.name == name
        assert preset.note.startswith("typical")
        assert preset.source
        star(hosts=2, bandwidth=preset.bandwidth, latency=preset.latency)


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("1gbe", 0.125),
        ("10gbe", 1.25),
        ("100gbe", 12.5),
        ("infiniband-hdr", 25),
        ("infiniband-ndr", 50),
        ("nvlink4", 450),
        ("pcie3-x16", 15.75),
        ("pcie5-x16", 63),
    ],
)
def test_link_presets_have_the_published_rates(name: str, gigabytes: float) -> None:
    assert LINK_PRESETS[name].bandwidth == gigabytes * 1e9


@pytest.mark.parametrize("name", MACHINE_PRESETS)
def test_machine_presets_can_be_built_and_changed(name: str) -> None:
    preset = MACHINE_PRESETS[name]

    graph = TOPOLOGIES[preset.kind](**{**preset.parameters, "nodes": 3})

    assert preset.name == name
    assert len(host_names(graph)) == 24


def test_dgx_h100_is_what_multi_gpu_builds_by_default() -> None:
    preset = MACHINE_PRESETS["dgx-h100"]

    built = TOPOLOGIES[preset.kind](**preset.parameters)

    assert list(built.edges(data=True)) == list(multi_gpu().edges(data=True))


def test_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        MACHINE_PRESETS["dgx-h100"].parameters["nodes"] = 4  # type: ignore[index]


# placement

HOSTS = ["h0", "h1", "h2"]


def test_block_fills_a_host_before_the_next() -> None:
    assert place(HOSTS, 5, "block", 2) == ("h0", "h0", "h1", "h1", "h2")


def test_round_robin_deals_ranks_out() -> None:
    assert place(HOSTS, 5, "round_robin", 2) == ("h0", "h1", "h2", "h0", "h1")


def test_names_place_each_rank() -> None:
    assert place(HOSTS, 3, ["h2", "h2", "h0"]) == ("h2", "h2", "h0")


@given(
    n_hosts=st.integers(1, 8),
    per_host=st.integers(1, 5),
    how=st.sampled_from(["block", "round_robin"]),
    data=st.data(),
)
def test_no_host_has_more_ranks_than_places(
    n_hosts: int, per_host: int, how: str, data: st.DataObject
) -> None:
    hosts = [f"h{i}" for i in range(n_hosts)]
    n_ranks = data.draw(st.integers(1, n_hosts * per_host))

    placement = place(hosts, n_ranks, how, per_host)

    assert len(placement) == n_ranks
    assert max(map(placement.count, hosts)) <= per_host
    if how == "round_robin":
        assert max(map(placement.count, hosts)) - min(map(placement.count, hosts)) <= 1


@given(st.lists(st.sampled_from("abcd"), max_size=12))
def test_groups_are_the_ranks_of_each_host_by_first_rank(placement: list[str]) -> None:
    found = groups(placement)

    assert sorted(rank for group in found for rank in group) == list(range(len(placement)))
    assert all(len({placement[rank] for rank in group}) == 1 for group in found)
    assert len(found) == len(set(placement))
    assert [group[0] for group in found] == sorted(group[0] for group in found)
    assert all(list(group) == sorted(group) for group in found)


@pytest.mark.parametrize(
    ("n_ranks", "how", "per_host", "field", "message"),
    [
        (
            4,
            "block",
            1,
            "ranks",
            "4 ranks do not fit on 3 hosts × 1 a host = 3 places; use at most",
        ),
        (7, "round_robin", 2, "ranks", "7 ranks do not fit on 3 hosts × 2 a host = 6 places"),
        (2, ["h0"], 1, "ranks", "2 ranks, but placement names 1 host; name one for each rank"),
        (1, ["h0", "h1"], 1, "placement", "it names 2 hosts for 1 rank"),
        (1, ["h11"], 1, "placement", "rank 0: 'h11' is no host of the topology, did you mean h1"),
        (1, ["nobody"], 1, "placement", "'nobody' is no host of the topology; it has h0, h1, h2"),
        (1, [3], 1, "placement", "rank 0: 3 is no host"),
        (1, "random", 1, "placement", "'random' is unknown; use block or round_robin, or a list"),
    ],
)
def test_bad_placements_are_named(
    n_ranks: int, how: Any, per_host: int, field: str, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        place(HOSTS, n_ranks, how, per_host)

    assert caught.value.field == field


def test_a_long_list_of_hosts_is_cut_in_messages() -> None:
    with pytest.raises(ScenarioError, match=r"h0, h1, h2, … h99 \(100 in all\)"):
        place([f"h{i}" for i in range(100)], 1, ["x"])


def test_counts_below_one_are_misuse() -> None:
    with pytest.raises(ValueError, match="n_ranks must be at least 1, got 0"):
        place(HOSTS, 0)
    with pytest.raises(ValueError, match="ranks_per_host must be at least 1, got 0"):
        place(HOSTS, 1, "block", 0)
