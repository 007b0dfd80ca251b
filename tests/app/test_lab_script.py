"""The Hook lab page as a script, without a browser."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fresh_process import printed_by
from PIL import Image
from streamlit.testing.v1 import AppTest

from interp.hooks.ledger import KINDS, audit
from interp.hooks.recipe import Recipe, Step
from interp.picture import sample_pictures
from interp.ui import cache

ROOT = Path(__file__).parents[2]
BEST = "features.8.1"
SILENCE = Step("forward", BEST, "channels", {"which": "565"}, id="one")
NOISE = Step("forward_pre", "features.0.0", "noise", {"deviation": 0.5}, id="two")
SHRINK = Step("full_backward", "features.3", "scale", {"factor": 0.1}, id="three")


def lab(*steps: Step, opened: str = "", script: str = "pages/lab.py", **parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / script), default_timeout=120)
    app.query_params.update(parameters)
    app.session_state["lab.recipe"] = Recipe(steps)
    app.session_state["lab.opened"] = opened
    return run(app)


def run(element: Any) -> AppTest:
    app: AppTest = element.run()
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    said = [e.value for kind in ("markdown", "caption", "error", "info") for e in app.get(kind)]
    return "\n".join(said + [element.proto.body for element in app.get("html")])


def press(app: AppTest, label: str) -> AppTest:
    return run(next(button for button in app.button if button.label == label).click())


def steps(app: AppTest) -> tuple[Step, ...]:
    recipe: Recipe = app.session_state["lab.recipe"]
    return recipe.steps


def live(app: AppTest) -> list[str]:
    """Ids of the live hooks, which are those that stand on the lab's own copy."""
    hooks = app.session_state["lab.live"].live
    found = [hook.path for hook in audit(app.session_state["lab.live"].session.module)]
    assert len(found) == len([hook for hook in hooks if hook.record.kind != "tensor"])
    return [hook.step.id for hook in hooks]


def test_the_first_screen_has_three_examples_and_nothing_live() -> None:
    app = lab()
    assert "No hook is live." in words(app)
    assert "Live now: 0 hooks" in words(app)
    labels = [button.label for button in app.button]
    assert {"Silence a channel", "Add noise to the input", "Clamp gradients"} <= set(labels)
    assert next(button for button in app.button if button.label == "Run").disabled
    assert "the PyTorch script that does the same stands here" in words(app)


@pytest.mark.parametrize(
    ("example", "sentence", "outcome"),
    [
        ("Silence a channel", "silences channel 565 of its output", "**The answer is still**"),
        ("Add noise to the input", "adds noise to its input", "**The answer"),
        ("Clamp gradients", "between −0.0003 and 0.0003", "**The answer is the same**"),
    ],
)
def test_an_example_is_added_live_and_run_by_one_click(
    example: str, sentence: str, outcome: str
) -> None:
    app = press(lab(), example)
    assert sentence in words(app)
    assert outcome in words(app)
    assert "espresso (967)" in words(app)
    assert len(live(app)) == 1
    assert "Live now: 1 hook" in words(app)
    assert not app.error


def test_a_backward_hook_says_that_it_cannot_change_the_answer() -> None:
    app = press(lab(SHRINK), "Run")
    assert "never the logits" in words(app)
    assert "The same norm at all" in words(app)  # the values
    assert "Backward runs from right to left" in words(app)
    assert "Difference" not in words(app)


def test_a_result_says_what_it_is_of_and_is_stale_after_a_change() -> None:
    app = press(lab(SILENCE), "Run")
    assert "This result is of before" not in words(app)
    app = run(app.toggle(key="lab on one").set_value(False))
    assert "the live hooks have changed" in words(app)
    assert "Run again" not in [button.label for button in app.button]  # nothing to run
    app = run(app.toggle(key="lab on one").set_value(True))
    assert "This result is of before" not in words(app)
    app = press(app, "Add a hook")
    app = press(app, "Run again")
    assert "This result is of before" not in words(app)


def test_run_on_every_change_runs_by_itself() -> None:
    app = run(lab(SILENCE).toggle(key="lab auto").set_value(True))
    assert app.query_params["auto"] in ("1", ["1"])
    assert "**The answer is still**" in words(app)
    app = press(app, "Add a hook")
    assert "This result is of before" not in words(app)
    assert len(live(app)) == 2


def test_steps_move_are_deleted_and_switched_off() -> None:
    app = lab(SILENCE, NOISE, SHRINK)
    assert live(app) == ["one", "two", "three"]
    app = press(app, "Move step 3 up")
    assert [step.id for step in steps(app)] == ["one", "three", "two"]
    app = press(app, "Move step 1 down")
    assert [step.id for step in steps(app)] == ["three", "one", "two"]
    app = press(app, "Delete step 2")
    assert live(app) == ["three", "two"]
    app = run(app.toggle(key="lab on three").set_value(False))
    assert live(app) == ["two"]
    assert len(steps(app)) == 2


def test_hooks_are_removed_by_handle_one_by_one_until_the_audit_is_empty() -> None:
    app = lab(SILENCE, NOISE, SHRINK)
    for left, number in ((2, 2), (1, 1), (0, 3)):
        app = press(app, f"Remove hook {number}")
        assert len(live(app)) == left
    assert [step.enabled for step in steps(app)] == [False, False, False]
    assert "No hook is live." in words(app)


def test_remove_all_leaves_the_recipe_switched_off() -> None:
    app = press(lab(SILENCE, NOISE), "Remove all")
    assert live(app) == []
    assert [step.enabled for step in steps(app)] == [False, False]


def test_hooks_stay_live_while_another_page_is_shown() -> None:
    app = run(lab(SILENCE, NOISE, SHRINK, script="app.py").switch_page("pages/lab.py"))
    before = [hook.record.id for hook in app.session_state["lab.live"].live]
    app = run(app.switch_page("pages/explain.py"))
    assert live(app) == ["one", "two", "three"]
    app = run(app.switch_page("pages/lab.py"))
    assert [hook.record.id for hook in app.session_state["lab.live"].live] == before
    assert "3 hooks are live" in words(app)


def test_another_model_takes_the_hooks_off_and_keeps_the_steps() -> None:
    app = lab(SILENCE, replace(NOISE, path="features.0"))
    module = app.session_state["lab.live"].session.module
    app.session_state["view"] = replace(
        app.session_state["view"], model="squeezenet1_1", weights="none"
    )
    app.session_state["address"] = None
    app = run(app)
    assert "2 hooks on EfficientNet-Lite0 removed" in words(app)
    assert audit(module) == []
    assert "No layer «features.8.1»" in words(app)
    assert live(app) == ["two"]
    assert len(steps(app)) == 2


def test_a_step_is_edited_in_place() -> None:
    app = lab(SILENCE, opened="one")
    app = run(app.text_input(key="lab which one").set_value("0-15, 20"))
    assert "silences channels 0-15, 20 of its output" in words(app)
    app = run(app.selectbox(key="lab Replace by one").set_value("mean"))
    assert "replaces channels 0-15, 20 of its output by their means" in words(app)
    app = run(app.selectbox(key="lab Action one").set_value("Add noise"))
    app = run(app.number_input(key="lab seed one").set_value(7))
    assert "seed 7" in words(app)
    app = run(app.checkbox(key="lab first one").set_value(True))
    assert "before the others there" in words(app)
    app = press(app, "Edit step 1")
    assert not app.checkbox
    assert live(app) == ["one"]


def test_every_kind_has_a_plain_sentence_and_its_fields() -> None:
    app = lab(SILENCE, opened="one")
    for kind, sentence in (
        ("forward_pre", "Runs before the layer"),
        ("full_backward_pre", "when the gradient of the layer's output arrives"),
        ("full_backward", "the gradient of the layer's input is known"),
        ("tensor", "Sits on a tensor, not on a layer"),
        ("forward", "Runs after the layer"),
    ):
        app = run(app.get("button_group")[0].set_value(kind))
        assert sentence in words(app)
        assert steps(app)[0].kind == kind
        assert ("lab Tensor one" in [box.key for box in app.selectbox]) == (kind == "tensor")


def test_a_tensor_hook_may_sit_on_a_parameter() -> None:
    app = lab(Step("tensor", "features.8.0", "zero", id="one"), opened="one")
    app = run(app.selectbox(key="lab Tensor one").set_value("weight"))
    assert "on `features.8.0`.weight sets its gradient to zero" in words(app)
    app = press(app, "Run")
    assert "where backward ends" in words(app)


def test_a_layer_that_runs_several_times_offers_its_calls() -> None:
    step = Step("forward", "layer4.0.relu", "zero", id="one")
    app = lab(step, opened="one", model="resnet18", weights="none")
    app = run(app.selectbox(key="lab Call one").set_value("call 2 of 2"))
    assert "(call 1 only)" in words(app)
    assert live(app) == ["one"]
    app = run(app.selectbox(key="lab Call one").set_value("every call"))
    assert steps(app)[0].call is None


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (replace(SILENCE, values={"which": "4,,"}), "cannot be read"),
        (replace(SILENCE, values={"which": "1280"}), "the channels are 0 to 1279"),
        (replace(SILENCE, path="layer4"), "No layer «layer4»"),
        (replace(SILENCE, action="patch", values={}), "choose one"),
        (replace(SILENCE, action="patch", values={"picture": "0" * 64}), "no longer kept here"),
        (replace(SILENCE, call=3), "has no call 3"),
    ],
)
def test_what_cannot_work_is_said_at_the_step_and_nothing_is_lost(step: Step, message: str) -> None:
    app = lab(step, NOISE, opened="one")
    assert message in words(app)
    assert live(app) == ["two"]
    assert steps(app)[0] == step


def test_what_forms_no_step_is_kept_in_its_fields_until_it_does() -> None:
    clamp = replace(SILENCE, action="clamp", values={"low": -1.0, "high": 1.0})
    app = lab(clamp, opened="one")
    app = run(app.number_input(key="lab low one").set_value(5.0))
    assert "Clamp between 5 and 1: low is above high" in words(app)
    assert app.number_input(key="lab low one").value == 5.0
    assert steps(app)[0] == clamp
    app = run(app.number_input(key="lab high one").set_value(6.0))
    assert "low is above high" not in words(app)
    assert dict(steps(app)[0].values) == {"low": 5.0, "high": 6.0}


def test_a_patch_takes_a_sample() -> None:
    app = lab(replace(SILENCE, action="patch", values={}), opened="one")
    app = run(app.selectbox(key="lab Second picture one").set_value("chelsea"))
    assert "what stands there on chelsea" in words(app)
    app = press(app, "Run")
    assert "**The answer changes** from *espresso (967)*" in words(app)


def test_a_recipe_is_saved_and_loaded() -> None:
    app = lab(SILENCE, NOISE)
    recipe = replace(Recipe((NOISE,)), model="efficientnet_lite0")
    app = run(app.get("file_uploader")[-1].set_value(("noise.json", recipe.to_json().encode(), "")))
    assert "Loaded noise.json: 1 step." in words(app).replace("\\", "")
    assert live(app) == ["two"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "not text"),
        (json.dumps({"steps": [{"kind": "forward"}]}).encode(), "«path» is missing"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused_and_the_recipe_stays(
    data: bytes, message: str
) -> None:
    app = lab(SILENCE)
    app = run(app.get("file_uploader")[-1].set_value(("bad.json", data, "")))
    assert message in "\n".join(error.value for error in app.error)
    assert live(app) == ["one"]


def test_the_recipe_is_in_the_address() -> None:
    app = lab(SILENCE)
    name = app.query_params["recipe"]
    name = name if isinstance(name, str) else name[0]
    assert len(name) == 16
    app = press(app, "Delete step 1")
    assert "recipe" not in app.query_params


def test_a_sweep_of_what_is_no_call_is_refused() -> None:
    assert "«features.8#x» is no call of a layer" in words(lab(sweep_layer="features.8#x"))


def test_the_script_stands_under_code() -> None:
    app = lab(SILENCE, target="281", fit="letterbox")
    (code,) = app.code
    assert "register_forward_hook" in code.value
    assert "remove()" in code.value
    assert 'PICTURE = SAMPLES / "coffee.png"' in code.value
    assert "TARGET = 281\n" in code.value
    assert 'MODEL.prepare(open_picture(path), "letterbox")' in code.value


def test_the_script_of_the_first_screen_runs_from_any_folder(tmp_path: Path) -> None:
    """With a hook of every kind, and a second picture of the reader's own beside the script."""
    chelsea = sample_pictures()["chelsea"].read_bytes()
    name = cache.uploads().add(chelsea, "my own.png")
    kinds = [Step(kind, "features.3", "scale", {"factor": 0.9}) for kind in KINDS]
    patched = Step("forward", BEST, "patch", {"picture": name})
    app = press(lab(*kinds, patched), "Run")
    (tmp_path / "my own.png").write_bytes(chelsea)

    printed = printed_by(app.code[0].value, tmp_path)

    shown = app.session_state["lab.result"][1].after.predictions[0]
    after = printed.split("\nafter\n")[1].splitlines()[0]
    assert after[2:32].strip() == shown.name
    assert float(after[32:].split()[0]) == pytest.approx(shown.logit, abs=2e-4)


def test_the_script_of_an_upload_opens_the_frame_that_is_shown() -> None:
    data = io.BytesIO()
    colours = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    colours[0].save(data, "TIFF", save_all=True, append_images=colours[1:])
    upload = cache.uploads().add(data.getvalue(), "two é.tiff")

    (code,) = lab(SILENCE, picture=upload, frame="1").code

    assert 'PICTURE = "two é.tiff"  # the path of your picture\nFRAME = 1 ' in code.value
