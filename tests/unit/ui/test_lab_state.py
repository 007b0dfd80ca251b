"""The recipe of a session, its address, and hooks that are live until they are taken off."""

from dataclasses import replace
from typing import Any, NoReturn

import pytest
import streamlit as st

from interp import LoadedModel, audit
from interp.errors import PictureError
from interp.hooks.lab import Lab
from interp.hooks.recipe import Recipe, Step
from interp.ui import lab_state, state
from interp.ui.lab_fields import change_step
from interp.ui.state import View

SILENCE = Step("forward", "features.8", "channels", {"which": "4"}, id="one")
HALVE = Step("forward_pre", "features.5", "scale", id="two")
NEGATE = Step("full_backward", "features.3", "negate", id="three")
THREE = Recipe((SILENCE, HALVE, NEGATE))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    values: dict[str, Any] = {"view": View(), "page": "lab", "choices": {"lab": {}}}
    monkeypatch.setattr(st, "session_state", values)
    lab_state._recipes.clear()
    return values


@pytest.fixture
def lab(session: dict[str, Any], bundled: LoadedModel) -> Lab:
    made = Lab(bundled, lab_state.ledger())
    session["lab.live"] = made
    return made


def sync(lab: Lab) -> None:
    recipe = lab_state.recipe()
    lab_state.make_live(lab, recipe, lab_state.problems(recipe, lab.model))


def paths(lab: Lab) -> list[str]:
    return [hook.path for hook in audit(lab.session.module)]


def test_recipes_are_kept_by_a_name_that_follows_from_their_content() -> None:
    store = lab_state.Recipes()
    name = store.add(THREE)
    assert store.add(Recipe.from_json(THREE.to_json())) == name
    assert store.get(name) == THREE
    assert store.get("another") is None


def test_the_empty_recipe_has_the_empty_name() -> None:
    assert lab_state.Recipes().add(Recipe()) == ""
    assert lab_state.Recipes().get("") == Recipe()


def test_the_oldest_recipe_goes_first() -> None:
    store = lab_state.Recipes(capacity=2)
    names = [store.add(Recipe((step,))) for step in THREE.steps]
    assert [store.get(name) is None for name in names] == [True, False, False]


def test_a_changed_recipe_is_named_in_the_address(session: dict[str, Any]) -> None:
    assert not lab_state.follow_address()
    lab_state.add(SILENCE)
    assert len(state.choice("recipe")) == 16
    assert not lab_state.follow_address()
    assert lab_state.recipe() == Recipe((SILENCE,))


def test_an_address_that_is_older_than_a_press_does_not_undo_it(session: dict[str, Any]) -> None:
    lab_state.add(SILENCE)
    session["address"] = dict(session["choices"]["lab"])
    lab_state.open_step("")  # pressed before the browser had the new address
    assert session["address"] is None  # so that no other address is taken for one gone to
    assert not lab_state.follow_address()
    assert lab_state.recipe() == Recipe((SILENCE,))


def test_another_session_comes_back_to_it_by_the_address(session: dict[str, Any]) -> None:
    lab_state.change_recipe(THREE)
    lab_state.follow_address()
    address = dict(session["choices"]["lab"])
    session.clear()
    session.update({"view": View(), "page": "lab", "choices": {"lab": address}})
    assert not lab_state.follow_address()
    assert lab_state.recipe() == THREE


def test_the_back_button_undoes_a_change(session: dict[str, Any]) -> None:
    lab_state.add(SILENCE)
    lab_state.follow_address()
    before = dict(session["choices"]["lab"])
    lab_state.add(HALVE)
    lab_state.follow_address()
    session["choices"]["lab"] = before
    lab_state.follow_address()
    assert lab_state.recipe() == Recipe((SILENCE,))
    session["choices"]["lab"] = {}
    lab_state.follow_address()
    assert lab_state.recipe() == Recipe()


def test_a_step_added_on_another_page_wins_over_the_address_left_behind(
    session: dict[str, Any],
) -> None:
    lab_state.add(SILENCE)
    lab_state.follow_address()
    session["page"] = "layers"
    lab_state.add(HALVE)
    assert "layers" not in session["choices"]
    session["page"] = "lab"
    assert lab_state.follow_address()
    assert lab_state.recipe() == Recipe((SILENCE, HALVE))
    assert lab_state.opened() == HALVE.id


def test_an_address_whose_recipe_is_gone_says_so_once(session: dict[str, Any]) -> None:
    session["choices"]["lab"] = {"recipe": "0" * 16}
    assert lab_state.follow_address()
    assert state.choice("recipe") == ""
    assert "no longer kept" in lab_state.told()[0]
    assert lab_state.told() == []


def test_enabled_steps_are_live_in_order_and_removed_one_by_one(lab: Lab) -> None:
    lab_state.change_recipe(THREE)
    sync(lab)
    assert [hook.step.id for hook in lab.live] == ["one", "two", "three"]
    assert sorted(paths(lab)) == ["features.3", "features.5", "features.8"]
    for left in (2, 1, 0):
        lab_state.remove_hook(lab.live[0].record.id)
        sync(lab)
        assert len(lab.live) == left
    assert audit(lab.session.module) == []
    assert audit(lab.model.module) == []
    assert [step.enabled for step in lab_state.recipe().steps] == [False, False, False]
    assert lab.ledger.summary()["live"] == 0


def test_a_rerun_keeps_handle_and_record(lab: Lab) -> None:
    lab_state.change_recipe(THREE)
    sync(lab)
    before = [hook.record.id for hook in lab.live]
    sync(lab)
    lab_state.change_recipe(lab_state.recipe().replace(replace(HALVE, enabled=False)))
    sync(lab)
    assert [hook.record.id for hook in lab.live] == [before[0], before[2]]


def test_remove_all_switches_every_step_off(lab: Lab) -> None:
    lab_state.change_recipe(THREE)
    sync(lab)
    lab_state.remove_all()
    assert lab.live == ()
    assert not any(step.enabled for step in lab_state.recipe().steps)


def test_a_record_that_is_no_live_hook_changes_nothing(lab: Lab) -> None:
    lab_state.change_recipe(THREE)
    sync(lab)
    lab_state.remove_hook(99)
    assert len(lab.live) == 3
    assert lab_state.recipe() == THREE


def test_a_step_that_cannot_work_is_kept_and_said_and_the_others_are_live(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(name: str) -> NoReturn:
        raise PictureError(f"the picture {name[:2]} is no longer kept")

    monkeypatch.setattr(lab_state, "picture_of", gone)
    unknown = Step("forward", "layer4", id="unknown")
    channel = Step("forward", "features.8", "channels", {"which": "1280"}, id="channel")
    lost = Step("forward", "features.8", "patch", {"picture": "0" * 64}, id="lost")
    lab_state.change_recipe(Recipe((unknown, channel, lost, SILENCE)))
    wrong = lab_state.problems(lab_state.recipe(), lab.model)
    assert set(wrong) == {"unknown", "channel", "lost"}
    assert "no layer «layer4»" in wrong["unknown"]
    assert "0 to 1279" in wrong["channel"]
    assert wrong["lost"] == "the picture 00 is no longer kept"
    sync(lab)
    assert [hook.step.id for hook in lab.live] == ["one"]
    assert len(lab_state.recipe().steps) == 4


def test_a_closed_lab_is_no_live_lab(lab: Lab) -> None:
    lab_state.change_recipe(THREE)
    sync(lab)
    module = lab.session.module
    lab.close()
    assert lab_state.live_lab() is None
    assert audit(module) == []
    lab_state.remove_all()
    assert lab_state.recipe() == THREE


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"call": 1}, {"path": "features.5"}),
        ({"kind": "tensor", "action": "zero", "of": "weight"}, {"path": "features.5"}),
        ({"kind": "tensor", "action": "zero", "of": "weight"}, {"kind": "forward"}),
        ({"kind": "tensor", "call": 1}, {"of": "weight"}),
    ],
)
def test_what_no_longer_fits_goes_back_to_its_default(
    session: dict[str, Any], fields: dict[str, Any], change: dict[str, Any]
) -> None:
    step = replace(SILENCE, **({"values": {}} if "action" in fields else {}), **fields)
    lab_state.change_recipe(Recipe((step,)))
    change_step(step, **change)
    (changed,) = lab_state.recipe().steps
    assert changed.call is None
    assert changed.of == change.get("of", "output")


def test_two_fields_that_change_between_two_runs_are_both_kept(session: dict[str, Any]) -> None:
    lab_state.change_recipe(Recipe((SILENCE,)))
    change_step(SILENCE, values={"which": "7"})
    change_step(SILENCE, first=True)  # drawn, as the one before, with the first step
    (changed,) = lab_state.recipe().steps
    assert (changed.values["which"], changed.first) == ("7", True)


def test_a_field_of_a_deleted_step_changes_nothing(session: dict[str, Any]) -> None:
    change_step(SILENCE, first=True)
    assert lab_state.recipe() == Recipe()
