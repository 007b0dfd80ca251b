"""The first tensor in nested values, and the same value with another one in its place."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch

from interp.hooks.nested import first_tensor, with_first
from interp.hooks.places import read, rebuilt, way_to_tensor

Out = namedtuple("Out", "words logits more")
A, B, NEW = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([9.0])
VALUES: list[Any] = [
    A,
    (A, B),
    [None, A, B],
    (None, {"x": "text", "y": [A], "z": B}),
    OrderedDict(words="text", out=(A, B)),
    Out("text", A, B),
    (((), {}), (A,)),
]


@pytest.mark.parametrize("value", VALUES)
def test_only_the_first_tensor_is_replaced(value: Any) -> None:
    assert first_tensor(value) is A

    new = with_first(value, NEW)

    assert type(new) is type(value)
    assert str(new) == str(value).replace("1.", "9.", 1)
    assert first_tensor(value) is A


@pytest.mark.parametrize("value", VALUES)
def test_source_that_reads_and_replaces_it(value: Any) -> None:
    way = way_to_tensor(value)
    assert way is not None

    assert eval(read("value", way)) is A
    new = eval(rebuilt("value", way, "NEW"))

    assert first_tensor(new) is NEW
    flat = str(new).removeprefix("OrderedDict").strip("()")
    expected = str(with_first(value, NEW)).removeprefix("OrderedDict").strip("()")
    assert isinstance(value, OrderedDict) or flat == expected


def test_where_there_is_none() -> None:
    assert first_tensor((None, {"x": 1})) is None
    assert way_to_tensor((None, {"x": 1})) is None
