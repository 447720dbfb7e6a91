"""Real runs in a shaped network that were made earlier: predicted against measured."""

from io import BytesIO

import streamlit as st

from collsim.check_plots import draw_check
from collsim.emulation import WHOLE, LabResult
from collsim.errors import ScenarioError
from collsim.recorded import recorded_run, recorded_runs
from collsim.scenario import Scenario
from collsim.units import spell_time


def show_recorded(scenario: Scenario) -> None:
    """The scenario's recorded run, or which scenarios have one."""
    try:
        run = recorded_run(scenario)
    except ScenarioError:
        names = ", ".join(f"[{name}](?scenario={name})" for name in recorded_runs())
        st.caption(f"Times in a shaped network are recorded for {names}.")
        return
    near = sum(abs(row.ratio - 1) <= WHOLE for row in run.algorithms)
    machine = run.provenance["machine"]
    st.markdown(
        f"#### Recorded: {near} of {len(run.algorithms)} real runs took the predicted time "
        f"within {WHOLE:.0%}\n"
        f"Each rank had a network of its own, shaped like the scenario's; {run.repetitions} runs "
        f"of each on {run.provenance['date']}, {machine}, {run.provenance['kernel']}, "
        f"torch {run.provenance['torch']}."
    )
    st.dataframe(_rows(run), hide_index=True)
    with st.spinner("Drawing …"):
        st.image(_picture(run.model_dump_json()), width="stretch")
    for row in run.algorithms:
        if row.limit:
            st.caption(f"{row.algorithm}: {row.limit}.")


@st.cache_data(show_spinner=False, max_entries=16)
def _picture(run: str) -> bytes:
    """The picture as PNG; drawn once, as it takes seconds and never changes."""
    drawn = BytesIO()
    figure = draw_check(LabResult.model_validate_json(run), recorded=True)
    figure.savefig(drawn, format="png", dpi=110)
    return drawn.getvalue()


def _rows(run: LabResult) -> list[dict[str, str]]:
    return [
        {
            "algorithm": row.algorithm,
            "tensors": "equal" if row.tensors_equal else row.difference,
            "bytes on the wire": "equal" if row.bytes_equal else "differ",
            "predicted": spell_time(row.predicted_s),
            "recorded": spell_time(row.measured_s),
            "ratio": f"{row.ratio:.3f}",
            "the model stands for": f"{row.low:.2f} to {row.high:.2f}" if row.low else "none",
        }
        for row in run.algorithms
    ]
