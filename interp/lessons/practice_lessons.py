"""Lessons 15 to 18 as they are taught: drawings, explanations and exercises."""

import torch

from interp.lessons.base import Control, Lesson, Values, run
from interp.lessons.drawing import Bar, Bars, Flow, Mark, Node, show
from interp.lessons.exercises import Answer, Exercise
from interp.lessons.practice import before_in_place, cost, operations, overwritten, state


def _draw_state(values: Values) -> Bars:
    return Bars(
        "Fires in one pass of each: which of them carry the hook of net",
        tuple(
            Bar(name, count, str(count), "forward" if count else None)
            for name, count in {
                "net": values["fires"]["net"],
                "loaded from its state dict": values["fires"]["fresh"],
                "copy.deepcopy(net)": values["fires"]["deepcopy"],
                "HookSession(deepcopy)": values["fires"]["session"],
            }.items()
        ),
    )


def _draw_cost(values: Values) -> Bars:
    rows = {"no hook": 1.0} | values["ratios"]
    return Bars(
        f"Time of a pass at width {values['width']}, as a multiple of one without hooks",
        tuple(
            Bar(name, ratio, f"{ratio:.2f} ×", None if name == "no hook" else "forward")
            for name, ratio in rows.items()
        ),
    )


def _draw_operations(values: Values) -> Flow:
    steps = [name.removesuffix("Backward0") for name in reversed(values["steps"])]
    steps.remove("T")
    return Flow(
        "What one call of the module is for autograd, in forward order; the hook sees only its "
        "end.",
        (
            Node("T", "of the weight", kind="operation", then="and", beside=True),
            Node("x"),
            *(Node(name, kind="operation") for name in steps),
            Node("y"),
        ),
        (Mark(len(steps) + 1, "forward", f"fires: {values['fires']}"),),
    )


def _draw_in_place(values: Values) -> Flow:
    gradient = show(values["seen"][-1][0])
    failed = bool(values["error"])
    return Flow(
        "Plain PyTorch raises at the in-place ReLU; in a HookSession the gradient comes through."
        if failed
        else "ReLU writes into a tensor of its own, and both ways the gradient comes through.",
        (
            Node("x", "[1, 2]"),
            Node("0 Linear", "", kind="module"),
            Node("1 ReLU", "in place" if failed else "", kind="module"),
            Node("y", "", "[1, 1]", then="sum"),
            Node("loss", "", "1", kind="loss"),
        ),
        (Mark(1, "full_backward", f"plain: {values['plain']} fires · session: {gradient}"),),
    )


def _deepcopied() -> Answer:
    return (float(run(state).values["left"]["deepcopy"]),)


def _by_width() -> Answer:
    """How the cost of hooks behaves between two widths far apart, measured now."""
    small, large = (run(cost, width=width).values["ratios"] for width in (16, 512))
    shrinks = large["in a HookSession"] < small["in a HookSession"]
    return "It shrinks" if shrinks else "It grows"


def _steps() -> Answer:
    return (float(len(run(operations, bias=False, dimensions=3).values["steps"])),)


def _kept() -> Answer:
    kept = run(overwritten).values["kept"][0]
    return "[1, 0]" if torch.equal(kept, torch.tensor([1.0, 0.0])) else "[1, −2]"


PRACTICE_LESSONS = (
    Lesson(
        15,
        "Hooks are not in the state dict",
        "Know what carries hooks along, and what does not.",
        state,
        _draw_state,
        "A state dict holds parameters and buffers: saving and loading it loses every hook. "
        "`copy.deepcopy` copies the hooks with the module, and the handle of the original does not "
        "know them: after `remove()` the copy still has its own. `HookSession` works on a private "
        "copy of its own. A hook that was on the network before is part of it: it runs on the copy "
        "too, and is listed as foreign in the panel.",
        Exercise(
            "handle.remove() was called on net. How many hooks does its deepcopy have left?",
            "numbers",
            _deepcopied,
            "The copy has a hook of its own that no handle leads to.",
            "The handle knows the dictionary of hooks of net alone.",
            "3",
        ),
    ),
    Lesson(
        16,
        "What hooks cost",
        "Measure it, and know what the price depends on.",
        cost,
        _draw_cost,
        "Calling a Python function costs a few microseconds each time, whatever the size of the "
        "layer. What the hook does costs more: `float()` of a tensor waits for its value, on a "
        "GPU for the whole queue. Keeping outputs costs memory rather than time. A `HookSession` "
        "also times and notes each fire and watches every operation. The numbers are measured on "
        "this machine now, the best of 25 passes each; run it again and they move.",
        Exercise(
            "The layers grow from 16 to 512 wide. What happens to the share of time that hooks "
            "take?",
            "choice",
            _by_width,
            "The cost of a fire stays, and the pass itself takes far longer: measured again just "
            "now at both widths.",
            "Compare the bars at width 16 and at width 512.",
            choices=("It grows", "It stays the same", "It shrinks"),
        ),
        (Control("width", "Width", (16, 128, 512), "Of each of the 8 linear layers."),),
    ),
    Lesson(
        17,
        "One Linear, several operations",
        "See why a module hook and an autograd operation are not the same thing.",
        operations,
        _draw_operations,
        "Autograd knows no modules. It records the operations that ran inside, and `grad_fn` leads "
        "from the output back through them: here `addmm` for the product and the bias, and `t` for "
        "the transposed weight. A module hook fires once for all of them. A full backward hook "
        "even adds operations of its own around the module, which is how it learns of the "
        "gradients.",
        Exercise(
            "No bias, and an input of three dimensions (4 × 3 × 5). How many operations?",
            "numbers",
            _steps,
            "The input is flattened to two dimensions and the result is given back its shape: two "
            "views more, with `mm` and `t` between them.",
            "Switch bias and dimensions one at a time, and count the operations that are printed.",
            "7",
        ),
        (
            Control("bias", "Bias", (False, True)),
            Control("dimensions", "Dimensions of x", (2, 3), "3 × 5, or 4 × 3 × 5."),
        ),
    ),
    Lesson(
        18,
        "Before an in-place operation",
        "See why a full backward hook fails there, and what this program does about it.",
        before_in_place,
        _draw_in_place,
        "A full backward hook wraps the module's output in a function of its own and hands on a "
        "view of it. PyTorch refuses to let the next operation write into such a view, which is "
        "what `ReLU(inplace=True)` does: most vision models fail so. A `HookSession` runs each "
        "in-place operation as its twin that writes elsewhere. The numbers are the same, and what "
        "hooks have stored stays as it was.",
        Exercise(
            "Plain PyTorch: a forward hook keeps the output [1, −2] of a layer, without a copy, "
            "and an in-place ReLU follows. What does the kept tensor hold after the pass?",
            "choice",
            _kept,
            "The kept tensor and the one that ReLU wrote into are the same memory: −2 is gone.",
            "Keeping a tensor makes no copy of its numbers, and ReLU writes into them.",
            choices=("[1, −2]", "[1, 0]", "It raises an error"),
        ),
        (Control("inplace", "ReLU in place", (False, True), "nn.ReLU(inplace=…)"),),
    ),
)
