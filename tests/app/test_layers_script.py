"""The Layers page as a script, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from interp.picture import sample_pictures
from interp.ui import cache

ROOT = Path(__file__).parents[2]


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "layers.py"), default_timeout=120)
    app.query_params.update(parameters)
    app.run()
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    return "\n".join(
        e.value for kind in ("markdown", "caption", "error", "info") for e in app.get(kind)
    )


def test_the_first_screen_shows_the_recommended_layer() -> None:
    app = run()
    said = words(app)
    assert "### `features.8.1` BatchNorm2d" in said
    assert "raises the score of *espresso (967)*" in said
    assert "1st of 1,280 by contribution" in said
    assert "233 of 240 modules ran" in said
    assert "240 hooks registered, 240 removed" in said
    assert app.query_params == {}


def test_the_url_names_layer_channel_and_target() -> None:
    said = words(run(layer="features.3.0", channel="7", target="968"))
    assert "`features.3.0`" in said
    assert "**Channel 7**" in said
    assert "*cup (968)*" in said


def test_a_vector_has_units_and_the_classifier_has_names() -> None:
    said = words(run(module="classifier.1"))
    assert "**All 1,000 units**" in said
    assert "**Unit 967** (*espresso*) raises the score of *espresso (967)*" in said
    assert "**All 1,280 units**" in words(run(layer="avgpool"))


def test_a_module_that_runs_several_times_has_a_choice_of_calls() -> None:
    app = run(model="resnet18", weights="none", layer="layer1.0.relu#1")
    (calls,) = [group for group in app.button_group if group.label == "Call"]
    assert calls.value == [1] or calls.value == 1
    assert "**All 64 channels**" in words(app)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("attention", "has no attention that can be shown"),
        ("dead", "layers** have channels that are zero everywhere on this picture"),
        ("operations", "**BatchNorm2d** is one module and **1 autograd operation**"),
        ("nonsense", "**All 1,280 channels**"),
    ],
)
def test_each_section_says_what_it_shows(section: str, said: str) -> None:
    assert said in words(run(section=section))


def test_dead_units_are_those_of_all_the_pictures() -> None:
    said = words(run(section="dead", layer="features.8.2", pictures="coffee,chelsea"))
    assert "of 1,280** dead on both pictures" in said


def test_dead_units_take_an_upload_that_only_the_address_knows() -> None:
    name = cache.uploads().add(sample_pictures()["chelsea"].read_bytes(), "cat.png")
    app = run(section="dead", layer="features.8.2", pictures=f"coffee,{name}")
    assert not app.error
    assert "of 1,280** dead on both pictures" in words(app)


@pytest.mark.parametrize(
    ("parameters", "message", "remedy"),
    [
        ({"layer": "features.99"}, "no layer «features.99»", "Look at the recommended layer"),
        ({"layer": "features.0#x"}, "no call of a layer", "Look at the recommended layer"),
        ({"layer": "features.0#3"}, "no call 3", "Look at the recommended layer"),
        ({"channel": "1280"}, "no channel «1280»", "Show the channel that adds most"),
        ({"channel": "²"}, "no channel «²»", "Show the channel that adds most"),
        (
            {"section": "dead", "pictures": "coffee,unknown"},
            "picture «unknown» is not known",
            "Take the picture of the sidebar",
        ),
    ],
)
def test_what_the_url_asks_in_vain_is_said_and_one_click_mends_it(
    parameters: dict[str, str], message: str, remedy: str
) -> None:
    app = run(**parameters)
    (error,) = app.error
    assert message in error.value[:1].lower() + error.value[1:]
    assert "\n" not in error.value
    next(button for button in app.button if button.label == remedy).click().run()
    assert not app.exception
    assert not app.error


def test_a_head_that_does_not_exist_is_said() -> None:
    app = run(model="vit_b_32", weights="none", section="attention", head="12-0")
    assert "no attention head «12-0»" in app.error[0].value
    next(b for b in app.button if b.label == "Show the last block").click().run()
    assert "`encoder.layers.encoder_layer_11.self_attention`" in words(app)


def test_a_patch_looks_instead_of_the_class_token() -> None:
    app = run(model="vit_b_32", weights="none", section="attention", patch="7-0")
    assert "no patch «7-0»" in app.error[0].value
    next(b for b in app.button if b.label == "Look from the first token").click().run()
    assert "how strongly the class token looks at each patch" in words(app)
    assert not app.number_input
    (source,) = [group for group in app.button_group if group.label == "Looking from"]
    source.set_value("A patch").run()
    assert "how strongly the patch in row 3, column 3 looks at each patch" in words(app)
    app.number_input(key="token row").set_value(6).run()
    assert app.query_params["patch"] == "6-3"
    assert "in row 6, column 3" in words(app)
