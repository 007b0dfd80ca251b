"""The Gradients page as a script: every choice, the address, and what goes wrong."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from interp.hooks.ledger import audit
from interp.ui import cache

ROOT = Path(__file__).resolve().parents[2]


def open_page(**parameters):
    at = AppTest.from_file(str(ROOT / "pages" / "gradients.py"), default_timeout=60)
    for name, value in parameters.items():
        at.query_params[name] = value
    return at.run()


def text(at):
    parts = [*at.markdown, *at.caption, *at.success, *at.warning, *at.error, *at.info]
    return "\n".join(element.value for element in parts)


def choose(at, label, value):
    (control,) = [c for c in at.segmented_control if c.label == label]
    return control.set_value(value).run()


@pytest.fixture(scope="module")
def page():
    at = open_page()
    assert not at.exception
    return at


def test_the_trained_model_is_healthy_and_the_rule_stands_on_the_page(page):
    shown = text(page)
    assert "**The gradient of *the score of espresso (967)***" in shown
    assert "No layer is marked." in shown
    assert "more than 1,000 times smaller (vanishing) or larger (exploding)" in shown
    assert "`features.8.1`" in shown
    assert not page.warning
    assert not page.error


def test_nothing_stays_on_the_model(page):
    assert audit(cache.model("efficientnet_lite0", "default").module) == []


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("parameters", "pulls at the weights"),
        ("ratio", "against the size of that output"),
        ("zeros", "exactly zero at the output"),
    ],
)
def test_each_number_has_its_sentence_and_its_place_in_the_address(value, sentence):
    at = choose(open_page(), "Along depth", value)
    assert not at.exception
    assert sentence in text(at)
    assert at.query_params["show"] == value
    assert sentence in text(open_page(show=value))


def test_cross_entropy_against_a_label():
    at = choose(open_page(), "Loss", "label")
    assert not at.exception
    assert "the cross-entropy against espresso (967)" in text(at)
    other = text(open_page(loss="label", label="968"))
    assert "the cross-entropy against cup (968)" in other


def test_every_detail():
    for detail in ("layers", "all"):
        at = choose(open_page(), "One point for each", detail)
        assert not at.exception
        assert at.query_params["detail"] == detail


def test_against_the_untrained_twin():
    at = choose(open_page(), "Compare with", "untrained")
    assert not at.exception
    assert "**trained**: no layer is marked" in text(at)
    (warning,) = at.warning[:1]
    assert warning.value.startswith("**untrained**: the gradient vanishes in ")
    again = open_page(compare="untrained")
    assert warning.value in text(again)


def test_against_another_picture():
    at = choose(open_page(), "Compare with", "picture")
    assert not at.exception
    assert "**coffee**" in text(at)
    assert "**chelsea**" in text(at)
    named = open_page(compare="picture", other="rocket", target="967")
    assert "**rocket**" in text(named)


def test_an_untrained_model_offers_no_untrained_twin():
    at = open_page(weights="none")
    assert not at.exception
    (control,) = [c for c in at.segmented_control if c.label == "Compare with"]
    assert "Untrained twin" not in control.options
    assert at.warning[0].value.startswith("The gradient vanishes in ")


def test_a_layer_of_the_address():
    at = open_page(at="features.3.0.block.0.0")
    assert "`features.3.0.block.0.0` :gray[Conv2d]" in text(at)
    shown = text(open_page(at="features.99", layer="features.2.0"))
    assert "«features.99» is no layer of this model: this is «features.2.0»." in shown
    assert "`features.2.0` :gray[\\_LiteBlock]" in shown  # the one of the other pages


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "label", "label": "1000"}, "No class has the index 1000"),
        ({"compare": "picture", "other": "nowhere"}, "The second picture «nowhere» is not kept"),
    ],
)
def test_what_cannot_be_had_says_so_and_offers_a_way_out(parameters, message):
    at = open_page(**parameters)
    assert not at.exception
    assert message in at.error[0].value
    at.button[0].click().run()
    assert not at.exception
    assert not at.error
    assert "No layer is marked" in text(at) or "no layer is marked" in text(at)
