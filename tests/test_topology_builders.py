"""Builders against the formulas of their literature."""

import math
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.topology import (
    TOPOLOGIES,
    dragonfly,
    fat_tree,
    from_graph,
    full_mesh,
    host_names,
    hypercube,
    leaf_spine,
    line,
    mesh,
    multi_gpu,
    ring,
    star,
    torus,
    two_sites,
)

DIRECT = {"line", "ring", "mesh", "torus", "hypercube", "full_mesh"}


def switches(graph: "nx.DiGraph[str]", prefix: str = "") -> list[str]:
    hosts = set(host_names(graph))
    return [node for node in graph if node not in hosts and node.startswith(prefix)]


def bandwidth_between(graph: "nx.DiGraph[str]", one: set[str], other: set[str]) -> float:
    """Bytes/s that cross from one set of nodes to the other."""
    crossing = [(u, v) for u, v in graph.edges if u in one and v in other]
    return sum(float(graph.edges[edge]["bandwidth"]) for edge in crossing)


@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_every_builder_has_defaults_and_the_common_form(kind: str) -> None:
    graph = TOPOLOGIES[kind]()

    assert graph.graph["kind"] == kind
    assert graph.graph["name"]
    assert graph.graph["hosts_forward"] == (kind in DIRECT)
    assert (not switches(graph)) == (kind in DIRECT)
    assert host_names(graph) == [f"h{i}" for i in range(len(host_names(graph)))]
    assert all(
        edge["bandwidth"] > 0 and edge["latency"] >= 0 for *_, edge in graph.edges(data=True)
    )
    assert all(graph.has_edge(v, u) for u, v in graph.edges)


@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_what_is_built_is_what_a_user_may_bring(kind: str) -> None:
    graph = TOPOLOGIES[kind]()

    copy = from_graph(graph)

    assert list(copy.nodes(data=True)) == list(graph.nodes(data=True))
    assert list(copy.edges(data=True)) == list(graph.edges(data=True))
    assert copy.graph == graph.graph


@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_every_node_has_a_place_of_its_own_the_same_each_time(kind: str) -> None:
    places = nx.get_node_attributes(TOPOLOGIES[kind](), "pos")
    again = nx.get_node_attributes(TOPOLOGIES[kind](), "pos")

    assert places == again
    assert len({(round(x, 3), round(y, 3)) for x, y in places.values()}) == len(places)


@given(dimension=st.integers(0, 8))
def test_hypercube_positions_do_not_coincide(dimension: int) -> None:
    places = nx.get_node_attributes(hypercube(dimension=dimension), "pos")

    assert len({(round(x, 3), round(y, 3)) for x, y in places.values()}) == 2**dimension


@given(hosts=st.integers(1, 20))
def test_star_line_ring_and_full_mesh_count_as_the_formulas_say(hosts: int) -> None:
    assert (len(star(hosts=hosts)), star(hosts=hosts).number_of_edges()) == (hosts + 1, 2 * hosts)
    assert line(hosts=hosts).number_of_edges() == 2 * (hosts - 1)
    assert full_mesh(hosts=hosts).number_of_edges() == hosts * (hosts - 1)
    if hosts > 2:
        assert ring(hosts=hosts).number_of_edges() == 2 * hosts
    if hosts > 1:
        assert set(ring(hosts=hosts, directions=1).edges) == {
            (f"h{i}", f"h{(i + 1) % hosts}") for i in range(hosts)
        }


def test_a_ring_of_one_or_two_hosts_has_no_loops_or_doubles() -> None:
    assert ring(hosts=1).number_of_edges() == 0
    assert ring(hosts=2).number_of_edges() == 2


@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_mesh_and_torus_are_the_grids_of_networkx(dims: list[int]) -> None:
    for build, periodic in ((mesh, False), (torus, True)):
        graph = build(dims=dims)
        grid = nx.grid_graph(dims[::-1], periodic=periodic)

        # networkx counts the last dimension first, and names nodes by a bare number if it is alone
        def cell(node: int | tuple[int, ...]) -> tuple[int, ...]:
            return node if isinstance(node, tuple) else (node,)

        expected = {cell(u): {cell(v) for v in grid[u] if v != u} for u in grid}
        at = nx.get_node_attributes(graph, "coordinates")
        found = {at[u]: {at[v] for v in graph.successors(u)} for u in graph}

        assert found == expected


def test_host_numbers_count_the_first_dimension_fastest() -> None:
    graph = mesh(dims=[3, 2])

    assert [graph.nodes[f"h{i}"]["coordinates"] for i in range(4)] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
    ]


@given(k=st.integers(2, 4).map(lambda half: 2 * half))
def test_torus_bisection_is_twice_the_hosts_over_the_longest_dimension(k: int) -> None:
    graph = torus(dims=[k, 4], bandwidth=1.0)
    axis = 0 if k >= 4 else 1
    at = nx.get_node_attributes(graph, "coordinates")
    low = {node for node in graph if at[node][axis] < max(k, 4) // 2}

    assert bandwidth_between(graph, low, set(graph) - low) == 2 * len(graph) / max(k, 4)


@given(dimension=st.integers(0, 6))
def test_hypercube_joins_numbers_that_differ_in_one_bit(dimension: int) -> None:
    graph = hypercube(dimension=dimension)

    expected = {
        (f"h{i}", f"h{i ^ (1 << bit)}") for i in range(2**dimension) for bit in range(dimension)
    }

    assert set(graph.edges) == expected


@given(half=st.integers(1, 5))
def test_fat_tree_counts(half: int) -> None:
    k = 2 * half
    graph = fat_tree(k=k)

    assert len(host_names(graph)) == k**3 // 4
    assert len(switches(graph, "edge")) == len(switches(graph, "agg")) == k**2 // 2
    assert len(switches(graph, "core")) == k**2 // 4
    assert graph.number_of_edges() == 2 * 3 * k**3 // 4
    assert {graph.out_degree(switch) for switch in switches(graph)} == {k}


def test_fat_tree_of_4_has_16_hosts_20_switches_48_links() -> None:
    graph = fat_tree(k=4)

    assert (len(host_names(graph)), len(switches(graph))) == (16, 20)
    assert graph.number_of_edges() == 2 * 48


def test_fat_tree_blocks_nothing_between_its_halves() -> None:
    graph = fat_tree(k=4, bandwidth=1.0)
    for u, v in graph.edges:
        graph.edges[u, v]["capacity"] = 1.0
    for i in range(8):
        graph.add_edge("source", f"h{i}", capacity=1.0)
        graph.add_edge(f"h{i + 8}", "sink", capacity=1.0)

    assert nx.maximum_flow_value(graph, "source", "sink") == 8


@given(leaves=st.integers(1, 5), spines=st.integers(1, 4), hosts=st.integers(1, 5))
def test_leaf_spine_counts(leaves: int, spines: int, hosts: int) -> None:
    graph = leaf_spine(leaves=leaves, spines=spines, hosts_per_leaf=hosts)

    assert len(host_names(graph)) == leaves * hosts
    assert len(switches(graph, "leaf")) == leaves
    assert len(switches(graph, "spine")) == spines
    assert graph.number_of_edges() == 2 * (leaves * hosts + leaves * spines)


@given(ratio=st.floats(0.25, 16), spines=st.integers(1, 4), hosts=st.integers(1, 5))
def test_oversubscription_is_what_hosts_send_over_what_uplinks_carry(
    ratio: float, spines: int, hosts: int
) -> None:
    graph = leaf_spine(leaves=2, spines=spines, hosts_per_leaf=hosts, oversubscription=ratio)
    below = bandwidth_between(graph, set(host_names(graph)), {"leaf0"})
    above = bandwidth_between(graph, {"leaf0"}, set(switches(graph, "spine")))

    assert math.isclose(below / above, ratio)


def test_uplink_bandwidth_is_taken_as_given() -> None:
    graph = leaf_spine(bandwidth=1e9, uplink_bandwidth=4e9)

    assert graph.edges["leaf0", "spine0"]["bandwidth"] == 4e9
    assert graph.edges["h0", "leaf0"]["bandwidth"] == 1e9
    assert leaf_spine(bandwidth=2e9).edges["spine1", "leaf3"]["bandwidth"] == 2e9


@given(p=st.integers(1, 3), a=st.integers(1, 4), h=st.integers(1, 3))
def test_dragonfly_counts_and_joins_each_two_groups_once(p: int, a: int, h: int) -> None:
    graph = dragonfly(p=p, a=a, h=h)
    groups = a * h + 1
    routers = switches(graph)
    group = {router: int(router[1:]) // a for router in routers}
    crossing = [
        (u, v) for u, v in graph.edges if u in group and v in group and group[u] != group[v]
    ]

    assert len(host_names(graph)) == a * p * groups
    assert len(routers) == a * groups
    assert Counter((group[u], group[v]) for u, v in crossing) == {
        (i, j): 1 for i in range(groups) for j in range(groups) if i != j
    }
    assert set(Counter(u for u, _ in crossing).values()) == {h}
    assert {graph.out_degree(router) for router in routers} == {p + a - 1 + h}


def test_dragonfly_2_4_2_has_72_hosts_and_a_diameter_of_3_between_routers() -> None:
    graph = dragonfly(p=2, a=4, h=2)

    assert len(host_names(graph)) == 72
    assert nx.diameter(graph.subgraph(switches(graph))) == 3


def test_dragonfly_links_have_the_rates_of_their_tier() -> None:
    graph = dragonfly(
        bandwidth=1.0, local_bandwidth=2.0, global_bandwidth=3.0, latency=4.0, global_latency=5.0
    )
    rates = Counter((edge["bandwidth"], edge["latency"]) for *_, edge in graph.edges(data=True))

    assert rates == {(1.0, 4.0): 2 * 72, (2.0, 4.0): 2 * 9 * 6, (3.0, 5.0): 2 * 36}


@given(nodes=st.integers(1, 4), gpus=st.integers(1, 8))
def test_multi_gpu_counts(nodes: int, gpus: int) -> None:
    graph = multi_gpu(nodes=nodes, gpus_per_node=gpus)

    assert len(host_names(graph)) == nodes * gpus
    assert len(switches(graph, "nvswitch")) == nodes
    assert len(switches(graph, "rail")) == gpus
    assert len(switches(graph, "spine")) == 1
    assert graph.number_of_edges() == 2 * (2 * nodes * gpus + gpus)


def test_a_dgx_h100_is_nine_times_faster_inside() -> None:
    graph = multi_gpu()

    inside = graph.edges["h0", "nvswitch0"]["bandwidth"]
    outside = graph.edges["h0", "rail0"]["bandwidth"]

    assert inside / outside == 9
    assert graph.edges["rail0", "spine0"]["bandwidth"] == 2 * outside


def test_two_sites_meet_over_the_thin_link_only() -> None:
    graph = two_sites(hosts_per_site=3, thin_bandwidth=1e6, thin_latency=0.01)
    graph.remove_edge("s0", "s1")
    graph.remove_edge("s1", "s0")

    left, right = nx.weakly_connected_components(graph)

    assert left == {"s0", "h0", "h1", "h2"}
    assert right == {"s1", "h3", "h4", "h5"}
    assert two_sites(thin_bandwidth=1e6, thin_latency=0.01).edges["s1", "s0"] == {
        "bandwidth": 1e6,
        "latency": 0.01,
    }
