"""The Lessons page as a script: every lesson, its address, its parameters and its question."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

APP = Path(__file__).resolve().parents[2] / "app.py"
SECONDS = 60


@pytest.fixture(autouse=True)
def _no_runs_of_other_tests() -> None:
    """All tests of a process are one session to Streamlit's caches."""
    st.cache_resource.clear()


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=SECONDS)
    app.switch_page("pages/lessons.py")
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def words(app: AppTest) -> str:
    return " ".join(part.value for part in [*app.markdown, *app.caption, *app.error])


def button(app: AppTest, start: str) -> Button:
    return next(one for one in app.button if one.label.startswith(start))


@pytest.mark.parametrize("number", range(1, 19))
def test_every_lesson_opens_by_its_address(number: int) -> None:
    app = run(lesson=str(number))
    assert not app.exception
    assert not app.error
    assert f"## {number} · " in words(app)
    assert "Your turn." in words(app)


def test_pages_turn_and_the_address_follows() -> None:
    app = run()
    assert "## 1 · " in words(app)
    button(app, "2 A returned tensor").click().run()
    assert app.query_params["lesson"] == "2"
    button(app, "1 A tensor hook").click().run()
    assert "lesson" not in app.query_params


def test_a_parameter_is_in_the_address_and_ends_with_its_lesson() -> None:
    app = run(lesson="3")
    app.toggle[0].set_value(False).run()
    assert app.query_params["removed_between"] == "False"
    button(app, "4 Clip").click().run()
    assert "removed_between" not in app.query_params


def answer(app: AppTest, text: str) -> AppTest:
    app.text_input[0].set_value(text)
    return button(app, "Check").click().run()


def test_an_answer_is_judged_and_a_right_one_counts() -> None:
    app = answer(run(), "")
    assert app.warning[0].value == "Not yet. Write an answer."
    assert answer(app, "18, 36").warning[0].value.startswith("Not yet. Write h down first")
    assert "write it like 6, 12" in answer(app, "fifty").warning[0].value
    assert "lessons done" not in app.session_state
    assert answer(app, "50, 100").success[0].value.startswith("Right. h = [5, 10]")
    assert app.session_state["lessons done"] == {1}


def test_run_again_is_a_run_of_its_own() -> None:
    app = run(lesson="4")
    before = len(app.session_state["runs"].all())
    app.run()
    assert len(app.session_state["runs"].all()) == before
    button(app, "Run again").click().run()
    runs = app.session_state["runs"].all()
    assert len(runs) == before + 1
    assert runs[-1].title == "Lesson 4: Clip and log"
    assert runs[-1].ledger.summary()["live"] == 0


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lesson": "99"}, "from 1 to 18"),
        ({"lesson": "12", "depth": "1000"}, "choose one of 4, 8, 12, 24"),
    ],
)
def test_a_wrong_address_is_refused_and_leads_back(parameters: dict[str, str], said: str) -> None:
    app = run(**parameters)
    assert said in app.error[0].value
    button(app, "Begin with lesson 1").click().run()
    assert not app.error
    assert "## 1 · " in words(app)


def test_the_view_of_other_pages_survives() -> None:
    app = run(picture="chelsea", lesson="2")
    assert app.session_state["view"].picture == "chelsea"
