"""The drawing of the network: which blocks, how high, and where each hook stands."""

from dataclasses import replace

import pytest

from interp import list_layers, load_model
from interp.models.layers import LayerInfo
from interp.ui.network import Mark, Stage, _placed, describe, outline


def layer(path: str, order: int, grid: tuple[int, int] | None = None, calls: int = 1) -> LayerInfo:
    return LayerInfo(path, "Block", calls=calls, grid=grid, order=order if calls else -1)


SMALL = (
    layer("stem", 1, (16, 16)),
    layer("body", 6, (4, 4)),
    layer("body.0", 4, (8, 8)),
    layer("body.0.a", 2, (8, 8)),
    layer("body.0.b", 3, (8, 8)),
    layer("body.1", 5, (4, 4)),
    layer("aux", -1, calls=0),
    layer("head", 7),
)


def paths(stages: tuple[Stage, ...]) -> list[list[str]]:
    return [[block.path for block in stage.blocks] for stage in stages]


def test_blocks_are_the_parts_of_stages_in_running_order_and_silent_ones_are_left_out() -> None:
    stages = outline(SMALL)
    assert [stage.path for stage in stages] == ["stem", "body", "head"]
    assert paths(stages) == [["stem"], ["body.0", "body.1"], ["head"]]


def test_a_part_that_is_most_of_the_network_is_drawn_as_its_own_parts() -> None:
    table = [layer(f"features.{i}.{j}", 2 * i + j, (8, 8)) for i in range(3) for j in range(2)]
    table += [layer("features", 9, (8, 8)), layer("head", 10)]
    table += [layer(f"features.{i}", 2 * i + 1, (8, 8)) for i in range(3)]
    assert [stage.path for stage in outline(table)] == [
        "features.0",
        "features.1",
        "features.2",
        "head",
    ]


def test_heights_follow_the_grid_on_a_log_scale() -> None:
    heights = {block.path: block.height for stage in outline(SMALL) for block in stage.blocks}
    assert heights["stem"] == 1.0
    assert heights["body.0"] == pytest.approx(0.3 + 0.7 * 3 / 4)  # log2 of 8 by log2 of 16
    assert heights["body.1"] == pytest.approx(0.3 + 0.7 * 2 / 4)
    assert heights["head"] == 0.24


def test_a_container_that_never_runs_shows_what_it_holds() -> None:
    table = [layer("blocks", -1, calls=0), layer("stem", 1, (8, 8)), layer("head", 4)]
    table += [layer("blocks.0", 2, (8, 8)), layer("blocks.1", 3, (4, 4))]
    assert paths(outline(table)) == [["stem"], ["blocks.0", "blocks.1"], ["head"]]


BLOCKS = ["stem", "body.0", "body.1", "head"]


@pytest.mark.parametrize(
    ("path", "kind", "block"),
    [
        ("body.0.b", "forward", 1),
        ("body", "forward_pre", 1),  # enters at the first block of what it holds
        ("body", "forward", 2),  # and leaves at the last
        ("body", "full_backward_pre", 2),
        ("body", "full_backward", 1),
        ("", "forward", 3),
        ("", "full_backward", 0),
        ("head", "tensor", 3),
    ],
)
def test_a_mark_stands_where_its_hook_acts(path: str, kind: str, block: int) -> None:
    placed = _placed(BLOCKS, [Mark(path, kind, "a hook")])  # type: ignore[arg-type]
    assert [mark["block"] for mark in placed] == [block]


def test_hooks_of_one_kind_in_one_block_share_a_mark_and_unknown_paths_have_none() -> None:
    marks = [
        Mark("body.0.a", "forward", "first"),
        Mark("body.0.b", "forward", "second"),
        Mark("body.0", "tensor", "third"),
        Mark("bodywork", "forward", "nowhere"),
    ]
    placed = _placed(BLOCKS, marks)
    assert [(m["block"], m["kind"], m["labels"]) for m in placed] == [
        (1, "forward", ["first", "second"]),
        (1, "tensor", ["third"]),
    ]


def test_the_drawing_is_put_in_words() -> None:
    stages = outline(SMALL)
    assert describe(stages, [], None).endswith("3 stages, 4 blocks. No hook on it.")
    words = describe(stages, [Mark("head", "forward", "A hook on head.")], "body.1")
    assert words.endswith("A hook on head. Highlighted: body.1.")


@pytest.mark.parametrize(
    ("name", "stages", "blocks"),
    [("resnet18", 10, 14), ("vit_b_32", 16, 64), ("swin_t", 13, 26), ("maxvit_t", 6, 19)],
)
def test_families_have_an_outline_of_readable_size(name: str, stages: int, blocks: int) -> None:
    drawn = outline(list_layers(load_model(name, weights="none", device="cpu")))
    assert len(drawn) == stages
    assert sum(len(stage.blocks) for stage in drawn) == blocks


def test_a_module_of_two_names_is_drawn_once() -> None:
    table = (*SMALL, replace(layer("again", 5, (4, 4)), same_as="body.1"))
    assert outline(table) == outline(SMALL)
