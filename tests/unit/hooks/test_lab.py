"""The lab: which hooks stand after each change, what they do at each site, and what is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from lab_nets import Nested, Plain, load, picture
from torch import Tensor

from interp import LoadedModel
from interp.errors import HookError, LayerError, PictureError
from interp.hooks.lab import Lab, sample_or_file
from interp.hooks.ledger import HookLedger, audit
from interp.hooks.passes import Pass
from interp.hooks.recipe import Recipe, Step
from interp.picture import Picture, open_picture
from interp.targets import Target

COLOUR = picture(0.2, 0.4)
SECOND = picture(0.6, 0.2)


def second(name: str) -> Picture:
    if name != "second":
        raise PictureError(f"no picture {name}")
    return SECOND


@pytest.fixture
def plain() -> LoadedModel:
    return load(Plain())


@pytest.fixture
def nested() -> LoadedModel:
    return load(Nested())


def open_lab(model: LoadedModel, *steps: Step) -> Lab:
    lab = Lab(model)
    lab.sync(Recipe(steps), second)
    return lab


def run(lab: Lab, target: int = 0) -> tuple[list[float], list[float] | None]:
    """Logits, and the gradient of one of them at the input, summed over places, by channel."""
    with lab.running(HookLedger(), "crop", Target(target)):
        inputs: list[Tensor] = []
        lab.session.forward_pre("", lambda module, args: inputs.append(args[0]))
        one = Pass(lab.session, (), gradients=True)
        try:
            one.run(lab.model.prepare(COLOUR), from_input=True)
            given = one.logits[0, target]
            if not given.requires_grad:
                return one.logits[0].tolist(), None
            (gradient, *_) = torch.autograd.grad(given, [inputs[0], *lab.starts], allow_unused=True)
            logits = one.logits[0].tolist()
        finally:
            one.release()
    return logits, None if gradient is None else gradient.sum(dim=(0, 2, 3)).tolist()


def approx(*values: float) -> Any:
    return pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize(
    ("action", "values", "logits", "gradient"),
    [
        ("watch", {}, (1.0, -0.6), (1, 2, 0)),
        ("scale", {"factor": 0.5}, (0.5, -0.3), (0.5, 1, 0)),
        ("clamp", {"low": 0.3, "high": 0.9}, (1.1, -0.5), (0, 2, 0)),
        ("zero", {}, (0, 0), None),
        ("negate", {}, (-1.0, 0.6), (-1, -2, 0)),
        ("channels", {"which": "1"}, (0.2, 0.2), (1, 0, 0)),
        ("channels", {"which": "1", "to": "mean"}, (1.0, -0.6), (1, 2, 0)),
        ("patch", {"picture": "second"}, (1.0, 0.2), None),
        ("constant", {"value": 2.0}, (4, 0), None),
    ],
)
def test_each_action_on_an_output(
    plain: LoadedModel,
    action: str,
    values: dict[str, Any],
    logits: tuple[float, ...],
    gradient: tuple[float, ...] | None,
) -> None:
    lab = open_lab(plain, Step("forward", "act", action, values))

    got = run(lab)

    assert got[0] == approx(*logits)
    assert got[1] == (None if gradient is None else approx(*gradient))


def test_noise_on_an_output(plain: LoadedModel) -> None:
    lab = open_lab(plain, Step("forward", "act", "noise", {"deviation": 0.5, "seed": 3}))

    noise = torch.randn((1, 2, 4, 4), generator=torch.Generator().manual_seed(3)) * 0.5 * 0.3
    red, green = (torch.tensor([0.2, 0.8]) + noise.mean(dim=(0, 2, 3))).tolist()
    assert run(lab)[0] == approx(red + green, red - green)


@pytest.mark.parametrize(
    ("step", "logits", "gradient"),
    [
        (Step("forward_pre", "act", "scale", {"factor": 3}), (3.0, -1.8), (3, 6, 0)),
        (Step("forward_pre", "act", "channels", {"which": "0"}), (0.8, -0.8), (0, 2, 0)),
        (Step("full_backward_pre", "fc", "scale", {"factor": 3}), (1.0, -0.6), (3, 6, 0)),
        (Step("full_backward", "fc", "channels", {"which": "1"}), (1.0, -0.6), (1, 0, 0)),
        (Step("full_backward", "stem", "constant", {"value": 0.5}), (1.0, -0.6), (8, 8, 8)),
        (Step("tensor", "act", "negate"), (1.0, -0.6), (-1, -2, 0)),
        (Step("tensor", "fc", "scale", {"factor": 9}, of="weight"), (1.0, -0.6), (1, 2, 0)),
        # The gradients are the same on every picture.
        (Step("full_backward_pre", "fc", "patch", {"picture": "second"}), (1.0, -0.6), (1, 2, 0)),
        (Step("full_backward", "fc", "patch", {"picture": "second"}), (1.0, -0.6), (1, 2, 0)),
        (Step("tensor", "act", "patch", {"picture": "second"}), (1.0, -0.6), (1, 2, 0)),
    ],
)
def test_each_kind(
    plain: LoadedModel, step: Step, logits: tuple[float, ...], gradient: tuple[float, ...]
) -> None:
    lab = open_lab(plain, step)

    got = run(lab)

    assert got[0] == approx(*logits)
    assert got[1] == approx(*gradient)


def test_the_gradient_of_a_parameter(plain: LoadedModel) -> None:
    """Of logit 0 by `fc.weight`: row 0 is (r, 2g) = (0.2, 0.8)."""
    lab = open_lab(plain, Step("tensor", "fc", "scale", {"factor": 2.0}, of="weight"))
    weight = lab.session.module.get_parameter("fc.weight")

    with lab.running(HookLedger(), "crop", Target(0)):
        assert len(lab.starts) == 1
        logits = lab.session.module(plain.prepare(COLOUR))
        (gradient,) = torch.autograd.grad(logits[0, 0], lab.starts)

    torch.testing.assert_close(gradient, torch.tensor([[0.4, 1.6], [0, 0]]))
    assert weight.requires_grad
    assert torch._C._is_cow_tensor(weight)  # over the memory of the model's own
    assert not plain.module.get_parameter("fc.weight").requires_grad
    lab.close()
    assert not weight.requires_grad


@pytest.mark.parametrize(
    ("step", "logits", "gradient"),
    [
        # The first tensor of a tuple, the others untouched.
        (Step("forward", "pair", "scale", {"factor": 2}), (2.0, -1.2), (2, 4, 0)),
        # A keyword, and a value of a dict behind a text.
        (Step("forward_pre", "named", "scale", {"factor": 2}), (2.0, -1.2), (2, 4, 0)),
        (Step("forward", "named", "scale", {"factor": 2}), (2.0, -1.2), (2, 4, 0)),
        (Step("tensor", "named", "scale", {"factor": 2}), (1.0, -0.6), (2, 4, 0)),
        # One module, three calls.
        (Step("forward", "act", "scale", {"factor": 2}), (8.0, -4.8), (8, 16, 0)),
        (Step("forward", "act", "scale", {"factor": 2}, call=1), (2.0, -1.2), (2, 4, 0)),
        (Step("forward_pre", "act", "scale", {"factor": 2}, call=2), (2.0, -1.2), (2, 4, 0)),
        (Step("full_backward_pre", "act", "scale", {"factor": 2}), (1.0, -0.6), (8, 16, 0)),
        (Step("full_backward_pre", "act", "scale", {"factor": 2}, call=0), (1, -0.6), (2, 4, 0)),
        (Step("full_backward", "act", "scale", {"factor": 2}, call=2), (1, -0.6), (2, 4, 0)),
        (Step("tensor", "act", "scale", {"factor": 2}), (1.0, -0.6), (8, 16, 0)),
        (Step("tensor", "act", "scale", {"factor": 2}, call=1), (1.0, -0.6), (2, 4, 0)),
    ],
)
def test_nested_values_and_modules_that_run_again(
    nested: LoadedModel, step: Step, logits: tuple[float, ...], gradient: tuple[float, ...]
) -> None:
    lab = open_lab(nested, step)

    got = run(lab)

    assert got[0] == approx(*logits)
    assert got[1] == approx(*gradient)


def test_where_a_call_is_asked_for_the_record_says_that_a_tensor_hook_serves(
    nested: LoadedModel,
) -> None:
    lab = open_lab(nested, Step("full_backward", "act", "zero", call=1), Step("tensor", "stem"))

    (by_call, by_tensor) = lab.ledger.records
    assert (by_call.kind, by_call.origin) == ("forward_pre", "user")
    assert "a full backward hook is not told which call it fires for" in by_call.purpose
    assert (by_tensor.kind, by_tensor.origin) == ("forward", "user")
    assert by_tensor.purpose.startswith("puts a tensor hook on in each pass: A tensor hook on stem")


TWICE, UP, CUT = (
    Step("forward", "act", "scale", {"factor": 2}, id="twice"),
    Step("forward", "act", "clamp", {"low": 0, "high": 0.5}, id="cut"),
    Step("forward", "act", "clamp", {"low": 0, "high": 0.5}, id="cut", first=True),
)


@pytest.mark.parametrize(
    ("steps", "logits"),
    [
        ((TWICE, UP), (0.4 + 0.5, 0.4 - 0.5)),
        ((UP, TWICE), (0.4 + 1.0, 0.4 - 1.0)),
        ((TWICE, CUT), (0.4 + 1.0, 0.4 - 1.0)),
    ],
)
def test_hooks_run_in_the_order_of_the_recipe_but_for_the_first(
    plain: LoadedModel, steps: tuple[Step, ...], logits: tuple[float, ...]
) -> None:
    assert run(open_lab(plain, *steps))[0] == approx(*logits)


@pytest.mark.parametrize("kind", ["full_backward_pre", "full_backward", "tensor"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("call", [None, 1])
def test_backward_hooks_of_one_call_keep_their_order_too(
    nested: LoadedModel, kind: Any, swapped: bool, call: int | None
) -> None:
    """The gradient at a place of (r, 2g) is 1/16, as all calls of `act` pass it on."""
    up = Step(kind, "act", "scale", {"factor": 16.0}, call=call)
    cut = Step(kind, "act", "clamp", {"low": 0.0, "high": 0.5}, call=call)

    gradient = run(open_lab(nested, *((cut, up) if swapped else (up, cut))))[1]

    # Up, then cut: 0.5 at 16 places, for call 1; each further call ends at 0.5 again.
    first = 8.0 if not swapped else (16.0 if call == 1 else 16 * 16 * 0.5)
    assert gradient == approx(first, 2 * first, 0)


# --- what stays, and what is put on anew ---


def records(lab: Lab) -> dict[str, int]:
    return {hook.step.id: hook.record.id for hook in lab.live}


def steps_of(paths: str, **change: Any) -> tuple[Step, ...]:
    return tuple(Step("forward", path, id=path, **change) for path in paths.split())


def test_hooks_whose_steps_stay_keep_their_records(plain: LoadedModel) -> None:
    a, b, c = (Step("forward", "act", id=name) for name in "abc")
    other = Step("forward", "fc", id="other")
    lab = open_lab(plain, a, b, other)
    assert records(lab) == {"a": 0, "b": 1, "other": 2}

    def after(*steps: Step) -> dict[str, int]:
        lab.sync(Recipe(steps), second)
        return records(lab)

    assert after(a, b, c, other) == {"a": 0, "b": 1, "c": 3, "other": 2}
    assert after(b, c, other) == {"b": 1, "c": 3, "other": 2}
    assert after(other, b, c) == {"other": 2, "b": 1, "c": 3}  # on another module
    assert after(c, b, other) == {"c": 3, "b": 4, "other": 2}  # the order on one module
    changed = Step("forward", "act", "zero", id="c")
    assert after(changed, b, other) == {"c": 5, "b": 6, "other": 2}
    off = Step("forward", "fc", id="other", enabled=False)
    assert after(changed, b, off) == {"c": 5, "b": 6}
    assert after() == {}
    assert audit(lab.session.module) == []
    assert lab.ledger.summary() == {"registered": 7, "removed": 7, "live": 0, "foreign": 0}


def test_a_recipe_that_is_refused_leaves_the_hooks_as_they_were(plain: LoadedModel) -> None:
    good = Step("forward", "act", "zero")
    lab = open_lab(plain, good)

    for bad, error in (
        (Step("forward", "nowhere"), LayerError),
        (Step("forward", "act", "patch", {"picture": "third"}), PictureError),
    ):
        with pytest.raises(error):
            lab.sync(Recipe((Step("forward", "fc"), bad)), second)
        assert [hook.step for hook in lab.live] == [good]
        assert lab.recipe == Recipe((good,))


def test_one_hook_is_removed_by_its_record(plain: LoadedModel) -> None:
    lab = open_lab(plain, *steps_of("stem act"))

    gone = lab.remove(lab.live[0].record.id)

    assert gone == Step("forward", "stem", id="stem", enabled=False)
    assert lab.recipe.steps == (gone, Step("forward", "act", id="act"))
    assert [hook.step.path for hook in audit_paths(lab)] == ["act"]
    assert lab.remove(99) is None
    assert lab.remove(0) is None


def audit_paths(lab: Lab) -> tuple[Any, ...]:
    assert [found.path for found in audit(lab.session.module)] == [
        hook.step.path for hook in lab.live
    ]
    return lab.live


def test_a_hook_that_was_removed_by_its_handle_is_put_on_again_by_sync(plain: LoadedModel) -> None:
    lab = open_lab(plain, *steps_of("stem act"))
    lab.live[0].handle.remove()
    assert records(lab) == {"act": 1}

    lab.sync(lab.recipe, second)

    assert records(lab) == {"stem": 2, "act": 1}


def test_hooks_stay_between_runs_and_the_ledger_does_not_grow(plain: LoadedModel) -> None:
    steps = (
        Step("forward", "act", "scale"),
        Step("tensor", "stem", "negate"),
        Step("full_backward", "fc", "scale"),
        Step("forward_pre", "fc", "patch", {"picture": "second"}),
        Step("tensor", "fc", of="weight"),
    )
    lab = open_lab(plain, *steps)
    before = [run(lab) for _ in range(3)]

    for _ in range(50):
        run(lab)

    assert before[0] == before[1] == before[2]
    assert len(lab.ledger.records) == 5
    assert len(lab.session._handles) == 5
    assert [hook.record.fires for hook in lab.live] == [53, 53, 53, 53, 53]
    assert len(audit(lab.session.module)) == 4
    assert audit(plain.module) == []


class Stop(BaseException):
    """As Streamlit interrupts a script: no `Exception`."""


def test_an_interrupted_run_takes_its_own_hooks_off_and_leaves_the_labs(plain: LoadedModel) -> None:
    lab = open_lab(plain, Step("forward", "act", "scale"), Step("tensor", "stem"))
    ledger = HookLedger()

    def stop(*given: Any) -> None:
        raise Stop

    def interrupted() -> None:
        with lab.running(ledger, "crop", Target(0)):
            lab.session.forward("fc", stop, origin="engine")
            lab.session.module(plain.prepare(COLOUR).requires_grad_())

    with pytest.raises(Stop):
        interrupted()

    assert ledger.failed == "Stop"
    assert ledger.summary()["live"] == 0
    assert lab.ledger.failed is None
    assert lab.ledger.summary() == {"registered": 2, "removed": 0, "live": 2, "foreign": 0}
    assert [found.path for found in audit(lab.session.module)] == ["stem", "act"]
    assert torch.overrides._len_torch_function_stack() == 0
    assert run(lab)[0] == approx(0.5, -0.3)


def test_closing_takes_everything_off_and_ends_the_lab(plain: LoadedModel) -> None:
    lab = open_lab(plain, *steps_of("stem act fc"), Step("tensor", "fc", of="weight"))

    lab.close()
    lab.close()

    assert lab.closed
    assert lab.live == ()
    assert audit(lab.session.module) == audit(plain.module) == []
    assert lab.ledger.summary()["live"] == 0
    with pytest.raises(HookError, match="closed"):
        lab.sync(Recipe(), second)


def test_two_labs_on_one_model_in_two_threads_do_not_meet(plain: LoadedModel) -> None:
    labs = [
        open_lab(plain, Step("forward", "act", "scale", {"factor": factor})) for factor in (2, 3)
    ]
    got: list[set[tuple[float, ...]]] = [set(), set()]

    def work(place: int) -> None:
        for _ in range(20):
            got[place].add(tuple(round(value, 5) for value in run(labs[place])[0]))

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == [{(2.0, -1.2)}, {(3.0, -1.8)}]


def test_a_patch_is_prepared_once_for_a_picture(plain: LoadedModel) -> None:
    lab = open_lab(plain, Step("forward", "act", "patch", {"picture": "second"}))

    def measuring() -> int:
        ledger = HookLedger()
        with lab.running(ledger, "crop", Target(0)):
            lab.session.module(plain.prepare(COLOUR))
        return len(ledger.records)

    assert [measuring(), measuring()] == [1, 0]


@pytest.fixture(autouse=True)
def _nothing_is_left_on_the_stack() -> Iterator[None]:
    yield
    assert torch.overrides._len_torch_function_stack() == 0


def test_a_block_ends_with_its_hooks(bundled: LoadedModel) -> None:
    with Lab(bundled) as lab:
        lab.sync(Recipe((Step("forward", "features.8", "zero"),)))
        assert len(audit(lab.session.module)) == 1
    assert lab.closed
    assert audit(lab.session.module) == []


def test_a_second_picture_is_named_by_a_sample_or_a_path(
    bundled: LoadedModel, coffee: Path
) -> None:
    for name in ("coffee", str(coffee)):
        assert sample_or_file(name).sha256 == open_picture(coffee).sha256
    with Lab(bundled) as lab, pytest.raises(PictureError, match="nowhere"):
        lab.sync(Recipe((Step("forward", "features.8", "patch", {"picture": "nowhere.png"}),)))
