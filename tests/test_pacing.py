"""Links for pairs where no namespaces can be made: the kernel paces the ranks' own sockets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collsim.emulation import check_in_lab
from collsim.errors import ExecutionUnavailable
from collsim.gloo import shaping
from collsim.gloo.lab import Shape
from collsim.gloo.namespaces import LabUnavailable
from collsim.lab_report import PACING
from collsim.scenario import Scenario
from collsim.survey import survey_lab

pytestmark = pytest.mark.gloo
Command = Callable[..., tuple[int, str, str]]
MBIT = 1e6 / 8
LAB_FOUR = str(Path(__file__).parent.parent / "scenarios" / "lab-four.yaml")


@pytest.fixture(autouse=True)
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def refuse() -> list[str]:
        raise LabUnavailable("the lab needs root, or user namespaces, which are refused: no")

    monkeypatch.setattr(shaping, "with_rights", refuse)


def mesh(**fields: Any) -> Scenario:
    topology = {"kind": "full_mesh", "bandwidth": "100 Mbit/s", "latency": "50 us"}
    asked = {"collective": "broadcast", "algorithm": "flat", "ranks": 3, "nbytes": "2 MiB"}
    return Scenario.model_validate({"topology": topology, **asked, **fields})


def test_each_pair_gets_its_own_rate() -> None:
    links = {"h0->h1": {"bandwidth": "20 Mbit/s"}}
    topology = {"kind": "full_mesh", "bandwidth": "100 Mbit/s", "latency": "50 us", "links": links}
    found = survey_lab(mesh(topology=topology))
    assert found.means == "pacing"
    assert found.asked[0][1] == 20 * MBIT
    assert found.measured[0][1] == pytest.approx(20 * MBIT, rel=0.3)
    assert found.measured[1][0] == pytest.approx(100 * MBIT, rel=0.3)
    assert found.measured[0][2] == pytest.approx(100 * MBIT, rel=0.3)


def test_real_runs_take_the_predicted_time_where_each_pair_has_a_link() -> None:
    scenario = mesh(algorithm=["binomial", "gloo", "chain"], segment="256 KiB")
    for _ in range(2):  # once more if something disturbed it
        result = check_in_lab(scenario, repetitions=3)
        assert result.tensors_equal
        assert result.bytes_equal
        assert result.means == "pacing"
        if all(abs(row.ratio - 1) < 0.15 for row in result.algorithms):
            break
    else:
        pytest.fail(f"{[(row.algorithm, row.ratio) for row in result.algorithms]}")


def test_the_report_says_how_the_network_was_shaped(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    settings = ["--set", "topology.kind=full_mesh", "--set", "algorithm=flat", "--set", "ranks=2"]
    code, out, _ = run("check", LAB_FOUR, "--lab", "--repetitions", "1", *settings)
    assert code == 0
    text = " ".join(out.split())
    assert "2 real gloo ranks, on loopback, the kernel pacing each pair's connection" in text
    assert PACING in text


def test_a_lab_that_fails_only_when_it_is_built_is_replaced_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shaping, "with_rights", lambda: ["env"])
    impossible = Shape(pairs=((0.0, 1e-9), (1e-9, 0.0)))  # no rate that tc would take
    with shaping.shaped_group(impossible, timeout=20) as shaped:
        assert shaped.means == "pacing"
    switch = Shape(up=(1e-9, 1e-9), down=(1e-9, 1e-9))
    with pytest.raises(ExecutionUnavailable, match="--set topology.kind=full_mesh"):
        shaping.shaped_group(switch, timeout=20).__enter__()
