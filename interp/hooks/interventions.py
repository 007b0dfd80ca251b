"""What a hook may do to the value it is given: one declaration for screen, script and command."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from interp.errors import HookError
from interp.hooks.changes import (
    add_noise,
    channel_lines,
    channel_words,
    mask_channels,
    patch,
    picture_words,
)
from interp.hooks.options import Option, Values, complete, parse_channels

__all__ = ["ACTIONS", "Action", "Option", "parse_channels"]


@dataclass(frozen=True)
class Action:
    """One thing a hook may do.

    Attributes
    ----------
    words : callable
        From the values to a phrase with `{it}` in it: «multiplies {it} by 0.5».
    change : callable
        From (value, axis, values, donor) to the new value; never writes in place.
    lines : callable
        From (axis, values) to the lines of a Python function over `value` that do the same.
    """

    name: str
    title: str
    options: tuple[Option, ...]
    words: Callable[[Values], str]
    change: Callable[[Tensor, int | None, Values, Tensor | None], Tensor | None]
    lines: Callable[[int | None, Values], tuple[str, ...]]

    def sentence(self, values: Values, it: str = "it") -> str:
        """What it does, as the end of a sentence: «multiplies it by 0.5»."""
        return self.words(self.complete(values)).format(it=it)

    def apply(
        self, value: Tensor, axis: int | None, values: Values, donor: Tensor | None = None
    ) -> Tensor | None:
        """The value that takes the place of `value`.

        Parameters
        ----------
        value : Tensor
            Any shape; it is not written to.
        axis : int or None
            Which axis holds the channels; None where that is not known.
        values : mapping
            The options; those left out have their defaults.
        donor : Tensor, optional
            For `patch`: what stands there on the second picture.

        Returns
        -------
        Tensor or None
            None where nothing changes.

        Raises
        ------
        HookError
            If the options do not fit the value.
        """
        return self.change(value, axis, self.complete(values), donor)

    def code(self, values: Values, axis: int | None = None) -> tuple[str, ...]:
        """Lines of plain Python that make the new value of `value` and return it."""
        return self.lines(axis, self.complete(values))

    def complete(self, values: Values) -> Values:
        """The options with defaults filled in.

        Raises
        ------
        HookError
            If an option is unknown, of another type, or out of its range.
        """
        filled = complete(self.name, self.options, values)
        if self.name == "clamp" and filled["low"] > filled["high"]:
            raise HookError(
                f"clamp between {filled['low']:g} and {filled['high']:g}: low is above high, swap "
                "them"
            )
        return filled


_ALL = (
    Action(
        name="watch",
        title="Watch",
        options=(),
        words=lambda values: "looks at {it} and changes nothing",
        change=lambda value, axis, values, donor: None,
        lines=lambda axis, values: ("return None  # a hook that only watches returns None",),
    ),
    Action(
        name="scale",
        title="Scale",
        options=(
            Option("factor", "Factor", "number", 0.5, help="Every value is multiplied by it."),
        ),
        words=lambda values: f"multiplies {{it}} by {values['factor']:g}",
        change=lambda value, axis, values, donor: value * values["factor"],
        lines=lambda axis, values: (f"return value * {values['factor']!r}",),
    ),
    Action(
        name="clamp",
        title="Clamp",
        options=(
            Option("low", "Lowest", "number", -1.0, help="Values below it become it."),
            Option("high", "Highest", "number", 1.0, help="Values above it become it."),
        ),
        words=lambda values: f"keeps {{it}} between {values['low']:g} and {values['high']:g}",
        change=lambda value, axis, values, donor: value.clamp(values["low"], values["high"]),
        lines=lambda axis, values: (f"return value.clamp({values['low']!r}, {values['high']!r})",),
    ),
    Action(
        name="zero",
        title="Zero",
        options=(),
        words=lambda values: "sets {it} to zero",
        change=lambda value, axis, values, donor: torch.zeros_like(value),
        lines=lambda axis, values: ("return torch.zeros_like(value)",),
    ),
    Action(
        name="negate",
        title="Negate",
        options=(),
        words=lambda values: "flips the sign of {it}",
        change=lambda value, axis, values, donor: -value,
        lines=lambda axis, values: ("return -value",),
    ),
    Action(
        name="noise",
        title="Add noise",
        options=(
            Option(
                "deviation",
                "Strength",
                "number",
                0.5,
                low=0.0,
                help="Standard deviation of the noise, in standard deviations of the value itself.",
            ),
            Option(
                "seed",
                "Seed",
                "integer",
                0,
                low=0,
                high=2**31 - 1,
                help="The same seed gives the same noise, at every call and on every run.",
            ),
        ),
        words=lambda values: (
            f"adds noise to {{it}} ({values['deviation']:g} of its standard deviation, "
            f"seed {values['seed']})"
        ),
        change=add_noise,
        lines=lambda axis, values: (
            f"generator = torch.Generator().manual_seed({values['seed']})",
            "noise = torch.randn(value.shape, generator=generator).to(value)",
            f"return value + noise * ({values['deviation']!r} * value.detach().std(correction=0))",
        ),
    ),
    Action(
        name="channels",
        title="Mask channels",
        options=(
            Option(
                "which",
                "Channels",
                "channels",
                "0",
                help="Indices and ranges, both ends included: 4, or 0-15, 20.",
            ),
            Option(
                "to",
                "Replace by",
                "choice",
                "zero",
                choices=("zero", "mean"),
                help="Zero silences a channel. Its mean over all places keeps how strong it is "
                "and takes away where; a vector has one place, so its mean changes nothing.",
            ),
        ),
        words=channel_words,
        change=mask_channels,
        lines=channel_lines,
    ),
    Action(
        name="patch",
        title="Patch from another picture",
        options=(
            Option(
                "picture",
                "Second picture",
                "picture",
                "",
                help="The value is replaced by what stands at the same place on this picture: a "
                "sample's name, a file, or the SHA-256 of a picture that was opened.",
            ),
        ),
        words=lambda values: (
            f"replaces {{it}} by what stands there on {picture_words(values['picture'])}"
        ),
        change=patch,
        lines=lambda axis, values: ("return donor.clone()",),
    ),
    Action(
        name="constant",
        title="Replace by a constant",
        options=(Option("value", "Value", "number", 0.0, help="Every value becomes it."),),
        words=lambda values: f"replaces {{it}} by {values['value']:g} everywhere",
        change=lambda value, axis, values, donor: torch.full_like(value, values["value"]),
        lines=lambda axis, values: (f"return torch.full_like(value, {values['value']!r})",),
    ),
)

ACTIONS: Mapping[str, Action] = MappingProxyType({action.name: action for action in _ALL})
