"""Text on a picture, in the font that Pillow itself carries."""

import math
import unicodedata
from collections.abc import Iterator

from PIL import ImageDraw, ImageFont

from interp.errors import InterpError

INK = (24, 24, 24)
# Pillow's own font has little beyond ASCII; these keep the meaning of a caption.
_PLAIN = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "×": "x", "→": "->", "≥": ">=", "≤": "<=", "’": "'"}
)


def font_of(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font at a size in pixels.

    Raises
    ------
    InterpError : this Pillow was built without FreeType.
    """
    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise InterpError("this Pillow cannot draw text: install one built with FreeType")
    return font


def line_height(font: ImageFont.FreeTypeFont) -> int:
    """Pixels from one line to the next."""
    return math.ceil(font.size * 1.3)


def wrap(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """Break a text into lines of at most `width` pixels.

    Returns
    -------
    Lines of characters the font has: accents are dropped, what is left unknown becomes «?».
    """
    lines: list[str] = []
    for word in _drawable(text).split():
        for piece in _pieces(word, font, width):
            joined = f"{lines[-1]} {piece}" if lines else piece
            if lines and font.getlength(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    return lines


def write(
    draw: ImageDraw.ImageDraw, at: tuple[int, int], lines: list[str], font: ImageFont.FreeTypeFont
) -> None:
    """Draw lines one under the other, the first one's top left corner at `at`."""
    for row, line in enumerate(lines):
        draw.text((at[0], at[1] + row * line_height(font)), line, font=font, fill=INK)


def _drawable(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    bare = (letter for letter in folded if not unicodedata.combining(letter))
    return "".join(letter if letter.isascii() or letter in "«»·" else "?" for letter in bare)


def _pieces(word: str, font: ImageFont.FreeTypeFont, width: int) -> Iterator[str]:
    while len(word) > 1 and font.getlength(word) > width:
        fits = (n for n in range(len(word) - 1, 1, -1) if font.getlength(word[:n]) <= width)
        cut = next(fits, 1)
        yield word[:cut]
        word = word[cut:]
    yield word
