"""Running scenarios: every shipped one, its golden summary, and what can go wrong on the way."""

from pathlib import Path

import pytest

from collsim.catalogue import scenarios_folder
from collsim.errors import CollsimError, ScenarioError
from collsim.network import Model
from collsim.runner import Result, run
from collsim.scenario import load_scenario, parse_scenario
from collsim.units import spell_time

SCENARIOS = sorted(scenarios_folder().glob("*.yaml"))
STAR = {"kind": "star", "bandwidth": "10 Gbit/s", "latency": "5 us"}


def result_of(**keys) -> Result:
    given = {"algorithm": "binomial", "ranks": 8, "nbytes": "1 MiB", "topology": STAR, **keys}
    return run(parse_scenario(given))


def summary(result: Result) -> str:
    lines = [result.scenario.question]
    for one in result.runs:
        bottleneck = one.timeline.bottleneck
        lines.append(f"{one.plan.title}: {spell_time(one.timeline.makespan)}, {bottleneck}")
    lines += [f"{title} left out: it {reason}" for title, reason in result.skipped]
    return "\n".join([*lines, f"bound: {spell_time(result.bound.seconds)}"]) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_answers_its_question_as_before(path: Path, golden) -> None:
    scenario = load_scenario(path)
    assert scenario.question.endswith("?")
    result = run(scenario)
    for one in result.runs:
        assert one.timeline.makespan >= result.bound.seconds * (1 - 1e-9)
    golden.check(f"{path.stem}.txt", summary(result))


def test_at_least_twelve_scenarios_come_with_collsim() -> None:
    assert len(SCENARIOS) >= 12


def test_rows_hold_what_the_command_line_promises() -> None:
    (row,) = result_of().rows()
    assert row["makespan_s"] == pytest.approx(2546.6e-6, rel=1e-4)
    assert row["lower_bound_s"] <= row["makespan_s"]
    assert (row["messages"], row["payload_bytes"], row["verified"]) == (7, 7 << 20, True)
    assert result_of().to_frame()["messages"].tolist() == [7]


def test_on_an_ideal_star_the_exact_form_agrees_to_the_picosecond() -> None:
    result = result_of(algorithm="all", network={"sharing": "fifo"})
    agreeing = [one for one in result.runs if one.exact is not None]
    assert len(agreeing) == len(result.runs) - 1  # two_trees has none
    for one in agreeing:
        assert one.exact == one.timeline.makespan


@pytest.mark.parametrize(
    "other",
    [
        {"network": {"sharing": "fair"}},
        {"network": {"sharing": "fifo"}, "acks": True},
        {"network": {"sharing": "fifo", "overhead": "1 us"}},
        {"network": {"sharing": "fifo"}, "topology": {**STAR, "kind": "ring"}},
        {"network": {"sharing": "fifo"}, "ranks_per_host": 2},
        {
            "network": {"sharing": "fifo"},
            "topology": {**STAR, "links": {"rank 3": {"bandwidth": "1 Gbit/s"}}},
        },
        {"network": {"sharing": "fifo"}, "topology": {**STAR, "links": {"*": {"duplex": "half"}}}},
    ],
)
def test_elsewhere_no_exact_form_is_claimed(other: dict) -> None:
    assert result_of(**other).runs[0].exact is None


def test_acknowledgements_make_serial_senders_wait_for_delivery() -> None:
    """Flat, three ranks: without acks the second message follows the first; with them it waits."""
    fifo = {"sharing": "fifo"}
    plain, acked = (
        result_of(algorithm="flat", ranks=3, nbytes=12500, network=fifo, acks=acks).runs[0].timeline
        for acks in (False, True)
    )
    assert plain.makespan == pytest.approx(2 * 10e-6 + 10e-6)
    assert acked.makespan == pytest.approx(2 * (10e-6 + 10e-6 + 10e-6))
    assert len(acked.schedule) == 4


def test_engines_give_the_same_and_say_which_they_are() -> None:
    simpy, compiled = (result_of(engine=engine, algorithm="all") for engine in ("simpy", "replay"))
    for slow, fast in zip(simpy.runs, compiled.runs, strict=True):
        assert (slow.timeline.done == fast.timeline.done).all()
    assert simpy.provenance["engine"] == "simpy"
    assert compiled.provenance["engine"] == "replay (compiled)"


def test_large_runs_take_the_compiled_engine_by_themselves() -> None:
    large = result_of(algorithm="chain", ranks=64, segment="2 KiB")
    assert len(large.runs[0].schedule) > 20_000
    assert large.provenance["engine"] == "replay (compiled)"
    assert result_of().provenance["engine"] == "simpy"


def test_all_leaves_out_what_is_not_made_for_this_number_of_ranks_and_says_so() -> None:
    result = result_of(algorithm="all", ranks=6, nbytes=6)
    reasons = dict(result.skipped)
    assert "needs a power of two ranks, got 6" in reasons["scatter_rd_all_gather"]
    assert len(result.runs) == len(result.scenario.definition.algorithms) - len(reasons)


def test_one_by_name_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(
        ScenarioError, match="algorithm: scatter_rd_all_gather needs a power of two"
    ):
        result_of(algorithm="scatter_rd_all_gather", ranks=6)


def test_huge_runs_are_refused_with_the_count_the_limit_and_how_to_raise_it() -> None:
    with pytest.raises(
        ScenarioError, match="would send 1,047,552 messages, more than 200,000;.*max_"
    ):
        result_of(collective="all_gather", algorithm="ring", ranks=1024, nbytes=1)


def test_zero_bytes_fewer_bytes_than_ranks_and_one_rank() -> None:
    for nbytes in (0, 1, 3):
        for name in ("chain", "scatter_ring_all_gather", "two_trees"):
            assert result_of(algorithm=name, nbytes=nbytes).runs[0].timeline.makespan > 0
    assert result_of(ranks=1).runs[0].timeline.makespan == 0


@pytest.mark.parametrize(("segment", "segments"), [("64 KiB", 16), (1 << 20, 1), (100, 10486)])
def test_segments_follow_from_the_segment_size(segment: object, segments: int) -> None:
    found = result_of(algorithm="chain", ranks=2, segment=segment, max_messages=400_000)
    assert found.runs[0].plan.segments == segments


def test_a_segment_for_an_algorithm_without_segments_is_noted() -> None:
    assert "not segmented" in result_of(segment="64 KiB").runs[0].plan.note


def test_the_best_segment_is_noted_and_beats_its_neighbours() -> None:
    best = result_of(algorithm="chain", network={"sharing": "fifo"}).runs[0]
    assert "best on an ideal network" in best.plan.note
    chosen = -(-(1 << 20) // best.plan.segments)
    for other in (chosen // 2, chosen * 2):
        worse = result_of(algorithm="chain", segment=other, network={"sharing": "fifo"}).runs[0]
        assert worse.timeline.makespan >= best.timeline.makespan


def test_topologies_presets_links_and_overrides() -> None:
    fast = result_of(topology={"kind": "star", "link": "100gbe"})
    assert fast.runs[0].timeline.makespan < 1e-3
    machine = result_of(topology={"preset": "dgx-h100"}, ranks=8)
    assert machine.network.graph.graph["kind"] == "multi_gpu"
    slow = {**STAR, "links": {"rank 3": {"bandwidth": "1 Gbit/s"}, "h2": {"latency": "1 ms"}}}
    network = result_of(topology=slow).network
    assert network.graph.edges["s0", "h3"]["bandwidth"] == 125e6
    assert network.graph.edges["h2", "s0"]["latency"] == 1e-3


def test_several_ranks_a_host_fill_fewer_hosts() -> None:
    result = result_of(ranks_per_host=4)
    assert result.network.placement == ("h0",) * 4 + ("h1",) * 4
    round_robin = result_of(ranks_per_host=4, placement="round_robin")
    assert round_robin.network.placement == ("h0", "h1") * 4
    explicit = result_of(ranks=2, placement=["h1", "h0"])
    assert explicit.network.placement == ("h1", "h0")


def test_a_topology_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text(
        "switch s\na s bandwidth=10Gbit/s latency=5us\nb s bandwidth=1Gbit/s latency=5us\n"
    )
    scenario = parse_scenario(
        {"algorithm": "flat", "ranks": 2, "nbytes": 1000, "topology": {"file": "net.txt"}},
        folder=tmp_path,
    )
    assert run(scenario).runs[0].timeline.makespan == pytest.approx(10e-6 + 8e-6)


BAD_TOPOLOGIES = [
    ({}, "topology: name one of kind, file and preset, got nothing"),
    ({"kind": "star", "file": "x"}, "got kind and file"),
    ({"kind": "strar"}, "topology.kind: 'strar' is unknown, did you mean star"),
    ({"kind": 3}, "topology.kind: 3 is unknown"),
    ({"kind": "star", "host": 3}, "topology.host: unknown key of star, did you mean hosts"),
    ({"kind": "star", "bandwidth": "10 Gb"}, "topology.bandwidth: '10 Gb' .*lacks the /s"),
    ({"kind": "star", "bandwidth": 0}, "topology: .*bandwidth"),
    ({"kind": "star", "latency": "-5 us"}, "topology.latency: '-5 us' is negative"),
    ({"kind": "star", "hosts": "many"}, "topology: hosts"),
    ({"kind": "star", "hosts": 4}, "ranks: 8 ranks do not fit"),
    ({"kind": "star", "hosts": 10**9}, "topology: .*"),
    ({"kind": "fat_tree", "k": 3}, "topology: k"),
    ({"kind": "star", "link": "7gbe"}, "topology.link: '7gbe' is unknown"),
    ({"preset": "cray"}, "topology.preset: 'cray' is unknown"),
    ({"file": "none.graphml"}, "topology.file: .*none.graphml"),
    ({"file": "x", "hosts": 3}, "topology.hosts: unknown key"),
    ({**STAR, "links": {"h9": {"latency": 1}}}, "topology.links.h9"),
    ({**STAR, "links": {"rank 9": {"latency": 1}}}, "topology.links.rank 9: ranks are 0 to 7"),
    ({**STAR, "links": {"h1": 5}}, "topology.links.h1: expected"),
    ({**STAR, "links": [1]}, "topology.links: expected"),
    ({**STAR, "links": {"h1": {"speed": 5}}}, "topology.links.h1.speed: unknown key"),
    ({**STAR, "links": {"h1": {"bandwidth": "5"}}}, "topology.links.h1.bandwidth: '5' has no unit"),
]


@pytest.mark.parametrize(("topology", "message"), BAD_TOPOLOGIES, ids=lambda v: str(v)[:40])
def test_bad_topologies_are_one_clear_line(topology: dict, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        result_of(topology=topology)
    assert "\n" not in str(caught.value)


def test_a_disconnected_graph_names_a_pair(tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text(
        "a b bandwidth=1Gbit/s latency=1us\nc d bandwidth=1Gbit/s latency=1us\n"
    )
    given = {"algorithm": "flat", "ranks": 3, "nbytes": 1, "topology": {"file": "net.txt"}}
    with pytest.raises(ScenarioError, match="a.*c|c.*a"):
        run(parse_scenario(given, folder=tmp_path))


def test_parameters_that_a_program_refuses_are_scenario_errors() -> None:
    with pytest.raises(ScenarioError, match="algorithm.knomial: .*k must be.* at least 2"):
        result_of(algorithm={"name": "knomial", "k": 1})
    with pytest.raises(ScenarioError, match="algorithm.binomial: .*unexpected keyword.*'k'"):
        result_of(algorithm={"name": "binomial", "k": 2})


MY_TREE = '''
from collsim import ALL, Algorithm, Rank, Recv, Send

def star(me: Rank):
    """Everything from the root."""
    if me.virtual == 0:
        for v in range(1, me.n_ranks):
            yield Send(me.actual(v), ALL)
    else:
        yield Recv(me.root, ALL)

def wrong(me: Rank):
    yield Send(me.actual(1), ALL)

row = Algorithm(star)
number = 3
'''


def test_an_algorithm_in_the_users_own_file(tmp_path: Path) -> None:
    (tmp_path / "my_tree.py").write_text(MY_TREE)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")

    def with_algorithm(name: str) -> Result:
        given = {"algorithm": ["flat", name], "ranks": 4, "nbytes": 1000, "topology": STAR}
        return run(parse_scenario(given, folder=tmp_path))

    for name in ("my_tree.py:star", "my_tree.py:row"):
        flat, mine = with_algorithm(name).runs
        assert mine.timeline.makespan_ps == flat.timeline.makespan_ps
    with pytest.raises(CollsimError, match="rank 1, step 0: .*a rank cannot message itself"):
        with_algorithm("my_tree.py:wrong")
    for name, message in (
        ("none.py:star", "none.py is not a file"),
        ("my_tree.py:absent", "has no function 'absent'"),
        ("my_tree.py:number", "has no function 'number'"),
        ("my_tree.py:a b", "expected FILE.py:FUNCTION"),
        ("broken.py:star", "cannot be imported: ModuleNotFoundError"),
    ):
        with pytest.raises(ScenarioError, match=message):
            with_algorithm(name)


def test_network_options_reach_the_model() -> None:
    network = {"sharing": "fifo", "overhead": "2 us", "eager_limit": "1 KiB", "seed": 3}
    model = result_of(network=network).network.model
    assert model == Model(sharing="fifo", overhead=2e-6, eager_limit=1024, seed=3)
