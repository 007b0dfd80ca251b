"""Attribution: methods, the registry they join, and the result they give."""

from interp.attribution import cam
from interp.attribution.base import (
    Attribution,
    Method,
    Prediction,
    get_method,
    list_methods,
    register,
)
from interp.attribution.explanation import explain, explain_layers, predict

__all__ = [
    "Attribution",
    "Method",
    "Prediction",
    "explain",
    "explain_layers",
    "get_method",
    "list_methods",
    "predict",
    "register",
]

for _method in cam.METHODS:
    register(_method)
