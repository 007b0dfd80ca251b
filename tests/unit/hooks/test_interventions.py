"""Each action on a small tensor, worked out by hand; its words; its options; its lines of code."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from interp.errors import HookError
from interp.hooks.interventions import ACTIONS, parse_channels

VALUE = torch.tensor([[[[1.0, -2.0]], [[3.0, 5.0]], [[0.0, 4.0]]]])  # (1, 3, 1, 2)
DONOR = torch.arange(6.0).reshape(1, 3, 1, 2)
CASES: list[tuple[str, dict[str, Any], list[list[float]]]] = [
    ("scale", {"factor": 0.5}, [[0.5, -1], [1.5, 2.5], [0, 2]]),
    ("clamp", {"low": -1.0, "high": 3.0}, [[1, -1], [3, 3], [0, 3]]),
    ("zero", {}, [[0, 0], [0, 0], [0, 0]]),
    ("negate", {}, [[-1, 2], [-3, -5], [0, -4]]),
    ("channels", {"which": "0, 2"}, [[0, 0], [3, 5], [0, 0]]),
    ("channels", {"which": "0-1", "to": "mean"}, [[-0.5, -0.5], [4, 4], [0, 4]]),
    ("patch", {"picture": "coffee"}, [[0, 1], [2, 3], [4, 5]]),
    ("constant", {"value": -2.5}, [[-2.5, -2.5]] * 3),
]


@pytest.mark.parametrize(("name", "values", "expected"), CASES)
def test_what_an_action_makes_of_a_value(
    name: str, values: dict[str, Any], expected: list[list[float]]
) -> None:
    value, donor = VALUE.clone(), DONOR.clone()

    new = ACTIONS[name].apply(value, 1, values, donor)

    assert new is not None
    assert torch.equal(new[0, :, 0], torch.tensor(expected))
    assert torch.equal(value, VALUE)
    new += 1  # whatever the network does to it next
    assert torch.equal(value, VALUE)
    assert torch.equal(donor, DONOR)


@pytest.mark.parametrize(("name", "values", "expected"), CASES)
def test_the_lines_of_code_do_the_same(
    name: str, values: dict[str, Any], expected: list[list[float]]
) -> None:
    lines = ACTIONS[name].code(values, 1)
    space: dict[str, Any] = {"torch": torch}

    exec("def act(value, donor):\n    " + "\n    ".join(lines), space)

    assert torch.equal(space["act"](VALUE, DONOR)[0, :, 0], torch.tensor(expected))


def test_watching_changes_nothing() -> None:
    assert ACTIONS["watch"].apply(VALUE, 1, {}) is None


def test_channels_are_on_the_axis_that_is_named() -> None:
    tokens = VALUE[0, :, 0].T[None].contiguous()  # (1, 2, 3)

    new = ACTIONS["channels"].apply(tokens, -1, {"which": "1", "to": "mean"})

    assert new is not None
    assert new.tolist() == [[[1, 4, 0], [-2, 4, 4]]]


def test_channels_need_a_known_axis() -> None:
    with pytest.raises(HookError, match="shape 1×3×1×2 holds its channels is not known"):
        ACTIONS["channels"].apply(VALUE, None, {})


def test_a_channel_of_a_vector_is_its_own_mean() -> None:
    vector = torch.tensor([[1.0, 2.0, 3.0]])

    new = ACTIONS["channels"].apply(vector, -1, {"which": "0-2", "to": "mean"})

    assert new is not None
    assert torch.equal(new, vector)


def test_noise_is_that_of_its_seed_and_as_strong_as_asked() -> None:
    value = torch.linspace(-3, 3, 4096).reshape(1, 4, 32, 32)
    state = torch.get_rng_state()

    def noise(**values: Any) -> Tensor:
        new = ACTIONS["noise"].apply(value, 1, values)
        assert new is not None
        return new - value

    weak = noise(deviation=0.25, seed=7)
    assert torch.equal(weak, noise(deviation=0.25, seed=7))
    assert not torch.equal(weak, noise(deviation=0.25, seed=8))
    own = float(value.std(correction=0))
    torch.testing.assert_close(float(weak.std()), 0.25 * own, rtol=0.03, atol=0)
    drawn = torch.randn(value.shape, generator=torch.Generator().manual_seed(7))
    torch.testing.assert_close(weak, drawn * 0.25 * own)
    assert torch.equal(torch.get_rng_state(), state)
    assert ACTIONS["noise"].apply(value, 1, {"deviation": 0.0}) is None


def test_a_patch_must_have_the_shape_of_what_it_replaces() -> None:
    with pytest.raises(HookError, match=r"on cat\.png has shape 2×3 and the one .* 1×3×1×2"):
        ACTIONS["patch"].apply(VALUE, 1, {"picture": "pictures/cat.png"}, torch.zeros(2, 3))
    with pytest.raises(HookError, match=r"nothing stands there on cat\.png"):
        ACTIONS["patch"].apply(VALUE, 1, {"picture": "pictures/cat.png"}, None)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("watch", {}, "looks at it and changes nothing"),
        ("scale", {"factor": 0.5}, "multiplies it by 0.5"),
        ("clamp", {"low": -1.0, "high": 2.0}, "keeps it between -1 and 2"),
        ("zero", {}, "sets it to zero"),
        ("negate", {}, "flips the sign of it"),
        ("noise", {}, "adds noise to it (0.5 of its standard deviation, seed 0)"),
        ("channels", {"which": "4"}, "silences channel 4 of it"),
        ("channels", {"which": "0-15,20"}, "silences channels 0-15, 20 of it"),
        ("channels", {"which": "4", "to": "mean"}, "replaces channel 4 of it by its mean"),
        ("patch", {"picture": "a/{x}.png"}, "replaces it by what stands there on (x).png"),
        ("constant", {"value": 0.0}, "replaces it by 0 everywhere"),
    ],
)
def test_each_action_says_what_it_does(name: str, values: dict[str, Any], words: str) -> None:
    assert ACTIONS[name].sentence(values) == words


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("scale", {"by": 2}, "has no option «by»: it has factor"),
        ("zero", {"by": 2}, "has no option «by»: it has none"),
        ("scale", {"factor": "2"}, "factor of «scale» is '2': give a finite number"),
        ("scale", {"factor": True}, "give a finite number"),
        ("scale", {"factor": float("nan")}, "give a finite number"),
        ("noise", {"deviation": -1}, "give a number from 0 to inf"),
        ("noise", {"seed": 1.5}, "give a whole number"),
        ("channels", {"to": "one"}, "give zero or mean"),
        ("channels", {"which": 3}, "give a text"),
        ("clamp", {"low": 2, "high": 1}, "low is above high"),
    ],
)
def test_options_are_refused_in_one_line(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(HookError, match=message) as caught:
        ACTIONS[name].complete(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "channels"),
    [("4", (4,)), ("0-3, 7", (0, 1, 2, 3, 7)), (" 7 , 1–2,1 ", (1, 2, 7)), ("9", (9,))],
)
def test_channels_as_people_write_them(text: str, channels: tuple[int, ...]) -> None:
    assert parse_channels(text, 10) == channels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("1,,2", "cannot be read"),
        ("-1", "cannot be read"),
        ("²", "cannot be read"),
        ("5-3", "run backwards: write 3-5"),
        ("10", "there is no channel 10: the channels are 0 to 9"),
        ("0-999999999", "there is no channel 999999999"),
    ],
)
def test_channels_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(HookError, match=message):
        parse_channels(text, 10)


@given(st.sets(st.integers(0, 40), min_size=1))
def test_any_set_of_channels_can_be_written(channels: set[int]) -> None:
    text = ", ".join(map(str, channels))

    assert parse_channels(text, 41) == tuple(sorted(channels))
