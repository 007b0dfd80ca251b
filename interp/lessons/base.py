"""What a lesson is, and how its function is run."""

import functools
import inspect
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch

from interp.errors import HookError
from interp.hooks.ledger import HookLedger, Kind
from interp.lessons.drawing import Drawing
from interp.lessons.exercises import Exercise
from interp.lessons.recording import recorded

Values = dict[str, Any]
Choice = float | str | bool


@dataclass(frozen=True)
class Control:
    """A parameter of a lesson's function that the reader may change.

    Parameters
    ----------
    name : the parameter's.
    label, help : what the reader sees.
    values : what can be chosen, in order; a switch has False and True.
    """

    name: str
    label: str
    values: tuple[Choice, ...]
    help: str = ""

    def read(self, text: str, default: Choice) -> Choice:
        """The value that a text in the address means; the default where there is none.

        Raises
        ------
        HookError
            If it is none of the values.
        """
        if not text:
            return default
        for value in self.values:
            if text == str(value):
                return value
        raise HookError(
            f"«{text}» is no value of «{self.label}»: choose one of "
            + ", ".join(map(str, self.values))
        )


@dataclass(frozen=True)
class Run:
    """One run of a lesson.

    Attributes
    ----------
    printed : str
        What the code printed.
    values : dict
        What the function returned.
    lines : dict of int to Kind
        Lines of the source, from 1, that registered a hook, and of which kind.
    ledger : HookLedger
    seconds : float
    """

    printed: str
    values: Values
    lines: Mapping[int, Kind]
    ledger: HookLedger
    seconds: float


@dataclass(frozen=True)
class Lesson:
    """A short function that is shown as it stands, run, and asked about.

    Parameters
    ----------
    number : from 1.
    title : what it is about.
    promise : one sentence: what the reader knows afterwards.
    function : its own source is what the reader sees and what runs; it prints, and returns the
        values that the drawing and the tests look at. Given the ledger where it asks for it.
    drawing : draws the returned values; returns None where there is nothing to draw.
    explanation : two to five sentences.
    exercise : one question.
    controls : parameters of the function that may be changed.
    """

    number: int
    title: str
    promise: str
    function: Callable[..., Values]
    drawing: Callable[[Values], Drawing | None]
    explanation: str
    exercise: Exercise
    controls: tuple[Control, ...] = ()
    source: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", inspect.getsource(self.function))

    def defaults(self) -> dict[str, Choice]:
        """The value of each control when nothing was chosen."""
        parameters = inspect.signature(self.function).parameters
        return {control.name: parameters[control.name].default for control in self.controls}


def run(function: Callable[..., Values], **choices: Any) -> Run:
    """Run a lesson's function; its hooks are in the ledger, and none is left afterwards.

    The code object that runs is the function's own. Only the name `print` means something else in
    it, so that what is printed is kept: `sys.stdout` belongs to all threads. The global random
    state is as before.

    Parameters
    ----------
    function : callable
        Of a lesson.
    **choices
        Values of its parameters; what is left out is its default.
    """
    assert isinstance(function, FunctionType)
    printed, ledger = io.StringIO(), HookLedger()
    names = function.__globals__ | {"print": functools.partial(print, file=printed)}
    code = function.__code__
    same = FunctionType(code, names, code.co_name, function.__defaults__, function.__closure__)
    if "ledger" in inspect.signature(function).parameters:
        choices["ledger"] = ledger
    began = time.perf_counter()
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.random.fork_rng(devices=[]),
        recorded(ledger, code.co_filename) as recorder,
    ):
        values = same(**choices)
    lines = {line - code.co_firstlineno + 1: kind for line, kind in recorder.lines.items()}
    return Run(printed.getvalue(), values, lines, ledger, time.perf_counter() - began)
