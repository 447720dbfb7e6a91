"""Which one wins, and why?"""

import streamlit as st

from collsim.critical_path import spell_path
from collsim.runner import Result
from collsim.ui.choice import choose_scenario
from collsim.ui.stage import downloads, play, result_of, table, with_algorithms
from collsim.units import spell_time

MOST = 4


def page() -> None:
    """Up to four algorithms on one clock, and one sentence on why."""
    scenario = choose_scenario()
    fitting = [
        name
        for name, row in scenario.definition.algorithms.items()
        if row.ranks.allows(scenario.ranks)
    ]
    given = [c.name for c in scenario.choices if c.name in fitting][:MOST]
    with st.sidebar:
        names = st.multiselect(
            "Algorithms (two to four)",
            fitting,
            default=given,
            max_selections=MOST,
            key=f"racing-{scenario.collective}",
            bind="query-params",
        )
    if len(names) < 2:
        st.info("Choose two to four algorithms in the sidebar.")
        st.stop()
    result = result_of(with_algorithms(scenario, names))
    play(result, key="race")
    st.markdown(why(result))
    table(result)
    with st.expander("Take it away"):
        downloads(result)


def why(result: Result) -> str:
    """One sentence from the timelines: by how much the winner leads, and what holds the last."""
    ordered = sorted(result.runs, key=lambda run: run.timeline.makespan_ps)
    best, worst = ordered[0], ordered[-1]
    if best.timeline.makespan_ps == worst.timeline.makespan_ps:
        return "All of them take the same time here."
    ratio = worst.timeline.makespan / best.timeline.makespan
    use = worst.timeline.link_use
    link = worst.timeline.bottleneck
    return (
        f"**{best.plan.title} wins** after {spell_time(best.timeline.makespan)}, "
        f"{ratio:.1f} times as fast as {worst.plan.title}. "
        f"{worst.plan.title} keeps {link} busy for {use[link]:.0%} of its "
        f" {spell_time(worst.timeline.makespan)}; its critical path is "
        f"{spell_path(worst.timeline, most=4)}."
    )
