"""What the reader can do in a lesson: change its parameters, run it again, answer its question."""

import streamlit as st

from interp.errors import HookError
from interp.lessons.base import Choice, Control, Lesson
from interp.lessons.catalog import LESSONS
from interp.lessons.exercises import Exercise, Verdict, check
from interp.ui import state
from interp.ui.waiting import plain

_DONE = "lessons done"
_AGAIN = "lessons again"
_VERDICTS = "lessons verdicts"


def go_to(number: int) -> None:
    """Show another lesson, with its parameters as it comes."""
    state.change(**as_it_comes(number))


def as_it_comes(number: int) -> dict[str, str]:
    """The choices of this page that show a lesson with its parameters at their defaults."""
    names = {control.name for lesson in LESSONS for control in lesson.controls}
    return {"lesson": str(number) if number > 1 else "", **dict.fromkeys(names, "")}


def done() -> list[int]:
    """Numbers of the lessons whose exercise was answered in this session."""
    return sorted(st.session_state.get(_DONE, ()))


def runs_asked_for(lesson: Lesson) -> int:
    """How often «Run again» was pressed in a lesson."""
    count: int = st.session_state.get(_AGAIN, {}).get(lesson.number, 0)
    return count


def choices(lesson: Lesson) -> dict[str, Choice]:
    """The lesson's parameters as the address has them.

    Raises
    ------
    HookError
        If one of them is none that the lesson offers.
    """
    defaults = lesson.defaults()
    return {
        control.name: control.read(state.choice(control.name), defaults[control.name])
        for control in lesson.controls
    }


def controls(lesson: Lesson, chosen: dict[str, Choice]) -> None:
    """The lesson's parameters, and the button that runs it again."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for control in lesson.controls:
            _control(lesson, control, chosen[control.name])
        st.button(
            "Run again",
            key=f"again {lesson.number}",
            icon=":material/replay:",
            on_click=_ask_again,
            args=(lesson,),
            help="Runs the code anew. Its random numbers are seeded: only times differ.",
        )


def exercise(lesson: Lesson) -> None:
    """One question with a checked answer, and what was said to the last one."""
    asked, key = lesson.exercise, f"answer {lesson.number}"
    with st.form(f"exercise {lesson.number}", border=True):
        st.markdown(f"**Your turn.** {asked.question}")
        if asked.kind == "choice":
            st.radio("Answer", asked.choices, index=None, key=key, label_visibility="collapsed")
        else:
            st.text_input(
                "Your answer, as sizes" if asked.kind == "shape" else "Your answer",
                key=key,
                placeholder=f"written like {asked.example}",
                width=320,
            )
        st.form_submit_button("Check", on_click=_check, args=(lesson, key))
        verdict: Verdict | None = st.session_state.get(_VERDICTS, {}).get(lesson.number)
        if verdict is None:
            return
        if verdict.right:
            st.success(f"Right. {verdict.text}", icon=":material/check:")
        else:
            st.warning(f"Not yet. {verdict.text}", icon=":material/lightbulb:")


def turn_pages(lesson: Lesson) -> None:
    """Buttons to the lessons before and after."""
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for step, icon in ((-1, ":material/arrow_back:"), (1, ":material/arrow_forward:")):
            number = lesson.number + step
            if 1 <= number <= len(LESSONS):
                st.button(
                    f"{number} {LESSONS[number - 1].title}",
                    key=f"turn {step}",
                    type="tertiary",
                    icon=icon,
                    icon_position="left" if step < 0 else "right",
                    on_click=go_to,
                    args=(number,),
                )


def _control(lesson: Lesson, control: Control, value: Choice) -> None:
    key = f"control {lesson.number} {control.name}"
    st.session_state[key] = value

    def changed() -> None:
        new = st.session_state[key]
        default = lesson.defaults()[control.name]
        if new is not None:
            state.change(**{control.name: "" if new == default else str(new)})

    if control.values == (False, True):
        st.toggle(control.label, key=key, help=control.help or None, on_change=changed)
    elif len("".join(map(str, control.values))) > 60:
        st.selectbox(
            control.label,
            control.values,
            key=key,
            help=control.help or None,
            on_change=changed,
            width=300,
        )
    else:
        st.segmented_control(
            control.label,
            control.values,
            key=key,
            help=control.help or None,
            format_func=_written,
            on_change=changed,
        )


def _written(value: Choice) -> str:
    return f"{value:g}".replace("-", "−") if isinstance(value, float) else str(value)


def _ask_again(lesson: Lesson) -> None:
    asked: dict[int, int] = st.session_state.setdefault(_AGAIN, {})
    asked[lesson.number] = runs_asked_for(lesson) + 1


def _check(lesson: Lesson, key: str) -> None:
    verdict = _verdict(lesson.exercise, st.session_state.get(key))
    st.session_state.setdefault(_VERDICTS, {})[lesson.number] = verdict
    if verdict.right:
        st.session_state.setdefault(_DONE, set()).add(lesson.number)


def _verdict(asked: Exercise, given: str | None) -> Verdict:
    if not given:
        return Verdict(False, "Choose an answer first." if asked.choices else "Write an answer.")
    try:
        return check(asked, given)
    except HookError as error:
        return Verdict(False, plain(str(error)[:1].upper() + str(error)[1:]))
