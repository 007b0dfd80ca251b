"""What the class picker writes into the address."""

import pytest

from interp.targets import parse_target
from interp.ui.controls import target_text

FOLDERS = ("1", "10", "2", "2015")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("#1", "#1"),
        ("=1", "0"),
        ("#1-#0:prob", "#1-#0:prob"),
        ("#-#1", "#2-#1"),
        ("#2-#2:logprob", "2:logprob"),
    ],
)
def test_a_picked_class_is_the_one_that_is_explained(target: str, text: str) -> None:
    assert target_text(parse_target(target, FOLDERS), top=2) == text
    assert str(parse_target(text, FOLDERS)) == text
