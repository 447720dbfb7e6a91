"""What pages share: runs that are computed once, the player, and the numbers beside it."""

from importlib.metadata import version
from typing import Any

import streamlit as st

from collsim.errors import CollsimError
from collsim.player import asset, payload, player_script, standalone_page
from collsim.runner import Result, run
from collsim.scenario import Scenario, parse_scenario
from collsim.units import spell_bandwidth, spell_time

player = st.components.v2.component(
    "collsim_player", html='<div class="here"></div>\n', css=asset("player.css"), js=player_script()
)


def result_of(scenario: Scenario) -> Result:
    """The scenario's result; a mistake is shown, and the page stops."""
    try:
        return _cached(scenario.model_dump_json(), scenario.question, version("collsim"))
    except CollsimError as error:
        st.error(str(error))
        st.stop()


@st.cache_resource(max_entries=64, show_spinner="Simulating …")
def _cached(text: str, question: str, _version: str) -> Result:
    """Results are frozen, so sessions can share them."""
    import json

    return run(parse_scenario(json.loads(text), question=question))


def with_algorithms(scenario: Scenario, names: list[str]) -> Scenario:
    """The same scenario with other algorithms, their parameters kept where it gives some."""
    given = {choice.name: choice for choice in scenario.choices}
    mapping = scenario.model_dump(mode="json")
    mapping["algorithm"] = [
        {"name": name, **(given[name].parameters if name in given else {})} for name in names
    ]
    return parse_scenario(mapping, question=scenario.question)


def play(result: Result, key: str) -> None:
    """Mount the player."""
    try:
        text = payload(result)
    except CollsimError as error:
        st.error(str(error))
        st.stop()
    player(data=text, key=key)


def numbers(result: Result) -> None:
    """A row of figures for one run."""
    (one,) = result.runs
    timeline, bound = one.timeline, result.bound.seconds
    busiest = next(iter(timeline.link_use.items()), None)
    cells = {
        "Makespan": spell_time(timeline.makespan),
        "× lower bound": f"{timeline.makespan / bound:.2f}" if bound else "–",
        "Rounds": f"{one.schedule.n_rounds:,}",
        "Messages": f"{len(one.schedule):,}",
        "algbw": spell_bandwidth(timeline.algbw) if timeline.makespan_ps else "–",
        "Busiest link": f"{busiest[0]} {busiest[1]:.0%}" if busiest else "–",
    }
    for column, (name, value) in zip(st.columns(len(cells)), cells.items(), strict=True):
        column.caption(name)
        column.markdown(f"**{value}**")


def table(result: Result) -> None:
    """A row an algorithm, fastest first."""
    rows: list[dict[str, Any]] = [
        {
            "algorithm": row["algorithm"],
            "makespan": spell_time(row["makespan_s"]),
            "× bound": round(row["over_bound"], 2) if row["over_bound"] else None,
            "textbook": "–" if row["textbook_s"] is None else spell_time(row["textbook_s"]),
            "rounds": row["rounds"],
            "messages": row["messages"],
            "busiest link": row["bottleneck"],
        }
        for row in sorted(result.rows(), key=lambda row: float(row["makespan_s"]))
    ]
    st.dataframe(rows, hide_index=True)


def downloads(result: Result) -> None:
    """The scenario and its runs, to take away."""
    import yaml

    from collsim.export import export

    scenario = result.scenario.model_dump(mode="json", exclude_defaults=True)
    text = f"# {result.scenario.question}\n{yaml.safe_dump(scenario, sort_keys=False)}"
    columns = st.columns(4)
    files = [
        ("Scenario (YAML)", text, "scenario.yaml"),
        ("Animation (HTML)", standalone_page(result), "collsim.html"),
        ("Messages (CSV)", export(result, "csv"), "messages.csv"),
        ("Results (JSON)", export(result, "json"), "results.json"),
    ]
    for column, (label, content, name) in zip(columns, files, strict=True):
        column.download_button(label, content, name, on_click="ignore", width="stretch")
