"""Registers the browser components whose files lie in `assets/`."""

from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

ASSETS = Path(__file__).resolve().parents[2] / "assets"
# What draws a map in the browser: for every component that shows one beside the heatmap itself.
HEAT = ("heatmap.field.js", "heatmap.memory.js", "heatmap.paint.js")


@cache
def component(name: str, shared: tuple[str, ...] = ()) -> ComponentRenderer:
    """Register the component of the files `assets/NAME.{html,css,js}`, once a process.

    Parameters
    ----------
    name : str
        Stem of the three files. Further files `NAME.PART.js` are put before `NAME.js`, in the
        order of their names, and form one ES module with it: an inline component cannot import.
    shared : tuple of str
        Names of style sheets and scripts of other components that come before its own.

    Returns
    -------
    ComponentRenderer
        Mounts the component: called with `key=` and `data=` inside a Streamlit script.
    """
    styles = [ASSETS / file for file in shared if file.endswith(".css")]
    scripts = [ASSETS / file for file in shared if file.endswith(".js")]
    scripts += [*sorted(ASSETS.glob(f"{name}.*.js")), ASSETS / f"{name}.js"]
    return st.components.v2.component(
        f"hookscope_{name}",
        html=(ASSETS / f"{name}.html").read_text("utf-8"),
        css="\n".join(file.read_text("utf-8") for file in [*styles, ASSETS / f"{name}.css"]),
        js="\n".join(script.read_text("utf-8") for script in scripts),
    )
