"""What a method is, where methods are found, and what a result carries."""

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
import torchvision
from torch import Tensor

from interp.errors import MethodError
from interp.geometry import Geometry
from interp.hooks.ledger import HookLedger
from interp.hooks.surroundings import Surroundings
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target

MANIFEST_VERSION = 1


@dataclass(frozen=True)
class Prediction:
    """One class of the model's answer; `probability` is from 0 to 1."""

    index: int
    name: str
    probability: float
    logit: float


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method, as every face of the program offers it."""

    name: str
    default: Any
    help: str


@dataclass(frozen=True)
class LayerCall:
    """One call of one layer: `layer4.0.relu#1` is the second of that module."""

    info: LayerInfo
    call: int = 0

    def __str__(self) -> str:
        return self.info.call_name(self.call) if self.info.calls > 1 else self.info.path


@dataclass(frozen=True)
class Request:
    """What a method is given: a model, its input of shape (1, 3, h, w), and what to explain."""

    model: LoadedModel
    tensor: Tensor
    layers: tuple[LayerCall, ...]
    target: Target
    parameters: Mapping[str, Any] = field(default_factory=dict)
    ledger: HookLedger = field(default_factory=HookLedger)


@dataclass(frozen=True)
class Outcome:
    """What a method gives back: a map (h, w) for each layer asked for, unscaled, in float32."""

    maps: tuple[Tensor, ...]
    target: Target
    logits: Tensor
    binary: bool


class Method(Protocol):
    """A way to explain a score. One declaration serves the screen, the command line and the API.

    `summary` is a sentence with `{target}` in it; `signed` says whether negative values are
    evidence against the target rather than to be hidden.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def definition(self) -> str: ...
    @property
    def paper(self) -> str: ...
    @property
    def signed(self) -> bool: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def run(self, request: Request) -> Outcome: ...


_METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Add a method; its name must be new."""
    if method.name in _METHODS:
        raise ValueError(f"a method named {method.name!r} is registered already")
    _METHODS[method.name] = method


def list_methods() -> tuple[Method, ...]:
    """Every method there is, in the order of registration."""
    return tuple(_METHODS.values())


def get_method(name: str) -> Method:
    """A method by name.

    Raises
    ------
    MethodError
        If there is none of that name.
    """
    method = _METHODS.get(name)
    if method is None:
        raise MethodError(f"no method «{name}»: there are {', '.join(_METHODS)}")
    return method


@dataclass(frozen=True, eq=False)
class Attribution:
    """A heatmap and everything that is needed to trust, repeat or publish it.

    Attributes
    ----------
    map : float32 array (h, w)
        On the layer's own grid, before any scaling; negative values are kept.
    geometry : Geometry
        From that grid back to the picture.
    target : Target
        The score that is explained.
    predictions : tuple of Prediction
        The five classes with the highest scores.
    logits : float32 array (n,)
    notes : tuple of str
        What is odd about the picture or the map, in words.
    hooks : dict
        `registered`, `removed`, `live` and `foreign`: counts from the ledger.
    ledger : HookLedger
        Every hook of the run.
    seconds : float
        From the picture to the map.
    signed : bool
        Whether negative values are evidence against, to be drawn as such.
    seed : int or None
        What the random numbers of the network started from; None where it draws none.
    conditions : Surroundings
        What of the caller's process was in force.
    """

    map: npt.NDArray[np.float32]
    geometry: Geometry
    target: Target
    method: str
    layers: tuple[str, ...]
    parameters: dict[str, Any]
    predictions: tuple[Prediction, ...]
    logits: npt.NDArray[np.float32]
    notes: tuple[str, ...]
    hooks: dict[str, int]
    ledger: HookLedger
    seconds: float
    picture: Picture
    model_name: str
    weights: str
    source: str
    device: str
    fit: str
    signed: bool
    seed: int | None = None
    conditions: Surroundings | None = None

    def __repr__(self) -> str:
        rows, columns = self.map.shape
        return (
            f"<Attribution {self.method} of {self.target.label} at {' + '.join(self.layers)} of "
            f"{self.model_name}, {rows} × {columns}, {self.map.min():.4g} to {self.map.max():.4g}>"
        )

    def on_picture(self) -> npt.NDArray[np.float32]:
        """The map on the original picture: float32 (H, W), NaN where the model saw nothing."""
        return self.geometry.on_picture(self.map)

    def manifest(self) -> dict[str, Any]:
        """All that led to this map, as plain values for JSON."""
        # Imported here, since the package's own module must not load torch.
        from interp import __version__

        finite = self.map[np.isfinite(self.map)]
        return {
            "manifest_version": MANIFEST_VERSION,
            "hookscope": __version__,
            "picture": {
                "name": self.picture.name,
                "sha256": self.picture.sha256,
                "size": list(self.picture.size),
                "format": self.picture.format,
                "frame": self.picture.frame,
                "frames": self.picture.frames,
            },
            "model": {
                "name": self.model_name,
                "weights": self.weights,
                "source": self.source,
                "trained": self.source != "untrained",
                "device": self.device,
            },
            "input": {"fit": self.fit, "size": list(self.geometry.input_size)},
            "method": self.method,
            "parameters": dict(self.parameters),
            "layers": list(self.layers),
            "target": {
                "text": str(self.target),
                "label": self.target.label,
                "index": self.target.index,
                "against": self.target.against,
                "scale": self.target.scale,
            },
            "predictions": [asdict(prediction) for prediction in self.predictions],
            "map": {
                "shape": list(self.map.shape),
                "minimum": float(finite.min()) if finite.size else None,
                "maximum": float(finite.max()) if finite.size else None,
                "signed": self.signed,
            },
            "notes": list(self.notes),
            "hooks": dict(self.hooks),
            "seed": self.seed,
            "conditions": self.conditions and self.conditions.as_dict(),
            "seconds": round(self.seconds, 6),
            "versions": {
                "python": platform.python_version(),
                "torch": str(torch.__version__),
                "torchvision": torchvision.__version__,
            },
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write the npz, png and json files into a folder; see `interp.export.save`."""
        from interp.export import save

        return save(self, Path(folder))
