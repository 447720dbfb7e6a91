"""x."""

from collsim.topology.wiring import (
    DEFAULT_BANDWIDTH,
    DEFAULT_LATENCY,
    add_host,
    add_link,
    add_switch,
    new_graph,
)


def star(*, hosts=8, bandwidth=DEFAULT_BANDWIDTH, latency=DEFAULT_LATENCY):
    """One switch."""
    graph = new_graph("star", f"star of {hosts} hosts", hosts_forward=False)
    for i in range(hosts):
        add_host(graph, f"h{i}", (i, 0))
    add_switch(graph, "s0", (0, 1))
    for i in range(hosts):
        add_link(graph, f"h{i}", "s0", bandwidth, latency)
    return graph


TOPOLOGIES = {"star": star}
