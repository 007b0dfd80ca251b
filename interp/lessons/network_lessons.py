"""Lessons 11 to 14 as they are taught: drawings, explanations and exercises."""

import math

from interp.lessons.base import Control, Lesson, Values, run
from interp.lessons.drawing import Bar, Bars, Flow, Mark, Node, shape, show
from interp.lessons.exercises import Answer, Exercise
from interp.lessons.networks import dead, features, vanish, weight_gradient

STARTS = ("default", "xavier", "he", "large")


def _draw_features(values: Values) -> Flow:
    lite0 = shape(values["lite0"])
    return Flow(
        f"EfficientNet-Lite0 on coffee: the hook takes the {lite0} vector between the "
        "convolutions and the classifier.",
        (
            Node("picture", "3 × 224 × 224"),
            Node("features", kind="module"),
            Node("avgpool", kind="module"),
            Node("vector", lite0),
            Node("classifier", kind="module"),
        ),
        (Mark(2, "forward", "stores the output"),),
    )


def _draw_dead(values: Values) -> Bars:
    return Bars(
        "Share of 64 inputs at which each neuron is exactly zero",
        tuple(
            Bar(
                f"neuron {place}{', dead' if place in values['dead'] else ''}",
                share,
                f"{100 * share:.1f} %",
                "forward" if place in values["dead"] else None,
            )
            for place, share in enumerate(values["zeros"].tolist())
        ),
    )


def _draw_weight(values: Values) -> Flow:
    return Flow(
        "The hook is on the parameter: it sees each pass's own gradient before .grad adds it up.",
        (
            Node(
                "linear.weight",
                shape(values["shape"]),
                f"hook {show(values['norms'][-1])} · .grad {show(values['grad'])}",
            ),
            Node("linear(x)", "3 × 2", "3 × 2", then="MSE"),
            Node("loss", gradient="1", kind="loss"),
        ),
        (Mark(0, "tensor", "norm of the gradient"),),
    )


def _shape_at(layer: str) -> Answer:
    return tuple(float(size) for size in run(features, where=layer).values["resnet18"].shape)


def _best_start() -> Answer:
    """The start whose gradients at both ends are nearest to one another, with ReLU."""
    ratios = {
        start: run(vanish, depth=12, activation="relu", start=start).values["ratio"]
        for start in STARTS
    }
    return min(ratios, key=lambda start: abs(math.log(ratios[start])))


def _times() -> Answer:
    values = run(weight_gradient, passes=3).values
    return (float(values["grad"] / values["norms"][-1]),)


NETWORK_LESSONS = (
    Lesson(
        11,
        "Feature extraction",
        "Take the features of any layer from one pass, and leave no trace.",
        features,
        _draw_features,
        "A forward hook on `avgpool` stores what the classifier is given: the feature vector of "
        "the picture. The handle is removed right after the pass. The same on the bundled model "
        "goes through a `HookSession`: the hook sits on a private copy, so the model that others "
        "use at the same time never carries it.",
        Exercise(
            "What is the shape of ResNet-18's output at layer2, for a picture of 224 × 224?",
            "shape",
            lambda: _shape_at("layer2"),
            "The stem divides 224 by 4, layer2 by 2 again: 28 × 28, with twice layer1's channels.",
            "Try layer1 and layer3: each stage halves the sides and doubles the channels.",
            "1, 64, 56, 56",
        ),
        (
            Control(
                "where",
                "Layer of ResNet-18",
                ("layer1", "layer3", "layer4", "avgpool"),
                "Where the hook of the first pass sits.",
            ),
        ),
    ),
    Lesson(
        12,
        "Vanishing and exploding gradients",
        "Watch the gradient shrink or grow from layer to layer, and see what initialisation does "
        "about it.",
        vanish,
        lambda values: None,
        "Each layer multiplies the gradient by its weights and by the slope of its activation. "
        "A sigmoid's slope is at most 0.25, so that the product dies out within a few layers. "
        "«He» draws ReLU's weights with variance 2 / inputs, which keeps the size of the gradient "
        "about the same at every depth; weights of deviation 1 let it explode.",
        Exercise(
            "12 layers with ReLU: with which start are the gradients at both ends nearest to one "
            "another?",
            "choice",
            _best_start,
            "He initialisation was made for ReLU: the factor 2 makes up for the half that ReLU "
            "sets to zero.",
            "Set ReLU and try each start: which «first / last» is nearest to 1?",
            choices=STARTS,
        ),
        (
            Control("depth", "Depth", (4, 8, 12, 24), "Linear layers, each 32 wide."),
            Control("activation", "Activation", ("sigmoid", "tanh", "relu"), "After each layer."),
            Control(
                "start",
                "Initialisation",
                STARTS,
                "Of the weights: PyTorch's own, Xavier uniform, He normal, or deviation 1.",
            ),
        ),
    ),
    Lesson(
        13,
        "Dead neurons",
        "Find the neurons that are zero whatever comes in, and see why they stay so.",
        dead,
        _draw_dead,
        "As the lesson comes, neurons 1 and 4 have a bias of −10, and no input here lifts them "
        "above zero. ReLU returns 0 for them at every input, and its slope there is 0 too: no "
        "gradient reaches their weights, so that training cannot bring them back. A forward hook "
        "on the activation finds them by counting zeros.",
        Exercise(
            "Take LeakyReLU, with slope 0.1 below zero. How many neurons are dead?",
            "numbers",
            lambda: (float(len(run(dead, activation="leaky relu").values["dead"])),),
            "None: below zero it returns 0.1 × its input, which is not 0 and lets a gradient "
            "through.",
            "A neuron is dead where it is exactly 0 at every input. What does LeakyReLU return "
            "below zero?",
            "3",
        ),
        (
            Control(
                "bias",
                "Bias of neurons 1 and 4",
                (-10.0, -2.0, 0.0, 10.0),
                "Added to what the two neurons compute, before ReLU.",
            ),
        ),
    ),
    Lesson(
        14,
        "The gradient of a parameter",
        "Log the norm of a weight's gradient with a tensor hook on the parameter.",
        weight_gradient,
        _draw_weight,
        "A parameter is a tensor, so it takes a tensor hook: no module hook sees the gradient of a "
        "weight. The hook gets the gradient of this backward pass. `.grad` is the sum over all "
        "passes since it was last cleared, so the two agree in the first pass only.",
        Exercise(
            "After 3 passes without zero_grad(): how many times the norm in the hook is the norm "
            "of .grad?",
            "numbers",
            _times,
            "The same input gives the same gradient, and .grad has added up three of them.",
            "What has .grad become after two passes, compared with what the hook saw?",
            "7",
        ),
        (Control("passes", "Passes", (1, 2, 4), "Backward passes without zero_grad()."),),
    ),
)
