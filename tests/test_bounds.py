"""Lower bounds: worked cases, and that nothing simulated on any topology is ever faster."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collsim.collectives import COLLECTIVES
from collsim.cost import bounds
from collsim.cost.bounds import informing_all, least_latency, lower_bound
from collsim.network import Model, Network, connect
from collsim.simulation import simulate
from collsim.topology import TOPOLOGIES, override
from collsim.tracing import trace


def network_of(kind: str, n_ranks: int, model: Model | None = None, /, **parameters) -> Network:
    graph = TOPOLOGIES[kind](**parameters)
    hosts = [node for node, about in graph.nodes(data=True) if about["kind"] == "host"]
    return connect(graph, tuple(hosts[i % len(hosts)] for i in range(n_ranks)), model or Model())


def bound(collective: str, network: Network, nbytes: int, root: int = 0) -> float:
    return lower_bound(COLLECTIVES[collective], network, nbytes, root).seconds


@pytest.mark.parametrize(("p", "cycles"), [(2, 10), (4, 18), (8, 24), (16, 32), (32, 38), (64, 46)])
def test_the_logp_machine_informs_ranks_as_its_authors_say(p: int, cycles: float) -> None:
    """G1: L = 6, g = 4, o = 2, of Culler et al., LogP (PPoPP 1993): 24 for eight ranks."""
    model = Model(sharing="fifo", overhead=2.0, gap=4.0)
    network = network_of("star", p, model, hosts=p, bandwidth=1e30, latency=3.0)
    assert informing_all(network, 1, 0).seconds == pytest.approx(cycles)


def test_a_star_is_bound_by_one_link() -> None:
    network = network_of("star", 8, hosts=8, bandwidth=1e9, latency=1e-6)
    assert bound("broadcast", network, 10**6) == pytest.approx(1e-3 + 2e-6)
    assert bound("scatter", network, 10**6) == pytest.approx(7e-3 + 2e-6)
    assert bound("all_gather", network, 10**6) == pytest.approx(7e-3 + 1e-6)


def test_a_slow_link_binds_everybody() -> None:
    graph = override(
        TOPOLOGIES["star"](hosts=4, bandwidth=1e9, latency=0.0), {"h2": {"bandwidth": 1e8}}
    )
    network = connect(graph, ("h0", "h1", "h2", "h3"), Model())
    assert bound("broadcast", network, 10**6) == pytest.approx(1e-2)
    assert bound("scatter", network, 10**6) == pytest.approx(1e-2)
    assert bound("all_gather", network, 10**6) == pytest.approx(3e-2)


def test_a_thin_trunk_binds_what_must_cross_it() -> None:
    """Two sites of four: one copy of a broadcast, four blocks of a scatter cross 1 Gbit/s."""
    network = network_of(
        "two_sites", 8, hosts_per_site=4, bandwidth=1.25e9, latency=0.0,
        thin_bandwidth=125e6, thin_latency=1e-3,
    )  # fmt: skip
    least = 0.0  # between neighbours on one site
    assert bound("broadcast", network, 10**6) == pytest.approx(8e-3 + least)
    assert bound("scatter", network, 10**6) == pytest.approx(4 * 8e-3 + least)
    slow = connect(network.graph, network.placement, Model(sharing="fifo"))
    assert bound("broadcast", slow, 10**6) == pytest.approx(9e-3)


def test_a_ring_brings_bytes_in_from_both_sides() -> None:
    network = network_of("ring", 6, hosts=6, bandwidth=1e9, latency=0.0)
    assert bound("broadcast", network, 10**6) == pytest.approx(0.5e-3)
    assert bound("all_gather", network, 10**6) == pytest.approx(2.5e-3)
    assert bound("scatter", network, 10**6) == pytest.approx(2.5e-3)


def test_on_large_networks_a_cheaper_bound_is_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, parameters in KINDS:
        network = network_of(kind, 4, **parameters)
        exact = least_latency(network)
        with monkeypatch.context() as patched:
            patched.setattr(bounds, "MOST_SEARCHED", 1)
            cheap = least_latency(network)
        assert 0 < cheap <= exact
        if kind in ("star", "ring", "full_mesh"):
            assert cheap == exact


def test_one_rank_and_one_host() -> None:
    assert bound("broadcast", network_of("star", 1, hosts=2), 1000) == 0
    alone = network_of("star", 3, hosts=1)
    for collective in COLLECTIVES:
        found = lower_bound(COLLECTIVES[collective], alone, 10**6)
        assert 1e-4 <= found.seconds < 1e-3
        assert found.reason


KINDS: list[tuple[str, dict]] = [
    ("star", {"hosts": 5}),
    ("line", {"hosts": 4}),
    ("ring", {"hosts": 5}),
    ("mesh", {"dims": (2, 3)}),
    ("torus", {"dims": (3, 3)}),
    ("hypercube", {"dimension": 3}),
    ("full_mesh", {"hosts": 4}),
    ("fat_tree", {"k": 2}),
    ("leaf_spine", {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "oversubscription": 2}),
    ("dragonfly", {"p": 1, "a": 2, "h": 1}),
    ("multi_gpu", {"nodes": 2, "gpus_per_node": 3}),
    ("two_sites", {"hosts_per_site": 2}),
]
models = st.builds(
    Model,
    sharing=st.sampled_from(["fifo", "fair"]),
    protocol=st.sampled_from(["rendezvous", "eager"]),
    overhead=st.sampled_from([0.0, 2e-6]),
    gap=st.sampled_from([0.0, 3e-6]),
    store_and_forward=st.booleans(),
)


@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=lambda v: str(v))
@given(data=st.data(), model=models)
@settings(max_examples=30)
def test_nothing_simulated_beats_the_bound(
    kind: str, parameters: dict, data: st.DataObject, model: Model
) -> None:
    collective = COLLECTIVES[data.draw(st.sampled_from(list(COLLECTIVES)))]
    name = data.draw(st.sampled_from(list(collective.algorithms)))
    algorithm = collective.algorithms[name]
    p = data.draw(st.integers(1, 9).filter(algorithm.ranks.allows))
    root = data.draw(st.integers(0, p - 1)) if collective.rooted else 0
    network = network_of(kind, p, model, **parameters)
    nbytes = data.draw(st.sampled_from([0, 1, 1000, 100_000]))
    segments = data.draw(st.integers(1, 6))
    schedule = trace(collective, algorithm, p, root=root, segments=segments)
    found = simulate(schedule, network, nbytes)
    least = lower_bound(collective, network, nbytes, root)
    slack_ps = 1 + len(found.hops.link if found.hops else ())  # a picosecond a hop
    assert found.makespan_ps + slack_ps >= least.seconds * 1e12 * (1 - 1e-9), least.reason


def test_a_bound_that_counts_too_much_would_be_noticed() -> None:
    """The comparison above has teeth: the best chain comes within a factor of the bound."""
    network = network_of("star", 4, Model(sharing="fifo"), hosts=4)
    broadcast = COLLECTIVES["broadcast"]
    schedule = trace(broadcast, broadcast.algorithms["chain"], 4, segments=200)
    found = simulate(schedule, network, 100_000_000)
    assert found.makespan < 1.1 * bound("broadcast", network, 100_000_000)
