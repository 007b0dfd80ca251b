"""Lessons 6 to 10 as they are taught: drawings, explanations and exercises."""

import torch

from interp.lessons.base import Control, Lesson, Values, run
from interp.lessons.drawing import Bar, Bars, Flow, Mark, Node, shape, show
from interp.lessons.exercises import Answer, Exercise
from interp.lessons.modules import backward_of_a_module, forget, halve, order, store_or_replace


def _draw_halve(values: Values) -> Flow:
    return Flow(
        "The pre-hook stands before the module: Linear gets what the hook returned.",
        (
            Node("x", show(values["x"])),
            Node("linear", kind="module"),
            Node("y", f"{shape(values['y'])}, linear of x / 2"),
        ),
        (Mark(1, "forward_pre", "returns x / 2"),),
    )


def _draw_store(values: Values) -> Flow:
    factor = (values["replaced"] / values["plain"])[0, 0].item()
    return Flow(
        "The hook stands behind the module: what it returns is what the next one gets.",
        (
            Node("x", shape(values["x"])),
            Node("linear", kind="module"),
            Node("y", f"{shape(values['replaced'])}, {factor:g} × as large"),
        ),
        (Mark(1, "forward", f"returns output × {factor:g}"),),
    )


def _draw_backward(values: Values) -> Flow:
    pre = values["what"] == "full backward pre-hook"
    x, weight = (f"× {factor:.2g}" for factor in values["factors"])
    if values["error"]:
        x = weight = "none"
    return Flow(
        "Backward comes from the right. Below x and linear: their gradients, times what they were "
        "without the hook.",
        (
            Node("x", "3 × 5", x),
            Node("linear", "", f"weight: {weight}", kind="module"),
            Node("y", "3 × 2", "3 × 2", then="MSE"),
            Node("loss", gradient="1", kind="loss"),
        ),
        (Mark(1, "full_backward_pre" if pre else "full_backward", str(values["what"])),),
    )


def _draw_order(values: Values) -> Flow:
    places = {text: place for place, text in enumerate(values["log"], 1)}
    hooks = [f"{places[f'forward hook {name}']} hook {name}" for name in "AB"]
    return Flow(
        "The numbers say when each hook runs: out along the upper lane, back along the lower.",
        (
            Node("x", "1 × 2", "1 × 2"),
            Node("linear", kind="module"),
            Node("y", "1 × 1", "1 × 1", then="sum"),
            Node("loss", gradient="1", kind="loss"),
        ),
        (
            Mark(1, "forward_pre", f"{places['forward pre-hook']} pre-hook"),
            *(Mark(1, "forward", text) for text in sorted(hooks)),
            Mark(1, "full_backward_pre", f"{places['full backward pre-hook']} pre-hook"),
            Mark(1, "full_backward", f"{places['full backward hook']} hook"),
        ),
    )


def _draw_forget(values: Values) -> Bars:
    return Bars(
        "Fires in each pass: hooks without a handle pile up, those of a session do not",
        tuple(
            Bar(
                f"pass {place}, {name}", count, str(count), "forward" if name == "leaking" else None
            )
            for name in ("leaking", "closed")
            for place, count in enumerate(values[name], 1)
        ),
    )


def _which_halving() -> Answer:
    values = run(halve).values
    same = torch.allclose(values["y"], values["half of"])
    return "Yes, it is linear" if same else "No, the bias is not halved"


def _in_place_grad_output() -> Answer:
    x, weight = run(backward_of_a_module, what="change grad_output in place").values["factors"]
    return {
        (True, True): "Neither x.grad nor weight.grad",
        (False, True): "x.grad only",
        (True, False): "weight.grad only",
        (False, False): "Both",
    }[abs(x - 1) < 0.01, abs(weight - 1) < 0.01]


def _prepended() -> Answer:
    log = run(order, prepend=True).values["log"]
    return "B, then A" if log.index("forward hook B") < log.index("forward hook A") else "A, then B"


MODULE_LESSONS = (
    Lesson(
        6,
        "A forward pre-hook changes the input",
        "Reach in before a module runs.",
        halve,
        _draw_halve,
        "A forward pre-hook gets the module and the tuple of its positional arguments before "
        "`forward` runs. What it returns takes their place. The caller's `x` is as it was: "
        "`args[0] / 2` is a new tensor. Without `handle.remove()` the layer would go on halving "
        "whatever it is given.",
        Exercise(
            "Is y the same as linear(x) / 2?",
            "choice",
            _which_halving,
            "linear(x / 2) is W x / 2 + b. Only the product is halved: the bias is added in full.",
            "Write both out with W and b, or read the last line that was printed.",
            choices=("Yes, it is linear", "No, the bias is not halved"),
        ),
    ),
    Lesson(
        7,
        "A forward hook stores or replaces the output",
        "Take a feature map out of a network, or put another one in.",
        store_or_replace,
        _draw_store,
        "A forward hook gets module, arguments and output after `forward` ran. Returning `None` "
        "only watches, and what is returned otherwise replaces the output for everything that "
        "follows. A handle is a context manager too: `with` removes the hook at the end of the "
        "block, even after an error. A stored output is detached here, so that it does not keep "
        "the whole graph alive.",
        Exercise(
            "The stored output is a batch of 3 through Linear(5, 2). What is its shape?",
            "shape",
            lambda: tuple(map(float, run(store_or_replace).values["linear"].shape)),
            "One row for each input of the batch, one column for each output feature.",
            "Linear(5, 2) takes the last dimension from 5 to 2 and leaves the others.",
            "4, 7",
        ),
        (
            Control(
                "factor",
                "Factor",
                (-1.0, 0.0, 1.0, 100.0),
                "The second hook returns this × output.",
            ),
        ),
    ),
    Lesson(
        8,
        "A full backward hook, and what it cannot do",
        "Read and replace the gradient of a module's input, and know which hook serves for the "
        "output's.",
        backward_of_a_module,
        _draw_backward,
        "A full backward hook runs when the gradient of the module's input is known. What it "
        "returns replaces `grad_input`, a tuple with one entry for each input. The gradient of the "
        "weight is not in it and has been computed by then: scaling `grad_input` leaves it alone, "
        "and writing into `grad_output` comes too late for both. Writing into `grad_input` happens "
        "to work here, although the documentation says not to; a returned `grad_output` is taken "
        "for a `grad_input` of the wrong shape. To change the gradient of the output, use a full "
        "backward pre-hook: it scales both.",
        Exercise(
            "The full backward hook writes grad_output × 0.1 in place. Which gradients change?",
            "choice",
            _in_place_grad_output,
            "Both were computed from grad_output before the hook ran. A full backward pre-hook "
            "runs before.",
            "Choose «change grad_output in place» above and read what is printed.",
            choices=(
                "x.grad only",
                "weight.grad only",
                "Both",
                "Neither x.grad nor weight.grad",
            ),
        ),
        (
            Control(
                "what",
                "The hook will",
                (
                    "return grad_input × 0.1",
                    "change grad_input in place",
                    "change grad_output in place",
                    "return grad_output × 0.1",
                    "full backward pre-hook",
                ),
                "The last one registers a full backward pre-hook that returns grad_output × 0.1.",
            ),
        ),
    ),
    Lesson(
        9,
        "Where hooks attach, and in what order they run",
        "Know which hook comes when, whatever the order of registration.",
        order,
        _draw_order,
        "The kind decides first: pre-hook, `forward`, forward hook, and when backward comes, full "
        "backward pre-hook and full backward hook. Hooks of one kind on one module run in the "
        "order in which they were registered. `prepend=True` puts one before those that are there. "
        "The order matters where hooks replace values: each gets what the one before it returned.",
        Exercise(
            "Hook B is registered after A with prepend=True. In which order do they run?",
            "choice",
            _prepended,
            "prepend puts B at the front of the module's forward hooks.",
            "Turn «Prepend hook B» on and read the order.",
            choices=("A, then B", "B, then A", "Only B"),
        ),
        (
            Control(
                "prepend",
                "Prepend hook B",
                (False, True),
                "Registers it with prepend=True.",
            ),
        ),
    ),
    Lesson(
        10,
        "Forgotten handles",
        "Find hooks that nobody removed, and register so that none can be forgotten.",
        forget,
        _draw_forget,
        "Each pass registers a hook and throws the handle away. The hooks stay on the module, all "
        "of them fire in every later pass, and what they hold is never freed. `audit` walks the "
        "module tree and lists every hook on it, whoever put it there. `HookSession` keeps each "
        "handle, works on a private copy and removes everything when the block ends.",
        Exercise(
            "After 5 passes that forget their handle: how often have the hooks fired in all?",
            "numbers",
            lambda: (float(sum(run(forget, passes=5).values["leaking"])),),
            "1 + 2 + 3 + 4 + 5 = 15: the work grows with the square of the passes.",
            "In pass n there are n hooks, and each fires once. Add up all five passes.",
            "3",
        ),
        (Control("passes", "Passes", (1, 2, 3, 4), "How often a hook is registered."),),
    ),
)
