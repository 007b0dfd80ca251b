"""Hookscope's dashboard: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

ASSETS = Path(__file__).parent / "assets"

st.set_page_config(
    page_title="Hookscope",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state="expanded",
)
st.html(ASSETS / "page.css")
st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))

st.navigation(
    [st.Page("pages/explain.py", title="Explain", icon=":material/visibility:", default=True)]
).run()
