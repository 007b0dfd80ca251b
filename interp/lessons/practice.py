"""The code of lessons 15 to 18: what hooks are and are not, and what they cost."""

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger, audit
from interp.hooks.session import HookSession
from interp.lessons.recording import unrecorded


def state(ledger: HookLedger) -> dict[str, Any]:
    fired: list[str] = []
    net, x = nn.Linear(5, 2), torch.ones(3, 5)
    before = list(net.state_dict())

    handle = net.register_forward_hook(lambda *given: fired.append("fired"))
    print("state dict:", list(net.state_dict()), "before:", before)

    def fires_of(module: nn.Module) -> int:
        fired.clear()
        module(x)
        return len(fired)

    fresh = nn.Linear(5, 2)
    fresh.load_state_dict(net.state_dict())
    twin = copy.deepcopy(net)
    fires = {
        "net": fires_of(net),
        "fresh": fires_of(fresh),
        "deepcopy": fires_of(twin),
    }

    handle.remove()
    left = {"net": len(audit(net)), "deepcopy": len(audit(twin))}
    with HookSession(twin, ledger) as session:  # its copy is the same network
        fires["session"] = fires_of(session.module)

    print("fires:", fires)
    print("left after handle.remove():", left)
    return {"before": before, "fires": fires, "left": left}


def cost(ledger: HookLedger, width: int = 128) -> dict[str, Any]:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(width, width) for _ in range(8)))
    x = torch.randn(16, width)
    kept: list[Any] = []

    def best(module: nn.Module) -> float:
        times = []
        for _ in range(25):
            began = time.perf_counter()
            module(x)
            times.append(time.perf_counter() - began)
            kept.clear()
        return min(times)

    hooks: dict[str, Callable[..., Any]] = {
        "returns None": lambda module, args, output: None,
        "keeps the output": lambda module, args, output: kept.append(output),
        "reads a mean": lambda module, args, output: kept.append(float(output.mean())),
    }
    times = {}
    with torch.no_grad(), unrecorded():  # no ledger in these times
        best(net)  # the first passes wake PyTorch's threads
        plain = best(net)
        for name, hook in hooks.items():
            handles = [layer.register_forward_hook(hook) for layer in net]
            times[name] = best(net)
            for handle in handles:
                handle.remove()
    with torch.no_grad(), HookSession(net, ledger) as session:
        for place in range(8):
            session.forward(str(place), hooks["returns None"])
        times["in a HookSession"] = best(session.module)
    with torch.no_grad():
        plain = min(plain, best(net))  # the machine may have been busy before

    ratios = {name: seconds / plain for name, seconds in times.items()}
    for name, ratio in ratios.items():
        print(f"{name:<17} {ratio:.2f} × without")
    return {"ratios": ratios, "plain": plain, "width": width}


def operations(bias: bool = True, dimensions: int = 2) -> dict[str, Any]:
    linear = nn.Linear(5, 2, bias=bias)
    x = torch.ones(*(4, 3, 5)[-dimensions:], requires_grad=True)

    outputs: list[Tensor] = []
    handle = linear.register_forward_hook(
        lambda module, args, output: outputs.append(output),
    )
    linear(x)
    handle.remove()

    steps: list[str] = []

    def walk(node: Any) -> None:
        if "AccumulateGrad" not in node.name():  # a leaf
            steps.append(node.name())
        for before, _ in node.next_functions:
            if before is not None:
                walk(before)

    walk(outputs[0].grad_fn)
    print("fires of the module's hook:", len(outputs))
    print("operations in it:", steps)

    with linear.register_full_backward_hook(lambda *given: None):
        print("with a full backward hook:", linear(x).grad_fn.name())
    return {"fires": len(outputs), "steps": steps}


def before_in_place(ledger: HookLedger, inplace: bool = True) -> dict[str, Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=inplace))
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    seen: list[Tensor] = []

    def keep(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        seen.append(grad_output[0])

    error = ""
    handle = net[0].register_full_backward_hook(keep)
    try:
        net(x).sum().backward()
    except RuntimeError as failure:
        error = str(failure)
        print("plain PyTorch, RuntimeError:", error)
    handle.remove()
    plain = len(seen)

    with HookSession(net, ledger) as session:
        session.full_backward("0", keep)
        y = session.module(x)
        y.sum().backward()
    print("fires in plain PyTorch:", plain)
    print("fires in a HookSession:", len(seen) - plain)
    same = torch.equal(y, net(x))
    print("same output:", same)
    return {"error": error, "plain": plain, "seen": seen, "same": same}


def overwritten() -> dict[str, Any]:
    net: Any = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(inplace=True))
    kept: list[Tensor] = []
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
        with net[0].register_forward_hook(lambda module, args, output: kept.append(output)):
            net(torch.tensor([[1.0, 2.0]]))
    return {"kept": kept[0]}
