"""A lesson's listing and its drawing in words, as the browser is given them."""

from interp.lessons.base import run
from interp.lessons.catalog import LESSONS
from interp.lessons.drawing import Bar, Bars, Flow, Mark, Node
from interp.lessons.modules import forget
from interp.ui.lesson_code import pieces
from interp.ui.lesson_view import describe, leaked, recorded_hooks


def test_the_pieces_of_each_line_are_the_line() -> None:
    for lesson in LESSONS:
        lines = ["".join(text for _, text in line) for line in pieces(lesson.source)]
        assert lines == lesson.source.splitlines()


def test_words_strings_numbers_and_comments_are_told_apart() -> None:
    (first, second) = pieces('if x == 1:  # one\n    print("two", None)\n')
    assert first == [
        ("keyword", "if"),
        ("", " x == "),
        ("number", "1"),
        ("", ":  "),
        ("comment", "# one"),
    ]
    assert second == [
        ("", "    print("),
        ("string", '"two"'),
        ("", ", "),
        ("keyword", "None"),
        ("", ")"),
    ]


def test_a_text_over_several_lines_is_one_on_each() -> None:
    assert pieces('x = """a\n  b"""\n') == [
        [("", "x = "), ("string", '"""a')],
        [("string", '  b"""')],
    ]


def test_drawings_are_told_in_words() -> None:
    flow = Flow(
        "title",
        (Node("x", "[1, 2]", "[18, 36]"), Node("h"), Node("loss", "45")),
        (Mark(1, "tensor", "reads it"),),
    )
    assert (
        describe(flow)
        == "x ([1, 2], gradient [18, 36]) to h to loss (45); tensor hook at h: reads it"
    )
    assert describe(Bars("title", (Bar("a", 1, "1 ×"), Bar("b", 2, "2 ×")))) == "a: 1 ×; b: 2 ×"


def test_what_the_ledger_recorded_is_counted_for_each_hook() -> None:
    ledger = run(forget, passes=2).ledger
    assert leaked(ledger) == 2
    hooks = recorded_hooks(ledger)
    assert [(h["path"], h["fires"], h["changed"], h["status"]) for h in hooks] == [
        ("net.0", 2, 0, "leaked"),
        ("net.0", 1, 0, "leaked"),
        ("0", 1, 0, "removed"),
        ("0", 1, 0, "removed"),
    ]
