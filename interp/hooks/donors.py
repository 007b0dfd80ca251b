"""What stands on a second picture at the place of a hook, to be patched in."""

from torch import Tensor

from interp.geometry import Fit
from interp.hooks.ledger import HookLedger
from interp.hooks.passes import Pass
from interp.hooks.recipe import Step
from interp.hooks.session import HookSession
from interp.hooks.sites import Site
from interp.hooks.undisturbed import undisturbed
from interp.models.copies import frozen_copy
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target


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
    copy = frozen_copy(model.module)
    session = HookSession(model.module, ledger, copy=copy)
    try:
        with (
            undisturbed(model.device, gradients=True, seed=model.seed),
            session.running(),
        ):
            site = Site(session, step, calls, look)
            site.begin()
            run = Pass(session, (), gradients=True)
            try:
                run.run(model.prepare(picture, fit), from_input=True)
                if step.kind not in ("forward_pre", "forward"):
                    run.gradients(target.score(run.logits), once=True, also=site.starts)
            finally:
                run.release()
    finally:
        session.close()
    return found
