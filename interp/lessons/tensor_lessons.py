"""Lessons 1 to 5 as they are taught: drawings, explanations and exercises."""

from collections.abc import Callable

from interp.lessons.base import Choice, Control, Lesson, Values, run
from interp.lessons.drawing import Flow, Mark, Node, show
from interp.lessons.exercises import Answer, Exercise
from interp.lessons.tensors import clip, double, remove, replace, watch


def _draw_watch(values: Values) -> Flow:
    x, h, loss = (show(values[name].detach()) for name in ("x", "h", "loss"))
    factor = (values["h"] / values["x"])[0].item()
    return Flow(
        "Values go right, gradients come back left; the hook reads the gradient that passes h.",
        (
            Node("x", x, show(values["x.grad"]), then=f"× {factor:g}"),
            Node("h", h, show(values["at h"]), then="square, sum"),
            Node("loss", loss, "1", "loss"),
        ),
        (Mark(1, "tensor", f"reads {show(values['at h'])}"),),
    )


def _draw_replace(values: Values) -> Flow:
    h = values["h"].detach()
    passed = values["x.grad"] / 3
    return Flow(
        "What the hook returns goes on to x in the place of the gradient that reached h.",
        (
            Node("x", show(values["x"].detach()), show(values["x.grad"]), then="× 3"),
            Node("h", show(h), f"{show(2 * h)} → {show(passed)}", then="square, sum"),
            Node("loss", show(values["loss"].detach()), "1", "loss"),
        ),
        (Mark(1, "tensor", f"returns {show(passed)}"),),
    )


def _draw_remove(values: Values) -> Flow:
    calls = values["calls"]
    return Flow(
        "Two backward passes over one path; the hook fires in those it is there for.",
        (
            Node("x", "[2]", f"4 + 4 = {show(values['x.grad'])}", then="square"),
            Node("loss", "4", "1", "loss"),
        ),
        (Mark(0, "tensor", f"fired in {calls} of 2 passes"),),
    )


def _draw_clip(values: Values) -> Flow:
    passed = values["clipped"] / 3
    return Flow(
        "The hook at h logs the norm and passes a clipped gradient on.",
        (
            Node("x", show(values["x"].detach()), show(values["clipped"]), then="× 3"),
            Node(
                "h",
                show(values["h"].detach()),
                f"{show(values['at h'])} → {show(passed)}",
                then="square, sum",
            ),
            Node("loss", show(values["loss"].detach()), "1", "loss"),
        ),
        (Mark(1, "tensor", f"norm {values['norm']:.3f}, clipped"),),
    )


def _draw_double(values: Values) -> Flow:
    return Flow(
        "The sum hands one gradient to a and to b: the hook is on a alone.",
        (
            Node("b, no hook", "all 1", show(values["b.grad"]), then="+", beside=True),
            Node("a", "all 1", show(values["a.grad"]), then="a + b"),
            Node("sum", "all 2", "all 0.25", then="mean"),
            Node("loss", "2", "1", "loss"),
        ),
        (Mark(1, "tensor", "doubles its gradient"),),
    )


def _gradient(name: str, function: Callable[..., Values], **choices: Choice) -> Answer:
    """A value of a run with other choices, as numbers."""
    values = run(function, **choices).values[name]
    return tuple(values.flatten().tolist())


def _who_is_doubled() -> Answer:
    values = run(double, in_place=True).values
    if values["b.grad"][0, 0] == values["a.grad"][0, 0]:
        return "a.grad and b.grad are both doubled"
    return "a.grad is doubled, b.grad is not"


TENSOR_LESSONS = (
    Lesson(
        1,
        "A tensor hook watches",
        "See the gradient of a tensor in the middle of a computation, as it passes.",
        watch,
        _draw_watch,
        "`h.register_hook(fn)` calls `fn` with the gradient of `h` in every backward pass. `h` is "
        "no leaf, so PyTorch computes its gradient, passes it on and forgets it: the hook is the "
        "place to see it. The loss is Σh², so the gradient at `h` is 2h, and the chain rule "
        "multiplies it by the factor on its way to `x`. A hook that returns `None` only watches.",
        Exercise(
            "Let the factor be 5: h = 5x. Which two numbers does `x.grad` hold?",
            "numbers",
            lambda: _gradient("x.grad", watch, factor=5.0),
            "h = [5, 10], the gradient passing h is 2h = [10, 20], and the factor 5 makes "
            "[50, 100] of it.",
            "Write h down first, double it for the gradient at h, then multiply by the factor once "
            "more.",
            "6, 12",
        ),
        (Control("factor", "Factor", (1.0, 2.0, 3.0, 4.0), "h is this many times x."),),
    ),
    Lesson(
        2,
        "A returned tensor replaces the gradient",
        "Change what flows back, and with it everything upstream.",
        replace,
        _draw_replace,
        "What a tensor hook returns takes the place of the gradient for everything that lies "
        "before it. The forward pass is over by then: the loss is the same whatever the hook "
        "returns. With zeros at `h` nothing reaches `x`: its gradient is zeros, where a graph "
        "cut by `detach()` would leave `None`.",
        Exercise(
            "The hook returns half of the gradient (scale 0.5). Which two numbers does `x.grad` "
            "hold?",
            "numbers",
            lambda: _gradient("x.grad", replace, scale=0.5),
            "Half of [6, 12] is [3, 6], and times 3 that is [9, 18].",
            "Without a hook x.grad is [18, 36]; everything after the hook is linear in what it "
            "returns.",
            "6, 12",
        ),
        (
            Control(
                "scale", "Scale", (-1.0, 0.0, 0.25, 1.0, 2.0), "The hook returns scale × gradient."
            ),
        ),
    ),
    Lesson(
        3,
        "The handle removes the hook",
        "Take a hook off again, so that the next pass does not know it.",
        remove,
        _draw_remove,
        "Every registration returns a handle, and `handle.remove()` is the only proper way back. "
        "A second `remove()` does nothing. `x.grad` is 8 either way: gradients of leaves add up "
        "over backward passes until somebody clears them, and the hook only counts.",
        Exercise(
            "Leave the hook on for both passes. How often is it called?",
            "numbers",
            lambda: (float(run(remove, removed_between=False).values["calls"]),),
            "Once in each backward pass: 2 calls, as long as the handle has not removed it.",
            "A hook stays until its handle removes it, and fires once in every backward pass that "
            "reaches its tensor.",
            "3",
        ),
        (
            Control(
                "removed_between",
                "Remove it between the passes",
                (False, True),
                "Otherwise it is removed after the second pass.",
            ),
        ),
    ),
    Lesson(
        4,
        "Clip and log",
        "Keep a gradient within bounds at one place, and write down how large it was.",
        clip,
        _draw_clip,
        "The hook sees [6, 12], whose norm is √180 = 13.416, and returns it clamped to ± the "
        "limit. Clamping works on each element, so it can turn the direction of the gradient: "
        "[6, 12] becomes [5, 5]. `torch.nn.utils.clip_grad_norm_`, which scales all of it by one "
        "number after backward, keeps the direction.",
        Exercise(
            "Clip at ±10 in place of ±5. Which two numbers is the gradient of x?",
            "numbers",
            lambda: _gradient("clipped", clip, limit=10.0),
            "Only 12 is over the limit: [6, 10] passes h, and times 3 that is [18, 30].",
            "Clamp each element of [6, 12] on its own, then multiply by 3.",
            "6, 12",
        ),
        (Control("limit", "Limit", (1.0, 5.0, 8.0, 15.0), "Each element is kept within ± this."),),
    ),
    Lesson(
        5,
        "Doubling, and why never in place",
        "Return a new tensor from a hook, and see what goes wrong when it writes into its own.",
        double,
        _draw_double,
        "`y = 2x` and the mean over four numbers give `x.grad` 0.5, and the doubling hook makes "
        "1.0 of it. Written in place it seems to do the same. But autograd does not copy a "
        "gradient for each receiver: `a + b` hands one and the same tensor to both, and writing "
        "into it changes `b.grad` too, although `b` has no hook. PyTorch's documentation says that "
        "a hook should not change its argument; nothing stops it, so keep to returning a new "
        "tensor.",
        Exercise(
            "Switch to the change in place. What happens to the gradients of a and b?",
            "choice",
            _who_is_doubled,
            "The addition passed one tensor to both. The hook on a wrote into it before b took its "
            "gradient from it.",
            "Turn the switch on and compare b.grad with 0.25.",
            choices=(
                "a.grad is doubled, b.grad is not",
                "a.grad and b.grad are both doubled",
                "PyTorch raises an error",
            ),
        ),
        (
            Control(
                "in_place",
                "Write in place",
                (False, True),
                "gradient.mul_(2) in the place of return gradient * 2.",
            ),
        ),
    ),
)
