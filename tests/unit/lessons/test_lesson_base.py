"""Lessons, their controls, and how a function is run."""

import inspect
import sys
import threading
from dataclasses import fields

import pytest
import torch

from interp.errors import HookError
from interp.lessons.base import Control, run
from interp.lessons.catalog import GROUPS, LESSONS, find_lesson
from interp.lessons.drawing import Flow, Node, shape, show
from interp.lessons.tensors import watch
from interp.ui.state import View


def test_there_are_eighteen_in_order_and_each_says_what_it_promises() -> None:
    assert [lesson.number for lesson in LESSONS] == list(range(1, 19))
    assert sum(len(group) for _, group in GROUPS) == 18
    for lesson in LESSONS:
        assert lesson.promise.endswith(".")
        assert lesson.promise.count(". ") == 0
        sentences = lesson.explanation.replace("e.g. ", "").count(". ") + 1
        assert 2 <= sentences <= 5, lesson.number


def test_what_is_shown_is_the_source_of_what_runs() -> None:
    for lesson in LESSONS:
        assert lesson.source == inspect.getsource(lesson.function)
        assert lesson.source.count("\n") <= 50
        text = lesson.source.splitlines()
        for line in run(lesson.function).lines:
            assert "register_" in text[line - 1] or "session." in text[line - 1], lesson.number


def test_a_lesson_is_found_by_its_number() -> None:
    assert find_lesson("7").number == 7
    for wrong in ("0", "19", "", "seven", "1.0"):
        with pytest.raises(HookError, match="from 1 to 18"):
            find_lesson(wrong)


def test_a_control_reads_only_what_it_offers() -> None:
    control = Control("depth", "Depth", (4, 8))
    assert control.read("", 8) == 8
    assert control.read("4", 8) == 4
    with pytest.raises(HookError, match="«5» is no value of «Depth»: choose one of 4, 8"):
        control.read("5", 8)


def test_controls_are_parameters_and_their_defaults_are_offered() -> None:
    taken = {field.name for field in fields(View)} | {"lesson"}
    for lesson in LESSONS:
        for control in lesson.controls:
            assert lesson.defaults()[control.name] in control.values
            assert control.name not in taken


def test_printing_is_kept_and_nothing_is_said_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(watch).printed.startswith("gradient passing h")
    assert capsys.readouterr().out == ""
    assert sys.stdout is not None


def test_two_runs_at_once_do_not_mix_what_they_print() -> None:
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(run(watch, factor=2.0).printed))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 4


def test_the_random_state_and_the_grad_mode_are_as_before() -> None:
    before = torch.random.get_rng_state()
    with torch.no_grad():
        for number in (6, 11, 12):
            run(LESSONS[number - 1].function)
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert run(watch).values["x.grad"].tolist() == [18, 36]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_values_are_written_short() -> None:
    assert show(torch.tensor([6.0, 12.0])) == "[6, 12]"
    assert show(torch.tensor(13.41641)) == "13.42"
    assert show(torch.ones(2, 2) / 4) == "all 0.25"
    assert show(torch.arange(6.0).reshape(2, 3)) == "2 × 3"
    assert shape((1, 512, 7, 7)) == "1 × 512 × 7 × 7"


def test_drawings_show_the_computed_values() -> None:
    drawing = LESSONS[0].drawing(run(watch).values)
    assert isinstance(drawing, Flow)
    assert drawing.nodes == (
        Node("x", "[1, 2]", "[18, 36]", then="× 3"),
        Node("h", "[3, 6]", "[6, 12]", then="square, sum"),
        Node("loss", "45", "1", "loss"),
    )
    (mark,) = drawing.marks
    assert (mark.at, mark.kind, mark.text) == (1, "tensor", "reads [6, 12]")
