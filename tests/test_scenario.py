"""Scenarios: what is accepted, and that every mistake is one clear line with the field's name."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collsim.errors import CollsimError, ScenarioError
from collsim.scenario import Scenario, load_scenario, parse_scenario

GOOD = {
    "collective": "broadcast",
    "algorithm": "binomial",
    "ranks": 8,
    "nbytes": "1 MiB",
    "topology": {"kind": "star", "hosts": 8, "bandwidth": "10 Gbit/s", "latency": "5 us"},
}


def test_a_small_scenario_has_the_documented_defaults() -> None:
    scenario = parse_scenario(GOOD)
    assert scenario.nbytes == 1 << 20
    assert (scenario.root, scenario.segment, scenario.placement) == (0, "best", "block")
    assert (scenario.network.sharing, scenario.network.protocol) == ("fair", "rendezvous")
    assert [choice.name for choice in scenario.choices] == ["binomial"]


@pytest.mark.parametrize(
    ("algorithm", "names", "parameters"),
    [
        ("flat", ["flat"], [{}]),
        (["flat", {"name": "knomial", "k": 3}], ["flat", "knomial"], [{}, {"k": 3}]),
        ({"name": "knomial", "k": 4}, ["knomial"], [{"k": 4}]),
        ("mine.py:tree", ["mine.py:tree"], [{}]),
    ],
)
def test_algorithms_in_every_form(algorithm: object, names: list, parameters: list) -> None:
    choices = parse_scenario({**GOOD, "algorithm": algorithm}).choices
    assert [choice.name for choice in choices] == names
    assert [choice.parameters for choice in choices] == parameters


def test_all_means_the_whole_table() -> None:
    scenario = parse_scenario({**GOOD, "algorithm": "all"})
    assert [c.name for c in scenario.choices] == list(scenario.definition.algorithms)


BAD: list[tuple[dict, str]] = [
    ({"rank": 8}, r"^rank: unknown key, did you mean ranks\? use collective, algorithm"),
    ({"network": {"sharng": "fifo"}}, r"^network.sharng: unknown key, did you mean sharing\?"),
    ({"network": {"sharing": "both"}}, r"^network.sharing: .*'fifo' or 'fair', got 'both'"),
    ({"network": {"overhead": "3"}}, r"^network.overhead: '3' has no unit"),
    ({"network": {"store_and_forward": True}}, "^network: store_and_forward needs sharing: fifo"),
    ({"network": 3}, "^network: .*got 3"),
    ({"nbytes": "10 Gb"}, r"^nbytes: '10 Gb' counts bits"),
    ({"nbytes": "1 Mib"}, r"^nbytes: '1 Mib' counts bits"),
    ({"nbytes": -1}, "^nbytes: -1 is negative"),
    ({"nbytes": 1 << 60}, "^nbytes: .*less than or equal"),
    ({"nbytes": None}, "^nbytes: None is not a size"),
    ({"nbytes": [1]}, r"^nbytes: \[1\] is not a size"),
    ({"ranks": 0}, "^ranks: .*greater than or equal to 1, got 0"),
    ({"ranks": "8"}, "^ranks: .*valid integer, got '8'"),
    ({"ranks": 8.0}, "^ranks: .*got 8.0"),
    ({"ranks": 10**9}, "^ranks: .*less than or equal to 16384"),
    ({"root": 8}, "^root: 8 is no rank; ranks are 0 to 7"),
    ({"root": -1}, "^root: .*greater than or equal to 0"),
    ({"segment": 0}, "^segment: .*greater than or equal to 1"),
    ({"segment": "2 s"}, "^segment: '2 s' has the wrong kind of unit"),
    ({"algorithm": "binomal"}, "^algorithm: 'binomal' is no broadcast, did you mean binomial"),
    ({"algorithm": []}, "^algorithm: name at least one"),
    ({"algorithm": {"k": 3}}, "^algorithm.0.name: is missing"),
    ({"algorithm": 7}, "^algorithm.0: "),
    ({"collective": "broadcst"}, "^collective: 'broadcst' is not a collective; use one of"),
    ({"collective": "all_gather", "algorithm": "all", "root": 1}, "^root: all_gather has no root"),
    ({"topology": "star"}, "^topology: .*got 'star'"),
    ({"placement": "random"}, "^placement: "),
    ({"dtype": "float32", "nbytes": 3}, "^nbytes: 3 bytes are no whole number of float32"),
    ({"dtype": "float31"}, "^dtype: "),
    ({"max_messages": 0}, "^max_messages: "),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=lambda value: str(value)[:40])
def test_every_mistake_is_one_line_that_names_field_value_and_remedy(
    change: dict, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        parse_scenario({**GOOD, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["algorithm", "ranks", "nbytes", "topology"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{key}: is missing"):
        parse_scenario({k: v for k, v in GOOD.items() if k != key})


def write(folder: Path, text: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_has_a_question_and_settings_change_it(tmp_path: Path) -> None:
    path = write(tmp_path, f"# Which one?\n{yaml.safe_dump(GOOD)}")
    scenario = load_scenario(path, ["ranks=4", "network.sharing=fifo", "algorithm=[flat, chain]"])
    assert scenario.question == "Which one?"
    assert scenario.folder == tmp_path
    assert (scenario.ranks, scenario.network.sharing) == (4, "fifo")
    assert [choice.name for choice in scenario.choices] == ["flat", "chain"]


def test_the_digest_tells_scenarios_apart_and_ignores_how_they_were_written(tmp_path: Path) -> None:
    one, other = parse_scenario(GOOD), parse_scenario({**GOOD, "nbytes": 1 << 20})
    assert one.digest == other.digest
    assert one.digest != parse_scenario({**GOOD, "nbytes": 1}).digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ranks: [1", "line 1, column 10 is not valid YAML"),
        ("- 1\n- 2", "is not a mapping"),
        ("", "is not a mapping"),
        ("ranks: 3\nranks: 4", "line 2, column 1 is not valid YAML: key 'ranks' stands twice"),
        ("a: &a [1]\nb: *a", "aliases are not allowed"),
        ("a: !!python/object/apply:os.system [ls]", "is not valid YAML: could not determine"),
        ("[" * 5000, "is not valid YAML"),
        ("a: \x00", "is not valid YAML"),
        ("? [1, 2]\n: 3", "is not valid YAML|unknown key"),
    ],
)
def test_files_that_are_no_scenario(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        load_scenario(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"cannot read .*No such file"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match=r"cannot read .*Is a directory"):
        load_scenario(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        load_scenario(tmp_path / "binary.yaml")
    (tmp_path / "large.yaml").write_text("#" * 1_000_001)
    with pytest.raises(ScenarioError, match="has more than 1,000,000 bytes"):
        load_scenario(tmp_path / "large.yaml")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("ranks", "--set wants key=value, got 'ranks'"),
        ("=4", "--set wants key=value"),
        ("ranks.x=4", "ranks: is 8, so ranks.x cannot be set"),
        ("ranks=[", "--set ranks, line 1"),
    ],
)
def test_bad_settings(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load_scenario(write(tmp_path, yaml.safe_dump(GOOD)), [setting])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.sampled_from([*Scenario.model_fields, "unknown"])


@given(st.dictionaries(keys, anything, max_size=4))
def test_no_mapping_does_worse_than_a_scenario_error(changes: dict) -> None:
    try:
        parse_scenario({**GOOD, **changes})
    except CollsimError as error:
        assert "\n" not in str(error)


@given(st.text(max_size=60))
def test_no_text_does_worse_than_a_scenario_error(tmp_path_factory, text: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "scenario.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(CollsimError):
        load_scenario(path)
