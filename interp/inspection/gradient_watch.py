"""Hooks on every layer and every parameter that turn gradients into numbers as they pass."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.values import numbers
from interp.models.layers import LayerInfo

Verdict = Literal["", "vanishing", "exploding"]

SAFE = (1e-15, 1e15)  # norms whose squares are far from the ends of float32


@dataclass(frozen=True)
class LayerGradient:
    """What came back to one layer: to the output of its first call, and to its own parameters.

    Attributes
    ----------
    order : int
        Its place along depth: when its first call ended.
    gradient_norm : float
        Euclidean norm of the loss's gradient with respect to the output; 0 where the loss does not
        depend on it.
    value_norm : float
        Norm of the output itself.
    ratio : float or None
        `gradient_norm / value_norm`; None where the value is zero everywhere.
    zeros : float
        Share of the gradient's entries that are exactly zero, from 0 to 1.
    parameter_norm : float or None
        Norm of the gradient of the module's own parameters, those of modules inside it left out;
        None where it has none.
    inside_norm : float or None
        As `parameter_norm`, over those of the modules inside it as well.
    verdict : "", "vanishing" or "exploding"
        See `travel`.
    """

    path: str
    kind: str
    order: int
    gradient_norm: float
    value_norm: float
    ratio: float | None
    zeros: float
    parameter_norm: float | None
    inside_norm: float | None
    verdict: Verdict = ""


def norm_of(tensor: Tensor) -> float:
    """The Euclidean norm, right also where squares leave the range of the type.

    Complex numbers count with their size, a sparse tensor with all that it stands for; NaN where
    a tensor has no values.
    """
    dense = numbers(tensor)
    if dense is None:
        return math.nan
    values = (torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense).float()
    norm = float(torch.linalg.vector_norm(values))
    if SAFE[0] < norm < SAFE[1] or not values.numel():
        return norm
    largest = float(values.abs().max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(torch.linalg.vector_norm(values / largest))


@dataclass
class _Seen:
    """The numbers of one layer, as they come in."""

    info: LayerInfo
    own: tuple[Tensor, ...]
    inside: tuple[Tensor, ...]
    value: float | None = None
    gradient: float = 0.0
    zeros: float = 1.0
    reached: bool = False


class GradientWatch:
    """Hooks on every layer and every parameter, which keep numbers and no tensor."""

    def __init__(self, session: HookSession, table: Iterable[LayerInfo]) -> None:
        self._session = session
        self._over = False
        self._done: list[Tensor] = []
        self._norms: dict[int, float] = {}
        self._seen: dict[str, _Seen] = {}
        for info in table:
            part = session.module.get_submodule(info.path)
            own, inside = (
                tuple(p for p in part.parameters(recurse=deep) if p.requires_grad)
                for deep in (False, True)
            )
            self._seen[info.path] = _Seen(info, own, inside)
            if info.calls:
                self._watch_layer(self._seen[info.path])
            # Some layers never run themselves, and their weights are used all the same.
            self._watch_parameters(info.path, part)

    def forward_is_over(self) -> None:
        """What runs from now on is a network that checkpoints and runs its layers again."""
        self._over = True

    def let_go(self) -> None:
        """Drop the gradients of the parameters that have been measured."""
        for parameter in self._done:
            parameter.grad = None
        self._done.clear()

    def rows(self) -> list[LayerGradient]:
        ran = [seen for seen in self._seen.values() if seen.value is not None]
        return [self._row(seen) for seen in sorted(ran, key=lambda seen: seen.info.order)]

    def _row(self, seen: _Seen) -> LayerGradient:
        info, value = seen.info, seen.value or 0.0
        return LayerGradient(
            path=info.path,
            kind=info.kind,
            order=info.order,
            gradient_norm=seen.gradient,
            value_norm=value,
            ratio=seen.gradient / value if value else None,
            zeros=seen.zeros,
            parameter_norm=self._norm_over(seen.own),
            inside_norm=self._norm_over(seen.inside),
        )

    def _norm_over(self, parameters: tuple[Tensor, ...]) -> float | None:
        norms = [self._norms[id(parameter)] for parameter in parameters]
        return math.hypot(*norms) if norms else None

    def _watch_layer(self, seen: _Seen) -> None:
        path = seen.info.path

        def take_value(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if self._over or seen.value is not None or tensor is None or tensor.is_meta:
                return
            seen.value = norm_of(tensor)
            several = seen.info.calls > 1
            first = output[0] if isinstance(output, tuple) else output
            if tensor.requires_grad and (several or tensor is not first):
                why = "it tells the calls apart" if several else "the module returns no tensor"
                self._session.tensor(
                    tensor, take, path=path, purpose=f"gradient norm: {why}", origin="engine"
                )

        def take(gradient: Tensor | None) -> None:
            self.let_go()
            if gradient is not None and not seen.reached:
                seen.reached = True
                seen.gradient = norm_of(gradient)
                dense = numbers(gradient)
                if dense is not None:
                    seen.zeros = 1.0 - int(dense.count_nonzero()) / max(dense.numel(), 1)

        self._session.forward(
            path,
            take_value,
            with_kwargs=True,
            keeps="output",
            purpose="norm of the value",
            origin="engine",
        )
        if seen.info.calls == 1:
            self._session.full_backward(
                path,
                lambda module, grad_input, grad_output: take(grad_output[0]),
                purpose="gradient norm",
                origin="engine",
            )

    def _watch_parameters(self, path: str, part: nn.Module) -> None:
        for name, parameter in part.named_parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in self._norms:
                self._norms[id(parameter)] = 0.0
                self._session.tensor(
                    parameter,
                    self._take_parameter(parameter),
                    path=path,
                    purpose=f"gradient norm of {name}",
                    origin="engine",
                )

    def _take_parameter(self, parameter: Tensor) -> Callable[[Tensor], None]:
        def take(gradient: Tensor) -> None:
            self.let_go()
            self._norms[id(parameter)] = norm_of(gradient)
            self._done.append(parameter)

        return take
