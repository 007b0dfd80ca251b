"""Hookscope: see what a vision model looks at, layer by layer and hook by hook."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interp.errors import InterpError

if TYPE_CHECKING:
    from interp.attribution import (
        Attribution,
        Prediction,
        explain,
        explain_layers,
        list_methods,
        predict,
    )
    from interp.hooks.capture import Capture, capture
    from interp.hooks.lab import Lab
    from interp.hooks.ledger import FoundHook, HookEvent, HookLedger, HookRecord, audit
    from interp.hooks.recipe import Recipe
    from interp.hooks.script import script
    from interp.hooks.session import HookSession
    from interp.hooks.steps import Step
    from interp.inspection.attention import Attention, attention
    from interp.inspection.channels import ChannelMaps, channel_maps
    from interp.inspection.experiment import Experiment, run_experiment
    from interp.inspection.operations import Operations, operations
    from interp.inspection.statistics import Statistics, dead_units, statistics
    from interp.inspection.sweep import Sweep, sweep
    from interp.inspection.travel import Travel, travel
    from interp.models.layers import LayerInfo, list_layers
    from interp.models.loading import LoadedModel, load_model
    from interp.picture import Picture, open_picture, sample_pictures

__version__ = "0.1.0"

_HOME = {
    "attribution": (
        "Attribution",
        "Prediction",
        "explain",
        "explain_layers",
        "list_methods",
        "predict",
    ),
    "hooks.capture": (
        "Capture",
        "capture",
    ),
    "hooks.lab": ("Lab",),
    "hooks.ledger": (
        "FoundHook",
        "HookEvent",
        "HookLedger",
        "HookRecord",
        "audit",
    ),
    "hooks.recipe": ("Recipe",),
    "hooks.script": ("script",),
    "hooks.session": ("HookSession",),
    "hooks.steps": ("Step",),
    "inspection.attention": (
        "Attention",
        "attention",
    ),
    "inspection.channels": (
        "ChannelMaps",
        "channel_maps",
    ),
    "inspection.experiment": (
        "Experiment",
        "run_experiment",
    ),
    "inspection.operations": (
        "Operations",
        "operations",
    ),
    "inspection.statistics": (
        "Statistics",
        "dead_units",
        "statistics",
    ),
    "inspection.sweep": (
        "Sweep",
        "sweep",
    ),
    "inspection.travel": (
        "Travel",
        "travel",
    ),
    "models.layers": (
        "LayerInfo",
        "list_layers",
    ),
    "models.loading": (
        "LoadedModel",
        "load_model",
    ),
    "picture": (
        "Picture",
        "open_picture",
        "sample_pictures",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Attention",
    "Attribution",
    "Capture",
    "ChannelMaps",
    "Experiment",
    "FoundHook",
    "HookEvent",
    "HookLedger",
    "HookRecord",
    "HookSession",
    "InterpError",
    "Lab",
    "LayerInfo",
    "LoadedModel",
    "Operations",
    "Picture",
    "Prediction",
    "Recipe",
    "Statistics",
    "Step",
    "Sweep",
    "Travel",
    "attention",
    "audit",
    "capture",
    "channel_maps",
    "dead_units",
    "explain",
    "explain_layers",
    "list_layers",
    "list_methods",
    "load_model",
    "open_picture",
    "operations",
    "predict",
    "run_experiment",
    "sample_pictures",
    "script",
    "statistics",
    "sweep",
    "travel",
]


def __getattr__(name: str) -> Any:
    # Torch takes seconds to import: nothing of it is loaded before something here is used.
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
