"""Short lessons: broadcast, flat against binomial, why gloo is slow on one link, mistakes."""

from collections.abc import Callable, Mapping
from typing import Final

import streamlit as st

from collsim.runner import Result
from collsim.scenario import parse_scenario
from collsim.ui.mistakes import what_goes_wrong
from collsim.ui.stage import play, result_of
from collsim.units import spell_time

SWITCH: Final = {"kind": "star", "bandwidth": "10 Gbit/s", "latency": "5 us"}


def page() -> None:
    """The lesson that the reader chose."""
    name = st.segmented_control(
        "Lesson", list(LESSONS), default=next(iter(LESSONS)), key="lesson", bind="query-params"
    )
    LESSONS[name or next(iter(LESSONS))]()


def _result(algorithm: list[str], ranks: int, nbytes: object, sharing: str) -> Result:
    return result_of(
        parse_scenario(
            {
                "algorithm": algorithm,
                "ranks": ranks,
                "nbytes": nbytes,
                "topology": SWITCH,
                "network": {"sharing": sharing},
            }
        )
    )


def what_broadcast_is() -> None:
    """The article's example: four ranks, one element."""
    st.markdown(
        "Four processes each hold a tensor of one element: **rank 0 holds a one, the others hold "
        "zeros**. They all call `torch.distributed.broadcast(tensor, src=0)`. Afterwards every "
        "rank holds a one. Watch who tells whom: with gloo, rank 0 tells ranks 1 and 2, and rank 1 "
        "tells rank 3."
    )
    result = _result(["gloo"], 4, 4, "fair")
    play(result, key="learn-what")
    schedule, timeline = result.runs[0].schedule, result.runs[0].timeline
    moments = sorted({0, *timeline.done.tolist()})
    step = st.select_slider(
        "Step through the tensors", range(len(moments)), key="learn-step",
        format_func=lambda i: spell_time(moments[i] / 1e12),
    )  # fmt: skip
    done = {0, *schedule.dst[timeline.done <= moments[step]].tolist()}
    st.table({f"rank {r}": ["[1.]" if r in done else "[0.]"] for r in range(4)})


def flat_against_binomial() -> None:
    """Predict, then reveal."""
    st.markdown(
        "Eight ranks, 1 MiB, one switch. **Flat**: the root sends to each of the seven others in "
        "turn. **Binomial**: whoever has the message passes it on. The root's link needs about "
        "0.84 ms for one copy."
    )
    guess = st.radio(
        "How many times as fast is binomial?", ("about as fast", "2.3 times", "7 times"),
        index=None, key="learn-guess",
    )  # fmt: skip
    if guess is None:
        return
    result = _result(["flat", "binomial"], 8, "1 MiB", "fifo")
    flat, binomial = (run.timeline.makespan for run in result.runs)
    right = guess == "2.3 times"
    (st.success if right else st.info)(
        f"{'Right' if right else 'Not quite'}: {spell_time(flat)} against {spell_time(binomial)}, "
        f"{flat / binomial:.1f} times. Flat takes 7 copies one after the other; binomial takes "
        "⌈log₂ 8⌉ = 3 rounds, because the number of ranks that help doubles in each."
    )
    play(result, key="learn-race")


def why_gloo_is_slow() -> None:
    """Children share their parent's uplink."""
    st.markdown(
        "gloo uses the binomial tree too, but a rank **starts all its sends at once**. On one "
        "switch they share its uplink, so the first child, which has most to pass on, gets the "
        "message as late as the last. For 2^d ranks that makes about d(d + 1)/2 copies' time, "
        "6 for eight ranks, where the serial tree takes 3 and a pipelined chain little more than 1."
    )
    result = _result(["gloo", "binomial", "chain"], 8, "1 MiB", "fair")
    play(result, key="learn-gloo")
    for run in result.runs:
        st.markdown(f"* {run.plan.title}: **{spell_time(run.timeline.makespan)}**")


LESSONS: Final[Mapping[str, Callable[[], None]]] = {
    "What broadcast is": what_broadcast_is,
    "Flat against binomial": flat_against_binomial,
    "Why gloo is slow on a shared link": why_gloo_is_slow,
    "What goes wrong": what_goes_wrong,
}
