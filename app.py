"""`streamlit run app.py`: the pages of collsim's app."""

import streamlit as st

from collsim.ui import check, curves, learn, race, watch

st.set_page_config("collsim", layout="wide")
st.html("<style>.stMainBlockContainer { padding-top: 3.5rem; padding-bottom: 2rem; }</style>")
PAGES = {
    "Watch": watch.page,
    "Race": race.page,
    "Curves": curves.page,
    "Check": check.page,
    "Learn": learn.page,
}
st.navigation(
    [
        st.Page(page, title=title, url_path=title.lower(), default=title == "Watch")
        for title, page in PAGES.items()
    ],
    position="top",
).run()
