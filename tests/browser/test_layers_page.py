"""The Layers page in Chromium: the tree, the channels, the other sections, and the files."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers_page import Layers
from PIL import Image
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture
def app(page: Page, serve: Any) -> Layers:
    return Layers(page, serve)


def test_the_first_screen_shows_the_recommended_layer_and_fits_its_window(app: Layers) -> None:
    app.open().at()
    expect(app.headline).to_contain_text("features.8.1 BatchNorm2d")
    chosen = app.tree.locator("[aria-selected=true]")
    expect(chosen).to_have_count(1)
    expect(chosen).to_have_attribute("data-path", "features.8.1")
    expect(chosen.get_by_role("img", name="recommended")).to_be_visible()
    expect(app.tiles).to_have_count(48)
    expect(app.range).to_have_text("1–48 of 1,280")
    expect(app.tiles.first).to_have_attribute("aria-selected", "true")
    expect(app.main.get_by_text("1st of 1,280 by contribution")).to_be_visible()
    expect(app.page.get_by_test_id("heatmap")).to_be_visible()
    expect(app.hooks.locator(".counts")).to_contain_text("2 registered · 2 removed · 0 live")
    assert all(tile.get_attribute("aria-label") for tile in app.tiles.all())
    app.fits()
    app.page.set_viewport_size({"width": 900, "height": 900})
    expect(app.tiles).to_have_count(48)
    app.fits()


def test_a_layer_is_chosen_by_the_keyboard(app: Layers) -> None:
    app.open()
    keys = app.page.keyboard
    app.line("features.8.1").focus()
    keys.press("Home")
    expect(app.line("features")).to_be_focused()
    keys.press("ArrowLeft")
    expect(app.line("features")).to_have_attribute("aria-expanded", "false")
    expect(app.lines).to_have_count(5)  # features, avgpool, classifier and its two
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    expect(app.line("features.0")).to_be_focused()
    keys.press("ArrowDown")
    expect(app.line("features.0.0")).to_be_focused()
    expect(app.about).to_contain_text("SameConv2d")
    keys.press("ArrowLeft")
    expect(app.line("features.0")).to_be_focused()
    keys.press("End")
    expect(app.line("classifier.1")).to_be_focused()
    assert app.reruns == 1
    keys.press("Enter")
    app.at(module="classifier.1")
    expect(app.headline).to_contain_text("classifier.1 Linear")
    assert app.reruns == 2
    expect(app.tiles.first).to_contain_text("espresso (967)")
    expect(app.line("classifier.1")).to_be_focused()


def test_the_tree_is_searched_sorted_and_widened(app: Layers) -> None:
    app.open()
    search = app.tree.get_by_role("textbox")
    search.fill("8 relu")
    expect(app.tree.get_by_role("status")).to_have_text(re.compile(r"^\d+ of 240$"))
    assert all("relu" in line.lower() for line in app.lines.all_inner_texts())
    expect(app.line("features.8.2")).to_be_visible()
    search.fill("nothing like it")
    expect(app.tree.get_by_text("No layer matches")).to_be_visible()
    search.press("Escape")
    app.tree.get_by_role("button", name="Sort by share of zeros").click()
    expect(app.lines).to_have_count(240)
    shares = [
        float(text.rstrip(" %")) for text in app.tree.locator(".line b").all_inner_texts()[:20]
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 90
    app.tree.get_by_label("Number shown", exact=True).select_option("parameters")
    expect(app.lines.first).to_have_attribute("data-path", "features")
    app.tree.get_by_role("button", name="Layer", exact=True).click()
    expect(app.lines).to_have_count(36)
    assert app.reruns == 1
    app.tree.get_by_role("button", name="All numbers").click()
    app.at(wide="1")
    expect(app.line("features.8.1").locator(".cell")).to_have_count(6)
    app.tree.get_by_role("button", name="Beside").click()
    app.at()


def test_channels_are_ordered_turned_and_scaled_at_once(app: Layers) -> None:
    app.open()
    first = app.shown()
    drawn = app.tiles.nth(5).locator("canvas").evaluate("canvas => canvas.toDataURL()")
    app.grid.get_by_role("button", name="Next page").click()
    expect(app.range).to_have_text("49–96 of 1,280")
    assert not set(first) & set(app.shown())
    assert app.reruns == 1
    app.grid.get_by_role("button", name="Page before").click()
    app.grid.get_by_role("radio", name="One shared scale").click()
    assert app.tiles.nth(5).locator("canvas").evaluate("canvas => canvas.toDataURL()") != drawn
    app.at(scale="shared")
    expect(app.grid.locator(".legend")).to_be_visible()
    app.grid.get_by_role("combobox").select_option("index")
    assert app.shown() == list(range(48))
    app.at(scale="shared", order="index")
    app.page.reload()
    expect(app.tiles).to_have_count(48)
    expect(app.grid.get_by_role("combobox")).to_have_value("index")
    expect(app.grid.get_by_role("radio", name="One shared scale")).to_be_checked()


def test_a_channel_is_shown_large_and_silenced_in_the_lab(app: Layers) -> None:
    app.open("?order=index&channel=7")
    app.tile(3).click()
    app.at(order="index", channel="3")
    expect(app.main.get_by_text(re.compile(r"^Channel 3 "))).to_be_visible()
    canvas = app.page.get_by_test_id("heatmap-canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile(r"^Channel 3 of features\.8\.1"))
    app.tile(3).focus()
    app.page.keyboard.press("ArrowRight")
    app.page.keyboard.press("Enter")
    app.at(order="index", channel="4")
    app.main.get_by_role("button", name="Silence this channel").click()
    expect(app.page).to_have_url(re.compile("/lab"))
    lab = app.main
    expect(lab.get_by_text(re.compile("silences? channel 4")).first).to_be_visible()
    expect(lab.get_by_text("features.8.1").first).to_be_visible()


def test_the_files_hold_what_is_shown_and_none_reruns(app: Layers, tmp_path: Path) -> None:
    app.open("?order=variance&layer=features.8.2")
    order = app.shown()
    files = {}
    for name in ("Montage", "All maps", "Features", "Statistics"):
        download = app.download(name)
        assert download.suggested_filename.startswith("coffee.efficientnet_lite0.features.8.2.")
        files[name] = download.path().read_bytes()
    assert app.reruns == 1
    assert Image.open(io.BytesIO(files["Montage"])).width > 800
    maps = np.load(io.BytesIO(files["All maps"]))
    assert maps["maps"].shape == (1280, 7, 7)
    assert np.argsort(-maps["variance"], kind="stable")[:48].tolist() == order
    features = np.load(io.BytesIO(files["Features"]))["features"]
    np.testing.assert_allclose(features, maps["maps"].mean((1, 2)), rtol=1e-5, atol=1e-6)
    rows = list(csv.DictReader(io.StringIO(files["Statistics"].decode())))
    relu = next(row for row in rows if row["path"] == "features.8.2")
    assert relu["shape"] == "1x1280x7x7"
    zeros = float((maps["maps"] == 0).mean())
    assert float(relu["zeros"]) == pytest.approx(zeros, abs=1e-6)
    assert int(relu["dead"]) == int((maps["maps"] == 0).all((1, 2)).sum())
    expect(app.line("features.8.2")).to_contain_text(f"{100 * zeros:.1f} %")


def test_dead_units_and_operations_follow_pictures_bars_and_the_tree(app: Layers) -> None:
    app.open("?section=dead&layer=features.8.2")
    said = app.main.get_by_text(re.compile(r"^features\.8\.2: \d+ of 1,280 dead on"))
    expect(said).to_contain_text("dead on this picture")
    one = int(re.findall(r": (\d+) of", said.inner_text())[0])
    app.main.get_by_role("combobox", name="Dead on all of these pictures").click()
    app.page.get_by_role("option", name="chelsea").click()
    app.page.keyboard.press("Escape")
    app.at(section="dead", layer="features.8.2", pictures="coffee,chelsea")
    expect(said).to_contain_text("dead on both pictures")
    assert 0 < int(re.findall(r": (\d+) of", said.inner_text())[0]) < one
    bars = app.main.get_by_test_id("stVegaLiteChart")
    bars.locator("[aria-label*='layer: features.6.3.block.1;']").last.click(force=True)
    app.at(section="dead", layer="features.6.3.block.1", pictures="coffee,chelsea")
    expect(said).to_have_count(0)
    expect(app.tree.locator("[aria-selected=true]")).to_be_in_viewport()
    app.section("Operations")
    app.line("classifier.1").click()
    why = app.main.get_by_text("is one module and", exact=False)
    expect(why).to_contain_text("Linear is one module")
    graph = app.main.get_by_test_id("stGraphVizChart").locator("svg")
    expect(graph).to_contain_text("AddmmBackward0")
    expect(graph).to_contain_text("1 × 1000")


def test_a_vision_transformer_has_attention_and_a_module_that_never_ran(app: Layers) -> None:
    app.open("?model=vit_b_16&weights=none&section=attention")
    address = {"model": "vit_b_16", "weights": "none", "section": "attention"}
    heads = app.page.get_by_test_id("heads-heads")
    expect(heads.get_by_role("option")).to_have_count(12 * 13)
    expect(heads.get_by_role("option", selected=True)).to_have_attribute("data-value", "11-mean")
    heads.get_by_role("option", selected=True).focus()
    app.page.keyboard.press("ArrowUp")
    app.page.keyboard.press("ArrowLeft")
    app.page.keyboard.press("Enter")
    app.at(**address, head="10-11")
    expect(app.main.get_by_text("in head 11")).to_be_visible()
    app.main.get_by_role("radio", name="A patch").click(force=True)
    app.at(**address, head="10-11", patch="7-7")
    expect(app.main.get_by_text("the patch in row 7, column 7 looks")).to_be_visible()
    download = app.download("Attention weights")
    assert download.suggested_filename == "coffee.vit_b_16.untrained.attention.npz"
    assert np.load(download.path())["weights"].shape == (12, 12, 197, 197)
    heads.get_by_role("button", name="Rollout").click()
    app.at(**address, head="rollout", patch="7-7")
    expect(app.main.get_by_text("through all 12 blocks", exact=False)).to_be_visible()
    before = app.reruns
    app.tree.get_by_role("textbox").fill("layer_0 out_proj")
    line = app.lines.first
    expect(line).to_have_attribute("aria-disabled", "true")
    expect(line).to_contain_text("never runs")
    line.click(force=True)
    app.page.keyboard.press("Enter")
    expect(app.about).to_contain_text("Never runs: MultiheadAttention uses this layer's weights")
    app.page.wait_for_timeout(300)
    assert app.reruns == before


def test_another_model_forgets_layer_and_channel_of_this_one(app: Layers) -> None:
    app.open("?module=classifier.1&channel=968")
    expect(app.headline).to_contain_text("classifier.1")
    app.section("Attention")
    expect(app.main.get_by_text("has no attention that can be shown")).to_be_visible()
    app.section("Channels")
    app.page.get_by_test_id("picker-model-button").click()
    app.page.get_by_test_id("picker-model-search").fill("squeezenet 1.1")
    app.page.keyboard.press("Enter")
    untrained = app.main.get_by_role("button", name="Use it untrained")
    untrained.click()
    app.at(model="squeezenet1_1", weights="none")
    expect(app.headline).to_contain_text("features.12")
