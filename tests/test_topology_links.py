"""The link table."""

import pytest

from collsim.topology import (
    DEFAULT_MEMORY_BANDWIDTH,
    DEFAULT_MEMORY_LATENCY,
    full_mesh,
    link_table,
    override,
    star,
)


def test_the_link_table_says_what_the_graph_says() -> None:
    graph = star(hosts=2, bandwidth=3.0, latency=0.5)
    graph.nodes["h1"].update(memory_bandwidth=7.0, memory_latency=0.25)

    table = link_table(graph)

    assert table.names == ("h0→s0", "h1→s0", "s0→h0", "s0→h1", "h0 memory", "h1 memory")
    assert table.bandwidth.tolist() == [3.0] * 4 + [DEFAULT_MEMORY_BANDWIDTH, 7.0]
    assert table.latency.tolist() == [0.5] * 4 + [DEFAULT_MEMORY_LATENCY, 0.25]
    assert table.index == {("h0", "s0"): 0, ("h1", "s0"): 1, ("s0", "h0"): 2, ("s0", "h1"): 3}
    assert table.memory == {"h0": 4, "h1": 5}
    assert len(table) == 6


def test_the_directions_of_a_half_duplex_link_share_one_row() -> None:
    graph = override(full_mesh(hosts=3), {"h0-h1": {"duplex": "half"}})

    table = link_table(graph)

    assert table.index["h0", "h1"] == table.index["h1", "h0"]
    assert table.names.count("h0↔h1") == 1
    assert len(table) == 5 + 3
    assert len(set(table.names)) == len(table)


def test_the_link_table_cannot_be_changed_by_accident() -> None:
    table = link_table(star(hosts=2))

    with pytest.raises(ValueError, match="read-only"):
        table.bandwidth[0] = 1.0
