"""How the Hook lab begins: three recipes of one step, each a click away."""

from collections.abc import Callable

import streamlit as st

from interp.errors import InterpError
from interp.hooks.recipe import Step
from interp.inspection.channels import channel_maps
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.ui import lab_run, lab_state, runs
from interp.ui.lab_recipe import best_layer
from interp.ui.network import outline
from interp.ui.state import View


def examples(view: View, picture: Picture, model: LoadedModel) -> None:
    """Three first hooks that are added and run by one click."""
    best = best_layer(model).path
    first, middle = _first_layer(model), _middle_layer(model)
    cards: tuple[tuple[str, str, str, Callable[[], Step]], ...] = (
        (
            "Silence a channel",
            "content_cut",
            f"Of `{best}`, the channel that speaks most for the answer: does the model need it?",
            lambda: _silence(view, picture, model, best),
        ),
        (
            "Add noise to the input",
            "grain",
            f"A forward pre-hook on `{first}`, the first layer, adds noise to what it is given.",
            lambda: Step("forward_pre", first, "noise", {"deviation": 0.5}),
        ),
        (
            "Clamp gradients",
            "compress",
            f"A full backward hook on `{middle}` keeps the gradient small: the answer stays, the "
            "gradients before it do not.",
            lambda: Step("full_backward", middle, "clamp", {"low": -0.0003, "high": 0.0003}),
        ),
    )
    st.markdown("**Begin with one of these**, or add a hook of your own.")
    with st.container(key="lab examples"):
        places = st.columns(len(cards), gap="medium")
    for place, (label, icon, words, make) in zip(places, cards, strict=True):
        with place.container(border=True, height="stretch"):
            st.button(
                label,
                icon=f":material/{icon}:",
                key=f"lab example {label}",
                on_click=_begin,
                args=(make,),
                width="stretch",
            )
            st.caption(words)


def _begin(make: Callable[[], Step]) -> None:
    lab_state.add(make())
    lab_state.open_step("")
    lab_run.ask()


def _silence(view: View, picture: Picture, model: LoadedModel, path: str) -> Step:
    """The channel with the largest contribution; the first where that is not to be had."""
    try:
        maps = channel_maps(model, picture, path, target=view.target, fit=view.fit)
    except InterpError as error:
        lab_state.tell(f"Channel 0 was taken, as none stands out: {error}")
        return Step("forward", path, "channels")
    runs.note("Contribution of every channel", maps.ledger)
    return Step("forward", path, "channels", {"which": str(maps.order("contribution")[0])})


def _first_layer(model: LoadedModel) -> str:
    """The first module to run that has parameters of its own and holds no other."""
    ran = sorted((info for info in model.layers if info.calls), key=lambda info: info.order)
    return next((info.path for info in ran if info.parameters), ran[0].path)


def _middle_layer(model: LoadedModel) -> str:
    """A block half-way through the network."""
    ran = {info.path for info in model.layers if info.calls}
    blocks = [b.path for stage in outline(model.layers) for b in stage.blocks if b.path in ran]
    return blocks[len(blocks) // 2]
