"""Why no gradient comes back to a layer, in words."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import torch

from interp.errors import InterpError, LayerError

GRADIENTS_OFF = (
    "it runs with gradients off, under torch.no_grad or in a checkpoint with use_reentrant=True "
    "(pass use_reentrant=False there)"
)
_REMEDY = "pass use_reentrant=False there, or choose a layer behind it"


class NoWayBack(LayerError):
    """Backward raised before the gradient was where it was asked for; `why` is half a sentence."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why}: {remedy}")
        self.why = why


@contextmanager
def way_back(to: str) -> Iterator[None]:
    """Run a backward pass; what the network's own code raises in it becomes one sentence.

    Parameters
    ----------
    to : str
        Where the gradient is asked for, in words.

    Raises
    ------
    NoWayBack
    """
    try:
        yield
    except (InterpError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if "use_reentrant=True" in str(error):
            raise NoWayBack(
                f"no gradient can be asked for at {to}, before a checkpoint with "
                "use_reentrant=True",
                _REMEDY,
            ) from error
        raise NoWayBack(
            f"the gradient cannot be followed back to {to}, as an operation behind it raises "
            f"({first_line(error)})",
            "choose a layer behind that operation",
        ) from error


def layers_in_words(paths: Collection[str]) -> str:
    """«a», «b»; how many there are where they are more than three."""
    if len(paths) > 3:
        return f"the {len(paths)} layers asked for"
    return ", ".join(f"«{path}»" for path in paths) or "the input"


def first_line(error: Exception) -> str:
    """What an error says, short."""
    text = " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
