"""`collsim calibrate`: files of other programs are read, real runs are fitted, blocks fit in."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from collsim.calibration import calibrate_from, calibrate_lab
from collsim.calibration.block import block, link_of
from collsim.calibration.files import read_times
from collsim.calibration.fit import fit
from collsim.cluster import build_network
from collsim.engines import play
from collsim.errors import ExecutionUnavailable, ScenarioError
from collsim.gloo.lab import GOODPUT, Shape
from collsim.gloo.shaping import shaped_group
from collsim.scenario import load_scenario, parse_scenario
from collsim.tracing import trace

Command = Callable[..., tuple[int, str, str]]
LAB_FOUR = Path(__file__).parent.parent / "scenarios" / "lab-four.yaml"
SIZES = [1, 1024, 65536, 1 << 20, 4 << 20]


def line(nbytes: int, alpha: float = 10e-6, bandwidth: float = 1e9) -> float:
    return alpha + nbytes / bandwidth


OSU = """\
# OSU MPI{kind} Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
{rows}
"""
NCCL = """\
# nThread 1 nGpus 4 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   4001 on     node1 device  0 [0x07] A
#  Rank  1 Group  0 Pid   4001 on     node1 device  1 [0x08] A
#  Rank  2 Group  0 Pid   4002 on     node2 device  0 [0x07] A
#
#                                          out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
{rows}
# Avg bus bandwidth    : 0.1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "times.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "bytes,seconds\n1,1e-3\n1024,2e-3\n",
        "1,0.001\n\n# by hand\n1024,0.002\n",
        "1 B, 1 ms\n1 KiB, 2 ms\n",
        "host,seconds,bytes\nx,1e-3,1\nx,2e-3,1024\n",
    ],
)
def test_tables_are_read_with_and_without_heading_and_units(tmp_path: Path, text: str) -> None:
    times = read_times(written(tmp_path, text))
    assert times.what == "message"
    assert times.rows == ((1, 1e-3), (1024, 2e-3))


@pytest.mark.parametrize("kind", [" Latency", "-CUDA Latency"])
def test_osus_latencies_are_those_of_messages(tmp_path: Path, kind: str) -> None:
    rows = "\n".join(f"{m}  {line(m) * 1e6:.6f}" for m in SIZES)
    found = calibrate_from(written(tmp_path, OSU.format(kind=kind, rows=rows)))
    assert found.what == "message"
    assert found.link.alpha == pytest.approx(10e-6, rel=0.01)
    assert found.link.bandwidth == pytest.approx(1e9, rel=0.01)


def test_osus_broadcast_is_taken_for_binomial_and_needs_the_ranks(tmp_path: Path) -> None:
    rows = "\n".join(f"{m}  {3 * line(m) * 1e6:.6f}  0.1  0.2" for m in SIZES)
    path = written(tmp_path, OSU.format(kind=" Broadcast Latency", rows=rows))
    found = calibrate_from(path, 8)
    assert found.link.alpha == pytest.approx(10e-6, rel=0.01)
    assert found.link.bandwidth == pytest.approx(1e9, rel=0.01)
    with pytest.raises(ScenarioError, match="ranks: the times are those of binomial broadcasts"):
        calibrate_from(path)


@pytest.mark.parametrize("is_old", [False, True])
def test_nvidias_broadcast_is_taken_for_a_chain_of_the_ranks_it_lists(
    tmp_path: Path, is_old: bool
) -> None:
    times = [(m, 20e-6 + m / 1e9) for m in SIZES]
    rows = "\n".join(
        f"  {m}  {m // 4}  float  none  0  {t * 1e6:.6f}  0  0  0  9" for m, t in times
    )
    text = NCCL.format(rows=rows)
    if is_old:  # older versions print no column for the reduction of a broadcast
        text = text.replace("   redop", "").replace("  none", "").replace(" #wrong", "  error")
    found = calibrate_from(written(tmp_path, text))
    assert found.n_ranks == 3
    assert found.link.alpha == pytest.approx(10e-6, rel=0.01)
    assert found.link.bandwidth == pytest.approx(1e9, rel=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("bytes,seconds\n", "holds no times"),
        ("# OSU MPI Bandwidth Test v7\n1 2\n", "OSU's Bandwidth Test; osu_latency and osu_bcast"),
        ("# OSU MPI Latency Test v7\n1 fast\n", "line 2: no size and time in '1 fast'"),
        ("# OSU MPI Latency Test v7\n1\n", "line 2: no size and time in '1'"),
        (NCCL.format(rows="8 2 float sum -1 9.7 0 0 0 9"), "line 10: no broadcast; of nccl-tests"),
        ("1,2\n3\n", "line 2: expected bytes,seconds, got '3'"),
        ("1,2\n3,soon\n", "line 2: 'soon' is no"),
        ("1.5,2\n", "line 1: 1.5 is 1.5 bytes"),
    ],
)
def test_files_that_hold_no_times_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_times(written(tmp_path, text))
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="from: cannot read .*: No such file"):
        read_times(tmp_path / "missing")
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="it is not UTF-8 text"):
        read_times(tmp_path / "raw")
    (tmp_path / "huge").write_bytes(b"1,1\n" * 2_500_001)
    with pytest.raises(ScenarioError, match="more than 10,000,000 bytes"):
        read_times(tmp_path / "huge")


def test_a_message_on_the_block_takes_what_was_fitted() -> None:
    link = link_of(fit((m, line(m)) for m in SIZES), "message", 2)
    fields = {"collective": "broadcast", "algorithm": "flat", "ranks": 2, "nbytes": 1}
    scenario = parse_scenario({**fields, **block(link)})
    algorithm = scenario.definition.algorithms["flat"]
    schedule = trace(scenario.definition, algorithm, 2)
    for nbytes in SIZES:
        predicted = play("simpy", schedule, build_network(scenario), nbytes).makespan
        assert predicted == pytest.approx(line(nbytes), rel=0.01)


def test_the_command_reads_a_file_and_writes_a_block(run: Command, tmp_path: Path) -> None:
    rows = "".join(f"{m},{line(m)}\n" for m in [*SIZES, 16 << 20])
    path, kept, made = written(tmp_path, rows), tmp_path / "fit.json", tmp_path / "block.yaml"
    code, out, _ = run("calibrate", "--from", str(path), "-o", str(made), "--json", str(kept))
    assert code == 0
    assert "α = 10 µs, B = 8 Gbit/s" in out
    assert out.count("held out") == 2
    fields = yaml.safe_load(made.read_text())
    assert fields["topology"]["kind"] == "star"
    assert json.loads(kept.read_text())["scenario"] == fields
    assert "times.txt, table" in made.read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "x", "--lab", "y"], "--from: with it nothing is measured"),
        (["--lab", "x", "--ranks", "4"], "--ranks: the scenario of --lab says how many"),
        (["--ranks", "1"], "1 is not in the range 2<=x<=64"),
        (["--from", "missing.csv"], "from: cannot read missing.csv"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(
    run: Command, arguments: list[str], message: str
) -> None:
    code, _, err = run("calibrate", *arguments)
    assert code == 2
    assert message in err


@pytest.mark.gloo
def test_the_command_measures_here_and_reads_its_own_table_again(
    run: Command, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    table = tmp_path / "times.csv"
    code, out, _ = run("calibrate", "--ranks", "2", "--csv", str(table))
    assert code == 0
    assert "measured on loopback, 2 ranks" in out
    assert "torch's own broadcast, which the fit has not seen" in out
    heading = next(line for line in out.splitlines() if line.startswith("α = "))
    code, again, _ = run("calibrate", "--from", str(table))
    assert code == 0
    assert heading in again


@pytest.mark.lab
def test_in_the_lab_it_finds_the_rates_that_were_set() -> None:
    try:
        with shaped_group(Shape((1e7, 1e7), (1e7, 1e7)), timeout=30):
            pass
    except ExecutionUnavailable as error:
        pytest.skip(str(error))
    said: list[str] = []
    scenario = load_scenario(LAB_FOUR, ["ranks=2", "topology.bandwidth=50 Mbit/s"])
    found = calibrate_lab(scenario, said.append)
    assert said[0] == "messages, round 1 of 5"
    assert found.link.bandwidth == pytest.approx(GOODPUT * 50e6 / 8, rel=0.05)
    assert 2e-5 < found.link.alpha < 2e-3
    largest = found.broadcasts[-1]
    assert largest.measured == pytest.approx(largest.predicted, rel=0.15)
