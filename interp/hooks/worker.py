"""What the hook of one step does with the values it is given."""

from collections.abc import Mapping

from torch import Tensor

from interp.hooks.interventions import ACTIONS
from interp.hooks.session import HookSession
from interp.hooks.sites import Site
from interp.hooks.steps import Step, channel_axis
from interp.models.loading import LoadedModel


class Worker:
    """What the hook of one step does with each value it is given.

    Attributes
    ----------
    site : Site
        Where it sits; counts its fires in this pass.
    changed : int
        How often it replaced the value in this pass.
    """

    def __init__(self, session: HookSession, step: Step, model: LoadedModel, calls: int) -> None:
        self.step, self._model, self.changed = step, model, 0
        self._donors: Mapping[int, Tensor] = {}
        self.site = Site(session, step, calls, self._act)

    def begin(self, donors: Mapping[int, Tensor]) -> None:
        """A new pass, with what stands at each call on the second picture."""
        self.changed, self._donors = 0, donors
        self.site.begin()

    def end(self) -> None:
        """Let go of what the pass made; the counts stay."""
        self._donors = {}
        self.site.end()

    def _act(self, value: Tensor, call: int) -> Tensor | None:
        step = self.step
        axis = channel_axis(step, self._model, call) if step.action == "channels" else None
        new = ACTIONS[step.action].apply(value, axis, step.values, self._donors.get(call))
        self.changed += new is not None
        return new
