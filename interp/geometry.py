"""What the preprocessing does to a picture, and the exact way back to its own pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from interp.errors import ModelError, PictureError
from interp.picture import MAX_PIXELS

Fit = Literal["crop", "stretch", "letterbox"]
FITS: tuple[Fit, ...] = get_args(Fit)


@dataclass(frozen=True)
class Preset:
    """What a model's weights want of a picture.

    Attributes
    ----------
    crop_size : side of the square the model sees.
    resize_size : length the shorter side is resized to before the centre crop.
    mean, std : of the channels, for pixels in 0..1.
    interpolation : "bilinear", "bicubic" or "nearest", as torchvision names them.
    antialias : as torchvision's resize takes it.
    """

    crop_size: int
    resize_size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    interpolation: str
    antialias: bool = True

    @classmethod
    def from_torchvision(cls, transforms: Any) -> Preset:
        """Read the preset of torchvision's `ImageClassification`, as a weights entry gives it.

        Raises
        ------
        ModelError : the transforms are something else, or not for one square of RGB.
        """
        try:
            (crop,), (resize,) = transforms.crop_size, transforms.resize_size
            red, green, blue = (float(value) for value in transforms.mean)
            red_std, green_std, blue_std = (float(value) for value in transforms.std)
            interpolation = InterpolationMode(transforms.interpolation).value
            antialias = bool(transforms.antialias)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(
                f"the transforms ({type(transforms).__name__}) are not torchvision's "
                "ImageClassification for one square of RGB: give weights.transforms()"
            ) from error
        return cls(
            crop_size=int(crop),
            resize_size=int(resize),
            mean=(red, green, blue),
            std=(red_std, green_std, blue_std),
            interpolation=interpolation,
            antialias=antialias,
        )


@dataclass(frozen=True)
class Geometry:
    """What was done to one picture: resized, then a window of it cut out, or padded.

    Attributes
    ----------
    picture_size : (W, H) of the picture.
    input_size : (w, h) of what the model sees.
    fit : how the one became the other.
    resized_size : (width, height) of the whole picture after the resize.
    origin : (x, y) of the model's upper left corner in the resized picture; negative where the
        picture was padded.
    """

    picture_size: tuple[int, int]
    input_size: tuple[int, int]
    fit: Fit
    resized_size: tuple[int, int]
    origin: tuple[int, int]

    @property
    def affine(self) -> tuple[float, float, float, float]:
        """(scale_x, offset_x, scale_y, offset_y): from picture pixels to model input pixels.

        Pixel centres are whole numbers on both sides: the centre of column X of the picture lies
        at `X * scale_x + offset_x` in columns of the model's input.
        """
        scale_x, scale_y = (
            r / n for r, n in zip(self.resized_size, self.picture_size, strict=True)
        )
        offset_x, offset_y = (
            0.5 * scale - 0.5 - origin
            for scale, origin in zip((scale_x, scale_y), self.origin, strict=True)
        )
        return scale_x, offset_x, scale_y, offset_y

    @property
    def seen(self) -> tuple[float, float, float, float]:
        """(left, top, right, bottom) of what the model saw, in pixels of the picture.

        Column X spans X..X+1, so the model saw some of it if `X + 1 > left and X < right`.
        """
        left, right = self._seen_along(0)
        top, bottom = self._seen_along(1)
        return left, top, right, bottom

    def on_picture(self, map: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Lay a map over the model's input back onto the picture, bilinear.

        Parameters
        ----------
        map : (h, w), any grid whose cells tile the model's input evenly.

        Returns
        -------
        float32 (H, W), within the range of `map`; beyond the centres of the outermost cells their
        value goes on, and where the model saw nothing of a pixel it is NaN.
        """
        rows, columns = map.shape
        upper, lower, part_y, seen_y = self._cells_along(1, rows)
        left, right, part_x, seen_x = self._cells_along(0, columns)
        grid = map.astype(np.float32, copy=False)
        # in place from here: the picture may have 50 million pixels
        tall = grid[upper] + (grid[lower] - grid[upper]) * part_y[:, None]
        heat = np.take(tall, left, axis=1)
        step = np.take(tall, right, axis=1)
        step -= heat
        step *= part_x
        heat += step
        heat[~seen_y] = np.nan
        heat[:, ~seen_x] = np.nan
        return heat

    def _seen_along(self, axis: int) -> tuple[float, float]:
        pixels, resized = self.picture_size[axis], self.resized_size[axis]
        first, last = self.origin[axis], self.origin[axis] + self.input_size[axis]
        return max(first, 0) * pixels / resized, min(last, resized) * pixels / resized

    def _cells_along(
        self, axis: int, cells: int
    ) -> tuple[
        npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.float32], npt.NDArray[np.bool_]
    ]:
        """For each pixel of one axis: the two cells around it, how far between, whether seen."""
        pixels, resized = self.picture_size[axis], self.resized_size[axis]
        origin, side = self.origin[axis], self.input_size[axis]
        low, high = self._seen_along(axis)
        column = np.arange(pixels)
        seen = (column + 1 > low) & (column < high)
        position = ((column + 0.5) * resized / pixels - origin) * cells / side - 0.5
        position = np.clip(position, 0, cells - 1)
        first = np.floor(position).astype(np.intp)
        second = np.minimum(first + 1, cells - 1)
        return first, second, (position - first).astype(np.float32), seen


def plan(size: tuple[int, int], preset: Preset, fit: Fit) -> Geometry:
    """Geometry of `prepare` for a picture of this size.

    Parameters
    ----------
    size : (W, H) of the picture.
    preset : of the weights.
    fit : "crop" as the weights were published, "stretch" or "letterbox" to show the whole picture.

    Raises
    ------
    PictureError : the fit is unknown, or the picture is too thin for "crop".
    """
    side = preset.crop_size
    if fit == "crop":
        resized = _shorter_side_to(preset.resize_size, size)
        origin = (_crop_start(resized[0], side), _crop_start(resized[1], side))
    elif fit == "stretch":
        resized, origin = (side, side), (0, 0)
    elif fit == "letterbox":
        longest = max(size)
        resized = (max(1, round(size[0] * side / longest)), max(1, round(size[1] * side / longest)))
        origin = (-((side - resized[0]) // 2), -((side - resized[1]) // 2))
    else:
        raise PictureError(f"there is no fit {fit!r}: choose {', '.join(FITS)}")
    return Geometry(size, (side, side), fit, resized, origin)


def prepare(image: Image.Image, preset: Preset, fit: Fit) -> torch.Tensor:
    """Turn an RGB picture into the model's input.

    Parameters
    ----------
    image : PIL, RGB.
    preset : of the weights.
    fit : "crop" gives exactly what the weights' own transforms give; "stretch" resizes the whole
        picture to the square; "letterbox" fits it inside and pads with the mean colour.

    Returns
    -------
    float32 (1, 3, h, w), normalised by the preset's mean and std.

    Raises
    ------
    PictureError : as `plan`.
    """
    geometry = plan(image.size, preset, fit)
    width, height = geometry.resized_size
    resized = F.resize(
        image, [height, width], InterpolationMode(preset.interpolation), antialias=preset.antialias
    )
    if fit == "crop":
        resized = F.center_crop(resized, [preset.crop_size])
    pixels = F.convert_image_dtype(F.pil_to_tensor(resized), torch.float32)
    pixels = F.normalize(pixels, list(preset.mean), list(preset.std))
    if fit == "letterbox":
        left, top = (-start for start in geometry.origin)
        right, bottom = preset.crop_size - left - width, preset.crop_size - top - height
        pixels = F.pad(pixels, [left, top, right, bottom], fill=0)
    return pixels.unsqueeze(0)


def _shorter_side_to(length: int, size: tuple[int, int]) -> tuple[int, int]:
    """Resized size as torchvision computes it: the longer side is cut down to a whole number."""
    short, long = min(size), max(size)
    longer = int(length * long / short)
    if length * longer > MAX_PIXELS:
        least = -(-length * length * long // MAX_PIXELS)
        raise PictureError(
            f"a picture of {size[0]} × {size[1]} is too thin to be cropped: its shorter side must "
            f"be at least {least} pixels; take the fit stretch or letterbox"
        )
    return (length, longer) if size[0] <= size[1] else (longer, length)


def _crop_start(resized: int, side: int) -> int:
    """Where torchvision's centre crop begins; negative is the padding in front."""
    if resized < side:
        return -((side - resized) // 2)
    return round((resized - side) / 2)
