"""The command line, as its users type it: output, files, exit codes, and never a traceback."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from collsim.cli import commands
from collsim.collectives import COLLECTIVES
from collsim.topology import TOPOLOGIES

SCENARIOS = Path(__file__).parent.parent / "scenarios"
ONE_SWITCH = str(SCENARIOS / "one-switch.yaml")


def test_run_shows_a_table_and_says_why(run) -> None:
    code, out, _ = run("run", ONE_SWITCH)
    assert code == 0
    assert "Which rank finishes last" in out
    for name in ("flat", "chain", "binomial", "gloo"):
        assert re.search(rf"^{name} .*[µm]s", out, re.MULTILINE)
    for words in ("Lower bound:", "Fastest: chain", "critical path: 0→1", "Verified:"):
        assert words in out


def test_settings_change_the_scenario_and_sketch_draws_it(run) -> None:
    code, out, _ = run("run", ONE_SWITCH, "--set", "algorithm=flat", "--set", "ranks=3", "--sketch")
    assert code == 0
    assert "chain" not in out
    rows = re.findall(r"^[012] [ ▀▄█]+$", out, re.MULTILINE)
    assert len(rows) == 3
    assert "▄" not in rows[0]
    assert "▀" not in rows[1]


def test_json_holds_what_it_promises(run, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    code, _, _ = run("run", ONE_SWITCH, "--json", str(target))
    assert code == 0
    found = json.loads(target.read_text())
    assert found["provenance"]["protocol"] == "rendezvous"
    assert [row["algorithm"] for row in found["algorithms"]] == [
        "flat",
        "chain",
        "binomial",
        "gloo",
    ]
    for row in found["algorithms"]:
        assert {
            "makespan_s",
            "lower_bound_s",
            "messages",
            "payload_bytes",
            "verified",
        } <= row.keys()
        assert row["makespan_s"] >= row["lower_bound_s"] > 0
        assert row["verified"] is True
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_verify_names_each_algorithm_and_warns_of_deadlocks(run, tmp_path: Path) -> None:
    code, out, _ = run("verify", ONE_SWITCH, "--set", "algorithm=all", "--set", "ranks=6")
    assert code == 0
    assert "two_trees: 80 messages, every byte delivered" in out
    assert "scatter_rd_all_gather left out: it needs a power of two ranks, got 6" in out
    (tmp_path / "cross.py").write_text(
        "from collsim import Rank, Recv, Send\n"
        "def ring(me: Rank):\n"
        "    for i in range(me.n_ranks - 1):\n"
        "        yield Send((me.rank + 1) % me.n_ranks, (me.rank - i) % me.n_ranks)\n"
        "        yield Recv((me.rank - 1) % me.n_ranks, (me.rank - i - 1) % me.n_ranks)\n"
    )
    (tmp_path / "cross.yaml").write_text(
        "collective: all_gather\nalgorithm: cross.py:ring\nranks: 3\nnbytes: 8\nsegment: 8\n"
        "topology: {kind: star, bandwidth: 1 Gbit/s, latency: 1 us}\n"
    )
    code, out, _ = run("verify", str(tmp_path / "cross.yaml"))
    assert code == 0
    assert "deadlock under rendezvous: rank 0 in step 0" in out
    code, _, err = run("run", str(tmp_path / "cross.yaml"))
    assert code == 1
    assert err.startswith("failed: deadlock under rendezvous")


@pytest.mark.parametrize("form", ["json", "csv", "perfetto", "goal"])
def test_export_to_screen_and_file_agree(run, tmp_path: Path, form: str) -> None:
    one = ("export", ONE_SWITCH, "--to", form, "--set", "algorithm=binomial")
    code, out, _ = run(*one)
    assert code == 0
    code, said, _ = run(*one, "-o", str(tmp_path / "file"))
    assert code == 0
    assert said == f"wrote {tmp_path / 'file'}\n"
    assert (tmp_path / "file").read_text() == out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots_are_pictures(run, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"picture.{suffix}"
    code, _, _ = run("plot", ONE_SWITCH, "-o", str(target))
    assert code == 0
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert target.read_bytes().startswith(starts[suffix])


def test_lists(run) -> None:
    for what, names in (
        ("algorithms", [name for c in COLLECTIVES.values() for name in c.algorithms]),
        ("topologies", list(TOPOLOGIES)),
        ("presets", ["100gbe", "dgx-h100", "nvlink4"]),
        ("scenarios", [path.name for path in SCENARIOS.glob("*.yaml")]),
        ("defaults", ["network.sharing", "fair", "rendezvous", "max_messages", "200000"]),
    ):
        code, out, _ = run("list", what)
        assert code == 0
        for name in names:
            assert name in out


@pytest.mark.parametrize(
    ("collective", "name"), [(c.name, name) for c in COLLECTIVES.values() for name in c.algorithms]
)
def test_explain_shows_formulas_reference_and_program(run, collective: str, name: str) -> None:
    code, out, _ = run("explain", name, "--collective", collective)
    assert code == 0
    for words in ("Rounds", "Makespan", "Good when", "Reference", f"def {name}(me: Rank", "yield"):
        assert words in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "none.yaml"], 2, "error: cannot read none.yaml: No such file or directory"),
        (["run", ONE_SWITCH, "--set", "nbytes=10 Gb"], 2, "error: nbytes: '10 Gb' counts bits"),
        (["run", ONE_SWITCH, "--set", "ranks=9"], 2, "error: ranks: 9 ranks do not fit"),
        (["run", ONE_SWITCH, "--json", "/no/x.json"], 2, "error: cannot write /no/x.json"),
        (["run", ONE_SWITCH, "--frobnicate"], 2, "No such option"),
        (["plot", ONE_SWITCH, "-o", "x.gif"], 2, "the name must end in .png, .svg, .pdf"),
        (["export", ONE_SWITCH, "--to", "goal"], 2, "error: algorithm: goal holds one algorithm"),
        (["explain", "binomal"], 2, "error: algorithm: 'binomal' is unknown"),
        (["explain", "gloo"], 2, "broadcast or scatter or all_gather have a 'gloo'"),
        (["explain", "flat", "--collective", "x"], 2, "error: collective: 'x' is unknown"),
        (["list", "everything"], 2, "is not one of"),
        (["check", ONE_SWITCH, "--set", "ranks=100", "--set", "topology.hosts=100"], 2,
         "error: ranks: real runs here have at most 64, got 100"),
        (["check", ONE_SWITCH, "--set", "nbytes=1 GiB"], 2, "error: nbytes: the ranks would hold"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_two(run, arguments, code, message) -> None:
    found, _, err = run(*arguments)
    assert found == code
    assert message in " ".join(err.split())
    if err.startswith("error:"):
        assert err.count("\n") == 1


def test_interruption_is_exit_code_130(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("collsim.runner.run", interrupted)
    code, _, err = run("run", ONE_SWITCH)
    assert (code, err.strip()) == (130, "interrupted")


def in_process(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "collsim", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_as_a_module_with_version_and_help() -> None:
    assert re.match(r"collsim, version \d", in_process("--version").stdout)
    text = in_process("--help").stdout
    for command in ("run", "check", "verify", "list", "explain", "export", "plot"):
        assert re.search(rf"^  {command} ", text, re.MULTILINE)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m collsim list topologies | head -1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert found.returncode == 0
    assert found.stderr == ""


@pytest.mark.gloo
def test_check_shows_tensors_before_and_after(run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    target = tmp_path / "check.json"
    code, out, _ = run("check", str(SCENARIOS / "article-example.yaml"), "--json", str(target))
    assert code == 0
    assert out.count("equal") >= 2
    assert [line.split() for line in out.splitlines() if re.match(r"\d ", line)] == [
        ["0", "[1]", "[1]"],
        ["1", "[0]", "[1]"],
        ["2", "[0]", "[1]"],
        ["3", "[0]", "[1]"],
    ]
    found = json.loads(target.read_text())
    assert [one["tensors_equal"] for one in found["algorithms"]] == [True, True]
    assert [one["bytes_equal"] for one in found["algorithms"]] == [True, True]
    native = found["algorithms"][1]["wire_bytes_measured"]
    assert native == [[0, 100, 100, 0], [48, 0, 0, 100], [48, 0, 0, 0], [0, 48, 0, 0]]
    assert all(one["measured_s"] > 0 for one in found["algorithms"])


words = st.sampled_from(
    ["run", "verify", "list", "explain", "export", "--set", "--to", "csv", ONE_SWITCH, "ranks=2",
     "ranks=-1", "algorithm=all", "nbytes=1 Mib", "flat", "--json", "network=3", "topology=[]"]
)  # fmt: skip


@given(st.lists(words | st.text(max_size=10), max_size=6))
@settings(max_examples=40)
def test_no_arguments_end_in_a_traceback(arguments: list[str]) -> None:
    safe = [a for a in arguments if a not in ("--json", "-o")]
    found: Result = CliRunner().invoke(commands, safe)
    from click import ClickException

    from collsim.errors import CollsimError

    assert found.exception is None or isinstance(
        found.exception, CollsimError | ClickException | SystemExit
    )
