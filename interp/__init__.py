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
    from interp.hooks.ledger import FoundHook, HookEvent, HookLedger, HookRecord, audit
    from interp.hooks.session import HookSession
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
    "hooks.capture": ("Capture", "capture"),
    "hooks.ledger": ("FoundHook", "HookEvent", "HookLedger", "HookRecord", "audit"),
    "hooks.session": ("HookSession",),
    "models.layers": ("LayerInfo", "list_layers"),
    "models.loading": ("LoadedModel", "load_model"),
    "picture": ("Picture", "open_picture", "sample_pictures"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Attribution",
    "Capture",
    "FoundHook",
    "HookEvent",
    "HookLedger",
    "HookRecord",
    "HookSession",
    "InterpError",
    "LayerInfo",
    "LoadedModel",
    "Picture",
    "Prediction",
    "audit",
    "capture",
    "explain",
    "explain_layers",
    "list_layers",
    "list_methods",
    "load_model",
    "open_picture",
    "predict",
    "sample_pictures",
]


def __getattr__(name: str) -> Any:
    # Torch takes seconds to import: nothing of it is loaded before something here is used.
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
