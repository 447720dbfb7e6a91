"""Scenarios that include files: what wins, where files are looked for, and who is blamed."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from collsim.cluster import build_network
from collsim.errors import ScenarioError
from collsim.runner import run
from collsim.scenario import Scenario, load_scenario, parse_scenario, parse_text, read_scenario
from collsim.ui.choice import for_browser

OWN = "collective: broadcast\nalgorithm: binomial\nranks: 4\nnbytes: 1 KiB\n"
STAR = "topology: {kind: star, hosts: 4, bandwidth: 9.4 Gbit/s, latency: 40 us}\n"
BLOCK = STAR + "network: {sharing: fifo, overhead: 3 us}\n"
EDGES = "switch s0\n" + "".join(f"h{rank} s0 bandwidth=1Gbit/s latency=5us\n" for rank in range(4))


def write(folder: Path, **texts: str) -> Path:
    """Write files, `__` in a name for a slash; the scenario is the one called mine."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "mine.yaml"


def test_a_scenario_is_what_it_includes_and_what_it_says_itself(tmp_path: Path) -> None:
    mine = write(tmp_path, block=BLOCK, mine="# How fast?\ninclude: block.yaml\n" + OWN)
    whole = write(tmp_path / "whole", mine="# How fast?\n" + OWN + BLOCK)
    scenario = load_scenario(mine)
    assert scenario.topology["bandwidth"] == "9.4 Gbit/s"
    assert (scenario.network.sharing, scenario.network.overhead) == ("fifo", 3e-6)
    assert scenario.question == "How fast?"
    assert scenario.model_dump() == load_scenario(whole).model_dump()
    assert scenario.digest == load_scenario(whole).digest
    assert run(scenario).best.timeline.makespan > 0


def test_own_fields_win_key_by_key_and_lists_are_replaced(tmp_path: Path) -> None:
    block = BLOCK + "placement: [h3, h2, h1, h0]\nalgorithm: [flat, chain]\n"
    own = "include: block.yaml\ntopology: {latency: 1 us}\nnetwork: {overhead: 0 s}\n"
    scenario = load_scenario(write(tmp_path, block=block, mine=OWN + own))
    assert scenario.topology == {
        "kind": "star", "hosts": 4, "bandwidth": "9.4 Gbit/s", "latency": "1 us",
    }  # fmt: skip
    assert (scenario.network.sharing, scenario.network.overhead) == ("fifo", 0)
    assert scenario.placement == ("h3", "h2", "h1", "h0")
    assert [choice.name for choice in scenario.choices] == ["binomial"]


def test_later_files_win_and_settings_win_over_all(tmp_path: Path) -> None:
    mine = write(
        tmp_path,
        first=BLOCK,
        second="network: {sharing: fair}\ntopology: {latency: 2 us}\n",
        mine=OWN + "include: [first.yaml, second.yaml]\n",
    )
    scenario = load_scenario(mine)
    assert (scenario.network.sharing, scenario.network.overhead) == ("fair", 3e-6)
    assert scenario.topology["latency"] == "2 us"
    changed = load_scenario(mine, ["topology.latency=9 us", "network.sharing=fifo"])
    assert changed.topology == {**scenario.topology, "latency": "9 us"}
    assert changed.network.sharing == "fifo"
    assert changed.digest != scenario.digest


@pytest.mark.parametrize("included", ["kind: star", "file: net.txt", "preset: nothing"])
def test_a_topology_of_its_own_replaces_the_included_choice(tmp_path: Path, included: str) -> None:
    own = OWN + "include: block.yaml\ntopology: {kind: ring, bandwidth: 1 Gbit/s}\n"
    mine = write(tmp_path, block=f"topology: {{{included}, latency: 7 us}}", mine=own)
    scenario = load_scenario(mine)
    assert scenario.topology == {"kind": "ring", "bandwidth": "1 Gbit/s", "latency": "7 us"}
    build_network(scenario)


def test_a_topology_that_names_two_itself_still_clashes(tmp_path: Path) -> None:
    own = OWN + "include: block.yaml\ntopology: {kind: ring, file: net.txt}\n"
    with pytest.raises(ScenarioError, match="name one of kind, file and preset"):
        build_network(load_scenario(write(tmp_path, block=BLOCK, mine=own)))


def test_files_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    mine = write(
        tmp_path,
        parts__outer="include: deeper/inner.yaml\n",
        parts__deeper__inner="topology: {file: net.txt}\nalgorithm: [flat, 'my.py:tree']\n"
        "include: ../beside.yaml\n",
        parts__beside="ranks: 4\nalgorithm: {name: 'my.py:other'}\n",
        mine="include: parts/outer.yaml\nnbytes: 4 B\n",
    )
    (tmp_path / "parts/deeper/net.txt").write_text(EDGES)
    scenario = load_scenario(mine)
    assert scenario.topology == {"file": "parts/deeper/net.txt"}
    assert [each.name for each in scenario.choices] == ["flat", "parts/deeper/my.py:tree"]
    assert scenario.folder == tmp_path
    assert len(set(build_network(scenario).placement)) == 4
    (tmp_path / "parts/outer.yaml").write_text("include: beside.yaml\n")
    beside = load_scenario(mine, ["topology={kind: star}"])
    assert [each.name for each in beside.choices] == ["parts/my.py:other"]


def test_absolute_paths_and_the_same_file_in_two_branches(tmp_path: Path) -> None:
    block = write(tmp_path / "far", mine=BLOCK)
    mine = write(
        tmp_path,
        a=f"include: {block}\n",
        b=f"include: [{block}]\nranks: 3\n",
        mine=f"include: [a.yaml, b.yaml]\n{OWN}",
    )
    assert load_scenario(mine).ranks == 4


BAD: list[tuple[dict[str, str], str]] = [
    ({"mine": "include: gone.yaml"}, r"^include: cannot read .*gone.yaml: No such file .*"
     r"\(set in .*mine.yaml\)$"),
    ({"mine": "include: mine.yaml"}, r"^include: .*mine.yaml includes itself: .*mine.yaml → "),
    ({"mine": "include: a.yaml", "a": "include: sub/b.yaml", "sub__b": "include: ../a.yaml"},
     r"^include: .*a.yaml includes itself: .*mine.yaml → .*a.yaml → .*b.yaml → .*a.yaml "
     r"\(set in .*b.yaml\)$"),
    ({"mine": "include: a.yaml", "a": "include: gone.yaml"},
     r"^include: .*gone.yaml.* \(set in .*a.yaml\)$"),
    ({"mine": "include: a.yaml", "a": "- 1"}, r"^include: .*a.yaml is not a mapping .*mine.yaml\)"),
    ({"mine": "include: a.yaml", "a": ""}, r"^include: .*a.yaml is not a mapping"),
    ({"mine": "include: a.yaml", "a": "ranks: [1"}, r"^include: .*a.yaml, line 1, column 10 is"),
    ({"mine": "include: a.yaml", "a": "x: &x 1\ny: *x"}, "aliases are not allowed"),
    ({"mine": "include: a.yaml", "a": "#" * 1_000_001},
     r"^include: .*a.yaml has more than 1,000,000 bytes"),
    ({"mine": "include: sub", "sub__a": ""}, r"^include: .*sub is not a file"),
    ({"mine": 'include: "a\\0b"'}, r"^include: cannot read .*null"),
    ({"mine": "include: 3"}, r"^include: expected a file or a list of files, got 3 .*mine.yaml\)"),
    ({"mine": "include: [a.yaml, {}]", "a": ""}, r"^include: expected a file or a list of files"),
    ({"mine": "include:"}, r"^include: expected a file or a list of files, got None"),
    ({"mine": "include: ''"}, r"^include: expected a file or a list of files, got ''"),
    ({"mine": "include: a.yaml", "a": "include: {b: c}"}, r"^include: expected .*a.yaml\)$"),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "message"), BAD)
def test_what_cannot_be_included_is_named_with_its_file(
    tmp_path: Path, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        load_scenario(write(tmp_path, **texts))
    assert caught.value.field == "include"
    assert "\n" not in str(caught.value)


def test_files_that_include_each_other_twice_do_not_explode(tmp_path: Path) -> None:
    chain = {f"f{n}": f"include: [f{n + 1}.yaml, f{n + 1}.yaml]" for n in range(30)}
    mine = write(tmp_path, **chain, f30="ranks: 2", mine="include: f0.yaml")
    with pytest.raises(ScenarioError, match="^include: more than 100 files are included"):
        load_scenario(mine)


WRONG: list[tuple[str, str, str]] = [
    ("network: {sharing: both}", "", r"^network.sharing: .*got 'both' \(set in .*block.yaml\)$"),
    ("netwrk: {}", "", r"^netwrk: unknown key, did you mean network\?.* \(set in .*block.yaml\)$"),
    ("includ: x", "", r"^includ: unknown key, did you mean include\?.*block.yaml\)$"),
    ("network: {speed: 3}", "", r"^network.speed: unknown key.* \(set in .*block.yaml\)$"),
    ("3: 4", "", r"^3: .*block.yaml\)$"),
    ("root: 9", "", r"^root: 9 is no rank; ranks are 0 to 3 \(set in .*block.yaml\)$"),
    ("algorithm: [flat, 3]", "", r"^algorithm.*\(set in .*block.yaml\)$"),
    ("network: {store_and_forward: true}", "network: {sharing: fair}",
     r"^network: store_and_forward needs .* \(partly set in .*block.yaml\)$"),
    ("network: 7", "", r"^network: .*got 7 \(set in .*block.yaml\)$"),
    ("network: {sharing: fifo}", "network: 3", r"^network: .*got 3$"),
    ("network: {sharing: fifo}", "network: {sharing: both}", r"^network.sharing: .*got 'both'$"),
    ("root: 1", "rnks: 3", r"^rnks: unknown key.*, include$"),
    ("topology: {bandwidth: 10 parsecs}", "", r"^topology.bandwidth: .* \(set in .*block.yaml\)$"),
    ("topology: {speed: 1}", "", r"^topology.speed: unknown key of star.* \(set in .*block.yaml\)"),
    ("topology: {file: gone.txt}", "", r"^topology.*gone.txt.*\(set in .*block.yaml\)$"),
    ("topology: {links: {10.0.0.1: {}}}", "", r"10.0.0.1.*\(set in .*block.yaml\)$"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "own", "message"), WRONG)
def test_a_wrong_value_is_reported_with_the_included_file_that_holds_it(
    tmp_path: Path, block: str, own: str, message: str
) -> None:
    base = "{}" if "file" in block else STAR
    rest = OWN.replace("algorithm: binomial\n", "") if "algorithm" in block else OWN
    mine = f"include: [base.yaml, block.yaml]\n{rest}{own}\n"
    with pytest.raises(ScenarioError, match=message) as caught:
        build_network(load_scenario(write(tmp_path, base=base, block=block, mine=mine)))
    assert str(caught.value).startswith(caught.value.field)


def test_what_is_set_on_the_command_line_is_not_blamed_on_a_file(tmp_path: Path) -> None:
    mine = write(tmp_path, block=BLOCK, mine="include: block.yaml\n" + OWN)
    for setting in ("network.sharing=both", "network={sharing: both}"):
        with pytest.raises(ScenarioError, match=r"^network.sharing: .*got 'both'$"):
            load_scenario(mine, [setting])


def test_a_missing_key_is_nobodys_fault(tmp_path: Path) -> None:
    mine = write(tmp_path, block=BLOCK, mine="include: block.yaml\n" + OWN.replace("ranks: 4", ""))
    with pytest.raises(ScenarioError, match="^ranks: is missing$"):
        load_scenario(mine)


@pytest.mark.parametrize("setting", ["include=block.yaml", "include=[]", "include.x=1"])
def test_set_cannot_include(tmp_path: Path, setting: str) -> None:
    mine = write(tmp_path, block=BLOCK, mine=OWN + STAR)
    with pytest.raises(ScenarioError, match="^include: --set cannot include files; write it in"):
        load_scenario(mine, [setting])


def test_a_text_from_the_browser_includes_nothing() -> None:
    text = "include: /etc/hostname\n" + OWN + STAR
    refused = "^include: other files are included on the command line and by load_scenario only"
    with pytest.raises(ScenarioError, match=refused):
        parse_text(text, "upload.yaml")
    for parse in (parse_scenario, for_browser):
        with pytest.raises(ScenarioError, match=refused):
            parse(yaml.safe_load(text))


def test_a_scenario_of_the_gallery_may_include(tmp_path: Path) -> None:
    mine = write(tmp_path, block=BLOCK, mine="# Why?\ninclude: block.yaml\n" + OWN)
    mapping, question, _ = read_scenario(mine)
    assert for_browser(mapping, question).network.sharing == "fifo"
    (tmp_path / "block.yaml").write_text("topology: {file: net.txt}\n")
    with pytest.raises(ScenarioError, match=r"^topology.file: .*command line only"):
        for_browser(read_scenario(mine)[0])


WHOLE: dict[str, Any] = {
    "collective": "broadcast",
    "algorithm": ["flat", {"name": "knomial", "k": 3}],
    "ranks": 6,
    "root": 2,
    "nbytes": "64 KiB",
    "topology": {
        "kind": "star",
        "hosts": 6,
        "bandwidth": "10 Gbit/s",
        "latency": "5 us",
        "links": {"rank 3": {"bandwidth": "1 Gbit/s", "latency": "1 ms"}, "h1": {"latency": "0 s"}},
    },
    "placement": ["h5", "h4", "h3", "h2", "h1", "h0"],
    "network": {"sharing": "fifo", "store_and_forward": True, "gap": "1 us", "seed": 4},
}


@st.composite
def split(draw: st.DrawFn, whole: dict[str, Any], parts: int) -> list[dict[str, Any]]:
    """The mapping spread over parts, mappings in it too; a part may say again what another says."""
    pieces: list[dict[str, Any]] = [{} for _ in range(parts)]
    for key, value in whole.items():
        if isinstance(value, dict) and draw(st.booleans()):
            for piece, inner in zip(pieces, draw(split(value, parts)), strict=True):
                if inner:
                    piece[key] = inner
        else:
            for number in draw(st.sets(st.integers(0, parts - 1), min_size=1)):
                pieces[number][key] = value
    return pieces


@settings(max_examples=60, deadline=None)
@given(pieces=split(WHOLE, 3), nested=st.booleans())
def test_a_scenario_split_at_random_loads_equal_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[dict[str, Any]], nested: bool
) -> None:
    folder = tmp_path_factory.mktemp("split")
    first, second, own = pieces
    if nested:
        second, own = {**second, "include": "first.yaml"}, {**own, "include": "second.yaml"}
    else:
        own = {**own, "include": ["first.yaml", "second.yaml"]}
    texts = {"first": first, "second": second, "mine": own}
    mine = write(folder, **{name: yaml.safe_dump(part) for name, part in texts.items()})
    loaded: Scenario = load_scenario(mine)
    whole = parse_scenario(WHOLE, folder=folder)
    assert loaded == whole
    assert loaded.digest == whole.digest
