"""The channels of one layer: their maps, and what each contributes to a class."""

import io
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from interp import render
from interp.attribution.base import Attribution, LayerCall
from interp.attribution.explanation import check_input
from interp.errors import LayerError, MethodError
from interp.geometry import Fit, Geometry
from interp.hooks.capture import capture
from interp.hooks.ledger import HookLedger
from interp.inspection.contribution import contributions, split_places
from interp.inspection.frame import find_call, frame_of, read_only
from interp.manifest import manifest_array
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.models.routes import as_it_ran
from interp.picture import Picture
from interp.targets import Target

Order = Literal["contribution", "mean", "maximum", "variance", "index"]
ORDERS: tuple[Order, ...] = get_args(Order)
TILE = 112

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ChannelMaps:
    """All channels of one call of a layer, and how much each adds to a score.

    Attributes
    ----------
    path, call, info : which call of which layer, and its row of the layer table.
    maps : float32 (C, h, w); a vector has (C, 1, 1).
    tokens : float32 (n, C), the class token and others that have no place; None without any.
    mean, maximum, variance : float32 (C,), over the places of the map.
    contribution : float32 (C,), gradient × activation summed over all places and extra tokens; 0
        where no gradient arrives.
    target : the score whose gradient that is.
    geometry : from the grid of the maps to the picture.
    notes : what is odd about picture, model or layer, in words.
    """

    path: str
    call: int
    info: LayerInfo
    maps: Array
    tokens: Array | None
    mean: Array
    maximum: Array
    variance: Array
    contribution: Array
    target: Target
    geometry: Geometry
    ledger: HookLedger
    seconds: float
    notes: tuple[str, ...]
    frame: Attribution

    @property
    def count(self) -> int:
        """How many channels there are."""
        return len(self.maps)

    def order(self, by: Order = "contribution") -> npt.NDArray[np.intp]:
        """The channels, highest value first; equal ones by index.

        Raises
        ------
        MethodError
            If there is no such order.
        """
        if by not in ORDERS:
            raise MethodError(f"no order «{by}» of channels: there are {', '.join(ORDERS)}")
        if by == "index":
            return np.arange(self.count)
        return np.argsort(-getattr(self, by), kind="stable")

    def rank(self, channel: int, by: Order = "contribution") -> int:
        """The place of a channel in that order, from 1."""
        self._check(channel)
        return int(np.flatnonzero(self.order(by) == channel)[0]) + 1

    def channel(self, channel: int) -> Attribution:
        """One channel as a heatmap, to be shown on the picture and saved.

        Raises
        ------
        LayerError
            If there is no such channel.
        """
        self._check(channel)
        channel = int(channel)  # of an order they are NumPy's, which JSON does not take
        values = self.maps[channel]
        words = _flat(channel, values)
        return replace(
            self.frame,
            map=values,
            method=f"channel-{channel}",
            parameters={"channel": channel},
            signed=self.signed,
            notes=(*self.frame.notes, words) if words else self.frame.notes,
        )

    @cached_property
    def signed(self) -> bool:
        """Whether any channel has negative values, so that all are drawn about zero."""
        return bool((self.maps < 0).any())

    @cached_property
    def shared_scale(self) -> render.Scale:
        """One scale for all the channels."""
        return render.scale_for(*self.maps, signed=self.signed)

    def scale(self, channel: int, shared: bool) -> render.Scale:
        """The scale that a channel is drawn with: its own, or that of all."""
        if shared:
            return self.shared_scale
        return render.scale_for(self.maps[channel], signed=self.signed)

    def tile(self, channel: int, shared: bool, side: int = TILE) -> Image.Image:
        """One channel as squares of one colour, `side` pixels along the longer side of its grid."""
        self._check(channel)
        rows, columns = self.maps.shape[1:]
        longest = max(rows, columns)
        size = max(1, round(side * columns / longest)), max(1, round(side * rows / longest))
        return render.heat_image(self.maps[channel], self.scale(channel, shared), size)

    def montage(
        self, order: Order = "contribution", count: int = 64, shared: bool = True, columns: int = 8
    ) -> Image.Image:
        """The first channels of an order, each over its index."""
        shown = [int(channel) for channel in self.order(order)[:count]]
        tiles = [self.tile(channel, shared) for channel in shown]
        return render.montage(tiles, [str(channel) for channel in shown], columns)

    def figure(self, channel: int) -> Image.Image:
        """One channel on the picture with its colour bar and a caption."""
        one = self.channel(channel)
        scale = render.scale_for(one.map, signed=one.signed)
        caption = (
            f"Channel {channel} of {self.layer} ({self.info.kind}), {one.model_name}: contribution "
            f"{self.contribution[channel]:.3g} to {self.target.label}, rank "
            f"{self.rank(channel)} of {self.count}"
        )
        return render.figure(one.picture.image, one.on_picture(), scale, caption=caption)

    @property
    def layer(self) -> str:
        """The path, with the number of the call where there are several."""
        return str(LayerCall(self.info, self.call))

    def manifest(self) -> dict[str, Any]:
        """All that led to these maps, as plain values for JSON."""
        whole = replace(self.frame, map=self.maps, method="channels", signed=self.signed)
        return whole.manifest()

    def npz_bytes(self) -> bytes:
        """Every number of the layer.

        Returns
        -------
        Compressed NPZ with `maps`, `mean`, `maximum`, `variance` and `contribution`; `tokens` where
        there are any; `feature_vector` (C,) where each channel has a single place; and the texts
        `layer`, `kind`, `layout`, `model`, `weights`, `picture`, `target`, `manifest` (JSON).
        """
        arrays = {name: getattr(self, name) for name in ("maps", *ORDERS[:4])}
        if self.tokens is not None:
            arrays["tokens"] = self.tokens
        if self.maps[0].size == 1:
            arrays["feature_vector"] = self.maps[:, 0, 0]
        texts = {
            "layer": self.layer,
            "kind": self.info.kind,
            "layout": self.info.layout,
            "model": self.frame.model_name,
            "weights": self.frame.weights,
            "picture": self.frame.picture.sha256,
            "target": self.target.label,
            "manifest": manifest_array(self.manifest()),
        }
        buffer = io.BytesIO()
        entries: dict[str, Any] = arrays | texts
        np.savez_compressed(buffer, **entries)
        return buffer.getvalue()

    def _check(self, channel: int) -> None:
        if not 0 <= channel < self.count:
            raise LayerError(
                f"layer «{self.path}» has no channel {channel}: they are 0 to {self.count - 1}"
            )


def channel_maps(
    model: LoadedModel,
    picture: Picture,
    path: str,
    call: int = 0,
    target: str | int | Target | None = None,
    fit: Fit = "crop",
) -> ChannelMaps:
    """The channels of a layer, from one forward and one backward pass.

    Parameters
    ----------
    path, call
        Any layer whose output has channels: a map of any layout, tokens, or a vector.
    target
        What the contributions are to; by default the top prediction.

    Raises
    ------
    LayerError
        If there is no such layer or call, or its output has no channels.
    InterpError
        If the picture or the target will not do.
    """
    check_input(model, picture, fit)
    began = time.perf_counter()
    tensor = model.prepare(picture, fit)
    info = find_call(model, path, call, tensor)
    taken = capture(model, tensor, [path], target)
    info = as_it_ran(
        *(model.module, model.layers, tensor, info, call, taken.maps_of(path)), spatial=False
    )
    if info.channels is None:
        raise LayerError(
            f"layer «{path}» ({info.kind}) returns {info.returned}, of which no axis is known to "
            "be its channels: choose a layer that returns a map, tokens or a vector"
        )
    feature_map = taken.feature_map(path, call).float()
    maps, tokens = split_places(feature_map, info)
    contribution, reason = contributions(taken, path, call, info)
    ledger, seconds = taken.ledger, time.perf_counter() - began
    frame = frame_of(model, picture, fit, taken.logits, taken.target, ledger, seconds)
    values = maps.flatten(1)
    return ChannelMaps(
        path=path,
        call=call,
        info=info,
        maps=read_only(maps),
        tokens=None if tokens is None else read_only(tokens),
        mean=read_only(values.mean(1)),
        maximum=read_only(values.amax(1)),
        variance=read_only(values.var(1, correction=0)),
        contribution=read_only(contribution),
        target=taken.target,
        geometry=frame.geometry,
        ledger=ledger,
        seconds=seconds,
        notes=(*frame.notes, reason) if reason else frame.notes,
        frame=replace(frame, layers=(str(LayerCall(info, call)),)),
    )


def _flat(channel: int, values: Array) -> str:
    """Why one channel's map shows nothing; empty where it shows something."""
    if not np.isfinite(values).all():
        return f"Channel {channel} holds values that are not finite numbers."
    low, high = float(values.min()), float(values.max())
    if low == high == 0.0:
        return f"Channel {channel} is zero everywhere on this picture."
    if values.size == 1:
        return f"Channel {channel} has a single place, with the value {high:.4g}."
    if render.scale_for(values, signed=low < 0).empty:
        return f"Channel {channel} has one value everywhere, {high:.4g}."
    return ""
