"""Topologies from files and from networkx graphs."""

import os
from contextlib import suppress
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collsim.errors import ScenarioError
from collsim.topology import (
    host_names,
    link_table,
    read_topology,
    routes,
    star,
)
from collsim.units import parse_bandwidth, parse_time

EDGES = """\
# two hosts on a switch, and a cable of their own
switch s0
host h0 memory_bandwidth=20e9 memory_latency=1e-7
h0 s0   bandwidth=1.25e9 latency=5e-6   # up and down
h1 s0   bandwidth=1e9 latency=6e-6 duplex=half

h1 -> h0 bandwidth=5e8 latency=1e-6
"""

GRAPHML = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k" for="node" attr.name="kind" attr.type="string"/>
  <key id="x" for="node" attr.name="x" attr.type="double"/>
  <key id="y" for="node" attr.name="y" attr.type="double"/>
  <key id="b" for="edge" attr.name="bandwidth" attr.type="{type}"/>
  <key id="l" for="edge" attr.name="latency" attr.type="{type}"/>
  <graph edgedefault="{default}">
    <node id="h0"><data key="x">1</data><data key="y">2</data></node>
    <node id="h1"><data key="x">3</data><data key="y">2</data></node>
    <node id="s0"><data key="k">switch</data><data key="x">2</data><data key="y">3</data></node>
    {edges}
  </graph>
</graphml>
"""


def edge(u: str, v: str, bandwidth: str = "1e9", latency: str = "1e-6") -> str:
    rates = f'<data key="b">{bandwidth}</data><data key="l">{latency}</data>'
    return f'<edge source="{u}" target="{v}">{rates}</edge>'


def graphml(*edges: str, type: str = "double", default: str = "undirected") -> str:
    return GRAPHML.format(type=type, default=default, edges="".join(edges))


def write(folder: Path, text: str, name: str = "net.txt") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


# what is right


def test_a_list_of_edges_is_read(tmp_path: Path) -> None:
    graph = read_topology(write(tmp_path, EDGES))

    assert host_names(graph) == ["h0", "h1"]
    assert graph.nodes["s0"]["kind"] == "switch"
    assert graph.nodes["h0"]["memory_bandwidth"] == 20e9
    assert graph.nodes["h0"]["memory_latency"] == 1e-7
    assert graph.graph["name"] == "net"
    assert graph.graph["hosts_forward"] is False
    half = {"bandwidth": 1e9, "latency": 6e-6, "duplex": "half"}
    assert {(u, v): data for u, v, data in graph.edges(data=True)} == {
        ("h0", "s0"): {"bandwidth": 1.25e9, "latency": 5e-6},
        ("s0", "h0"): {"bandwidth": 1.25e9, "latency": 5e-6},
        ("h1", "s0"): half,
        ("s0", "h1"): half,
        ("h1", "h0"): {"bandwidth": 5e8, "latency": 1e-6},
    }


def test_a_file_is_ready_to_be_routed_and_drawn(tmp_path: Path) -> None:
    graph = read_topology(write(tmp_path, EDGES))
    table = link_table(graph)

    found = routes(graph, table, [("h0", "h1"), ("h1", "h0")])

    assert [len(found["h0", "h1"]), len(found["h1", "h0"])] == [2, 1]
    assert table.names[:2] == ("s0→h0", "s0↔h1")
    assert all(len(pos) == 2 for _, pos in graph.nodes(data="pos"))


def test_values_may_have_units_where_the_caller_reads_them(tmp_path: Path) -> None:
    text = 'h0 h1 bandwidth="10 Gbit/s" latency=5us\nhost h0 memory_latency="1 us"'

    graph = read_topology(write(tmp_path, text), parse_bandwidth, parse_time)

    assert graph.edges["h1", "h0"] == {"bandwidth": 1.25e9, "latency": 5e-6}
    assert graph.nodes["h0"]["memory_latency"] == 1e-6
    assert graph.graph["hosts_forward"] is True


@pytest.mark.parametrize(
    ("type", "bandwidth", "latency"),
    [("double", "1.25e9", "5e-6"), ("string", "10 Gbit/s", "5 us")],
)
def test_graphml_is_read_with_and_without_units(
    tmp_path: Path, type: str, bandwidth: str, latency: str
) -> None:
    text = graphml(*(edge(h, "s0", bandwidth, latency) for h in ("h0", "h1")), type=type)

    graph = read_topology(write(tmp_path, text, "a.graphml"), parse_bandwidth, parse_time)

    assert host_names(graph) == ["h0", "h1"]
    assert graph.nodes["s0"] == {"kind": "switch", "pos": (2.0, 3.0)}
    assert graph.number_of_edges() == 4
    assert graph.edges["s0", "h1"] == {"bandwidth": 1.25e9, "latency": 5e-6}


def test_directed_graphml_keeps_its_directions(tmp_path: Path) -> None:
    edges = [edge("h0", "s0"), edge("s0", "h1"), edge("h1", "s0", "2e9"), edge("s0", "h0")]

    graph = read_topology(write(tmp_path, graphml(*edges, default="directed")))

    assert graph.edges["h1", "s0"]["bandwidth"] == 2e9
    assert graph.edges["s0", "h1"]["bandwidth"] == 1e9


def test_graphml_written_by_networkx_is_read_back(tmp_path: Path) -> None:
    graph = star(hosts=3)
    plain = nx.DiGraph(graph.edges(data=True))
    plain.add_nodes_from((node, {"kind": data["kind"]}) for node, data in graph.nodes(data=True))
    nx.write_graphml(plain, tmp_path / "star.xml")

    read = read_topology(tmp_path / "star.xml")

    assert {(u, v): d for u, v, d in read.edges(data=True)} == {
        (u, v): d for u, v, d in graph.edges(data=True)
    }


def test_defaults_of_graphml_keys_hold_for_those_without_a_value(tmp_path: Path) -> None:
    text = graphml(
        '<edge source="h0" target="s0"/>', edge("h1", "s0", "4e9"), type="string"
    ).replace(
        'attr.name="bandwidth" attr.type="string"/>',
        'attr.name="bandwidth"><default>2e9</default></key>',
    )
    text = text.replace(
        'attr.name="latency" attr.type="string"/>',
        'attr.name="latency" attr.type="double"><default>1e-6</default></key>',
    )

    graph = read_topology(write(tmp_path, text))

    assert graph.edges["h0", "s0"] == {"bandwidth": 2e9, "latency": 1e-6}
    assert graph.edges["h1", "s0"] == {"bandwidth": 4e9, "latency": 1e-6}


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "net.txt"
    file.write_bytes("host h0\n".encode("utf-8-sig"))

    assert list(read_topology(file)) == ["h0"]


# what is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h0 h1", "edge h0 h1: has no bandwidth"),
        ("h0 h1 bandwidth=1e9", "edge h0 h1: has no latency"),
        ("\nh0 h1 bandwidth=fast latency=0", "line 2: bandwidth='fast': "),
        ("h0 h1 bandwidth=0 latency=0", "bandwidth must be a positive number of bytes/s, got 0"),
        ("h0 h1 bandwidth=nan latency=0", "edge h0 h1: bandwidth must be"),
        ("h0 h1 bandwidth=1 latency=-1", "latency must be a number of seconds from 0 to"),
        ("h0 h1 bandwidth=1 latency=0 duplex=both", "duplex must be half or full, got 'both'"),
        ("h0 -> h1 bandwidth=1 latency=0 duplex=half", "duplex is half, so h1 h0 must be there"),
        ("h0 h0 bandwidth=1 latency=0", "edge h0 h0: joins a node to itself"),
        ("h0 h1 speed=1", "line 1: 'speed=1' is not allowed here; use bandwidth, latency, duplex"),
        ("h0 h1 latency=1 latency=2", "line 1: 'latency=2' is given twice"),
        ("switch s0 memory_latency=1", "'memory_latency=1' is not allowed here; use none"),
        ("host h0\nhost h0", "line 2: h0 is in line 1 already"),
        ("host h0\nswitch h0", "line 2: h0 is in line 1 already"),
        ("h0 h1 bandwidth=1 latency=0\nh1 -> h0", "line 2: h1 h0 is in line 1 already"),
        ("h0", "line 1: expected 'u v key=value …'"),
        ("h0 h1 h2", "line 1: expected 'u v key=value …'"),
        ("h0 ->", "line 1: expected 'u v key=value …'"),
        ("bandwidth=1", "line 1: expected 'u v key=value …'"),
        ("h0 latency=1 h1", "line 1: names come before key=value"),
        ('h0 h1 latency="5 us', "line 1: a quote is not closed in 'h0 h1 latency="),
        ("", "it is empty"),
        ("# nothing", "it is empty"),
        ("switch s0", "there is no host; every node is a switch"),
        ("host h0\nhost h1", "there is no path from h0 to h1"),
        ("h0 -> h1 bandwidth=1 latency=0", "there is no path from h1 to h0"),
        (f"{'x' * 500}", "…'"),
        ("<graphml", "is not GraphML: ParseError"),
        ("<graphml/>", "is not GraphML"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>", "has a <!DOCTYPE> or <!ENTITY>"),
        (graphml(edge("h0", "s0"), edge("s0", "h0")), "edge h0 s0: is there twice"),
        (graphml(edge("h0", "h9")), "edge h0 h9: has no|no path|kind"),
        (graphml(edge("h0", "s0", "fast"), type="double"), "is not GraphML: ValueError"),
        (graphml(edge("h0", "s0", "fast"), type="string"), "edge h0 s0: bandwidth='fast'"),
        (graphml(edge("h0", "s0", "1" * 400), type="long"), "is not GraphML|edge h0 s0: bandwidth"),
        (graphml(edge("h0", "s0")), "there is no path from h0 to h1; hosts pass on no messages"),
        (graphml().replace('"kind"', '"memory_latency"'), "node s0: memory_latency='switch'"),
        (graphml().replace(">switch<", ">router<"), "kind must be host or switch, got 'router'"),
    ],
)
def test_bad_files_are_named_with_line_or_edge(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)

    with pytest.raises(ScenarioError, match=message) as caught:
        read_topology(file)

    assert caught.value.field == "topology.file"
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < len(str(file)) + 700
    assert "\n" not in str(caught.value)


def test_an_entity_bomb_is_refused_at_once(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a0 "ha">{levels}]><graphml>&a9;</graphml>'

    with pytest.raises(ScenarioError, match="<!DOCTYPE> or <!ENTITY>, which is not allowed"):
        read_topology(write(tmp_path, bomb))


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\x00", b"host h0\0", b"\xff\xfeh\0"])
def test_binary_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "net.graphml"
    file.write_bytes(content)

    with pytest.raises(ScenarioError, match="is no text"):
        read_topology(file)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ScenarioError, match="is a folder, not a file"):
        read_topology(tmp_path)
    with pytest.raises(ScenarioError, match="is not a file"):
        read_topology(tmp_path / "pipe")
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        read_topology(tmp_path / "none.graphml")
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_topology("a\0b")


def test_huge_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "huge.txt"
    with file.open("wb") as sparse:
        sparse.truncate(10**9)

    with pytest.raises(ScenarioError, match="has more than 50,000,000 bytes"):
        read_topology(file)


@given(
    text=st.one_of(
        st.text(max_size=80),
        st.lists(
            st.sampled_from(
                ["h0", "h1", "host", "switch", "->", "bandwidth=1", "latency=0", '"', "\n", "#"]
            ),
            max_size=20,
        ).map(" ".join),
        st.tuples(st.integers(0, 900), st.sampled_from(["", "<", ">", '"', "key", "&x;"])).map(
            lambda cut: (
                graphml(edge("h0", "s0"), edge("h1", "s0"))[: cut[0]]
                + cut[1]
                + graphml(edge("h0", "s0"), edge("h1", "s0"))[cut[0] + 1 :]
            )
        ),
    )
)
def test_any_text_is_a_topology_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.txt"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))

    with suppress(ScenarioError):
        assert host_names(read_topology(file))
