"""What goes wrong: predict a mistake's outcome, see it rank by rank, make it on real processes."""

from collections.abc import Mapping
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from collsim.errors import CollsimError, ExecutionUnavailable
from collsim.gloo.execute import GlooServer
from collsim.mistakes import MISTAKES, Lesson, Mistake, reproduce
from collsim.mistakes.words import End, documented, happens, observed, source

COLOURS: Final[Mapping[End, str]] = {
    "right": "green",
    "silently wrong": "red",
    "wrong": "red",
    "raises": "orange",
    "left alone": "blue",
    "dies": "violet",
}
GUESSES: Final[Mapping[End, str]] = {
    "raises": "A rank raises an error at once",
    "left alone": "A rank waits in vain for another, or loses it",
    "silently wrong": "A rank holds wrong data, without a word",
    "wrong": "A rank holds wrong data, and warns",
    "dies": "A process dies",
    "right": "Every rank gets the right data",
}


def what_goes_wrong() -> None:
    """One mistake: its code, a question, and after a guess everything that is known of it."""
    titles = {mistake.title: mistake for mistake in MISTAKES}
    title = st.selectbox("Mistake", list(titles), key="mistake", bind="query-params")
    mistake = titles[title]
    code, question = st.columns([3, 2])
    with code:
        st.markdown("Each of **four ranks** executes:")
        st.code(source(mistake.work), language="python")
    with question:
        guess = st.radio(
            "What happens? Name one thing.", list(GUESSES), format_func=GUESSES.__getitem__,
            index=None, key=f"mistake-guess-{mistake.id}",
        )  # fmt: skip
        if guess is None:
            st.caption("Guess first: what is known then appears below.")
            return
        (st.success if guess in happens(mistake) else st.info)(
            f"**{'Right' if guess in happens(mistake) else 'Not quite'}:** {mistake.outcome}."
        )
    _fates(mistake)
    _explain(mistake)


def _fates(mistake: Mistake) -> None:
    """The ranks' documented fates, and beside them what is observed if the mistake is made now."""
    place = st.empty()
    _cards(place.container(), mistake)
    if not st.button("Make this mistake now, on four real processes", type="primary"):
        return
    try:
        with st.spinner("Starting four ranks …"), GlooServer() as server:
            lesson = reproduce(mistake, server)
    except ExecutionUnavailable as error:
        st.warning(
            f"{error}. What is shown above was observed on real ranks earlier; to make them here, "
            'run `pip install -e ".[gloo]"` in the folder of collsim, on Linux.'
        )
    except CollsimError as error:
        st.error(str(error))
    else:
        _cards(place.container(), mistake, lesson)
        if lesson.agrees:
            st.success("All four ranks did what is documented.")
        else:
            st.error("This is not as documented.")


def _cards(place: DeltaGenerator, mistake: Mistake, lesson: Lesson | None = None) -> None:
    """Four ranks side by side."""
    for rank, column in enumerate(place.columns(len(mistake.expected))):
        with column.container(border=True, height="stretch"):
            ends, said = documented(mistake, rank)
            st.markdown(f"**Rank {rank}**, documented")
            _fate(ends, said)
            if lesson is not None:
                fate = lesson.observed[rank]
                end, said = observed(fate, mistake.right[rank])
                agrees = mistake.expected[rank].agrees(fate)
                st.markdown(f"**Rank {rank}**, observed: {'agrees' if agrees else '**DIFFERS**'}")
                _fate((end,), said)


def _fate(ends: tuple[End, ...], said: str) -> None:
    """How a rank ends: in colour, in a word, and in a sentence."""
    st.markdown("#### " + " or ".join(f":{COLOURS[end]}[{end}]" for end in ends))
    st.text(said)


def _explain(mistake: Mistake) -> None:
    """What collsim says beforehand, and the remedy."""
    before, remedy = st.columns([3, 2])
    with before:
        st.markdown("#### What collsim says before anything runs")
        if mistake.diagnose is None:
            st.text(f"Nothing: {mistake.blind}.")
        else:
            st.text(mistake.diagnose())
            with st.expander("The same mistake as a program of collsim"):
                st.code(source(mistake.diagnose), language="python")
    with remedy:
        st.markdown("#### Remedy")
        st.markdown(mistake.remedy)
