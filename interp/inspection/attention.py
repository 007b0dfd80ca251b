"""Where each head of a vision transformer looks, from its own query and key projections."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from interp.attribution.base import Attribution
from interp.attribution.explanation import check_input
from interp.errors import LayerError
from interp.geometry import Fit, Geometry
from interp.hooks.ledger import HookLedger
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.inspection.attention_blocks import (
    attention_blocks,
    attention_weights,
    check_size,
    token_grid,
)
from interp.inspection.frame import frame_of, read_only
from interp.models.copies import frozen_copy
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, find_logits

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention weights of every block and head.

    Attributes
    ----------
    paths : of the attention layers, in running order.
    weights : float32 (blocks, heads, T, T); a row tells how one token attends to all, and sums
        to 1.
    extra_tokens : how many tokens, such as the class token, stand before the patches.
    grid : (h, w) of the patches.
    geometry : from that grid to the picture.
    """

    paths: tuple[str, ...]
    weights: Array
    extra_tokens: int
    grid: tuple[int, int]
    geometry: Geometry
    ledger: HookLedger
    seconds: float
    frame: Attribution

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    def map(self, block: int, head: int | None = None, token: int = 0) -> Array:
        """How strongly a token attends to each patch.

        Parameters
        ----------
        block : int
            From 0.
        head : int or None
            None is the mean of the heads.
        token : int
            0 is the class token of a model that has one; the patches follow row by row.

        Returns
        -------
        float32 (h, w)
            0 to 1; what goes to the class token is missing from a sum of 1.

        Raises
        ------
        LayerError
            If there is no such block, head or token.
        """
        blocks, heads, tokens, _ = self.weights.shape
        _check("block", block, blocks)
        _check("token", token, tokens)
        if head is not None:
            _check("head", head, heads)
        of_head = self.weights[block].mean(0) if head is None else self.weights[block, head]
        return self._on_grid(of_head[token])

    def rollout(self, start: int = 0) -> Array:
        """Attention followed through all blocks from `start` on, mean over heads.

        Each block passes on half of what the token was and half of what it attends to; the product
        tells how much of each patch reaches the class token. Without a class token it is the mean
        over all tokens.

        Returns
        -------
        float32 (h, w)
            0 to 1.

        References
        ----------
        Abnar and Zuidema, Quantifying Attention Flow in Transformers, ACL 2020, arXiv 2005.00928
        """
        _check("block", start, len(self.weights))
        identity = np.eye(self.weights.shape[-1])
        total = identity
        for block in self.weights[start:]:
            total = (0.5 * block.mean(0, dtype=np.float64) + 0.5 * identity) @ total
        return self._on_grid(total[0] if self.extra_tokens else total.mean(0))

    def attribution(self, block: int, head: int | None = None, token: int = 0) -> Attribution:
        """`map` as a heatmap, to be shown on the picture and saved."""
        name = f"attention-{'mean' if head is None else f'head-{head}'}-token-{token}"
        values = self.map(block, head, token)
        parameters = {"block": block, "head": head, "token": token}
        return self._framed(values, name, parameters, (self.paths[block],))

    def rollout_attribution(self, start: int = 0) -> Attribution:
        """`rollout` as a heatmap, to be shown on the picture and saved."""
        values = self.rollout(start)
        name = f"attention-rollout-{start}" if start else "attention-rollout"
        return self._framed(values, name, {"start": start}, (self.paths[-1],))

    def manifest(self) -> dict[str, Any]:
        """All that led to these weights, as plain values for JSON."""
        return self._framed(self.weights, "attention", {}, self.paths).manifest()

    def _on_grid(self, row: npt.NDArray[Any]) -> Array:
        values: Array = row[self.extra_tokens :].reshape(self.grid).astype(np.float32)
        values.setflags(write=False)
        return values

    def _framed(
        self, values: Array, method: str, parameters: dict[str, Any], layers: tuple[str, ...]
    ) -> Attribution:
        note = "Attention weights do not depend on the target: the map is the same for every class."
        return replace(
            self.frame,
            map=values,
            method=method,
            parameters=parameters,
            layers=layers,
            notes=(*self.frame.notes, note),
        )


def has_attention(model: LoadedModel) -> tuple[str, ...]:
    """Paths of the attention layers whose weights can be shown, in running order."""
    return tuple(info.path for info in attention_blocks(model))


def attention(model: LoadedModel, picture: Picture, fit: Fit = "crop") -> Attention:
    """The attention weights of every block of a vision transformer, from one forward pass.

    Raises
    ------
    LayerError
        If the model has no such blocks, or they attend to a second input, under a mask, or with
        different numbers of heads; or if their weights would take more than 2 GiB.
    """
    check_input(model, picture, fit)
    began = time.perf_counter()
    blocks = attention_blocks(model)
    if not blocks:
        raise LayerError(
            f"{model.spec.name} has no attention over all patches (nn.MultiheadAttention): "
            "attention maps are for the ViT family, such as vit_b_16"
        )
    grid, extra = token_grid(model, blocks[0])
    check_size(model, [info.path for info in blocks], extra + grid[0] * grid[1])
    ledger = HookLedger()
    found: dict[str, Tensor] = {}
    copy = frozen_copy(model.module)
    tensor = model.prepare(picture, fit)
    with (
        undisturbed(tensor.device, gradients=False, seed=model.seed),
        HookSession(model.module, ledger, copy=copy) as session,
    ):
        for info in blocks:
            hook = _watch(info.path, found)
            session.forward_pre(
                info.path, hook, with_kwargs=True, purpose="attention weights", origin="engine"
            )
        logits, binary = find_logits(session.module(tensor))
    blocks = _that_ran(blocks, found, extra + grid[0] * grid[1])
    target = Target(categories=model.categories).resolve(logits, binary)
    weights = read_only(torch.stack([found[info.path] for info in blocks]))
    seconds = time.perf_counter() - began
    frame = frame_of(model, picture, fit, logits, target, ledger, seconds)
    paths = tuple(info.path for info in blocks)
    return Attention(paths, weights, extra, grid, frame.geometry, ledger, seconds, frame)


def _that_ran(
    blocks: Sequence[LayerInfo], found: dict[str, Tensor], tokens: int
) -> list[LayerInfo]:
    """The blocks that ran for this picture: the way through a network may depend on it."""
    ran = [info for info in blocks if info.path in found]
    if not ran:
        raise LayerError("no block of this model ran for this picture: choose another picture")
    for info in ran:
        if found[info.path].shape[-1] != tokens:
            raise LayerError(
                f"layer «{info.path}» was given {found[info.path].shape[-1]} tokens for this "
                f"picture and {tokens} in the dry run: which patches these are is not known"
            )
    return ran


def _watch(path: str, found: dict[str, Tensor]) -> Callable[..., None]:
    def hook(part: nn.MultiheadAttention, args: Any, kwargs: Any) -> None:
        given = dict(zip(("query", "key", "value", "key_padding_mask"), args, strict=False))
        given |= kwargs
        query, key = given["query"], given["key"]
        masked = given.get("key_padding_mask") is not None or given.get("attn_mask") is not None
        if key is not query or masked or part.bias_k is not None or part.add_zero_attn:
            raise LayerError(
                f"layer «{path}» attends to a second input or under a mask: only plain "
                "self-attention can be shown"
            )
        found[path] = attention_weights(part, query, key)[0]

    return hook


def _check(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise LayerError(f"there is no attention {what} {number}: they are 0 to {count - 1}")
