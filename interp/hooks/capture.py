"""Feature maps by forward hooks and gradients by full backward hooks, from one pass."""

from collections.abc import Iterable, Set
from typing import Any

from torch import Tensor, nn

from interp.errors import LayerError
from interp.hooks.ledger import HookLedger
from interp.hooks.passes import Call, forward_pass
from interp.hooks.way_back import GRADIENTS_OFF, NoWayBack
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, parse_target


class Capture:
    """Feature maps and gradients of one run; detached, in the layers' own layouts.

    Attributes
    ----------
    logits : Tensor
        Shape (N, K).
    target : Target
        What the gradients are of.
    ledger : HookLedger
        Every hook of the run.
    """

    def __init__(
        self,
        logits: Tensor,
        target: Target,
        ledger: HookLedger,
        maps: dict[str, list[Tensor | None]],
        gradients: dict[Call, Tensor],
        gradients_off: Set[Call] = frozenset(),
    ) -> None:
        self.logits, self.target, self.ledger = logits, target, ledger
        self._maps, self._gradients = maps, gradients
        self._off = gradients_off

    def calls(self, path: str) -> int:
        """How often the layer ran."""
        return len(self._of(path))

    def maps_of(self, path: str) -> tuple[Tensor | None, ...]:
        """What the layer returned at each of its calls; None where that is no tensor."""
        return tuple(self._of(path))

    def feature_map(self, path: str, call: int = 0) -> Tensor:
        """What the layer returned at one of its calls, before anything later wrote over it.

        Raises
        ------
        LayerError
            If the layer was not asked for, ran fewer times, or returned no tensor.
        """
        calls = self._of(path)
        if not 0 <= call < len(calls):
            ran = f"ran {len(calls)} times" if calls else "ran 0 times for this input"
            raise LayerError(f"layer «{path}» {ran}: there is no call {call}")
        tensor = calls[call]
        if tensor is None:
            raise LayerError(f"layer «{path}» returns no tensor: choose a layer inside it")
        return tensor

    def gradient(self, path: str, call: int = 0) -> Tensor:
        """The gradient of the target with respect to that output, of the same shape.

        Raises
        ------
        LayerError
            As `feature_map`, and where the target does not depend on this call.
        """
        self.feature_map(path, call)
        gradient = self._gradients.get((path, call))
        if gradient is None:
            if (path, call) in self._off:
                raise NoWayBack(
                    f"no gradient can be asked for at «{path}», as {GRADIENTS_OFF}",
                    "choose a layer outside",
                )
            raise LayerError(
                f"no gradient reached «{path}» at call {call}: {self.target.label} does not "
                "depend on it, or gradients were not asked for"
            )
        return gradient

    def _of(self, path: str) -> list[Tensor | None]:
        if path not in self._maps:
            known = ", ".join(self._maps) or "none"
            raise LayerError(f"layer «{path}» was not captured (captured: {known})")
        return self._maps[path]


def capture(
    model: LoadedModel | nn.Module,
    picture_or_tensor: Picture | Tensor,
    layers: Iterable[str],
    target: str | int | Target | None = None,
    gradients: bool = True,
) -> Capture:
    """Feature maps and gradients of any layers, from one forward and one backward pass.

    Parameters
    ----------
    model : LoadedModel or nn.Module
        A bare module needs a tensor.
    picture_or_tensor : Picture or Tensor
        A tensor of shape (N, 3, h, w) is taken as it is.
    layers : iterable of str
        Module paths in any order; every call of each is kept.
    target : str, int, Target or None
        What the gradients are of (see `parse_target`).
    gradients : bool
        Whether to run backward at all.

    Returns
    -------
    Capture

    Raises
    ------
    LayerError, TargetError, ModelError
    """
    categories = model.categories if isinstance(model, LoadedModel) else ()
    wanted = parse_target(target, categories)
    if isinstance(picture_or_tensor, Tensor):
        tensor = picture_or_tensor
    elif isinstance(model, LoadedModel):
        tensor = model.prepare(picture_or_tensor)
    else:
        raise LayerError("a bare module takes a tensor, not a picture: load it with load_model")
    module = model.module if isinstance(model, LoadedModel) else model
    paths = list(layers)
    options: dict[str, Any] = {}
    if isinstance(model, LoadedModel):
        options = {"light": model.allows_light_pass, "seed": model.seed}
    with forward_pass(module, tensor, paths, gradients=gradients, **options) as run:
        found = wanted.resolve(run.logits, run.binary)
        grads = run.gradients(found.score(run.logits)) if gradients else {}
        maps, logits, ledger = run.feature_maps(), run.logits.detach(), run.session.ledger
    return Capture(logits, found, ledger, maps, grads, run.gradients_off)
