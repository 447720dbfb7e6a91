"""The lab on this machine: what it is built from, what it refuses, and what it leaves behind."""

import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collsim.cluster import build_network
from collsim.errors import ExecutionError, ExecutionUnavailable, ScenarioError
from collsim.gloo import GlooServer, namespaces
from collsim.gloo.lab import (
    GOODPUT,
    Shape,
    lab_network,
    rank_links,
    rank_rates,
    shape_of,
    switch_links,
    switch_rates,
)
from collsim.gloo.shaping import measure_alpha, shaped_group
from collsim.scenario import Scenario
from collsim.survey import Survey, survey_lab

LAB_FOUR = str(Path(__file__).parent.parent / "scenarios" / "lab-four.yaml")
Command = Callable[..., tuple[int, str, str]]
MBIT = 1e6 / 8
STAR: dict[str, Any] = {"kind": "star", "bandwidth": "100 Mbit/s", "latency": "50 us"}
BURST = "burst 5kb cburst 5kb quantum 1514"
MESH: dict[str, Any] = {**STAR, "kind": "full_mesh"}


def scenario(topology: dict[str, Any], ranks: int = 4, **fields: Any) -> Scenario:
    asked = {"algorithm": "flat", "nbytes": 65536, **fields}
    return Scenario.model_validate(
        {"collective": "broadcast", "ranks": ranks, "topology": topology, **asked}
    )


def shape(topology: dict[str, Any], ranks: int = 4) -> Shape:
    return shape_of(build_network(scenario(topology, ranks)))


def test_a_star_gives_each_rank_its_rates() -> None:
    links = {"rank 0": {"bandwidth": "20 Mbit/s"}, "h2->s0": {"bandwidth": "50 Mbit/s"}}
    found = shape({**STAR, "links": links})
    assert found.up == tuple(rate * MBIT for rate in (20, 100, 50, 100))
    assert found.down == tuple(rate * MBIT for rate in (20, 100, 100, 100))
    assert found.n_ranks == 4


def test_a_full_mesh_gives_each_pair_a_rate() -> None:
    found = shape({**MESH, "links": {"h0-h1": {"bandwidth": "20 Mbit/s"}}}, 3)
    slow, usual = 20 * MBIT, 100 * MBIT
    expected = [[0, slow, usual], [slow, 0, usual], [usual, usual, 0]]
    assert list(map(list, found.pairs)) == expected
    assert found.n_ranks == 3


@pytest.mark.parametrize(
    ("topology", "ranks", "message"),
    [
        (STAR, 17, "ranks: the lab takes 2 to 16, got 17"),
        (
            {**STAR, "links": {"*": {"duplex": "half"}}},
            4,
            "the lab has no half-duplex links",
        ),
        ({**STAR, "kind": "ring"}, 4, "topology.kind: the lab has one switch (star) or a link for"),
        (
            {**STAR, "bandwidth": "10 Gbit/s"},
            4,
            "topology.bandwidth: the lab shapes links of 1 Mbit/s to 1 Gbit/s, got 10,000 Mbit/s; "
            "try --set 'topology.bandwidth=100 Mbit/s'",
        ),
        ({**STAR, "bandwidth": "0.5 Mbit/s"}, 4, "got 0.5 Mbit/s"),
    ],
)
def test_a_network_that_no_lab_can_be_like_is_refused(
    topology: dict[str, Any], ranks: int, message: str
) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        shape(topology, ranks)


def test_ranks_that_share_a_host_have_no_lab() -> None:
    shared = scenario(STAR, ranks_per_host=2)
    with pytest.raises(ScenarioError, match="ranks_per_host: the lab has one rank a host"):
        shape_of(build_network(shared))


def test_the_model_of_a_lab_has_what_headers_leave_and_the_measured_latency() -> None:
    for topology, hops in ((STAR, 2), (MESH, 1)):
        asked = build_network(scenario(topology))
        model = lab_network(asked, 80e-6)
        route = model.route(0, 1)
        assert set(model.links.bandwidth[list(route)].tolist()) == {GOODPUT * 100 * MBIT}
        assert len(route) == hops
        assert sum(model.links.latency[list(route)].tolist()) == pytest.approx(80e-6)
        assert asked.links.bandwidth[route[0]] == 100 * MBIT, "the asked network stays as it was"


def test_every_packet_has_a_class_and_every_class_its_rate() -> None:
    star = Shape(up=(MBIT, 2 * MBIT), down=(3 * MBIT, 4 * MBIT))
    (up,) = [line for line in rank_rates(star, 1) if "classid 1:2 " in line]
    assert up.endswith("dev eth0 parent 1: classid 1:2 htb rate 2000000bit " + BURST)
    down = [line for line in switch_rates(star) if "classid 1:2 " in line]
    assert ["rate 3000000bit" in down[0], "rate 4000000bit" in down[1]] == [True, True]
    # Peers share the link: each has its part for sure, and the whole if it is alone.
    assert sum("rate 1000000bit ceil 2000000bit" in line for line in rank_rates(star, 1)) == 2
    mesh = Shape(pairs=((0.0, MBIT), (5 * MBIT, 0.0)))
    assert not switch_rates(mesh)
    (pair,) = [line for line in rank_rates(mesh, 1) if "ceil" in line]
    assert "rate 5000000bit ceil 5000000bit" in pair
    assert any("match ip dst 10.83.0.1/32" in line for line in rank_rates(mesh, 1))


def test_every_rank_has_a_cable_to_the_switch_that_carries_single_packets() -> None:
    lines = switch_links(2, ["/here", "/there"])
    assert "link add port1 type veth peer name eth0 netns /there" in lines
    assert "link set port1 master br0 gso_max_segs 1 up" in lines
    assert "addr add 10.83.0.2/24 dev eth0" in rank_links(1)


def completed(code: int, stderr: str = "") -> SimpleNamespace:
    return SimpleNamespace(returncode=code, stderr=stderr)


def test_who_may_make_namespaces_needs_nothing_and_others_a_user_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/sbin/{tool}")
    allowed = {"--net": True}

    def run(command: list[str], **_: object) -> SimpleNamespace:
        is_user = "--user" in command
        return completed(0 if is_user or allowed["--net"] else 1, "not permitted")

    monkeypatch.setattr(subprocess, "run", run)
    assert namespaces.with_rights() == []
    allowed["--net"] = False
    assert namespaces.with_rights() == ["unshare", "--user", "--map-root-user"]


def test_why_there_is_no_lab_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(ExecutionUnavailable) as caught:
        survey_lab(scenario(STAR))
    assert str(caught.value) == (
        "the lab needs the command ip, of the package iproute2. Without namespaces a link for each "
        "pair can be had: --set topology.kind=full_mesh"
    )
    monkeypatch.setattr(shutil, "which", lambda tool: tool)
    refused = completed(1, "unshare: Operation not permitted\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    with pytest.raises(namespaces.LabUnavailable) as refusal:
        namespaces.with_rights()
    assert str(refusal.value) == (
        "the lab needs root, or user namespaces, which are refused: "
        "unshare: Operation not permitted"
    )


def test_a_process_without_the_right_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(function: str, *arguments: int) -> None:
        if function == "unshare":
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(namespaces, "_call", refuses)
    with pytest.raises(namespaces.LabUnavailable, match=r"\(Operation not permitted\)"):
        namespaces.build(Shape(up=(MBIT, MBIT), down=(MBIT, MBIT)))


def test_a_tool_that_fails_or_hangs_is_named_and_nothing_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespaces, "_call", lambda *_: None)
    here = len(list(Path("/proc/self/fd").iterdir()))
    failed = completed(1, "Error: Unknown\n device type.\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    two = Shape(up=(MBIT, MBIT), down=(MBIT, MBIT))
    with pytest.raises(namespaces.LabUnavailable) as caught:
        namespaces.build(two)
    assert str(caught.value) == "ip could not set up the lab: Error: Unknown device type."

    def hangs(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 20)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(namespaces.LabUnavailable, match="ip did not end within 20 s"):
        namespaces.build(two)
    assert len(list(Path("/proc/self/fd").iterdir())) == here


def test_a_system_call_that_is_refused_says_why() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        namespaces.enter(-1)


# From here on in real labs.


@pytest.fixture(scope="module")
def server() -> Iterator[GlooServer]:
    with ExitStack() as stack:
        try:
            with shaped_group(shape(STAR, 2), timeout=30):
                pass
        except ExecutionUnavailable as error:
            pytest.skip(str(error))
        yield stack.enter_context(GlooServer(namespaces.with_rights()))


def network_namespaces() -> set[str]:
    """Every network namespace in which a process lives or that one holds open."""
    found = set()
    for place in (*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*")):
        try:
            target = str(place.readlink())
        except OSError:
            continue
        if target.startswith("net:"):
            found.add(target)
    return found


@pytest.mark.lab
@pytest.mark.parametrize(
    ("topology", "ranks"),
    [
        ({**STAR, "links": {"rank 1": {"bandwidth": "20 Mbit/s"}}}, 3),
        ({**MESH, "links": {"h0-h1": {"bandwidth": "20 Mbit/s"}}}, 3),
    ],
)
def test_links_carry_what_was_asked(
    server: GlooServer, topology: dict[str, Any], ranks: int
) -> None:
    said: list[str] = []
    survey = survey_lab(scenario(topology, ranks), said.append)
    assert said == ["latency", "rank 0's links", "rank 1's links", "rank 2's links"]
    assert survey.asked[0][1] == 20 * MBIT
    assert survey.asked[0][2] == 100 * MBIT
    assert 0.85 < survey.furthest < 1.15
    assert 0 < survey.alpha_s < 5e-3
    assert Survey.model_validate(survey.to_mapping()) == survey


@pytest.mark.lab
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("killed", "rank 2 died: signal SIGKILL"),
        ("aborts", "rank 2 died: signal SIGABRT"),
        ("stopped", "rank 2 was stopped (SIGSTOP)"),
    ],
)
def test_a_rank_that_fails_is_named_and_its_lab_is_gone(
    server: GlooServer, how: str, message: str
) -> None:
    before = network_namespaces()
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, check=True).stdout
    with server.group(4, timeout=3.0, lab=shape(STAR)) as group:
        assert len(network_namespaces() - before) == 5, "one a rank and the switch's"
        with pytest.raises(ExecutionError, match=re.escape(message)):
            group.run("tests.gloo_faults:dies", [{"rank": 2, "how": how}] * 4)
    assert_gone(before)
    assert subprocess.run(["ip", "netns", "list"], capture_output=True, check=True).stdout == names


def assert_gone(before: set[str]) -> None:
    deadline = time.monotonic() + 10
    while network_namespaces() - before:
        assert time.monotonic() < deadline, "namespaces are still there"
        time.sleep(0.05)


@pytest.mark.lab
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_ended_leaves_no_lab(server: GlooServer, ending: signal.Signals) -> None:
    before = network_namespaces()
    command = ["collsim", "lab", LAB_FOUR]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(network_namespaces() - before) < 5:
        assert time.monotonic() < deadline, "the lab was not built"
        time.sleep(0.02)
    started.send_signal(ending)
    assert started.wait(20)
    assert_gone(before)


@pytest.mark.lab
def test_labs_beside_each_other_and_in_threads_do_not_mix(server: GlooServer) -> None:
    found: dict[int, float] = {}

    def measure(rate: int) -> None:
        asked = {**STAR, "bandwidth": f"{rate} Mbit/s"}
        found[rate] = survey_lab(scenario(asked, 2)).measured[0][1] / MBIT

    threads = [threading.Thread(target=measure, args=(rate,)) for rate in (10, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {10: pytest.approx(10, rel=0.2), 40: pytest.approx(40, rel=0.2)}


@pytest.mark.lab
def test_a_lab_that_cannot_be_built_is_refused_and_the_server_lives_on(server: GlooServer) -> None:
    impossible = Shape(up=(-1.0, -1.0), down=(MBIT, MBIT))
    with pytest.raises(ExecutionUnavailable, match="tc could not set up the lab"):
        server.group(2, lab=impossible).__enter__()
    with server.group(2, lab=shape(STAR, 2)) as group:
        assert measure_alpha(group) > 0


@pytest.mark.lab
def test_the_command_shows_every_pair(server: GlooServer, run: Command, tmp_path: Path) -> None:
    kept = tmp_path / "survey.json"
    code, out, _ = run("lab", LAB_FOUR, "--set", "ranks=2", "--json", str(kept))
    assert code == 0
    assert "Measured between 2 ranks, each in a network of its own, one stream at a time" in out
    assert "Furthest from what was asked" in out
    assert Survey.model_validate_json(kept.read_text()).shape.n_ranks == 2


def test_the_command_refuses_what_the_lab_cannot_be_like(run: Command) -> None:
    code, _, err = run("lab", LAB_FOUR, "--set", "topology.kind=ring")
    assert code == 2
    assert "topology.kind: the lab has one switch" in err
