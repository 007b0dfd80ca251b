"""The code of lessons 1 to 5: hooks on tensors."""

from typing import Any

import torch
from torch import Tensor


def watch(factor: float = 3.0) -> dict[str, Any]:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = factor * x

    seen: list[Tensor] = []
    handle = h.register_hook(lambda gradient: seen.append(gradient))

    loss = (h**2).sum()
    loss.backward()
    handle.remove()

    print("gradient passing h:", seen[0])
    print("x.grad:", x.grad)
    return {"x": x, "h": h, "loss": loss, "at h": seen[0], "x.grad": x.grad}


def replace(scale: float = 0.0) -> dict[str, Any]:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = 3 * x

    handle = h.register_hook(lambda gradient: scale * gradient)

    loss = (h**2).sum()
    loss.backward()
    handle.remove()

    print("loss:", loss.item())
    print("x.grad:", x.grad)
    return {"x": x, "h": h, "loss": loss, "x.grad": x.grad}


def remove(removed_between: bool = True) -> dict[str, Any]:
    x = torch.tensor([2.0], requires_grad=True)

    calls: list[Tensor] = []
    handle = x.register_hook(lambda gradient: calls.append(gradient))

    (x**2).sum().backward()
    if removed_between:
        handle.remove()
    (x**2).sum().backward()
    handle.remove()

    print("calls of the hook:", len(calls))
    print("x.grad:", x.grad, "(4 from each backward)")
    return {"x": x, "calls": len(calls), "x.grad": x.grad}


def clip(limit: float = 5.0) -> dict[str, Any]:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = 3 * x
    loss = (h**2).sum()
    print(f"loss: {loss.item():.0f}")

    seen: list[Tensor] = []

    def clip_and_log(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        print(f"norm at h: {gradient.norm():.3f}")
        return gradient.clamp(-limit, limit)

    handle = h.register_hook(clip_and_log)
    loss.backward(retain_graph=True)
    clipped, x.grad = x.grad, None
    handle.remove()
    loss.backward()

    print("x.grad, clipped at h:", clipped)
    print("x.grad without the hook:", x.grad)
    return {
        **{"x": x, "h": h, "loss": loss, "at h": seen[0]},
        **{"norm": seen[0].norm(), "clipped": clipped, "without": x.grad},
    }


def double(in_place: bool = False) -> dict[str, Any]:
    def twice(gradient: Tensor) -> Tensor | None:
        if in_place:
            gradient.mul_(2)  # writes into a tensor that others hold too
            return None
        return gradient * 2  # a new tensor

    x = torch.ones(2, 2, requires_grad=True)
    y = 2 * x
    handle = x.register_hook(twice)
    y.mean().backward()
    handle.remove()
    print("x.grad, 0.5 without a hook:", x.grad)

    a = torch.ones(2, 2, requires_grad=True)
    b = torch.ones(2, 2, requires_grad=True)
    handle = a.register_hook(twice)
    (a + b).mean().backward()
    handle.remove()
    print("a.grad, 0.25 without a hook:", a.grad)
    print("b.grad, which has no hook:", b.grad)
    return {"x.grad": x.grad, "a.grad": a.grad, "b.grad": b.grad}
