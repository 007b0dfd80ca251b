"""Recipes: what a step says, what is refused before anything runs, and files that come back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from torchvision.models import VisionTransformer

from interp import LoadedModel, load_model
from interp.errors import HookError, InterpError, LayerError
from interp.geometry import Preset
from interp.hooks.recipe import Recipe, Step, cannot_change_logits, check
from interp.hooks.steps import channel_axis


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            Step("forward", "features.8", "channels", {"which": "4"}),
            "A forward hook on features.8 silences channel 4 of its output.",
        ),
        (
            Step("forward_pre", "stem", "scale", {"factor": 2}, first=True),
            "A forward pre-hook on stem multiplies its input by 2, before the others there.",
        ),
        (
            Step("full_backward_pre", "a", "zero", call=1),
            "A full backward pre-hook on a (call 1 only) sets the gradient of its output to zero.",
        ),
        (
            Step("full_backward", "a", "negate"),
            "A full backward hook on a flips the sign of the gradient of its input.",
        ),
        (
            Step("tensor", "a"),
            "A tensor hook on a looks at the gradient of its output and changes nothing.",
        ),
        (
            Step("tensor", "a", "constant", of="weight"),
            "A tensor hook on a.weight replaces its gradient by 0 everywhere.",
        ),
    ],
)
def test_a_step_says_what_it_does(step: Step, sentence: str) -> None:
    assert step.sentence() == sentence


def test_a_step_fills_in_what_is_left_out_and_has_an_id_of_its_own() -> None:
    one, other = Step("forward", "a", "noise"), Step("forward", "a", "noise")

    assert one.values == {"deviation": 0.5, "seed": 0}
    assert one.id != other.id
    hash(one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "backward"}, "no kind of hook «backward»"),
        ({"action": "explode"}, "no action «explode»: there are watch, scale"),
        ({"values": {"factor": 1}}, "«watch» has no option «factor»"),
    ],
)
def test_a_step_of_no_known_kind_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(HookError, match=message):
        Step(**({"kind": "forward", "path": "a"} | change))


def test_steps_are_added_replaced_moved_and_taken_out() -> None:
    a, b, c = (Step("forward", path, id=path) for path in "abc")
    recipe = Recipe().add(a).add(b).add(c)

    def order(one: Recipe) -> str:
        return "".join(step.id for step in one.steps)

    assert order(recipe) == "abc"
    assert order(recipe.move("a", 1)) == "bac"
    assert order(recipe.move("c", -9)) == "cab"
    assert order(recipe.without("b")) == "ac"
    assert recipe.replace(Step("tensor", "b", id="b")).steps[1].kind == "tensor"
    assert order(recipe) == "abc"
    with pytest.raises(HookError, match="has a step «a» already"):
        recipe.add(a)
    with pytest.raises(HookError, match="has a step «a» already"):
        Recipe((a, b, a))
    with pytest.raises(HookError, match="has no step «x»: it has a, b, c"):
        recipe.without("x")


def test_a_recipe_comes_back_from_its_text() -> None:
    steps = (
        Step("forward", "a", "channels", {"which": "0-3", "to": "mean"}, call=2, first=True),
        Step("tensor", "b", "noise", {"seed": 5}, of="weight", enabled=False),
        Step("forward_pre", "c", "patch", {"picture": "Käse «1».png"}),
    )

    for recipe in (Recipe(), Recipe(steps), Recipe(steps, "resnet18")):
        assert Recipe.from_json(recipe.to_json()) == recipe


def test_a_byte_order_mark_before_a_recipe_is_no_part_of_it() -> None:
    recipe = Recipe((Step("forward", "features.8", "negate"),), "resnet18")
    data = recipe.to_json().encode("utf-8-sig")
    assert Recipe.from_json(data.decode("utf-8")) == recipe


def test_a_short_recipe_written_by_hand() -> None:
    recipe = Recipe.from_json('{"steps": [{"kind": "forward", "path": "a"}]}')

    (step,) = recipe.steps
    assert (step.action, step.call, step.of, step.enabled, step.first) == (
        "watch",
        None,
        "output",
        True,
        False,
    )
    assert step.id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no list «steps»"),
        ('{"steps": 1}', "no list «steps»"),
        ('{"recipe": 2, "steps": []}', "of version 2"),
        ('{"recipe": true, "steps": []}', "of version True"),
        ('{"model": "a\\nb", "steps": []}', "line break"),
        ('{"model": 1, "steps": []}', "«model» of the recipe is 1"),
        ('{"steps": [1]}', "step 1 of the recipe: 1 is no step"),
        ('{"steps": [{"path": "a"}]}', "«kind» is missing"),
        ('{"steps": [{"kind": "forward", "path": "a", "x": 1}]}', "«x» is no part of a step"),
        ('{"steps": [{"kind": [], "path": "a"}]}', "has to be of type str"),
        ('{"steps": [{"kind": "forward", "path": "a", "call": -1}]}', "call is -1"),
        ('{"steps": [{"kind": "forward", "path": "a", "call": true}]}', "call is True"),
        ('{"steps": [{"kind": "forward", "path": "a", "first": 1}]}', "of type bool"),
        (
            '{"steps": [{"kind": "forward", "path": "a", "action": "scale",'
            ' "values": {"factor": NaN}}]}',
            "give a finite number",
        ),
        (
            '{"steps": [{"kind": "forward", "path": "a", "action": "scale",'
            f' "values": {{"factor": {"9" * 400}}}}}]}}',
            "give a finite number",
        ),
        (
            '{"steps": [{"kind": "forward", "path": "a", "action": "noise",'
            f' "values": {{"seed": {"9" * 400}}}}}]}}',
            "give a finite number",
        ),
        ('{"steps": [{"kind": "forward", "path": "a\\nb"}]}', "line break"),
        ('{"steps": [{"kind": "forward", "path": "a\\ud800"}]}', "control character"),
        (
            json.dumps({"steps": [{"kind": "forward", "path": "a" * 5000}]}),
            "longer than 1000 characters",
        ),
        (
            '{"steps": [{"kind": "forward", "path": "a", "action": "patch",'
            ' "values": {"picture": "a\\nb"}}]}',
            "line break",
        ),
        ('{"steps": [{"kind": "forward", "path": "a", "x\\ny": 1}]}', "is no part of a step"),
        (json.dumps({"steps": ["x" * 5000]}), "step 1 of the recipe"),
        (
            json.dumps({"steps": [{"kind": "forward", "path": "a", "id": "x"}] * 2}),
            "step 2 of the recipe: the recipe has a step «x» already",
        ),
    ],
)
def test_a_text_that_is_no_recipe_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(HookError) as caught:
        Recipe.from_json(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_with_a_narrow_space_or_an_emoji_is_taken() -> None:
    name = "Screenshot at 3.04\u202fPM 👩‍🔬.png"
    step = Step("forward", "a", "patch", {"picture": name})

    assert Recipe.from_json(Recipe((step,)).to_json()).steps == (step,)


def test_a_long_list_of_channels_is_cut_short_in_the_sentence() -> None:
    which = ",".join(["0-3"] * 1000)

    sentence = Step("forward", "a", "channels", {"which": which}).sentence()

    assert sentence.startswith("A forward hook on a silences channels 0-3, 0-3, ")
    assert sentence.endswith(" … of its output.")
    assert len(sentence) < 200


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (Step("forward", "features.99"), LayerError, "no layer «features.99»"),
        (Step("forward", "features.8", call=1), LayerError, "has no call 1: it has call 0"),
        (
            Step("forward", "features.8", "channels", {"which": "1280"}),
            HookError,
            "no channel 1280: the channels are 0 to 1279",
        ),
        (
            Step("forward_pre", "features.8", "channels", {"which": "320"}),
            HookError,
            "the channels are 0 to 319",
        ),
        (
            Step("tensor", "features.8.0", "channels", {"which": "1280"}, of="weight"),
            HookError,
            "the channels are 0 to 1279",
        ),
        (
            Step("tensor", "features.8", of="weight"),
            HookError,
            "has no parameter «weight»: it has none of its own",
        ),
        (Step("forward", "features.8", "patch"), HookError, "has no second picture"),
        (Step("tensor", "features.8.0", of="weight", first=True), HookError, "cannot be put first"),
    ],
)
def test_a_step_that_cannot_work_is_refused(
    bundled: LoadedModel, step: Step, error: type[InterpError], message: str
) -> None:
    with pytest.raises(error) as caught:
        check(step, bundled)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_module_that_never_runs_is_refused_with_the_reason() -> None:
    net = VisionTransformer(32, 8, 1, 2, 16, 32)
    vit = load_model(module=net, transforms=Preset(32, 32, (0,) * 3, (1,) * 3, "bilinear"))

    with pytest.raises(LayerError, match="never runs: MultiheadAttention uses"):
        check(Step("forward", "encoder.layers.encoder_layer_0.self_attention.out_proj"), vit)
    tokens = Step("forward", "encoder.layers.encoder_layer_0", "channels", {"which": "15"})
    check(tokens, vit)
    assert channel_axis(tokens, vit, 0) == -1
    inputs = Step("forward_pre", "encoder.layers.encoder_layer_0.mlp", "channels")
    check(inputs, vit)
    assert channel_axis(inputs, vit, 0) == -1


def test_what_leaves_the_logits_as_they_are_says_why() -> None:
    assert "never the logits" in cannot_change_logits(Step("full_backward", "a", "scale"))
    assert "never the logits" in cannot_change_logits(Step("full_backward_pre", "a", "scale"))
    assert "never the logits" in cannot_change_logits(Step("tensor", "a", "scale"))
    assert "nor Grad-CAM" in cannot_change_logits(Step("tensor", "a", "scale", of="weight"))
    assert "nothing changes" in cannot_change_logits(Step("forward", "a", "watch"))
    assert cannot_change_logits(Step("forward", "a", "scale")) == ""
    assert cannot_change_logits(Step("forward_pre", "a", "scale")) == ""


def test_letters_of_any_language_come_back_from_any_editor() -> None:
    recipe = Recipe((Step("forward", "schicht_ä", "patch", {"picture": "猫 ☕.png"}),))
    text = recipe.to_json()

    edited = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8-sig").decode("utf-8")

    assert text.isascii()
    assert edited.startswith("\ufeff")
    assert Recipe.from_json(edited) == Recipe.from_json(text) == recipe
