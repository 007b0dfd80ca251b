"""How a heatmap is drawn: what the screen lets one choose, and what every file is drawn with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from PIL import Image, ImageDraw

from interp import render
from interp.colours import Scale, default_colours, lookup, scale_for
from interp.errors import InterpError
from interp.render import DEFAULT_OPACITY, DEFAULT_THRESHOLD

if TYPE_CHECKING:
    from interp.attribution.base import Attribution

Mode = Literal["overlay", "side-by-side", "swipe"]
MODES: tuple[Mode, ...] = get_args(Mode)
FRAME = 480  # px, the longer side of one picture of a filmstrip

_PAPER = (255, 255, 255)


@dataclass(frozen=True)
class Drawing:
    """What can be chosen about the drawing of a heatmap.

    Attributes
    ----------
    colours : a key of `COLOUR_MAPS`; None takes the default for the scale's kind.
    opacity, threshold : as in `render.overlay`, 0..1.
    mode : the heat over the picture, beside it, or over what is right of a divider.
    divider : where that divider stands, as a share of the width.
    stacked : the pictures of «side-by-side» stand one above the other.

    Raises
    ------
    InterpError : a value is unknown or out of range.
    """

    colours: str | None = None
    opacity: float = DEFAULT_OPACITY
    threshold: float = DEFAULT_THRESHOLD
    mode: Mode = "overlay"
    divider: float = 0.5
    stacked: bool = False

    def __post_init__(self) -> None:
        if self.colours is not None:
            lookup(self.colours)
        if self.mode not in MODES:
            raise InterpError(f"unknown view {self.mode!r}: choose one of {', '.join(MODES)}")
        for name in ("opacity", "threshold", "divider"):
            number = getattr(self, name)
            if not 0.0 <= number <= 1.0:
                raise InterpError(f"{name} {number} is out of range: give a number from 0 to 1")

    def record(self, scale: Scale) -> dict[str, Any]:
        """The choices and the range of raw values, as plain values for a manifest."""
        view: dict[str, Any] = {
            "mode": self.mode,
            "colours": self.colours or default_colours(scale),
            "opacity": self.opacity,
            "threshold": self.threshold,
            "low": scale.low,
            "high": scale.high,
            "signed": scale.signed,
        }
        if self.mode == "swipe":
            view["divider"] = self.divider
        return view


DEFAULT_DRAWING = Drawing()


def scale_of(attribution: "Attribution") -> Scale:
    """The scale that an attribution is drawn with where it stands alone."""
    return scale_for(attribution.map, signed=attribution.signed)


def draw(attribution: "Attribution", drawing: Drawing) -> Image.Image:
    """An attribution on its picture, at the picture's own resolution.

    Returns
    -------
    RGB picture: (W, H), and about twice that for «side-by-side», with white between the two.
    """
    photo, scale = attribution.picture.image, scale_of(attribution)
    heat = render.overlay(
        photo,
        attribution.on_picture(),
        scale,
        drawing.colours,
        drawing.opacity,
        drawing.threshold,
    )
    if drawing.mode == "side-by-side":
        return _beside(photo, heat, drawing.stacked)
    if drawing.mode == "swipe":
        cut = round(photo.width * drawing.divider)
        heat.paste(photo.crop((0, 0, cut, photo.height)), (0, 0))
        line = max(1, photo.width // 600)
        ImageDraw.Draw(heat).rectangle((cut - line, 0, cut + line - 1, photo.height), _PAPER)
    return heat


def draw_figure(attribution: "Attribution", drawing: Drawing) -> Image.Image:
    """The overlay with a colour bar in raw values and a caption under it, for a paper."""
    weights = "untrained" if attribution.source == "untrained" else attribution.weights
    caption = (
        f"{attribution.method} for {attribution.target.label}, {attribution.model_name} "
        f"({weights}), layer {' + '.join(attribution.layers)}, "
        f"{attribution.map.shape[0]}×{attribution.map.shape[1]} grid"
    )
    return render.figure(
        attribution.picture.image,
        attribution.on_picture(),
        scale_of(attribution),
        drawing.colours,
        drawing.opacity,
        drawing.threshold,
        caption,
    )


def draw_filmstrip(attributions: "Sequence[Attribution]", drawing: Drawing) -> Image.Image:
    """The maps of several layers in a row, each on a scale of its own, over its layer's path."""
    small = attributions[0].picture.image.copy()
    small.thumbnail((FRAME, FRAME), Image.Resampling.LANCZOS)
    frames, captions = [], []
    for one in attributions:
        heat = replace(one.geometry, picture_size=small.size).on_picture(one.map)
        choices = drawing.colours, drawing.opacity, drawing.threshold
        frames.append(render.overlay(small, heat, scale_of(one), *choices))
        height, width = one.map.shape
        captions.append(f"{' + '.join(one.layers)} ({height}×{width})")
    return render.montage(frames, captions, len(frames))


def _beside(photo: Image.Image, heat: Image.Image, stacked: bool) -> Image.Image:
    width, height = photo.size
    gap = max(1, round(width / 50))
    at = (0, height + gap) if stacked else (width + gap, 0)
    page = Image.new("RGB", (at[0] + width, at[1] + height), _PAPER)
    page.paste(photo, (0, 0))
    page.paste(heat, at)
    return page
