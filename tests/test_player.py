"""What the player is given: the same times and holdings as the run, in a page that stands alone."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest

from collsim.errors import ScenarioError
from collsim.player import payload, player_script, standalone_page
from collsim.runner import Result, run
from collsim.scenario import parse_scenario


def result_of(**keys) -> Result:
    given = {
        "algorithm": ["chain", "gloo"],
        "ranks": 4,
        "nbytes": 4000,
        "segment": 1000,
        "topology": {"kind": "star", "bandwidth": "1 GB/s", "latency": "1 us"},
        **keys,
    }
    return run(parse_scenario(given, question="Is <b>this</b> safe?"))


def filled(text: str, numbers: Iterator[int]) -> str:
    """A label's text with its numbers put in, as the player does."""
    first, *rest = text.split("#")
    return first + "".join(f"{next(numbers)}{part}" for part in rest)


def test_columns_are_the_timelines_own() -> None:
    result = result_of()
    found = json.loads(payload(result))
    assert [one["name"] for one in found["runs"]] == ["chain", "gloo"]
    tick = found["tick"]
    assert tick == max(run.timeline.makespan_ps for run in result.runs) // 2_000_000
    for shown, one in zip(found["runs"], result.runs, strict=True):
        timeline = one.timeline
        for name in ("released", "started", "left", "arrived", "done"):
            off = np.cumsum(shown[name]) * tick - getattr(timeline, name)
            assert (abs(off) <= tick).all()
        for name, column in (
            ("src", one.schedule.src),
            ("bytes", one.schedule.message_bytes(4000)),
        ):
            assert (np.cumsum(shown[name]) == column).all()
        assert timeline.hops is not None
        assert (abs(np.cumsum(shown["hopStart"]) * tick - timeline.hops.start) <= tick).all()
        assert shown["makespan"] * tick == pytest.approx(timeline.makespan_ps, abs=tick)
        lit = np.cumsum(shown["stepLine"])
        for step, source in enumerate(np.cumsum(shown["stepSource"])):
            lines = shown["sources"][source]
            text = lines["text"][lines["numbers"].index(lit[step])]
            assert "yield" in text
        numbers = iter(np.cumsum(shown["labelNumbers"]).tolist())
        labels = [filled(shown["labels"][i], numbers) for i in np.cumsum(shown["stepLabel"])]
        assert labels == one.schedule.steps.label
        assert next(numbers, None) is None
    assert found["runs"][0]["held"] == [[0, 4], [0, 0], [0, 0], [0, 0]]


def test_nodes_lie_in_the_unit_square_and_links_join_them() -> None:
    found = json.loads(payload(result_of()))
    for _, _, x, y, _ in found["nodes"]:
        assert 0 <= x <= 1
        assert 0 <= y <= 1
    names = [node[0] for node in found["nodes"]]
    for (u, v), name in zip(found["links"], found["linkNames"], strict=True):
        assert name in (f"{names[u]}→{names[v]}", f"{names[u]} memory")


def test_one_run_of_several_can_be_shown() -> None:
    result = result_of()
    assert len(json.loads(payload(result, result.runs[:1]))["runs"]) == 1


def test_the_page_asks_nobody_for_anything_and_text_cannot_leave_its_place() -> None:
    page = standalone_page(result_of())
    assert "Is \\u003cb>this" in page
    assert "<b>this" not in page
    urls = re.findall(r"https?://|//\w+\.|import\(|fetch\(|src=|@import", page)
    assert urls == []
    assert len(page.encode()) < 60 * 1024
    assert "export" not in re.sub(r"<script type=\"application/json\".*?</script>", "", page)


def test_the_script_mounts_as_a_component() -> None:
    assert player_script().count("export default function mount(") == 1


def test_too_many_messages_are_refused_with_the_count() -> None:
    result = result_of(algorithm="chain", ranks=64, nbytes=4_000_000, max_messages=300_000)
    with pytest.raises(ScenarioError, match="252,000 messages are too many to animate"):
        payload(result)
