"""What stands below a result in the Hook lab: the channel sweep, and the recipe as a script."""

import streamlit as st

from interp.errors import InterpError
from interp.hooks.recipe import Recipe
from interp.hooks.script import script
from interp.models.loading import LoadedModel
from interp.picture import Picture, sample_pictures
from interp.ui.lab_second import uploaded
from interp.ui.state import View
from interp.ui.sweep_view import channel_sweep
from interp.ui.waiting import plain


def tabs(view: View, picture: Picture, model: LoadedModel, recipe: Recipe) -> None:
    """Channel sweep and code, behind one row of tabs."""
    sweep, code = st.tabs(["Channel sweep", "Code"])
    with sweep:
        channel_sweep(view, model, picture)
    with code:
        _code(view, picture, model, recipe)


def _code(view: View, picture: Picture, model: LoadedModel, recipe: Recipe) -> None:
    """The recipe as a script of plain PyTorch, to copy or to download."""
    if not any(step.enabled for step in recipe.steps):
        st.caption("Add a hook, and the PyTorch script that does the same stands here.")
        return
    try:
        text = script(
            recipe,
            model,
            str(sample_pictures().get(view.picture, picture.name)),
            target=view.target,
            fit=view.fit,
            frame=picture.frame,
            files=uploaded(recipe),
        )
    except InterpError as error:
        st.caption(f"No script yet: {plain(str(error))}.")
        return
    st.caption("Plain PyTorch: it registers the same hooks, runs, and removes each by its handle.")
    st.download_button(
        "Download the script",
        text,
        file_name="hooks.py",
        mime="text/x-python",
        icon=":material/download:",
        key="lab script",
        on_click="ignore",
    )
    st.code(text, language="python", height=520)
