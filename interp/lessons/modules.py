"""The code of lessons 6 to 10: hooks on modules."""

from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger, audit
from interp.hooks.session import HookSession


def halve() -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(5, 2)
    x = torch.ones(3, 5)

    def half(module: nn.Module, args: Any) -> tuple[Tensor]:
        return (args[0] / 2,)

    handle = linear.register_forward_pre_hook(half)
    y = linear(x)
    handle.remove()

    print("x:", tuple(x.shape), "of", x[0, 0].item())
    print("y:", tuple(y.shape))
    print("y is linear(x / 2):", torch.equal(y, linear(x / 2)))
    print("y is linear(x) / 2:", torch.allclose(y, linear(x) / 2))
    return {"x": x, "y": y, "of half": linear(x / 2), "half of": linear(x) / 2}


def store_or_replace(factor: float = 100.0) -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(5, 2)
    x = torch.ones(3, 5)

    stored: dict[str, Tensor] = {}

    def store(module: nn.Module, args: Any, output: Tensor) -> None:
        stored["linear"] = output.detach()

    with linear.register_forward_hook(store):
        plain = linear(x)

    def replace(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output * factor

    with linear.register_forward_hook(replace):
        replaced = linear(x)

    print("stored:", tuple(stored["linear"].shape))
    print("the output itself:", torch.equal(stored["linear"], plain))
    print("replaced / plain:", (replaced / plain)[0, 0].item())
    return {"x": x, "plain": plain, "replaced": replaced, **stored}


def backward_of_a_module(what: str = "return grad_input × 0.1") -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(5, 2)
    sizes: dict[str, Any] = {}

    def hook(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        sizes.update(grad_input=grad_input[0].shape, grad_output=grad_output[0].shape)
        if what == "return grad_input × 0.1":
            return (grad_input[0] * 0.1,)
        if what == "change grad_input in place":
            grad_input[0].mul_(0.1)
        if what == "change grad_output in place":
            grad_output[0].mul_(0.1)
        if what == "return grad_output × 0.1":
            return (grad_output[0] * 0.1,)
        return None

    def before(module: nn.Module, grad_output: Any) -> Any:
        return (grad_output[0] * 0.1,)

    def gradients() -> list[Tensor]:
        x = torch.ones(3, 5, requires_grad=True)
        loss = nn.functional.mse_loss(linear(x), torch.zeros(3, 2))
        return list(torch.autograd.grad(loss, [x, linear.weight]))

    plain, factors, error = gradients(), [1.0, 1.0], ""
    if what == "full backward pre-hook":
        handle = linear.register_full_backward_pre_hook(before)
    else:
        handle = linear.register_full_backward_hook(hook)
    try:
        pairs = zip(gradients(), plain, strict=True)
        factors = [(hooked / was).mean().item() for hooked, was in pairs]
        print(f"gradient of x:  {factors[0]:.2f} × before")
        print(f"of the weight:  {factors[1]:.2f} × before")
    except RuntimeError as failure:
        error = str(failure)
        print("RuntimeError:", error)
    handle.remove()
    for name, size in sizes.items():
        print(f"{name}[0]: {tuple(size)}")
    return {"sizes": sizes, "factors": factors, "error": error, "what": what}


def order(prepend: bool = False) -> dict[str, Any]:
    torch.manual_seed(0)
    linear = nn.Linear(2, 1)
    log: list[str] = []

    def says(text: str) -> Any:
        return lambda *given: log.append(text)

    handles = [
        linear.register_full_backward_hook(says("full backward hook")),
        linear.register_full_backward_pre_hook(says("full backward pre-hook")),
        linear.register_forward_hook(says("forward hook A")),
        linear.register_forward_hook(says("forward hook B"), prepend=prepend),
        linear.register_forward_pre_hook(says("forward pre-hook")),
    ]

    y = linear(torch.ones(1, 2, requires_grad=True))
    log.append("— forward is over —")
    y.sum().backward()
    for handle in handles:
        handle.remove()

    for place, text in enumerate(log, 1):
        print(place, text)
    return {"log": log}


def forget(ledger: HookLedger, passes: int = 3) -> dict[str, Any]:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    calls: list[str] = []
    leaking, closed = [], []

    for _ in range(passes):  # the handle is thrown away each time
        net[0].register_forward_hook(lambda *given: calls.append("leak"))
        calls.clear()
        net(torch.ones(1, 2))
        leaking.append(len(calls))
    found = audit(net)
    print("fires in each pass:", leaking)
    print("found by audit(net):", len(found), "on", {hook.path for hook in found})

    clean = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for _ in range(passes):
        with HookSession(clean, ledger) as session:
            session.forward("0", lambda *given: calls.append("closed"))
            calls.clear()
            session.module(torch.ones(1, 2))
            closed.append(len(calls))
    print("fires in each session:", closed)
    print("found by audit(clean):", len(audit(clean)))
    left = audit(clean)
    return {"leaking": leaking, "closed": closed, "found": found, "left": left}
