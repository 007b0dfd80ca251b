"""Class activation maps from one forward pass and the gradients at a layer."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from interp.attribution.base import Outcome, Parameter, Request
from interp.errors import LayerError
from interp.hooks.passes import forward_pass
from interp.models.layers import another, channels_first


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
            gradients = run.gradients(target.score(run.logits))
            features = run.feature_maps()
            logits, binary = run.logits.detach()[0].float(), run.binary
        maps = []
        for layer in request.layers:
            call = (layer.info.path, layer.call)
            feature_map, gradient = features[call[0]][call[1]], gradients.get(call)
            if feature_map is None or gradient is None:
                raise LayerError(
                    f"{target.label} does not depend on layer «{layer}»"
                    + another(request.model.layers, layer.info)
                )
            maps.append(
                self.combine(
                    channels_first(feature_map, layer.info)[0].float(),
                    channels_first(gradient, layer.info)[0].float(),
                )
            )
        return Outcome(tuple(maps), target, logits, binary)


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
