"""Hookscope's dashboard: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

from interp.ui.kinds import colour_style

ASSETS = Path(__file__).parent / "assets"

st.set_page_config(
    page_title="Hookscope",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state="expanded",
)
st.html(ASSETS / "page.css")
st.html(colour_style())
st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))

PAGES = (
    ("explain", "Explain", "visibility"),
    ("layers", "Layers", "layers"),
    ("gradients", "Gradients", "trending_down"),
    ("lab", "Hook lab", "science"),
    ("lessons", "Lessons", "school"),
    ("lifecycle", "Lifecycle", "timeline"),
)
st.navigation(
    [
        st.Page(f"pages/{name}.py", title=title, icon=f":material/{icon}:", default=not place)
        for place, (name, title, icon) in enumerate(PAGES)
    ]
).run()
