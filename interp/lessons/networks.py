"""The code of lessons 11 to 14: what hooks are used for."""

# The code reads .grad as one writes it in a notebook, where it may be None.
# mypy: disable-error-code="union-attr"

from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models import resnet18

from interp.hooks.ledger import HookLedger, audit
from interp.hooks.session import HookSession
from interp.models.loading import load_model
from interp.picture import open_picture, sample_pictures


def features(ledger: HookLedger, where: str = "avgpool") -> dict[str, Any]:
    found: dict[str, Tensor] = {}

    net = resnet18().eval()  # untrained: it shows the shape
    handle = net.get_submodule(where).register_forward_hook(
        lambda module, args, output: found.update(resnet18=output)
    )
    with torch.no_grad():
        net(torch.zeros(1, 3, 224, 224))
    handle.remove()

    model = load_model("efficientnet_lite0")
    coffee = open_picture(sample_pictures()["coffee"])
    with HookSession(model.module, ledger) as session, torch.no_grad():
        removable = session.forward(
            "avgpool", lambda module, args, output: found.update(lite0=output)
        )
        session.module(model.prepare(coffee))
        removable.remove()

    print(f"ResNet-18, {where}:", tuple(found["resnet18"].shape))
    print("EfficientNet-Lite0, avgpool:", tuple(found["lite0"].shape))
    left = audit(net) + audit(model.module)
    print("hooks left:", len(left))
    return {**found, "where": where, "left": left}


def vanish(
    depth: int = 12,
    activation: str = "sigmoid",
    start: str = "default",
) -> dict[str, Any]:
    makers = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU}
    torch.manual_seed(0)
    net = nn.Sequential()
    for _ in range(depth):
        linear = nn.Linear(32, 32)
        if start == "xavier":
            nn.init.xavier_uniform_(linear.weight)
        if start == "he":
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        if start == "large":
            nn.init.normal_(linear.weight)
        net.extend([linear, makers[activation]()])

    norms: dict[int, float] = {}

    def note(place: int) -> Any:
        def hook(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
            norms[place] = grad_output[0].norm().item()

        return hook

    handles = [
        layer.register_full_backward_hook(note(place))
        for place, layer in enumerate(net)
        if isinstance(layer, nn.Linear)
    ]
    net(torch.randn(16, 32)).square().mean().backward()
    for handle in handles:
        handle.remove()

    first, last = norms[0], norms[2 * depth - 2]
    print(f"norm at the first layer: {first:.2e}")
    print(f"norm at the last layer:  {last:.2e}")
    print(f"first / last: {first / last:.2e}")
    return {"norms": dict(sorted(norms.items())), "ratio": first / last}


def dead(activation: str = "relu", bias: float = -10.0) -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(4, 6)
    act = nn.ReLU() if activation == "relu" else nn.LeakyReLU(0.1)
    with torch.no_grad():
        linear.bias[[1, 4]] = bias

    zeros: list[Tensor] = []
    handle = act.register_forward_hook(
        lambda module, args, output: zeros.append((output == 0).float().mean(0))
    )
    act(linear(torch.randn(64, 4))).sum().backward()
    handle.remove()

    never = (zeros[0] == 1).nonzero().flatten().tolist()
    norms = linear.weight.grad.norm(dim=1)
    print("share of zeros:", zeros[0].numpy().round(2))
    print("dead neurons:", never)
    print("gradient norm of their weights:", norms[never].tolist())
    return {"zeros": zeros[0], "dead": never, "norms": norms}


def weight_gradient(passes: int = 2) -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(5, 2)
    x = torch.ones(3, 5)

    norms: list[Tensor] = []
    weight = linear.weight
    handle = weight.register_hook(lambda gradient: norms.append(gradient.norm()))

    for _ in range(passes):
        nn.functional.mse_loss(linear(x), torch.zeros(3, 2)).backward()
        print(f"hook {norms[-1]:.4f}   .grad {weight.grad.norm():.4f}")
    handle.remove()
    return {"norms": norms, "grad": weight.grad.norm(), "shape": weight.shape}
