"""Topologies from networkx graphs."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.topology import from_graph, full_mesh, mesh, torus


def plain(*edges: tuple[object, object], directed: bool = False) -> "nx.Graph[object]":
    graph: nx.Graph[object] = nx.DiGraph() if directed else nx.Graph()
    graph.add_edges_from(edges, bandwidth=1e9, latency=1e-6)
    return graph


def test_a_networkx_graph_becomes_a_topology() -> None:
    graph = from_graph(plain((0, 1), (1, 2)))

    assert list(graph) == ["0", "1", "2"]
    assert graph.number_of_edges() == 4
    assert graph.graph == {
        "name": "graph of 3 hosts and 0 switches",
        "kind": "graph",
        "hosts_forward": True,
    }


def test_the_graph_given_is_left_as_it_is() -> None:
    graph = plain((0, 1))

    from_graph(graph).edges["0", "1"]["bandwidth"] = 1.0

    assert graph.edges[0, 1] == {"bandwidth": 1e9, "latency": 1e-6}
    assert graph.nodes[0] == {}


@pytest.mark.parametrize("n_nodes", [2, 30, 300])
def test_layouts_are_the_same_each_time_and_apart(n_nodes: int) -> None:
    graph = plain(*((i, i + 1) for i in range(n_nodes - 1)))

    first, second = from_graph(graph), from_graph(graph)

    places = nx.get_node_attributes(first, "pos")
    assert places == nx.get_node_attributes(second, "pos")
    assert len(set(places.values())) == n_nodes


def test_switches_may_be_what_hosts_meet_over() -> None:
    graph = plain(("a", "s"), ("s", "t"), ("t", "b"))
    nx.set_node_attributes(graph, {"s": "switch", "t": "switch"}, "kind")

    assert from_graph(graph).graph["hosts_forward"] is False


def test_hosts_may_be_told_to_forward() -> None:
    graph = plain(("a", "s"), ("s", "b"), ("b", "c"))
    graph.nodes["s"]["kind"] = "switch"

    with pytest.raises(ValueError, match=r"no path from a to c; hosts pass on no messages"):
        from_graph(graph)

    graph.graph["hosts_forward"] = True
    assert from_graph(graph).graph["hosts_forward"] is True


def test_a_grid_that_has_lost_a_node_is_no_grid() -> None:
    graph = torus(dims=[3, 3])
    graph.remove_node("h4")

    assert "dims" not in from_graph(graph).graph
    assert from_graph(mesh(dims=[2, 2])).graph["dims"] == (2, 2)


def test_a_grid_with_false_coordinates_is_no_grid() -> None:
    graph = mesh(dims=[2, 2])
    graph.nodes["h3"]["coordinates"] = (7, 7)

    assert "dims" not in from_graph(graph).graph

    graph.nodes["h3"]["coordinates"] = "corner"
    assert "dims" not in from_graph(graph).graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.MultiGraph(), "expected a networkx Graph or DiGraph, got MultiGraph"),
        ("h0 h1", "got str"),
        (nx.Graph(), "it is empty"),
        (plain((0, 0)), "edge 0 0: joins a node to itself"),
        (plain((1, 2), (2, "1")), "two nodes are called '1'"),
        (plain(("a->b", "c")), "a node is called 'a->b'; names are"),
        (plain(("a\nb", "c")), "a node is called"),
        (plain((" ", "c")), "a node is called"),
        (plain((0, 1), directed=True), "there is no path from 1 to 0"),
        (plain((0, 1), (2, 3)), "there is no path from 0 to 2"),
        (nx.path_graph(2), "edge 0 1: has no bandwidth"),
        (nx.empty_graph(100_001), "it has 100,001 nodes and 0 edges; at most 100,000"),
    ],
)
def test_bad_graphs_are_refused(graph: "nx.Graph[object]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_graph(graph)


def test_bad_memory_is_refused() -> None:
    graph = plain((0, 1))
    graph.nodes[1]["memory_bandwidth"] = -1

    with pytest.raises(ValueError, match="node 1: memory_bandwidth must be a positive number"):
        from_graph(graph)


def test_half_duplex_must_be_alike_both_ways() -> None:
    graph = full_mesh(hosts=2)
    graph.edges["h0", "h1"].update(duplex="half", bandwidth=1.0)
    graph.edges["h1", "h0"].update(duplex="half", bandwidth=2.0)

    with pytest.raises(ValueError, match="edge h0 h1: duplex is half, so h1 h0 must be there"):
        from_graph(graph)


@given(st.data())
def test_unreachable_pairs_are_those_of_networkx(data: st.DataObject) -> None:
    random = nx.gnp_random_graph(7, 0.35, seed=data.draw(st.integers(0, 10**6)), directed=True)
    for u, v in random.edges:
        random.edges[u, v].update(bandwidth=1.0, latency=0.0)
    n_hosts = data.draw(st.integers(1, 7))
    nx.set_node_attributes(random, {i: "host" if i < n_hosts else "switch" for i in random}, "kind")
    forward = random.graph["hosts_forward"] = data.draw(st.booleans())

    def connected(u: int, v: int) -> bool:
        passable = [i for i in random if forward or i >= n_hosts or i in (u, v)]
        return bool(nx.has_path(random.subgraph(passable), u, v))

    cut = {
        f"from {u} to {v}" for u in range(n_hosts) for v in range(n_hosts) if not connected(u, v)
    }
    if cut:
        with pytest.raises(ValueError, match="there is no path from") as caught:
            from_graph(random)
        assert any(pair in str(caught.value) for pair in cut)
    else:
        assert len(from_graph(random)) == 7
