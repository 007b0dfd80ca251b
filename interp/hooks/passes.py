"""One forward pass with hooks on, and as many backward passes as there are scores."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger, HookRecord, audit
from interp.hooks.nested import first_tensor
from interp.hooks.quantized import check_gradient
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import SEED, undisturbed
from interp.hooks.values import followed
from interp.hooks.way_back import layers_in_words, way_back
from interp.hooks.writes import tensors_in
from interp.models.copies import frozen_copy
from interp.models.light import path_copy
from interp.targets import find_logits

Call = tuple[str, int]


class Pass:
    """One forward pass with hooks on the layers asked for, and as many backward passes as needed.

    The graph starts at the first of these layers, whichever runs first: nothing before it is
    followed by autograd, and no parameter's gradient is computed.

    Attributes
    ----------
    logits : Tensor
        Shape (N, K), still in the graph, so that a score of it can be differentiated.
    binary : bool
        Whether the model has one logit (see `find_logits`).
    gradients_off : set of (path, call)
        Calls that ran where the network has turned autograd off.
    """

    logits: Tensor
    binary: bool

    def __init__(self, session: HookSession, paths: Iterable[str], gradients: bool) -> None:
        self.session = session
        self.outputs: dict[str, list[Any]] = {}
        self._gradients: dict[Call, Tensor] = {}
        self._starts: list[Tensor] = []
        self._by_tensor: dict[Call, Tensor] = {}
        self._follow = gradients
        self._over = False
        self.gradients_off: set[Call] = set()
        for path in dict.fromkeys(paths):
            self._watch(path)

    def run(
        self, tensor: Tensor, *, from_input: bool = False, by_tensor: Iterable[str] = ()
    ) -> None:
        """The forward pass.

        Parameters
        ----------
        tensor : Tensor
            Shape (N, 3, h, w).
        from_input : bool
            Begin the graph at the input, so that the gradient passes every module before the score.
        by_tensor : iterable of str
            Layers whose gradient is to be read by a tensor hook, behind those that the output has.
        """
        start = tensor.detach()
        if from_input:
            self._starts.append(start.requires_grad_())
        self.logits, self.binary = find_logits(self.session.module(start))
        self._over = True
        if self._follow:
            several = [path for path, calls in self.outputs.items() if len(calls) > 1]
            self._watch_outputs("it tells the calls apart", several)
            self._watch_outputs("it comes after the tensor hook there", by_tensor)

    def gradients(
        self, score: Tensor, *, once: bool = False, also: Iterable[Tensor] = ()
    ) -> dict[Call, Tensor]:
        """Gradients of a score with respect to every call of every layer that it depends on.

        May be asked again for another score: the graph is kept until the pass is over.

        Parameters
        ----------
        score : Tensor
            Any shape; its sum is differentiated.
        once : bool
            Do without a second backward pass for the layers that a full backward hook does not
            serve: it would make other hooks fire again.
        also : iterable of Tensor
            More leaves to follow the gradient to; their hooks fire, and nothing is kept of them.

        Returns
        -------
        dict
            (path, call) to a tensor of the shape of that call's output.

        Raises
        ------
        NoWayBack
            If an operation of the network raises in backward.
        LayerError
            If a quantized part of the network stands between.
        """
        if self._follow:
            check_gradient(self.session.module, score)
        self._gradients.clear()
        if score.requires_grad:
            self._backward(score, also)
            if not once and self._watch_outputs("the full backward hook did not fire"):
                self._backward(score, also)
        return dict(self._gradients)

    def _backward(self, score: Tensor, also: Iterable[Tensor]) -> None:
        inputs = [*self._starts, *self._by_tensor.values(), *also]
        if inputs:
            with way_back(layers_in_words(self.outputs)):
                torch.autograd.grad(score.sum(), inputs, retain_graph=True, allow_unused=True)

    def release(self) -> None:
        """Undo the flags that were set on outputs and let go of the graph."""
        for start in self._starts:
            start.requires_grad_(False)
        self._starts.clear()
        self._by_tensor.clear()
        self._gradients.clear()
        self.outputs.clear()
        if self._over:
            self.logits = self.logits.detach()

    def feature_maps(self) -> dict[str, list[Tensor | None]]:
        """What each layer returned at each call, detached; None where that is no tensor."""
        return {
            path: [next((t.detach() for t in tensors_in(output)), None) for output in calls]
            for path, calls in self.outputs.items()
        }

    def _watch(self, path: str) -> None:
        calls = self.outputs.setdefault(path, [])

        def keep_feature_map(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if not self._over:  # a network that checkpoints runs layers again in backward
                calls.append(output)
                if self._follow and not torch.is_grad_enabled():
                    self.gradients_off.add((path, len(calls) - 1))
            for tensor in tensors_in(output):
                forward.record.bytes_held += tensor.numel() * tensor.element_size()
                if self._begins_at(tensor):
                    tensor.requires_grad_()  # at a second run too, which must save the same
                    if not self._over:
                        self._starts.append(tensor)

        def keep_gradient(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
            if (path, 0) not in self._by_tensor:
                self._store((path, 0), grad_output[0], backward.record)

        forward = self.session.forward(
            path,
            keep_feature_map,
            with_kwargs=True,
            keeps="output",
            purpose="feature map",
            origin="engine",
        )
        if self._follow:
            backward = self.session.full_backward(
                path, keep_gradient, purpose="gradient", origin="engine"
            )

    def _begins_at(self, tensor: Tensor) -> bool:
        """Whether the graph is to begin at an output."""
        return (
            self._follow
            and not tensor.requires_grad
            and followed(tensor)
            and not tensor.is_inference()
        )

    def _store(self, call: Call, gradient: Tensor | None, record: HookRecord) -> None:
        if gradient is not None:
            record.bytes_held = gradient.numel() * gradient.element_size()
            self._gradients[call] = gradient.detach()

    def _watch_outputs(self, why: str, paths: Iterable[str] | None = None) -> bool:
        """Tensor hooks on outputs where a full backward hook cannot serve.

        It is not told which call it fires for, and does not fire for a module that returns a dict
        or a list, or for an output that depends on no layer before it. Returns whether any was
        registered.
        """
        added = False
        for path in self.outputs if paths is None else paths:
            for call, output in enumerate(self.outputs[path]):
                tensor = first_tensor(output)
                known = (path, call) in self._gradients or (path, call) in self._by_tensor
                if tensor is not None and tensor.requires_grad and not known:
                    self._watch_tensor((path, call), tensor, why)
                    added = True
        return added

    def _watch_tensor(self, call: Call, tensor: Tensor, why: str) -> None:
        self._by_tensor[call] = tensor
        handle = self.session.tensor(
            tensor,
            lambda gradient: self._store(call, gradient, handle.record),
            path=call[0],
            purpose=f"gradient of call {call[1]}: {why}",
            origin="engine",
        )


@contextmanager
def forward_pass(
    module: nn.Module,
    tensor: Tensor,
    paths: Iterable[str],
    *,
    gradients: bool = True,
    ledger: HookLedger | None = None,
    light: bool = False,
    seed: int | None = SEED,
) -> Iterator[Pass]:
    """Run a module with hooks on `paths`; they are gone when the block ends, however it ends.

    Works whatever grad mode the caller is in, and changes neither it nor anything of the module,
    the tensor or the random state.

    Parameters
    ----------
    light : bool
        For a frozen module in evaluation mode that `is_simple`. It spares the copy of what carries
        no hook, and the cost of watching operations before the graph begins.
    seed : int, optional
        As for `undisturbed`.
    """
    paths = list(paths)
    light = light and not audit(module)
    copy = path_copy(module, paths) if light else frozen_copy(module)
    session = HookSession(module, ledger, copy=copy)
    try:
        with (
            undisturbed(tensor.device, gradients=gradients, seed=seed),
            session.running(late=light),
        ):
            run = Pass(session, paths, gradients)
            try:
                run.run(tensor)
                yield run
            finally:
                run.release()
    finally:
        session.close()
