"""Ranks of torchrun: two agents stand for two machines."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collsim.gloo.clocks import best_offset, clock_name, offset_to_rank_0
from collsim.gloo.torchrun import Mail
from collsim.scenario import load_scenario

SCENARIO = "scenarios/article-example.yaml"
REPOSITORY = Path(__file__).parent.parent
LIMIT = 120.0
RENAME = 'hostname elsewhere && exec "$@"'
ELSEWHERE = ("unshare", "--uts", "--time", "--monotonic", "5000", "sh", "-c", RENAME, "sh")
"""Begins the command of an agent on what looks like another machine."""


@dataclass(frozen=True)
class Ended:
    """How torchrun's agents ended.

    Attributes:
        codes: Their exit codes.
        out: What the ranks printed.
        err: What they, and torchrun, wrote to their standard errors.
    """

    codes: tuple[int, ...]
    out: str
    err: str


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def torchrun(*arguments: str, agents: int = 2, ranks: int = 2, prefix: Sequence[str] = ()) -> Ended:
    """Start `agents` agents of `ranks` ranks each; `prefix` begins the last agent's command."""
    port = free_port()
    options = f"--nnodes {agents} --nproc-per-node {ranks} --rdzv-backend c10d --rdzv-id test"
    meet = f"--rdzv-endpoint 127.0.0.1:{port} --local-addr 127.0.0.1"
    command = [sys.executable, "-m", "torch.distributed.run", *options.split(), *meet.split()]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [*(prefix if agent == agents - 1 else ()), *command, *arguments],
            cwd=REPOSITORY,
            env={**environment, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for agent in range(agents)
    ]
    try:
        written = [agent.communicate(timeout=LIMIT) for agent in started]
    finally:
        for agent in started:
            agent.kill()
            agent.wait()
    outs, errs = zip(*written, strict=True)
    return Ended(tuple(agent.returncode for agent in started), "".join(outs), "".join(errs))


@pytest.fixture(scope="module", autouse=True)
def _torch() -> None:
    pytest.importorskip("torch", reason="real gloo runs need torch")


@pytest.mark.gloo
def test_check_between_two_agents_finds_tensors_and_bytes_equal(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    ended = torchrun("-m", "collsim", "check", SCENARIO, "--json", str(found))
    assert ended.codes == (0, 0), ended.err
    assert ended.out.count("4 real gloo ranks on this machine") == 1
    told = json.loads(found.read_text())
    assert told["tensors_equal"]
    assert told["bytes_equal"]
    assert [len(one["wire_bytes_measured"]) for one in told["algorithms"]] == [4, 4]
    assert told["machines"] == []


@pytest.mark.gloo
def test_calibrate_between_two_agents_writes_a_network_that_scenarios_include(
    tmp_path: Path,
) -> None:
    network, times = tmp_path / "network.yaml", tmp_path / "times.csv"
    ended = torchrun("-m", "collsim", "calibrate", "-o", str(network), "--csv", str(times))
    assert ended.codes == (0, 0), ended.err
    assert ended.out.count("measured on loopback, 4 ranks") == 1
    peers = {line.split(",")[0] for line in times.read_text().splitlines()[1:]}
    assert peers == {"1", "2", "3"}
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("include: network.yaml\nranks: 4\nalgorithm: gloo\nnbytes: 1 KiB\n")
    assert load_scenario(scenario, ()).network.protocol == "rendezvous"


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (f"check {SCENARIO} --set ranks=3", "ranks: torchrun has started 2, so there must be 2"),
        (f"calibrate --lab {SCENARIO}", "--lab: a lab starts its own ranks"),
    ],
)
def test_what_torchrun_cannot_do_is_said_once(command: str, complaint: str) -> None:
    ended = torchrun("-m", "collsim", *command.split(), agents=1)
    assert ended.codes == (1,)
    assert ended.err.count(f"error: {complaint}") == 1
    assert f"{REPOSITORY}/collsim" not in ended.err  # a traceback of ours; torchrun prints its own


@pytest.mark.gloo
def test_one_rank_calibrates_nothing() -> None:
    ended = torchrun("-m", "collsim", "calibrate", agents=1, ranks=1)
    assert "error: ranks: torchrun must start 2 or more, it has started 1" in ended.err


@pytest.mark.gloo
def test_commands_that_need_no_ranks_run_once() -> None:
    ended = torchrun("-m", "collsim", "list", "presets", agents=1)
    assert ended.codes == (0,)
    assert ended.out.count("infiniband-hdr") == 1


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("fault", "blamed"),
    [
        ("raises", "rank 2 raised ZeroDivisionError: by hand (last seen: on the brink)"),
        ("raises_unheard", "rank 2 raised ZeroDivisionError: by hand"),
        ("sleeps", "rank 2 did not answer within 2 s"),
        ("waits", "raised TimeoutError: timed out waiting for the others to come this far"),
    ],
)
def test_a_rank_that_fails_is_named(fault: str, blamed: str) -> None:
    ended = torchrun("-m", "tests.torchrun_work", fault, agents=1, ranks=3)
    assert blamed in ended.out


@pytest.mark.gloo
def test_another_machine_has_another_name_and_another_clock(tmp_path: Path) -> None:
    """The second agent's monotonic clock is more than an hour ahead, and its host name another."""
    tried = subprocess.run([*ELSEWHERE, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no clock and name of its own can be made here: {tried.stderr.strip()}")
    found = tmp_path / "found.json"
    ended = torchrun("-m", "collsim", "check", SCENARIO, "--json", str(found), prefix=ELSEWHERE)
    assert ended.codes == (0, 0), ended.err
    assert "4 real gloo ranks on 2 machines: " in ended.out
    assert "elsewhere (2)" in ended.out
    told = json.loads(found.read_text())
    assert len(told["machines"]) == 4
    assert len(set(told["machines"])) == 2
    assert told["bytes_equal"]
    ended = torchrun("-m", "tests.torchrun_work", "clocks", prefix=ELSEWHERE)
    clocks = np.array(json.loads(ended.out)) / 1e9
    apart, shared = np.ptp(clocks, axis=0)
    assert apart > 4000
    assert shared < 0.2


@pytest.mark.gloo
def test_a_value_too_large_for_the_store_travels_in_pieces() -> None:
    import torch.distributed as dist

    store: Any = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)  # type: ignore[attr-defined]
    before, mail = store.num_keys(), Mail(store)
    large = np.random.default_rng(0).bytes(9 << 20)
    mail.put("large", large)
    assert mail.take("large") == large
    assert store.num_keys() == before, "what is taken is not left"
    with pytest.raises(dist.DistNetworkError):
        store.set("large", large)


def test_the_shortest_round_trip_tells_the_offset_best() -> None:
    slow, fast = (0, 1100, 400), (1000, 2010, 1020)
    assert best_offset([slow, fast]) == 1000
    assert best_offset([(5, 5, 5)]) == 0


def test_ranks_of_one_clock_exchange_nothing() -> None:
    """No process group exists here, so a message would be an error."""
    assert [offset_to_rank_0(rank, [clock_name()] * 3) for rank in range(3)] == [0, 0, 0]
