"""When does which one win?"""

import math
from typing import Any

import altair as alt
import streamlit as st

from collsim.curves import Curves, size_curves
from collsim.errors import CollsimError
from collsim.scenario import Scenario
from collsim.ui.choice import choose_scenario
from collsim.ui.stage import with_algorithms
from collsim.units import spell_size, spell_time

MOST = 8
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [3, 5], [1, 4], [12, 3, 3, 3])


def page() -> None:
    """Makespan against message size, log-log, with the lower bound and named crossovers."""
    scenario = choose_scenario("all-broadcasts")
    fitting = [
        name
        for name, row in scenario.definition.algorithms.items()
        if row.ranks.allows(scenario.ranks)
    ]
    given = [c.name for c in scenario.choices if c.name in fitting]
    if len(given) > MOST:
        given = [
            n for n in ("flat", "binomial", "chain", "circulant", "two_trees", "gloo") if n in given
        ]
    with st.sidebar:
        names = st.multiselect(
            "Algorithms",
            fitting,
            default=given,
            max_selections=MOST,
            key=f"curves-{scenario.collective}",
            bind="query-params",
        )
        low, high = st.select_slider(
            "Sizes",
            [1 << power for power in range(0, 28, 2)],
            value=(1 << 10, 1 << 24),
            format_func=spell_size,
            key="sizes",
        )
    if not names:
        st.info("Choose algorithms in the sidebar.")
        st.stop()
    curves = _compute(with_algorithms(scenario, names), low, high)
    st.altair_chart(chart(curves), width="stretch")
    for nbytes, before, after in curves.crossovers():
        st.markdown(f"From **{spell_size(round(nbytes))}** on, {after} is faster than {before}.")
    if not curves.crossovers():
        st.markdown(f"{curves.fastest(0)} is the fastest at all of these sizes.")
    st.caption("Predicted makespans; the grey line is a lower bound that nothing can beat.")


def _compute(scenario: Scenario, low: int, high: int) -> Curves:
    points = 2 * round(math.log2(high / low)) // 2 + 1
    sizes = sorted({round(low * (high / low) ** (i / max(1, points - 1))) for i in range(points)})
    bar = st.progress(0.0, "Simulating …")

    def show(part: float) -> None:
        bar.progress(part, "Simulating …")

    try:
        return size_curves(scenario, sizes, show)
    except CollsimError as error:
        st.error(str(error))
        st.stop()
    finally:
        bar.empty()


def chart(curves: Curves) -> alt.LayerChart:
    """The curves as a chart; styles differ without colour as well."""
    rows = [
        {
            "bytes": size,
            "seconds": seconds,
            "algorithm": name,
            "size": spell_size(size),
            "makespan": spell_time(seconds),
        }
        for name, column in curves.makespans.items()
        for size, seconds in zip(curves.sizes, column, strict=True)
        if seconds > 0
    ]
    floor = [{"bytes": s, "seconds": t} for s, t in zip(curves.sizes, curves.bound, strict=True)]
    names = list(curves.makespans)
    ticks = alt.Axis(labelExpr=SIZE_LABEL, values=[1 << power for power in range(0, 31, 2)])
    x = alt.X("bytes:Q", title="message size", scale=alt.Scale(type="log"), axis=ticks)
    times = alt.Axis(labelExpr=TIME_LABEL, tickCount=6)
    y = alt.Y("seconds:Q", title="makespan", scale=alt.Scale(type="log"), axis=times)
    dashes = alt.Scale(range=[list(dash) for dash in DASHES])
    lines = _layer(rows).mark_line(point=True, strokeWidth=2.5)
    lines = lines.encode(
        x=x,
        y=y,
        color=alt.Color("algorithm:N", sort=names, scale=alt.Scale(scheme="tableau10")),
        strokeDash=alt.StrokeDash("algorithm:N", sort=names, scale=dashes),
        shape=alt.Shape("algorithm:N", sort=names),
        tooltip=["algorithm:N", "size:N", "makespan:N"],
    )
    below = _layer(floor).mark_line(color="grey", strokeWidth=1).encode(x=x, y=y)
    return alt.LayerChart(layer=[below, lines], height=460)


def _layer(rows: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]


SIZE_LABEL = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
TIME_LABEL = (
    "datum.value >= 1 ? format(datum.value, '~g') + ' s' : "
    "datum.value >= 0.00099 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "format(datum.value * 1e6, '~g') + ' µs'"
)
