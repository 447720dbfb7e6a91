"""The sidebar: a scenario from the gallery or a file, and a few widgets that a link restores."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from collsim.catalogue import scenarios_folder
from collsim.errors import CollsimError, ScenarioError
from collsim.scenario import Scenario, parse_scenario, parse_text, read_scenario

MOST_RANKS = 256
MOST_MESSAGES = 20_000
MOST_UPLOAD = 100_000
SIZES = ("1 B", "1 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB")


def for_browser(mapping: Mapping[str, Any], question: str = "") -> Scenario:
    """A scenario from a browser: data only, and small enough to draw.

    Raises:
        ScenarioError: It names files, is too large, or is wrong.
    """
    limited = {**mapping, "max_messages": MOST_MESSAGES}
    scenario = parse_scenario(limited, question=question)
    if any(choice.is_file for choice in scenario.choices):
        raise ScenarioError("programs in files run from the command line only", "algorithm")
    if "file" in scenario.topology:
        raise ScenarioError("topology files are read from the command line only", "topology.file")
    if scenario.ranks > MOST_RANKS:
        raise ScenarioError(f"the app draws at most {MOST_RANKS}, got {scenario.ranks}", "ranks")
    return scenario


def choose_scenario(default: str = "one-switch") -> Scenario:
    """The sidebar's scenario; on a mistake it says which field, and the page stops."""
    try:
        mapping, question = _source(default)
        return for_browser(_changed(dict(mapping)), question)
    except CollsimError as error:
        st.error(str(error))
        st.stop()


def _source(default: str) -> tuple[Mapping[str, Any], str]:
    names = sorted(path.stem for path in scenarios_folder().glob("*.yaml"))
    with st.sidebar:
        name = st.selectbox(
            "Scenario", names, index=names.index(default), key="scenario", bind="query-params"
        )
        uploaded = st.file_uploader("or your own (YAML)", type=["yaml", "yml"])
    if uploaded is not None:
        raw = uploaded.getvalue()
        if len(raw) > MOST_UPLOAD:
            raise ScenarioError(f"{uploaded.name} has more than {MOST_UPLOAD:,} bytes")
        return parse_text(raw.decode("utf-8", "replace"), uploaded.name)
    mapping, question, _ = read_scenario(scenarios_folder() / f"{name}.yaml")
    return mapping, question


def _changed(mapping: dict[str, Any]) -> dict[str, Any]:
    """The scenario with what the widgets say; untouched ones leave it as it is."""
    with st.sidebar:
        size = st.selectbox("Size", ("as given", *SIZES), key="size", bind="query-params")
        sharing = st.segmented_control(
            "Links", ("as given", "fifo", "fair"), default="as given", key="sharing",
            bind="query-params",
        )  # fmt: skip
        protocol = st.segmented_control(
            "Protocol", ("as given", "rendezvous", "eager"), default="as given", key="protocol",
            bind="query-params",
        )  # fmt: skip
    network = dict(mapping.get("network") or {})
    if sharing in ("fifo", "fair"):
        network["sharing"] = sharing
        if sharing == "fair":
            network.pop("store_and_forward", None)
    if protocol in ("rendezvous", "eager"):
        network["protocol"] = protocol
    if size != "as given":
        mapping = {**mapping, "nbytes": size, "dtype": "uint8"}
    return {**mapping, "network": network}
