"""What stands on a second picture at the place of a hook, to be patched in."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from interp.geometry import Fit
from interp.hooks.ledger import HookLedger
from interp.hooks.passes import Pass
from interp.hooks.recipe import Step
from interp.hooks.session import HookSession
from interp.hooks.sites import Site
from interp.models.copies import freeze, own_state, private_copy
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target


@contextmanager
def undisturbed(model: LoadedModel) -> Iterator[None]:
    """Autograd on, whatever the caller is in, and the random state as it was at the end."""
    devices = [model.device] if model.device.type == "cuda" else []
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.random.fork_rng(devices=devices),
    ):
        yield


def donor_values(
    model: LoadedModel,
    step: Step,
    picture: Picture,
    fit: Fit,
    target: Target,
    ledger: HookLedger,
) -> dict[int, Tensor]:
    """The values that a step's hook would be given on another picture, with no other hook on.

    Parameters
    ----------
    model : LoadedModel
    step : Step
        Its kind, path, call and `of` say where; its action plays no part.
    picture : Picture
        The second one.
    fit : "crop", "stretch" or "letterbox"
    target : Target
        What gradients are of; resolved.
    ledger : HookLedger
        Where the hooks that look are recorded.

    Returns
    -------
    dict
        From the index that the hook counts calls by to the value, detached.
    """
    found: dict[int, Tensor] = {}

    def look(value: Tensor, call: int) -> None:
        found[call] = value.detach().clone()

    calls = next(info.calls for info in model.layers if info.path == step.path)
    copy = own_state(freeze(private_copy(model.module)))
    session = HookSession(model.module, ledger, copy=copy)
    try:
        with undisturbed(model), session.running():
            site = Site(session, step, calls, look)
            site.begin()
            run = Pass(session, (), gradients=True, keep_inputs=False)
            try:
                run.run(model.prepare(picture, fit), from_input=True)
                if step.kind not in ("forward_pre", "forward"):
                    run.gradients(target.score(run.logits), once=True, also=site.starts)
            finally:
                run.release()
    finally:
        session.close()
    return found
