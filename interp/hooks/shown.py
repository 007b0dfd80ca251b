"""What a hook is given, and what the network goes on with after it."""

from types import TracebackType
from typing import Any, Protocol

from torch import Tensor

from interp.hooks.nested import map_tensors
from interp.hooks.writes import tensors_in


class Guard(Protocol):
    """What is asked of the guard."""

    @property
    def on(self) -> bool: ...
    def own(self, tensor: Tensor) -> Tensor: ...
    def changed(self, own: Tensor) -> bool: ...
    def handed_on(self, own: Tensor, tensor: Tensor) -> Tensor: ...


class Shown:
    """A value of the network as a hook is given it: with tensors of the hook's own.

    At the end of a `with` block what the hook wrote into them has reached the network.
    """

    def __init__(self, guard: Guard, value: Any, *, own: bool) -> None:
        self._guard, self._given = guard, value
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self.value = map_tensors(value, self._own) if own and guard.on else value

    def _own(self, tensor: Tensor) -> Tensor:
        """One for each tensor: a network may ask whether two of them are the same."""
        own = next((own for own, of in self._pairs if of is tensor), None)
        if own is None:
            own = self._guard.own(tensor)
        self._pairs.append((own, tensor))
        return own

    def __enter__(self) -> "Shown":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            for own, tensor in self._pairs:
                if self._guard.changed(own):
                    self._guard.handed_on(own, tensor)

    def was_changed(self) -> bool:
        """Whether the hook wrote to a tensor or put others into a list or a dict."""
        return self._other_tensors() or any(self._guard.changed(own) for own, _ in self._pairs)

    def _other_tensors(self) -> bool:
        if not self._pairs:
            return False
        now = list(map(id, tensors_in(self.value)))
        return now != [id(own) for own, _ in self._pairs]

    def handed_on(self, result: Any) -> Any:
        """What the network goes on with where the hook returned `result`; None for what it has."""
        if not self._pairs:
            return result
        network = {id(own): (own, tensor) for own, tensor in self._pairs}
        made: dict[int, Tensor] = {}

        def back(tensor: Tensor) -> Tensor:
            if id(tensor) not in made:
                own, of = network.get(id(tensor), (None, None))
                if own is None or of is None:
                    return tensor
                made[id(tensor)] = self._guard.handed_on(own, of)
            return made[id(tensor)]

        if result is not None:
            return map_tensors(result, back)
        if self._other_tensors():
            return map_tensors(self.value, back)
        by_tensor = {id(tensor): own for own, tensor in self._pairs}
        value = map_tensors(self._given, lambda tensor: back(by_tensor[id(tensor)]))
        return None if value is self._given else value
