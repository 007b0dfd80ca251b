"""Whether a state dict fits a net, and what is wrong where it does not."""

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from interp.errors import WeightsError
from interp.models.catalog import ModelSpec, WeightsEntry, build, build_arguments

# Names that torchvision's modules had when some of the published files were written.
_RENAMED = (
    (re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)"), r"\1\2"),
    (re.compile(r"\.mlp\.linear_1\."), ".mlp.0."),
    (re.compile(r"\.mlp\.linear_2\."), ".mlp.3."),
)


def head_size(module: nn.Module, state: Mapping[str, Tensor], classes: int) -> int | None:
    """How many classes `state` tells apart, if it fits `module` in all but that number.

    Parameters
    ----------
    module : a net with `classes` outputs.
    state : a state dict, perhaps of a fine-tuned net.

    Returns
    -------
    int or None
        `classes` where everything fits; None where more than the head is different.
    """
    expected, state = module.state_dict(), _adapted(module, state)
    if expected.keys() != state.keys():
        return None
    pairs = [(tensor.shape, state[name].shape) for name, tensor in expected.items()]
    if all(want == got for want, got in pairs):
        return classes
    return _only(_head_of(want, got, classes) for want, got in pairs if want != got)


def nearest(
    spec: ModelSpec, file_name: str, state: Mapping[str, Tensor]
) -> tuple[WeightsEntry, int]:
    """Which of a model's nets a state dict fits.

    Parameters
    ----------
    spec : a model of the catalogue.
    file_name : decides where it is that of published weights.
    state : a state dict, perhaps of a fine-tuned net.

    Returns
    -------
    tuple[WeightsEntry, int]
        The first entry whose net it fits, the default if none, and the number of classes.
    """
    whole = [entry for entry in spec.entries if entry.categories]
    nets: dict[str, WeightsEntry] = {}
    for entry in [entry for entry in whole if entry.file_name == file_name] or whole:
        nets.setdefault(repr(build_arguments(spec, entry)), entry)
    for entry in nets.values():
        module = without_auxiliary(build(spec, entry))
        classes = head_size(module, state, len(entry.categories))
        if classes is not None:
            return entry, classes
    return spec.default, len(spec.default.categories)


def without_auxiliary(module: nn.Module) -> nn.Module:
    """Drop Inception's second head: it only serves training, and a fine-tuned file may lack it."""
    if getattr(module, "AuxLogits", None) is not None:
        module.aux_logits, module.AuxLogits = False, None  # type: ignore[assignment]
    return module


def fill(module: nn.Module, state: Mapping[str, Tensor], source: str, classes: int) -> None:
    """Copy a state dict into a net: every tensor of both, or nothing.

    Parameters
    ----------
    module : a net with `classes` outputs.
    state : under today's names or those of torchvision's published files.
    source : what the state dict is called in the message.

    Raises
    ------
    WeightsError
        It does not fit: how many names are missing, unknown, of another shape or
        not finite, and which.
    """
    expected, state = module.state_dict(), _adapted(module, state)
    wrong = {
        name: (want.shape, state[name].shape)
        for name, want in expected.items()
        if name in state and state[name].shape != want.shape
    }
    faults = [
        _listed("missing", [name for name in expected if name not in state]),
        _listed("unknown", [name for name in state if name not in expected]),
        _listed(
            "of another shape",
            [f"{name} {_size(got)} for {_size(want)}" for name, (want, got) in wrong.items()],
        ),
        _listed("not finite", [name for name, tensor in state.items() if not _finite(tensor)]),
    ]
    if any(faults):
        heads = [_head_of(want, got, classes) for want, got in wrong.values()]
        head = _only(size for size in heads if size is not None)
        raise WeightsError(
            f"{source} does not fit {type(module).__name__}: {', '.join(filter(None, faults))}"
            + (f"; its head has {head} classes, not {classes}" if head is not None else "")
            + "; choose the model these weights were saved from"
        )
    # Into the net's own dictionary, for the versions it carries: MNASNet refuses to do without.
    expected.update(state)
    with torch.no_grad():
        module.load_state_dict(expected)


def _adapted(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict under today's names, without the heads that this net has dropped."""
    adapted: dict[str, Tensor] = {}
    for name, tensor in state.items():
        for pattern, today in _RENAMED:
            name = pattern.sub(today, name)
        # A dropped auxiliary head stays as an attribute that is None.
        if getattr(module, name.partition(".")[0], module) is not None:
            adapted[name] = tensor
    for name in module.state_dict():
        if name.endswith(".num_batches_tracked") and name not in adapted:
            adapted[name] = torch.tensor(0)  # the oldest files come from before it was counted
    return adapted


def _head_of(want: torch.Size, got: torch.Size, classes: int) -> int | None:
    """Outputs of the head that a tensor belongs to, if its first side is all that is different."""
    is_head = want[:1] == (classes,) and len(got) == len(want) and got[1:] == want[1:]
    return got[0] if is_head else None


def _only(sizes: Iterable[int | None]) -> int | None:
    distinct = set(sizes)
    return distinct.pop() if len(distinct) == 1 else None


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())


def _listed(what: str, names: list[str]) -> str:
    more = ", …" if len(names) > 3 else ""
    return f"{len(names)} {what} ({', '.join(names[:3])}{more})" if names else ""


def _size(shape: torch.Size) -> str:
    return "×".join(map(str, shape)) or "scalar"
