"""Can I trust this?"""

import streamlit as st

from collsim.checking import CheckResult, check
from collsim.errors import CollsimError, ExecutionUnavailable
from collsim.ui.choice import choose_scenario
from collsim.ui.recorded import show_recorded
from collsim.units import spell_time

MOST_RANKS = 16


def page() -> None:
    """Run the scenario on real gloo processes here, and compare every rank's tensor."""
    scenario = choose_scenario("article-example")
    st.markdown(
        f"Start **{scenario.ranks} real processes** on this machine, run each algorithm over "
        "`torch.distributed` with gloo, and compare every rank's tensor byte for byte."
    )
    if scenario.ranks > MOST_RANKS:
        st.error(f"ranks: the app starts at most {MOST_RANKS} processes, got {scenario.ranks}")
        st.stop()
    if not st.button("Run on real processes", type="primary"):
        show_recorded(scenario)
        st.stop()
    with st.status("Starting ranks …") as status:
        try:
            result = check(scenario, lambda title: status.update(label=f"Running {title} …"))
        except ExecutionUnavailable as error:
            status.update(label="Not available here", state="error")
            st.warning(f"{error}. The simulation needs neither.")
            show_recorded(scenario)
            st.stop()
        except CollsimError as error:
            status.update(label="Failed", state="error")
            st.error(str(error))
            st.stop()
        status.update(label="Done", state="complete")
    show(result)


def show(result: CheckResult) -> None:
    """Each run's verdict, and small tensors before and after."""
    if result.tensors_equal:
        st.success("Every rank of every run holds the right bytes.")
    else:
        st.error("Tensors differ.")
    st.dataframe(
        [
            {
                "algorithm": one.title,
                "tensors": "equal" if one.tensors_equal else one.difference,
                "bytes on the wire": "equal" if one.bytes_equal else "differ",
                "measured on loopback": spell_time(one.measured),
                "predicted on the scenario's network": spell_time(one.predicted),
            }
            for one in result.checked
        ],
        hide_index=True,
    )
    st.caption("Loopback has no links: its times show that it ran, not the network's speed.")
    last = result.checked[-1]
    st.markdown(f"Tensors, {last.title}:")
    st.dataframe(
        [
            {"rank": rank, "before": before, "after": after}
            for rank, (before, after) in enumerate(zip(last.before, last.after, strict=True))
        ],
        hide_index=True,
    )
