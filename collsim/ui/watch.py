"""How does this algorithm move the data?"""

import inspect

import streamlit as st

from collsim.collectives.describe import describe
from collsim.scenario import Scenario
from collsim.ui.choice import choose_scenario
from collsim.ui.stage import downloads, numbers, play, result_of, with_algorithms


def page() -> None:
    """One algorithm: the player, its numbers, what it is and its program."""
    scenario = choose_scenario()
    name = _algorithm(scenario)
    result = result_of(with_algorithms(scenario, [name]))
    play(result, key="watch")
    numbers(result)
    program = scenario.definition.algorithms[name].program
    about = describe(program)
    with st.expander(f"What {name} does, and its program"):
        st.markdown(f"**{about.summary}** {' '.join(about.details)}")
        formulas = {field: formula.text for field, formula in about.formulas.items()}
        st.table({**formulas, **about.notes})
        st.code(inspect.getsource(program), language="python")
    with st.expander("Take it away"):
        downloads(result)


def _algorithm(scenario: Scenario) -> str:
    fitting = [
        name
        for name, row in scenario.definition.algorithms.items()
        if row.ranks.allows(scenario.ranks)
    ]
    given = next((c.name for c in scenario.choices if c.name in fitting), fitting[0])
    with st.sidebar:
        chosen = st.selectbox(
            "Algorithm",
            fitting,
            index=fitting.index(given),
            key=f"algorithm-{scenario.collective}",
            bind="query-params",
        )
    return chosen or given
