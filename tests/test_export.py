"""Exports: golden files, and what the readers of each format rely on."""

import csv
import json
import re
from pathlib import Path

import pytest

from collsim.errors import CollsimError, ScenarioError
from collsim.export import export, goal, result_mapping, to_json, write_whole
from collsim.runner import Result, run
from collsim.scenario import parse_scenario


def result_of(algorithm: object = "chain") -> Result:
    return run(
        parse_scenario(
            {
                "algorithm": algorithm,
                "ranks": 3,
                "nbytes": 2000,
                "segment": 1000,
                "topology": {"kind": "star", "bandwidth": "1 GB/s", "latency": "1 us"},
                "network": {"sharing": "fifo"},
            }
        )
    )


@pytest.mark.parametrize("form", ["json", "csv", "perfetto", "goal"])
def test_golden_files(form: str, golden) -> None:
    text = export(result_of(), form)
    if form == "perfetto":
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    golden.check(f"chain-3.{form}", re.sub(r"0\.1\.0", "VERSION", text))


def test_json_is_strict_and_complete() -> None:
    result = result_of(["flat", "chain"])
    found = json.loads(to_json(result_mapping(result)))
    assert [row["messages"] for row in found["algorithms"]] == [2, 4]
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"x": float("nan")})


def test_csv_has_a_row_a_message_of_each_algorithm() -> None:
    lines = export(result_of(["flat", "chain"]), "csv").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [row["algorithm"] for row in rows] == ["flat"] * 2 + ["chain"] * 4
    assert float(rows[0]["done"]) == pytest.approx(4e-6)
    assert lines[0].startswith("# collsim: ")


def test_perfetto_shows_every_message_at_both_ends_and_on_each_link() -> None:
    events = json.loads(export(result_of(), "perfetto"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 4 * (2 + 2)
    assert all(event["dur"] >= 0 for event in spans)
    by_thread: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in spans:
        span = (event["ts"], event["ts"] + event["dur"])
        by_thread.setdefault((event["pid"], event["tid"]), []).append(span)
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"rank 0", "rank 1", "rank 2", "links", "to rank 1", "from rank 0", "h0→s0"} <= names


def test_goal_says_what_each_rank_sends_and_waits_for() -> None:
    text = goal(result_of().runs[0].schedule, 2000)
    assert text.startswith("num_ranks 3\n")
    assert len(re.findall(r": send 1000b to", text)) == 4
    assert len(re.findall(r": recv 1000b from", text)) == 4
    middle = text[text.index("rank 1 {") : text.index("rank 2 {")]
    assert middle.split("\n")[1:8] == [
        "l1: recv 1000b from 0 tag 0",
        "l2: recv 1000b from 0 tag 0",
        "l3: send 1000b to 2 tag 0",
        "l2 requires l1",
        "l3 requires l1",
        "l4: send 1000b to 2 tag 0",
        "l4 requires l2",
    ]


def test_what_a_format_cannot_hold_is_said() -> None:
    for form in ("perfetto", "goal"):
        with pytest.raises(
            ScenarioError, match=f"{form} holds one algorithm; choose .* flat, chain"
        ):
            export(result_of(["flat", "chain"]), form)
    with pytest.raises(CollsimError, match="unknown format 'xml'; use one of json"):
        export(result_of(), "xml")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "kept.txt"
    write_whole(target, "old")
    with pytest.raises(TypeError):
        write_whole(target, None)  # type: ignore[arg-type]
    assert target.read_text() == "old"
    write_whole(target, b"new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    with pytest.raises(ScenarioError, match=r"cannot write .*: No such file"):
        write_whole(tmp_path / "none" / "x", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ScenarioError, match=r"cannot write .*folder"):
        write_whole(tmp_path / "folder", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "kept.txt"]
