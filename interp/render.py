"""Heatmaps as pictures: one linear blend, and figures with a colour bar.

Colour maps and scales are those of `interp.colours`; its names can be imported from here too.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from interp.colours import (
    COLOUR_MAPS,
    DEFAULT_COLOURS,
    DEFAULT_DIVERGING,
    Scale,
    colour_index,
    colours_for,
    lookup,
    magnitude,
    normalise,
    scale_for,
)
from interp.errors import InterpError
from interp.lettering import INK, font_of, line_height, wrap, write

__all__ = [
    "COLOUR_MAPS",
    "DEFAULT_COLOURS",
    "DEFAULT_DIVERGING",
    "DEFAULT_OPACITY",
    "DEFAULT_THRESHOLD",
    "Scale",
    "colour_bar",
    "figure",
    "heat_image",
    "lookup",
    "montage",
    "normalise",
    "overlay",
    "scale_for",
]

DEFAULT_OPACITY = 0.6
DEFAULT_THRESHOLD = 0.15

_STRIP_PIXELS = 1 << 20
_UNSEEN_DIM = 0.5
_HATCH_LIGHT = 0.4
_NOTHING = (208, 208, 208)
_PAPER = (255, 255, 255)


def overlay(
    image: Image.Image,
    heat: NDArray[np.float32],
    scale: Scale,
    colours: str | None = None,
    opacity: float = DEFAULT_OPACITY,
    threshold: float = DEFAULT_THRESHOLD,
) -> Image.Image:
    """Lay a heatmap over its picture: (1 - a) · photograph + a · colour, rounded once.

    Parameters
    ----------
    image : RGB picture, (W, H).
    heat : raw values on the picture's own pixels, (H, W). NaN is what the model did not see: it
        is dimmed and hatched. Infinite values leave the photograph as it is.
    scale : from `scale_for`; an empty one leaves the photograph as it is.
    colours : a key of `COLOUR_MAPS`; None takes the default for the scale's kind.
    opacity : a where the scaled magnitude reaches the threshold, 0..1; a is 0 below it.
    threshold : least magnitude drawn, 0..1; for a signed scale the magnitude is the distance
        from zero.

    Returns
    -------
    RGB picture (W, H).

    Raises
    ------
    InterpError : sizes do not match, the picture is not RGB, a number is out of range, or the
        colour map is unknown.
    """
    _check(image, heat, opacity, threshold)
    table = colours_for(scale, colours)
    # An all-NaN heatmap is a failed one: it does not say that the model saw nothing.
    hatched = not np.isnan(heat).all()
    result = Image.new("RGB", image.size)
    for top, bottom in _strips(image.size):
        strip = heat[top:bottom]
        value = normalise(strip, scale)
        drawn = np.isfinite(strip) & (magnitude(value, scale) >= threshold) & (not scale.empty)
        alpha = np.where(drawn, np.float32(opacity), np.float32(0.0))
        colour = table[colour_index(value)].astype(np.float32)
        if hatched:
            _mark_unseen(strip, top, image.size, alpha, colour)
        photo = np.asarray(image.crop((0, top, image.width, bottom)), dtype=np.float32)
        blend = photo + alpha[..., None] * (colour - photo)
        result.paste(Image.fromarray((blend + 0.5).astype(np.uint8)), (0, top))
    return result


def heat_image(
    grid: NDArray[np.float32], scale: Scale, size: tuple[int, int], colours: str | None = None
) -> Image.Image:
    """The raw grid (h, w) as squares of one colour, nearest neighbour.

    Returns
    -------
    RGB picture of `size` (W, H). Cells without a finite value, and every cell under an empty
    scale, are light grey.
    """
    cells = colours_for(scale, colours)[colour_index(normalise(grid, scale))]
    cells[~np.isfinite(grid) | scale.empty] = _NOTHING
    return Image.fromarray(cells).resize(size, Image.Resampling.NEAREST)


def colour_bar(
    scale: Scale, colours: str | None, width: int, height: int, threshold: float = 0.0
) -> Image.Image:
    """The colours of a scale with its raw values at both ends and in the middle.

    Parameters
    ----------
    width, height : of the picture returned, in pixels; the bar stands upright where that is
        higher than wide, with the highest value at the top.
    threshold : what an overlay with this threshold leaves undrawn stays blank here.

    Returns
    -------
    RGB picture (width, height). An empty scale gives a grey bar that says «flat».
    """
    letters = max(len(text) for _, text in _marks(scale))
    upright = height > width
    across = width / (2 + 0.6 * letters) if upright else height / 2.4
    along = height / 6 if upright else width / (2 * letters + 2)
    font = font_of(max(8, int(min(across, along, 64))))
    return _bar(scale, colours, (width, height), threshold, font)


def figure(
    image: Image.Image,
    heat: NDArray[np.float32],
    scale: Scale,
    colours: str | None = None,
    opacity: float = DEFAULT_OPACITY,
    threshold: float = DEFAULT_THRESHOLD,
    caption: str = "",
) -> Image.Image:
    """An overlay at full resolution with its colour bar and a caption, on white.

    The parameters are those of `overlay`; the caption is wrapped to the width.
    """
    pad = max(12, round(max(image.size) / 45))
    font = font_of(pad)
    width, height = max(image.width, 16 * pad), max(image.height, 10 * pad)
    letters = max(font.getlength(text) for _, text in _marks(scale))
    bar_width = int(2 * line_height(font) + letters)
    lines = wrap(caption, font, width + pad + bar_width)
    foot = pad + line_height(font) * len(lines) if lines else 0
    page = Image.new("RGB", (width + bar_width + 3 * pad, height + foot + 2 * pad), _PAPER)
    page.paste(overlay(image, heat, scale, colours, opacity, threshold), (pad, pad))
    bar = _bar(scale, colours, (bar_width, height), threshold, font)
    page.paste(bar, (width + 2 * pad, pad))
    write(ImageDraw.Draw(page), (pad, height + 2 * pad), lines, font)
    return page


def montage(images: Sequence[Image.Image], captions: Sequence[str], columns: int) -> Image.Image:
    """Pictures in rows of `columns`, each at its own size, centred over its caption.

    Raises
    ------
    InterpError : no picture, fewer than one column, or not one caption a picture.
    """
    if not images or columns < 1 or len(images) != len(captions):
        raise InterpError(
            f"a montage of {len(images)} pictures with {len(captions)} captions in {columns} "
            "columns: give at least one picture and one column, and one caption a picture"
        )
    width, height = (max(picture.size[axis] for picture in images) for axis in (0, 1))
    font = font_of(max(12, width // 18))
    gap = line_height(font) // 2
    texts = [wrap(caption, font, width) for caption in captions]
    step_x = width + gap
    step_y = height + 2 * gap + line_height(font) * max(len(lines) for lines in texts)
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    page = Image.new("RGB", (columns * step_x + gap, rows * step_y + gap), _PAPER)
    draw = ImageDraw.Draw(page)
    for place, (picture, lines) in enumerate(zip(images, texts, strict=True)):
        row, column = divmod(place, columns)
        left, top = gap + column * step_x, gap + row * step_y
        centred = (left + (width - picture.width) // 2, top + (height - picture.height) // 2)
        page.paste(picture, centred)
        write(draw, (left, top + height + gap // 2), lines, font)
    return page


def _check(image: Image.Image, heat: NDArray, opacity: float, threshold: float) -> None:
    if image.mode != "RGB":
        raise InterpError(f"the picture is {image.mode}, not RGB: open it with open_picture")
    if heat.shape != (image.height, image.width):
        raise InterpError(
            f"the heatmap is {heat.shape} for a picture of height {image.height} and width "
            f"{image.width}: bring it onto the picture first (Attribution.on_picture)"
        )
    for name, number in (("opacity", opacity), ("threshold", threshold)):
        if not 0.0 <= number <= 1.0:
            raise InterpError(f"{name} {number} is out of range: give a number from 0 to 1")


def _strips(size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    width, height = size
    rows = max(1, _STRIP_PIXELS // width)
    return ((top, min(top + rows, height)) for top in range(0, height, rows))


def _mark_unseen(
    heat: NDArray, top: int, size: tuple[int, int], alpha: NDArray, colour: NDArray
) -> None:
    """Give the unseen pixels of a strip the alpha and colour of a dimmed, hatched photograph."""
    unseen = np.isnan(heat)
    step = max(8, max(size) // 96)
    rows, columns = np.ogrid[top : top + heat.shape[0], 0 : size[0]]
    line = (rows + columns) % step < step // 8
    alpha[unseen] = np.where(line, _HATCH_LIGHT, _UNSEEN_DIM)[unseen]
    colour[unseen] = np.where(line, 255.0, 0.0)[unseen][:, None]


def _marks(scale: Scale) -> list[tuple[float, str]]:
    """Where along a colour bar which number stands."""
    if scale.empty:
        return [(0.5, "flat")]
    span = scale.high - scale.low
    return [(at, f"{scale.low + at * span:.3g}") for at in (0.0, 0.5, 1.0)]


def _bar(
    scale: Scale,
    colours: str | None,
    size: tuple[int, int],
    threshold: float,
    font: ImageFont.FreeTypeFont,
) -> Image.Image:
    upright = size[1] > size[0]
    line = line_height(font)
    # Numbers stand centred on the ends of the bar, so half a number must fit beyond them.
    beyond = line if upright else max(font.getlength(text) for _, text in _marks(scale))
    inset = int(beyond / 2) + 1
    thick = line if upright else max(1, size[1] - line)
    length = max(1, max(size) - 2 * inset)
    value = (np.arange(length) + 0.5) / length
    ramp = colours_for(scale, colours)[colour_index(value)]
    ramp[magnitude(value, scale) < threshold] = _PAPER
    if scale.empty:
        ramp[:] = _NOTHING
    picture = Image.fromarray(np.repeat(ramp[None], thick, axis=0))
    page = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(page)
    if upright:
        page.paste(picture.transpose(Image.Transpose.ROTATE_90), (0, inset))
        draw.rectangle((0, inset, thick - 1, inset + length - 1), outline=INK)
    else:
        page.paste(picture, (inset, 0))
        draw.rectangle((inset, 0, inset + length - 1, thick - 1), outline=INK)
    for at, text in _marks(scale):
        spot = (thick + line / 3, inset + (1 - at) * length)
        if not upright:
            spot = (inset + at * length, thick)
        draw.text(spot, text, font=font, fill=INK, anchor="lm" if upright else "ma")
    return page
