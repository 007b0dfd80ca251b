"""The Lessons page: each kind of hook, learnt by running it."""

import streamlit as st

from interp.ui.waiting import first_screen

with first_screen():
    from interp.errors import InterpError
    from interp.lessons.catalog import find_lesson
    from interp.lessons.networks import vanish
    from interp.ui import lesson_parts, state
    from interp.ui.components import ASSETS
    from interp.ui.hook_panel import hook_panel
    from interp.ui.lesson_view import depth_chart, lesson_list, lesson_run, lesson_view
    from interp.ui.waiting import problem, working

state.current("lessons")
st.html(ASSETS / "lessons.css")

try:
    lesson = find_lesson(state.choice("lesson", "1"))
    chosen = lesson_parts.choices(lesson)
except InterpError as error:
    problem(error, [("Begin with lesson 1", lesson_parts.as_it_comes(1))])
    st.stop()

with st.container(key="lessons"):
    beside, main = st.columns([1, 4], gap="medium")
with beside:
    lesson_list(lesson.number, lesson_parts.done(), key="lesson list", on_pick=lesson_parts.go_to)

with main, st.container(key="result lesson"):
    st.markdown(f"## {lesson.number} · {lesson.title}\n\n{lesson.promise}")
    lesson_parts.controls(lesson, chosen)
    try:
        with working(f"Running lesson {lesson.number}"):
            result = lesson_run(
                lesson.number, tuple(chosen.items()), lesson_parts.runs_asked_for(lesson)
            )
    except InterpError as error:
        problem(error, [("Back to lesson 1", lesson_parts.as_it_comes(1))])
        st.stop()
    lesson_view(lesson, result, chosen, key="lesson")
    if lesson.function is vanish:
        depth_chart(result, key="depth")
    st.markdown(lesson.explanation)
    hook_panel(result.ledger, key="hooks lessons")
    lesson_parts.exercise(lesson)
    lesson_parts.turn_pages(lesson)
