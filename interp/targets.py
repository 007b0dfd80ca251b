"""What is being explained: a class, or the difference of two, as a logit or a probability."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from interp.errors import ModelError
from interp.target_text import Meaning, Scale, no_class, read, write


@dataclass(frozen=True)
class Target:
    """One score of the model.

    `index` is None until the top prediction is known; `against` is the class subtracted in a
    contrast; `binary` marks a model with a single logit z, whose two classes score −z and z.
    """

    index: int | None = None
    against: int | None = None
    scale: Scale = "logit"
    categories: tuple[str, ...] = ()
    binary: bool = False

    def resolve(self, logits: Tensor, binary: bool = False) -> "Target":
        """The same target with the top prediction filled in.

        Parameters
        ----------
        logits : Tensor
            Shape (N, K); the first row decides.
        binary : bool
            Whether the two columns stand for one logit.

        Raises
        ------
        TargetError
            If the model has fewer classes than the target names.
        """
        count = logits.shape[-1]
        index = int(logits[0].argmax()) if self.index is None else self.index
        for number in (index, self.against):
            _check_index(number, count)
        return replace(self, index=index, binary=binary)

    def score(self, logits: Tensor) -> Tensor:
        """The number that is explained, shape (N,), from logits of shape (N, K)."""
        values = logits
        if self.scale != "logit":
            # In float32: in half precision a probability near 1 has no gradient left.
            values = logits.float()
            values = logsigmoid(values) if self.binary else log_softmax(values, dim=-1)
        if self.scale == "prob":
            values = values.exp()
        score = values[:, self.index]
        return score if self.against is None else score - values[:, self.against]

    def name(self, index: int | None) -> str:
        if index is not None and index < len(self.categories):
            return self.categories[index]
        return f"class {index}"

    @property
    def label(self) -> str:
        """For people: «espresso (967)», «tabby (281) − tiger cat (282), probability»."""
        if self.index is None:
            return "the top prediction"
        text = f"{self.name(self.index)} ({self.index})"
        if self.against is not None:
            text += f" − {self.name(self.against)} ({self.against})"
        words = {"logit": "", "prob": ", probability", "logprob": ", log-probability"}
        return text + words[self.scale]

    @property
    def slug(self) -> str:
        """For file names: «espresso-967»."""
        if self.index is None:
            return "top"
        parts = [self.name(self.index), str(self.index)]
        if self.against is not None:
            parts += ["minus", self.name(self.against), str(self.against)]
        if self.scale != "logit":
            parts.append(self.scale)
        return re.sub(r"[^\w]+", "-", " ".join(parts)).strip("-").lower()

    def __str__(self) -> str:
        """Text that `parse_target` reads as this target on the same categories.

        Plain indices, «281-282:prob», and «#281» where a plain one is a class's name too.
        """
        return write(Meaning(self.index, self.against, self.scale), self.categories)


def parse_target(target: "str | int | Target | None", categories: Sequence[str] = ()) -> Target:
    """Read a target as people write it.

    Parameters
    ----------
    target : str, int, Target or None
        None or "" is the top prediction; then an index (`281`), a class name (`tabby`), or a
        contrast (`281-282` or `tabby-tiger cat`). `:prob` or `:logprob` behind it explains that
        instead of the logit. Where a name looks like any of this, `#281` is the index, `=281` the
        name, and `=10-=2` or `#1-#0` a contrast; only the last scale is one, so that
        `=cat:prob:logit` is the class named «cat:prob». An int is an index.
    categories : sequence of str
        The model's class names in order; without them any index is taken. One name is that of a
        model with a single logit (see `class_names`).

    Raises
    ------
    TargetError
        If there is no such class, or the text can be read in several ways; the message names them
        and how to write each.
    """
    names = class_names(categories)
    if isinstance(target, Integral) and not isinstance(target, bool):
        target = Target(int(target))
    if isinstance(target, Target):
        for index in (target.index, target.against):
            _check_index(index, len(names) or None)
        return replace(target, categories=names)
    meaning = read("" if target is None else str(target), names)
    return Target(meaning.index, meaning.against, meaning.scale, names)


def class_names(categories: Sequence[str]) -> tuple[str, ...]:
    """The names of a model's scores, in order.

    The single logit of a model stands for two classes, so its one name becomes «not cat», «cat».
    """
    names = tuple(categories)
    return (f"not {names[0]}", *names) if len(names) == 1 else names


def find_logits(output: Any) -> tuple[Tensor, bool]:
    """The logits in whatever a classifier returns, and whether they stand for a single one.

    Parameters
    ----------
    output : Tensor, tuple, dict or an object with a `logits` attribute

    Returns
    -------
    logits : Tensor
        Shape (N, K) with K at least 2; a single logit z becomes the two scores (−z, z).
    binary : bool
        Whether that was done.

    Raises
    ------
    ModelError
        If no logits are found; the message lists what there is.
    """
    value = output
    if isinstance(value, dict) or hasattr(value, "_fields") or hasattr(value, "logits"):
        fields = value if isinstance(value, dict) else _fields(value)
        key = next((k for k in ("logits", "out", "output", "scores") if k in fields), None)
        if key is None:
            shapes = {k: tuple(getattr(v, "shape", ())) for k, v in fields.items()}
            raise ModelError(
                f"the model returns {shapes} and none of it is named «logits»: wrap the model so "
                "that it returns its class scores"
            )
        value = fields[key]
    elif isinstance(value, tuple | list) and value:
        value = value[0]
    if isinstance(value, Tensor) and value.dim() == 1:
        value = value[:, None]
    if not (isinstance(value, Tensor) and value.dim() == 2):
        shape = tuple(getattr(value, "shape", ())) or type(value).__name__
        raise ModelError(
            f"the model returns {shape}, not class scores of shape (pictures, classes): only "
            "classifiers can be explained"
        )
    if value.shape[1] == 1:
        return torch.cat([-value, value], dim=1), True
    return value, False


def probabilities(logits: Tensor, binary: bool) -> Tensor:
    """Shape (N, K), from logits as `find_logits` returns them, in float32."""
    logits = logits.float()
    return logits.sigmoid() if binary else logits.softmax(dim=-1)


def _fields(value: Any) -> dict[str, Any]:
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    return {"logits": value.logits}


def _check_index(index: int | None, count: int | None) -> None:
    if index is not None and not (index >= 0 and (count is None or index < count)):
        raise no_class(index, count)
