"""Links and routes, with networkx as the oracle of path lengths."""

import hashlib
import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collsim
from collsim.errors import ScenarioError
from collsim.topology import (
    TOPOLOGIES,
    default_routing,
    fat_tree,
    host_names,
    hypercube,
    leaf_spine,
    line,
    link_table,
    mesh,
    multi_gpu,
    ring,
    routes,
    star,
    torus,
)


def walk(graph: "nx.DiGraph[str]", route: tuple[int, ...]) -> list[str]:
    """The nodes of a route; fails unless each link begins where the one before ended."""
    edge = {link: ends for ends, link in link_table(graph).index.items()}
    ends = [edge[link] for link in route]
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))
    return [ends[0][0], *(v for _, v in ends)]


def path(graph: "nx.DiGraph[str]", src: str, dst: str, **options: object) -> list[str]:
    found = routes(graph, link_table(graph), [(src, dst)], **options)  # type: ignore[arg-type]
    return walk(graph, found[src, dst])


def fewest_links(graph: "nx.DiGraph[str]", src: str, dst: str) -> int:
    """networkx on the nodes that this pair may pass."""
    hosts = set(host_names(graph))
    passable = [
        node
        for node in graph
        if graph.graph["hosts_forward"] or node not in hosts or node in (src, dst)
    ]
    return int(nx.shortest_path_length(graph.subgraph(passable), src, dst))


SMALL: dict[str, dict[str, object]] = {
    "star": {"hosts": 5},
    "line": {"hosts": 6},
    "ring": {"hosts": 7},
    "mesh": {"dims": [3, 2, 2]},
    "torus": {"dims": [4, 3]},
    "hypercube": {"dimension": 3},
    "full_mesh": {"hosts": 5},
    "fat_tree": {"k": 4},
    "leaf_spine": {"leaves": 3, "spines": 3, "hosts_per_leaf": 2},
    "dragonfly": {"p": 1, "a": 3, "h": 1},
    "multi_gpu": {"nodes": 2, "gpus_per_node": 3},
    "two_sites": {"hosts_per_site": 3},
}


@pytest.mark.parametrize("routing", ["shortest", "ecmp", "default"])
@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_all_pairs_take_the_fewest_links(kind: str, routing: str) -> None:
    graph = TOPOLOGIES[kind](**SMALL[kind])
    pairs = list(itertools.permutations(host_names(graph), 2))
    chosen = default_routing(graph) if routing == "default" else routing

    found = routes(graph, link_table(graph), pairs, routing=chosen)

    assert found.keys() == set(pairs)
    for (src, dst), route in found.items():
        nodes = walk(graph, route)
        assert (nodes[0], nodes[-1]) == (src, dst)
        assert len(route) == fewest_links(graph, src, dst)


@given(st.data())
def test_random_graphs_take_the_fewest_links(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 10**6))
    random = nx.gnp_random_graph(12, 0.25, seed=seed, directed=True)
    graph: nx.DiGraph[str] = nx.relabel_nodes(random, str)
    n_hosts = data.draw(st.integers(2, 12))
    for node in list(graph):
        graph.nodes[node]["kind"] = "host" if int(node) < n_hosts else "switch"
    graph.graph["hosts_forward"] = data.draw(st.booleans())
    for u, v in graph.edges:
        graph.edges[u, v].update(bandwidth=1.0, latency=0.0)
    table = link_table(graph)
    routing = data.draw(st.sampled_from(["shortest", "ecmp"]))

    for pair in itertools.permutations(host_names(graph), 2):
        try:
            expected = fewest_links(graph, *pair)
        except nx.NetworkXNoPath:
            with pytest.raises(ScenarioError, match=f"no path from {pair[0]} to {pair[1]}"):
                routes(graph, table, [pair], routing=routing)
        else:
            route = routes(graph, table, [pair], routing=routing)[pair]
            assert len(route) == expected
            assert walk(graph, route)[:: len(route)] == list(pair)


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
def test_routes_do_not_depend_on_which_others_are_asked_for(routing: str) -> None:
    graph = fat_tree(k=4)
    table = link_table(graph)
    pairs = list(itertools.permutations(host_names(graph), 2))

    together = routes(graph, table, pairs, routing=routing)

    for pair in pairs[::7]:
        assert routes(graph, table, [pair], routing=routing)[pair] == together[pair]


def test_shortest_takes_the_first_of_equals_in_edge_order() -> None:
    assert path(leaf_spine(), "h0", "h15") == ["h0", "leaf0", "spine0", "leaf3", "h15"]
    assert path(ring(hosts=4), "h1", "h3") == ["h1", "h2", "h3"]


def test_a_star_has_routes_of_two_links() -> None:
    assert path(star(hosts=3), "h0", "h2") == ["h0", "s0", "h2"]


def test_a_one_way_ring_goes_all_the_way_round() -> None:
    assert path(ring(hosts=5, directions=1), "h1", "h0") == ["h1", "h2", "h3", "h4", "h0"]


def test_multi_gpu_routes_by_nvswitch_by_rail_and_by_spine() -> None:
    graph = multi_gpu(nodes=2, gpus_per_node=4)

    assert path(graph, "h0", "h3") == ["h0", "nvswitch0", "h3"]
    assert path(graph, "h1", "h5") == ["h1", "rail1", "h5"]
    assert path(graph, "h1", "h6") == ["h1", "rail1", "spine0", "rail2", "h6"]


def test_a_host_reaches_itself_over_its_memory_alone() -> None:
    graph = star(hosts=2)
    table = link_table(graph)

    assert routes(graph, table, [("h1", "h1")]) == {("h1", "h1"): (table.memory["h1"],)}


# dimension order


def test_torus_goes_the_short_way_round() -> None:
    graph = torus(dims=[5, 4])

    assert path(graph, "h0", "h4", routing="dimension") == ["h0", "h4"]
    assert path(graph, "h0", "h3", routing="dimension") == ["h0", "h4", "h3"]
    assert path(graph, "h0", "h2", routing="dimension") == ["h0", "h1", "h2"]


def test_torus_goes_upwards_where_both_ways_are_as_short() -> None:
    graph = torus(dims=[4])

    assert path(graph, "h3", "h1", routing="dimension") == ["h3", "h0", "h1"]
    assert path(graph, "h1", "h3", routing="dimension") == ["h1", "h2", "h3"]


def test_mesh_corrects_the_first_dimension_first() -> None:
    graph = mesh(dims=[3, 3])

    assert path(graph, "h0", "h8", routing="dimension") == ["h0", "h1", "h2", "h5", "h8"]
    assert path(graph, "h8", "h0", routing="dimension") == ["h8", "h7", "h6", "h3", "h0"]


def test_hypercube_corrects_the_lowest_bit_first() -> None:
    assert path(hypercube(dimension=3), "h0", "h7", routing="dimension") == ["h0", "h1", "h3", "h7"]


@given(
    kind=st.sampled_from([mesh, torus]),
    dims=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    data=st.data(),
)
def test_dimension_order_never_returns_to_an_earlier_dimension(
    kind: object, dims: list[int], data: st.DataObject
) -> None:
    graph = kind(dims=dims)  # type: ignore[operator]
    ends = st.integers(0, len(graph) - 1)
    src, dst = f"h{data.draw(ends)}", f"h{data.draw(ends)}"
    if src == dst:
        return

    nodes = path(graph, src, dst, routing="dimension")

    at = [graph.nodes[node]["coordinates"] for node in nodes]
    axes = [
        next(axis for axis, (i, j) in enumerate(zip(u, v, strict=True)) if i != j)
        for u, v in itertools.pairwise(at)
    ]
    assert axes == sorted(axes)
    assert len(axes) == fewest_links(graph, src, dst)


@pytest.mark.parametrize("kind", sorted(TOPOLOGIES))
def test_dimension_order_is_for_grids_only(kind: str) -> None:
    graph = TOPOLOGIES[kind]()
    if kind in ("mesh", "torus", "hypercube"):
        assert default_routing(graph) == "dimension"
        return

    assert default_routing(graph) == "shortest"
    with pytest.raises(ScenarioError, match=f"this is a {kind}; use shortest or ecmp") as caught:
        path(graph, "h0", "h1", routing="dimension")
    assert caught.value.field == "network.routing"


def test_dimension_order_says_which_link_is_missing() -> None:
    graph = mesh(dims=[3])
    table_of_less = graph.copy()
    table_of_less.remove_edge("h1", "h2")

    with pytest.raises(ScenarioError, match="wants the link h1->h2, which is missing"):
        path(table_of_less, "h0", "h2", routing="dimension")


# ECMP


def test_ecmp_spreads_flows_evenly_over_equal_paths() -> None:
    graph = leaf_spine(leaves=4, spines=4, hosts_per_leaf=4)
    pairs = list(itertools.permutations(host_names(graph), 2))

    found = routes(graph, link_table(graph), pairs, routing="ecmp")

    passed = itertools.chain.from_iterable(walk(graph, route) for route in found.values())
    counts = Counter(node for node in passed if node.startswith("spine"))
    # 192 flows on 4 spines: mean 48, standard deviation 6; five of them are one in 10^6
    assert sum(counts.values()) == 192
    assert len(counts) == 4
    assert all(18 < count < 78 for count in counts.values())


def test_ecmp_depends_on_the_seed() -> None:
    graph = leaf_spine()
    pairs = list(itertools.permutations(host_names(graph), 2))
    first, again, other = (
        routes(graph, link_table(graph), pairs, routing="ecmp", seed=seed) for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


PROGRAM = """
import itertools
from collsim.topology import fat_tree, host_names, link_table, override, routes
graph = override(fat_tree(k=4), {"h3": {"duplex": "half"}})
pairs = list(itertools.permutations(host_names(graph), 2))
for routing in ("shortest", "ecmp"):
    print(sorted(routes(graph, link_table(graph), pairs, routing=routing, seed=7).items()))
"""


def test_routes_are_the_same_in_every_process() -> None:
    home = str(Path(collsim.__file__).parents[1])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": home},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }

    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


def test_ecmp_choice_is_the_documented_hash() -> None:
    graph = leaf_spine(spines=3)
    digest = hashlib.blake2b(b"5\0h0\0h15\0leaf0", digest_size=8).digest()

    nodes = path(graph, "h0", "h15", routing="ecmp", seed=5)

    assert nodes[2] == f"spine{int.from_bytes(digest, 'big') % 3}"


# errors


def test_unknown_routings_and_hosts_are_misuse() -> None:
    graph = star(hosts=2)

    with pytest.raises(ValueError, match="routing must be one of shortest, ecmp, dimension"):
        path(graph, "h0", "h1", routing="valiant")
    with pytest.raises(ValueError, match="'h9' is no host"):
        path(graph, "h0", "h9")
    with pytest.raises(ValueError, match="'s0' is no host"):
        path(graph, "s0", "h1")


def test_a_pair_without_a_path_is_named() -> None:
    graph = line(hosts=3)
    graph.remove_edge("h1", "h2")

    with pytest.raises(ScenarioError, match="there is no path from h0 to h2"):
        path(graph, "h0", "h2")


def test_hosts_pass_nothing_on_where_there_are_switches() -> None:
    graph = star(hosts=2)
    graph.add_node("h2", kind="host")
    for u, v in (("h1", "h2"), ("h2", "h1")):
        graph.add_edge(u, v, bandwidth=1.0, latency=0.0)

    assert path(graph, "h1", "h2") == ["h1", "h2"]
    with pytest.raises(ScenarioError, match="no path from h0 to h2"):
        path(graph, "h0", "h2")
