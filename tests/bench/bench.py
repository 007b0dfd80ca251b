"""`make bench`: what the hooks cost, as ratios in one run, beside other packages.

Everything runs on the CPU with two threads: one ResNet-50 with random weights in channels_last,
one 224 × 224 picture, the same class. What is compared takes turns within a round, each round is a
ratio to the plain pass of that round, and the median over the rounds is printed. Each run puts its
hooks on and takes them off again. All are given the prepared tensor; `explain` is shown as well,
which also prepares the picture and makes the predictions, the notes and the result.
"""

from __future__ import annotations

import copy
import gc
import io
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MethodType

import bench_inspection
import torch
from captum.attr import LayerGradCam
from PIL import Image
from pytorch_grad_cam import GradCAM as GradCamPackage
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import Tensor, nn
from torchcam.methods import GradCAM as TorchCam
from torchvision.models.resnet import Bottleneck

import interp
from interp.attribution.base import LayerCall, Request, get_method
from interp.models.layers import find_layer, recommended_layer
from interp.picture import Picture, open_picture, sample_pictures
from interp.targets import parse_target

ROUNDS = 25
WARM_UP = 3
CLASS = 281
BLOCKS = [f"layer{stage}.{i}" for stage, n in ((1, 3), (2, 4), (3, 6), (4, 3)) for i in range(n)]
MEMORY_RUNS = 50
MEMORY_BOUND_MB = 30.0

Contender = Callable[[], object]


@dataclass(frozen=True)
class Beside:
    """A bound as a ratio to another contender of the same rounds."""

    name: str
    factor: float


def main() -> int:
    """Print the rows; 1 where a number misses its bound."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = interp.load_model("resnet50", weights="none", device="cpu")
    picture = _picture()
    shown = model.prepare(picture)
    # Its own parameters, as its builder leaves them: other packages expect them to need gradients.
    theirs = copy.deepcopy(model.module).requires_grad_(True)
    print(__doc__.split("\n\n", 1)[1])
    missed = (
        _row("Grad-CAM, default layer", 1.10, *_default_layer(model, picture, shown, theirs)),
        _row(
            "Grad-CAM, 16 blocks",
            Beside("torchcam, one pass", 1.05),
            *_all_blocks(model, picture, shown, theirs),
        ),
        _row(
            "every module hooked both ways",
            Beside("PyTorch's own hooks", 1.2),
            *_every_module(model, shown),
        ),
        _row("statistics of every layer", 1.8, *_statistics(model, picture, shown)),
        bench_inspection.channel_sweep(picture),
        _memory(model, picture),
    )
    return int(any(missed))


def _picture() -> Picture:
    square = io.BytesIO()
    with Image.open(sample_pictures()["chelsea"]) as image:
        image.resize((224, 224)).save(square, "PNG")
    return open_picture(square.getvalue(), name="chelsea-224.png")


def _default_layer(
    model: interp.LoadedModel, picture: Picture, shown: Tensor, theirs: nn.Module
) -> tuple[Contender, dict[str, Contender]]:
    info = recommended_layer(model.layers)
    layer = theirs.get_submodule(info.path)
    captum = LayerGradCam(theirs, layer)

    def grad_cam() -> object:
        with GradCamPackage(theirs, [layer]) as extractor:
            return extractor(shown, [ClassifierOutputTarget(CLASS)])

    return lambda: _plain(model.module, shown), {
        "interp": _ours(model, shown, [info.path]),
        "  explain, all of it": lambda: interp.explain(model, picture, target=str(CLASS)),
        "torchcam": _torchcam(theirs, shown, [info.path]),
        "captum": lambda: captum.attribute(shown, target=CLASS),
        "pytorch-grad-cam": grad_cam,
    }


def _all_blocks(
    model: interp.LoadedModel, picture: Picture, shown: Tensor, theirs: nn.Module
) -> tuple[Contender, dict[str, Contender]]:
    captum = [LayerGradCam(theirs, theirs.get_submodule(path)) for path in BLOCKS]
    return lambda: _plain(model.module, shown), {
        "interp": _ours(model, shown, BLOCKS),
        "  explain, all of it": lambda: interp.explain_layers(
            model, picture, layers=BLOCKS, target=str(CLASS)
        ),
        "torchcam, one pass": _torchcam(theirs, shown, BLOCKS),
        "captum, a pass each": lambda: [cam.attribute(shown, target=CLASS) for cam in captum],
    }


def _every_module(
    model: interp.LoadedModel, shown: Tensor
) -> tuple[Contender, dict[str, Contender]]:
    def plain() -> Tensor:
        return _input_gradient(model.module, shown)

    def hooked() -> Tensor:
        with interp.HookSession(model.module) as session:
            for path, _ in session.module.named_modules():
                session.forward(path, _forward_mean)
                session.full_backward(path, _backward_mean)
            return _input_gradient(session.module, shown)

    twin = _out_of_place(model.module)

    def own() -> Tensor:
        handles = []
        for part in twin.modules():
            handles.append(part.register_forward_hook(_forward_mean))
            handles.append(part.register_full_backward_hook(_backward_mean))
        try:
            return _input_gradient(twin, shown)
        finally:
            for handle in handles:
                handle.remove()

    return plain, {"interp.HookSession": hooked, "PyTorch's own hooks": own}


def _out_of_place(module: nn.Module) -> nn.Module:
    """The same ResNet without in-place operations, before which PyTorch's own hooks raise."""

    def block(self: Bottleneck, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))

    twin = copy.deepcopy(module)
    for part in twin.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = False
        elif isinstance(part, Bottleneck):
            part.forward = MethodType(block, part)
    return twin


def _statistics(
    model: interp.LoadedModel, picture: Picture, shown: Tensor
) -> tuple[Contender, dict[str, Contender]]:
    contenders = bench_inspection.statistics_of_every_layer(model, picture)
    return lambda: _input_gradient(model.module, shown), contenders


def _ours(model: interp.LoadedModel, shown: Tensor, layers: list[str]) -> Contender:
    method, target = get_method("grad-cam"), parse_target(str(CLASS), model.categories)
    calls = tuple(LayerCall(find_layer(model.layers, path)) for path in layers)
    return lambda: method.run(Request(model, shown, calls, target))


def _torchcam(model: nn.Module, shown: Tensor, layers: list[str]) -> Contender:
    def run() -> list[Tensor]:
        with TorchCam(model, layers) as extractor:
            return extractor(CLASS, model(shown))

    return run


@torch.no_grad()
def _plain(module: nn.Module, shown: Tensor) -> Tensor:
    return module(shown)


def _input_gradient(module: nn.Module, shown: Tensor) -> Tensor:
    leaf = shown.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(module(leaf)[0, CLASS], leaf)
    return gradient


def _forward_mean(module: nn.Module, args: object, output: Tensor) -> None:
    output.detach().mean()


def _backward_mean(module: nn.Module, grad_input: object, grad_output: tuple[Tensor]) -> None:
    grad_output[0].mean()


def _row(
    what: str, limit: float | Beside, base: Contender, contenders: dict[str, Contender]
) -> bool:
    """Measure, print, and say whether the first contender misses the bound."""
    names = ["plain", *contenders]
    runs = {"plain": base, **contenders}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(WARM_UP + ROUNDS):
        # In a new order each time: who follows a large consumer pays for the memory it gave back.
        for name in random.Random(turn).sample(names, len(names)):
            began = time.perf_counter()
            runs[name]()
            if turn >= WARM_UP:
                times[name].append(time.perf_counter() - began)
    ratios = {
        name: statistics.median(t / p for t, p in zip(times[name], times["plain"], strict=True))
        for name in names
    }
    ours = names[1]
    bound = limit if isinstance(limit, float) else limit.factor * ratios[limit.name]
    missed = ratios[ours] > bound
    print(f"{what}: {'MISSED' if missed else 'reached'} ({ratios[ours]:.2f}, bound {bound:.2f})")
    for name in names:
        print(f"    {name:24}{ratios[name]:7.2f} ×{1000 * statistics.median(times[name]):9.1f} ms")
    return missed


def _memory(model: interp.LoadedModel, picture: Picture) -> bool:
    interp.explain(model, picture)
    before = _tensors(), _resident_mb()
    for _ in range(MEMORY_RUNS):
        interp.explain(model, picture)
    tensors, megabytes = _tensors() - before[0], _resident_mb() - before[1]
    hooks = len(interp.audit(model.module))
    missed = bool(hooks) or tensors > 0 or megabytes > MEMORY_BOUND_MB
    print(
        f"memory after {MEMORY_RUNS} runs: {'MISSED' if missed else 'reached'} "
        f"({hooks} live hooks, {tensors:+} tensors, {megabytes:+.1f} MB, "
        f"bound 0, 0, {MEMORY_BOUND_MB:.0f} MB)"
    )
    return missed


def _tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


def _resident_mb() -> float:
    """Resident memory of this process; 0 where the system does not show it under /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
