"""The five kinds: one name and one colour each, for the whole dashboard."""

from __future__ import annotations

import re
import subprocess
import sys

from interp.hooks.ledger import KINDS
from interp.ui.kinds import KIND_COLOURS, KIND_TITLES, colour_properties, colour_style


def test_the_kinds_are_those_of_the_ledger_in_their_order() -> None:
    assert tuple(KIND_TITLES) == tuple(KIND_COLOURS) == KINDS
    assert len(set(KIND_TITLES.values())) == len(set(KIND_COLOURS.values())) == 5


def test_every_kind_has_a_property_of_its_colour() -> None:
    assert colour_properties() == {
        "--hook-forward-pre": "#2b9999",
        "--hook-forward": "#3062b8",
        "--hook-full-backward-pre": "#c97a22",
        "--hook-full-backward": "#c2243a",
        "--hook-tensor": "#ab6cf2",
    }
    style = colour_style()
    found = re.fullmatch(r"<style>:root \{(.*)\}</style>", style)
    assert found is not None
    pairs = dict(line.split(": ") for line in found[1].rstrip(";").split(";"))
    assert pairs == colour_properties()


def test_each_colour_stands_out_on_paper_and_on_black() -> None:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    for colour in KIND_COLOURS.values():
        assert contrast(colour, "#fbf9f4") >= 3.0
        assert contrast(colour, "#0c1014") >= 3.0


def test_the_colours_are_known_before_torch_is_imported() -> None:
    code = "import sys, interp.ui.kinds; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
