"""The five kinds of hook on the screen: their names and their colours, the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # app.py takes the colours from here before PyTorch is imported
    from interp.hooks.ledger import Kind

KIND_TITLES: dict[Kind, str] = {
    "forward_pre": "forward pre-hook",
    "forward": "forward hook",
    "full_backward_pre": "full backward pre-hook",
    "full_backward": "full backward hook",
    "tensor": "tensor hook",
}

# Each at least 3 : 1 against white and against a near-black page, and apart by 0.11 or more in
# OKLab under normal, protan, deutan and tritan vision.
KIND_COLOURS: dict[Kind, str] = {
    "forward_pre": "#2b9999",
    "forward": "#3062b8",
    "full_backward_pre": "#c97a22",
    "full_backward": "#c2243a",
    "tensor": "#ab6cf2",
}


def colour_properties() -> dict[str, str]:
    """The colours as CSS custom properties: `--hook-forward-pre` and so on."""
    return {f"--hook-{kind.replace('_', '-')}": colour for kind, colour in KIND_COLOURS.items()}


def colour_style() -> str:
    """A style element that gives a page and every component in it the five colours."""
    lines = "".join(f"{name}: {colour};" for name, colour in colour_properties().items())
    return f"<style>:root {{{lines}}}</style>"
