"""Class activation maps from one forward pass and the gradients at a layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from interp.attribution.base import LayerCall, Outcome, Parameter, Request
from interp.errors import LayerError
from interp.hooks.passes import forward_pass
from interp.hooks.way_back import GRADIENTS_OFF, NoWayBack
from interp.models.layers import LayerInfo, another, channels_first
from interp.models.routes import as_it_ran


@dataclass(frozen=True)
class GradientCam:
    """A map made of a layer's feature maps and the gradients of the target at that layer.

    `combine` takes feature maps and gradients, both float32 (C, h, w), and gives the map (h, w).
    """

    name: str
    title: str
    summary: str
    definition: str
    paper: str
    combine: Callable[[Tensor, Tensor], Tensor]
    signed: bool = False
    parameters: tuple[Parameter, ...] = ()

    def run(self, request: Request) -> Outcome:
        """One forward pass and one backward pass down to the first layer asked for.

        Raises
        ------
        LayerError
            If the target does not depend on a layer.
        """
        paths = [layer.info.path for layer in request.layers]
        model = request.model
        with forward_pass(
            model.module,
            request.tensor,
            paths,
            ledger=request.ledger,
            light=model.allows_light_pass,
            seed=model.seed,
        ) as run:
            target = request.target.resolve(run.logits, run.binary)
            layers, features = request.layers, run.feature_maps()
            rows = [self._row(request, layer, features[layer.info.path]) for layer in layers]
            try:
                gradients = run.gradients(target.score(run.logits))
            except NoWayBack as error:
                first = min(rows, key=lambda info: info.order)
                raise LayerError(f"{error}{_such_as(request, first)}") from error
            logits, binary = run.logits.detach()[0].float(), run.binary
            off = run.gradients_off
        maps = []
        for layer, info in zip(layers, rows, strict=True):
            call = (layer.info.path, layer.call)
            feature_map, gradient = features[call[0]][call[1]], gradients.get(call)
            if feature_map is None or gradient is None:
                why = f"{target.label} does not depend on layer «{layer}»"
                if call in off:
                    why = f"no gradient can be asked for at «{layer}», as {GRADIENTS_OFF}"
                others = another(request.model.layers, layer.info, look_inside=call not in off)
                raise LayerError(why + others)
            maps.append(
                self.combine(
                    channels_first(feature_map, info)[0].float(),
                    channels_first(gradient, info)[0].float(),
                )
            )
        return Outcome(tuple(maps), target, logits, binary)

    def _row(self, request: Request, layer: LayerCall, calls: Sequence[Tensor | None]) -> LayerInfo:
        """The layer as it was in this very pass."""
        model = request.model
        return as_it_ran(model.module, model.layers, request.tensor, layer.info, layer.call, calls)


def _such_as(request: Request, refused: LayerInfo) -> str:
    other = another(request.model.layers, refused).rpartition("such as ")
    return f", such as {other[2]}" if other[1] else ""


def grad_cam(feature_maps: Tensor, gradients: Tensor) -> Tensor:
    """Each channel weighed by the mean of its gradient."""
    return (feature_maps * gradients.mean(dim=(1, 2), keepdim=True)).sum(dim=0)


def hirescam(feature_maps: Tensor, gradients: Tensor) -> Tensor:
    """Each value weighed by its own gradient."""
    return (feature_maps * gradients).sum(dim=0)


METHODS = (
    GradientCam(
        name="grad-cam",
        title="Grad-CAM",
        summary="which regions raise the score of {target}",
        definition=(
            "Every channel of the layer is weighed by the mean of its gradient, and the weighed "
            "channels are added up. Values below zero, regions that lower the score, are not drawn."
        ),
        paper="Selvaraju et al., Grad-CAM, ICCV 2017, arXiv 1610.02391",
        combine=grad_cam,
    ),
    GradientCam(
        name="hirescam",
        title="HiResCAM",
        summary="which places of the layer the score of {target} is computed from",
        definition=(
            "Every value of the layer is multiplied by its own gradient, without averaging, and "
            "the channels are added up. Where the layer is followed by pooling and one linear "
            "layer, the map adds up to the score but for the bias."
        ),
        paper="Draelos and Carin, HiResCAM, 2020, arXiv 2011.08891",
        combine=hirescam,
    ),
)
