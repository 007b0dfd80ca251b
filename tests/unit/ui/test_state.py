"""The view, its URL, and what a change of it resets."""

import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as some

from interp.ui.state import View, change, choice, current, from_url, to_url


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict:
    values: dict = {}
    monkeypatch.setattr(st, "session_state", values)
    return values


def test_the_default_view_needs_no_parameters() -> None:
    assert to_url(View()) == {}
    assert from_url({}) == View()


@given(
    some.builds(
        View,
        picture=some.text(min_size=1),
        frame=some.integers(0, 99),
        model=some.text(),
        layer=some.text(),
        target=some.text(),
        fit=some.sampled_from(["crop", "stretch", "letterbox"]),
    )
)
def test_every_view_comes_back_from_its_url(view: View) -> None:
    assert from_url(to_url(view)) == view


def test_strange_parameters_are_left_alone() -> None:
    assert from_url({"frame": "-1", "utm": "x", "model": "resnet50"}) == View(model="resnet50")


def test_another_picture_is_explained_for_its_own_top_prediction(session: dict) -> None:
    session["view"] = View(frame=2, target="967", layer="features.3")
    change(picture="chelsea")
    assert session["view"] == View(picture="chelsea", layer="features.3")


def test_the_same_picture_keeps_its_target(session: dict) -> None:
    session["view"] = View(target="967")
    change(picture="coffee")
    assert session["view"].target == "967"


def test_another_model_is_shown_at_its_own_layer_with_its_own_weights(session: dict) -> None:
    session["view"] = View(layer="features.3", weights="none", target="967")
    change(model="resnet18")
    assert session["view"] == View(model="resnet18", target="967")


class Address(dict):
    """The browser's address bar: Streamlit's query parameters."""

    def to_dict(self) -> dict:
        return dict(self)

    def from_dict(self, parameters: dict) -> None:
        self.clear()
        self.update(parameters)


@pytest.fixture
def address(session: dict, monkeypatch: pytest.MonkeyPatch) -> Address:
    bar = Address()
    monkeypatch.setattr(st, "query_params", bar)
    return bar


def test_a_pages_own_choice_is_in_the_address_and_not_in_the_view(address: Address) -> None:
    current("layers")
    change(order="mean", model="resnet18")
    assert current("layers") == View(model="resnet18")
    assert choice("order") == "mean"
    assert address == {"order": "mean", "model": "resnet18"}


def test_an_address_brings_view_and_choices_back(address: Address) -> None:
    address.update(order="mean", model="resnet18")
    assert current("layers") == View(model="resnet18")
    assert choice("order", "contribution") == "mean"
    assert choice("page", "1") == "1"


def test_an_empty_choice_leaves_the_address(address: Address) -> None:
    current("layers")
    change(order="mean")
    current("layers")
    change(order="")
    current("layers")
    assert address == {}
    assert choice("order", "contribution") == "contribution"


def test_another_page_goes_on_with_the_view_and_has_choices_of_its_own(address: Address) -> None:
    current("layers")
    change(order="mean", picture="chelsea")
    current("layers")
    address.clear()  # Streamlit turns to a page without parameters
    assert current("gradients") == View(picture="chelsea")
    assert address == {"picture": "chelsea"}
    assert choice("order") == ""
    address.clear()
    current("layers")
    assert address == {"picture": "chelsea", "order": "mean"}


def test_back_on_the_same_page_to_an_empty_address_is_the_default_view(address: Address) -> None:
    current("layers")
    change(order="mean", picture="chelsea")
    current("layers")
    address.clear()
    assert current("layers") == View()
    assert choice("order") == ""
