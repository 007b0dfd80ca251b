"""`make zoo`: every hook on every module of every classifier of the catalogue.

Each model is built with random weights, hooked on all its modules in both directions, run once,
explained once, looked into and intervened in (see `zoo_core`), and freed. Arguments are the names
of models to take instead of all.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from zoo_core import core_problems

import interp
from interp.models.catalog import catalog
from interp.picture import Picture, open_picture, sample_pictures


@dataclass(frozen=True)
class ZooResult:
    """What one model did; it passed where `problems` is empty.

    Attributes
    ----------
    name : the model.
    modules : modules that ran, each of which has to fire its forward hook.
    gradients : modules whose full backward hook fired.
    milliseconds : the hooked forward and backward pass.
    layer : the recommended layer, at which a map was made.
    problems : what went wrong, in words.
    """

    name: str
    modules: int
    gradients: int
    milliseconds: float
    layer: str
    problems: tuple[str, ...]


def check(name: str, picture: Picture | None = None, *, core: bool = True) -> ZooResult:
    """Build, hook, run and explain one model with random weights.

    Parameters
    ----------
    name
        A model of the catalogue.
    picture
        What it is shown; a sample picture by default.
    core
        Whether to look into it and intervene too.
    """
    torch.manual_seed(0)
    picture = picture or open_picture(sample_pictures()["chelsea"])
    model = interp.load_model(name, weights="none", device="cpu")
    _let_heads_answer(model.module)
    shown = model.prepare(picture).requires_grad_()

    with _calls(model.module) as calls:
        plain = model.module(shown).detach()
    began = time.perf_counter()
    session, logits, has_gradient = _hooked_pass(model.module, shown)
    milliseconds = 1000 * (time.perf_counter() - began)

    problems = []
    if not torch.equal(plain, logits):
        problems.append(f"logits differ by {(plain - logits).abs().max().item():.2g}")
    problems += _forward_problems(session.ledger, calls)
    problems += _backward_problems(session.ledger, has_gradient)
    explained = interp.explain(model, picture)
    if not np.isfinite(explained.map).all():
        problems.append(f"the map at {explained.layers[0]} is not finite")
    if core:
        problems += core_problems(model, picture, plain, calls)
    for which, module in (("the model", model.module), ("the copy", session.module)):
        problems += [
            f"{which} keeps a {left.kind} hook on {left.path}" for left in interp.audit(module)
        ]
    return ZooResult(
        name=name,
        modules=len(calls),
        gradients=sum(r.fires > 0 for r in _records(session.ledger, "full_backward")),
        milliseconds=milliseconds,
        layer=explained.layers[0],
        problems=tuple(problems),
    )


def _let_heads_answer(module: nn.Module) -> None:
    """Random weights for a head that begins with zeros, which gives no logits and no gradient."""
    for part in module.modules():
        if isinstance(part, nn.Linear) and not part.weight.any():
            nn.init.trunc_normal_(part.weight, std=0.02)


@contextmanager
def _calls(module: nn.Module) -> Iterator[Counter[str]]:
    """Count what runs by PyTorch's hook on all modules, which knows nothing of this package."""
    paths = {part: path for path, part in module.named_modules()}
    calls: Counter[str] = Counter()
    handle = register_module_forward_hook(lambda part, args, output: calls.update([paths[part]]))
    try:
        yield calls
    finally:
        handle.remove()


def _hooked_pass(module: nn.Module, shown: Tensor) -> tuple[interp.HookSession, Tensor, set[str]]:
    """A forward and a backward pass with both hooks on every module.

    Returns the closed session, the logits, and the paths whose output has a gradient.
    """
    has_gradient: set[str] = set()
    with interp.HookSession(module) as session:
        for path, _ in session.module.named_modules():

            def watch(part: nn.Module, args: Any, output: Any, path: str = path) -> None:
                first = output[0] if isinstance(output, tuple) else output
                if isinstance(first, Tensor) and first.requires_grad:
                    has_gradient.add(path)

            session.forward(path, watch)
            session.full_backward(path, lambda part, grad_input, grad_output: None)
        logits = session.module(shown)
        logits[0, logits[0].argmax()].backward()
    return session, logits.detach(), has_gradient


def _records(ledger: Any, kind: str) -> list[Any]:
    return [record for record in ledger.records if record.kind == kind]


def _forward_problems(ledger: Any, calls: Counter[str]) -> list[str]:
    return [
        f"{record.path} ran {calls[record.path]} times, its forward hook fired {record.fires}"
        for record in _records(ledger, "forward")
        if record.fires != calls[record.path]
    ]


def _backward_problems(ledger: Any, has_gradient: set[str]) -> list[str]:
    """A backward hook may be silent only where no gradient can be, and the ledger has to say so."""
    problems = []
    for record in _records(ledger, "full_backward"):
        if record.fires:
            continue
        if record.path in has_gradient:
            problems.append(f"{record.path} has a gradient, its full backward hook never fired")
        elif not record.status.startswith(("never fired: ", "cannot fire: ")):
            problems.append(f"the ledger does not say why {record.path} is «{record.status}»")
    return problems


def main(arguments: list[str] | None = None) -> int:
    """Check the models named, or all; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="models of the catalogue")
    names = parser.parse_args(arguments).names or list(catalog())
    picture = open_picture(sample_pictures()["chelsea"])
    failed = []
    print(f"{'model':22}{'modules':>8}{'gradients':>10}{'ms':>9}  recommended layer")
    for name in names:
        try:
            result = check(name, picture)
        except Exception as error:
            result = ZooResult(name, 0, 0, 0.0, "", (f"{type(error).__name__}: {error}",))
        print(
            f"{name:22}{result.modules:8}{result.gradients:10}{result.milliseconds:9.0f}  "
            f"{result.layer:42}{'FAILED' if result.problems else 'ok'}",
            *result.problems[:5],
            sep="\n    ",
            flush=True,
        )
        if result.problems:
            failed.append(name)
        gc.collect()
    print(f"{len(names) - len(failed)} of {len(names)} classifiers", *failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
