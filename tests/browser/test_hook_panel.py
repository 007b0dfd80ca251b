"""The hook panel, in Chromium, on ledgers that stand still (`hook_panel_demo.py`)."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Download, Locator, Page, expect

pytestmark = pytest.mark.browser

KINDS = ("forward pre", "forward", "full backward pre", "full backward", "tensor")
LANE, AXIS = 22, 26  # px, as drawn
HOSTILE = '<img src=x onerror="window.stolen=1">'
TICKS = """(canvas, [left, top, width, height]) => {
  const scale = canvas.width / canvas.clientWidth;
  const box = [left, top, width, height].map((v) => Math.round(v * scale));
  const { data } = canvas.getContext("2d").getImageData(...box);
  const found = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 255) found.add([data[i], data[i + 1], data[i + 2]].join());
  }
  return [...found];
}"""


@pytest.fixture(scope="module")
def demo(serve: Callable[..., str]) -> str:
    return serve("tests/browser/hook_panel_demo.py", env={"PYTHONPATH": "."})


def panel(page: Page, demo: str, case: str) -> Locator:
    page.goto(f"{demo}/?case={case}")
    found = page.get_by_role("region", name="Hooks of this run")
    found.wait_for()
    return found


def opened(page: Page, demo: str, case: str, tab: str = "Timeline") -> Locator:
    found = panel(page, demo, case)
    found.locator("summary").click()
    found.get_by_role("tab", name=tab).click()
    return found


def column(table: Locator, index: int) -> list[str]:
    """The texts of one column of the rows in view."""
    return table.locator(f"tbody tr[aria-rowindex] td:nth-child({index})").all_text_contents()


def test_the_closed_line_counts_the_hooks(page: Page, demo: str) -> None:
    counts = panel(page, demo, "pass").locator(".counts")
    expect(counts).to_have_text("24 registered · 24 removed · 0 live · 0 foreign")
    expect(counts.locator(".warn")).to_have_count(0)
    expect(page.locator(".failed")).to_be_hidden()


def test_live_foreign_and_a_failure_stand_out_in_the_closed_line(page: Page, demo: str) -> None:
    found = panel(page, demo, "mixed")
    expect(found.locator(".counts")).to_have_text("6 registered · 3 removed · 3 live · 2 foreign")
    expect(found.locator(".counts .warn")).to_have_text(["3 live", "2 foreign"])
    expect(found.locator("summary .failed")).to_have_text(re.compile("^Run failed: RuntimeError"))


def test_before_a_run_and_after_one_without_hooks(page: Page, demo: str) -> None:
    found = panel(page, demo, "none")
    expect(found.get_by_text("No run yet")).to_be_visible()
    expect(found.locator("summary")).to_be_hidden()
    found = opened(page, demo, "nothing")
    expect(found.locator(".counts")).to_have_text("0 registered · 0 removed · 0 live · 0 foreign")
    expect(found.get_by_text("This run registered no hook.")).to_be_visible()


def test_keyboard_opens_it_and_walks_the_tabs_and_the_lanes(page: Page, demo: str) -> None:
    found = panel(page, demo, "pass")
    expect(found.locator(".body")).to_be_hidden()
    found.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(found.locator("canvas")).to_be_visible()
    page.keyboard.press("Tab")
    expect(found.get_by_role("tab", name="Timeline")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(found.get_by_role("tab", name="Table")).to_be_focused()
    expect(found.get_by_role("table", name="Hook records")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(found.get_by_role("table", name="Hook records")).to_be_hidden()

    found.locator(".lanes").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    detail = found.locator(".detail")
    expect(detail).to_contain_text("full backwardfeatures.0Conv2dNormActivationgradient")
    expect(detail).to_contain_text("registered 1.10 ms")
    expect(detail).to_contain_text("removed 56.10 ms")
    page.keyboard.press("End")
    expect(detail).to_contain_text("classifier.1")
    assert found.locator(".lanes").evaluate("lanes => lanes.scrollTop") > 0
    page.keyboard.press("Escape")
    expect(detail).to_contain_text("Point at a bar")


def test_the_timeline_draws_each_kind_in_its_own_colour(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed")
    expect(found.locator(".legend dt")).to_have_text(list(KINDS))
    canvas = found.locator("canvas")
    expect(canvas).not_to_have_attribute("height", "0")
    width = canvas.evaluate("canvas => canvas.clientWidth")
    left = max(150, min(330, round(width * 0.32)))
    colours = [
        found.locator(f"[data-legend={kind}] path").evaluate("p => getComputedStyle(p).stroke")
        for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward")
    ]
    assert len(set(colours)) == 4
    for lane, colour in enumerate(colours):
        box = [left + 2, AXIS + lane * LANE, width - left - 20, LANE]
        drawn = canvas.evaluate(TICKS, box)
        assert ",".join(re.findall(r"\d+", colour)) in drawn, f"no tick of {colour} in lane {lane}"
        others = {",".join(re.findall(r"\d+", c)) for c in colours if c != colour}
        assert not others & set(drawn)


def test_pointing_at_a_tick_says_what_happened_there(page: Page, demo: str) -> None:
    found = opened(page, demo, "pass")
    box = found.locator("canvas").bounding_box()
    assert box is not None
    left = max(150, min(330, round(box["width"] * 0.32)))
    # Lane 2 is the forward hook on features.1, fired at 7 ms of 58.3 ms.
    x = left + 7 / 58.3 * (box["width"] - left - 16)
    page.mouse.move(box["x"] + x, box["y"] + AXIS + 2.5 * LANE)
    detail = found.locator(".detail")
    expect(detail).to_contain_text("fired at 7.00 ms in call #0")
    expect(detail).to_contain_text("1×32×112×112")
    page.mouse.move(box["x"] + x + 60, box["y"] + AXIS + 2.5 * LANE)
    expect(detail).to_contain_text("features.1")
    expect(detail).not_to_contain_text("fired at")


def test_the_table_sorts_by_any_column(page: Page, demo: str) -> None:
    table = opened(page, demo, "mixed", "Table").get_by_role("table", name="Hook records")
    assert column(table, 1) == ["0", "1", "2", "3", "4", "5"]
    assert column(table, 9) == ["0 B", "1.5 kB", "3.0 kB", "4.5 kB", "6.0 kB", "7.5 kB"]
    table.get_by_role("button", name="fires").click()
    table.get_by_role("button", name="fires").click()
    assert column(table, 7) == ["6", "4", "3", "2", "1", "0"]
    expect(table.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    table.get_by_role("button", name="removed ms").click()
    assert column(table, 6) == ["52.00", "54.00", "55.00", "–", "–", "–"]
    table.get_by_role("button", name="removed ms").click()
    assert column(table, 6) == ["55.00", "54.00", "52.00", "–", "–", "–"]
    table.get_by_role("button", name="path, class").click()
    paths = [text.split("Conv")[0].split("Seq")[0] for text in column(table, 3)]
    assert paths[-3:] == ["features.2", "features.5", "features.10"]  # by number, not by letter


def test_filters_by_text_and_by_kind(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed", "Table")
    table = found.get_by_role("table", name="Hook records")
    found.get_by_role("searchbox", name="Filter").fill("user FEATURES")
    assert column(table, 1) == ["0", "1", "2"]
    expect(found.locator(".shown")).to_have_text("3 of 6")
    kind = found.get_by_role("button", name=re.compile("^full backward pre"))
    kind.click()
    expect(kind).to_have_attribute("aria-pressed", "true")
    assert column(table, 1) == ["2"]
    found.get_by_role("tab", name="Events").click()
    events = found.get_by_role("table", name="Hook events in order")
    assert column(events, 2) == []  # an event has no origin, so «user» is in none of them
    expect(found.get_by_text("Nothing matches the filter.")).to_be_visible()
    found.get_by_role("searchbox", name="Filter").fill("boom")
    assert column(events, 2) == ["error"]
    found.get_by_role("searchbox", name="Filter").fill("")
    kind.click()
    expect(found.locator(".shown")).to_have_text("")


def test_the_event_log_keeps_the_order_and_says_what_is_missing(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed", "Events")
    expect(found.get_by_text("7 more events were not kept")).to_be_visible()
    events = found.get_by_role("table", name="Hook events in order")
    first = events.locator("tr[aria-rowindex='3'] td")
    expect(first).to_have_text(["17.00", "changed", "forward", "features.5#0", "1×192×14×14", ""])
    found = panel(page, demo, "pass")
    expect(found.locator(".dropped")).to_be_hidden()
    events = found.get_by_role("table", name="Hook events in order")
    expect(events).to_be_visible()
    assert column(events, 1)[:3] == ["1.00", "1.10", "1.20"]


def test_foreign_hooks_are_listed_and_explained(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed", "Foreign")
    expect(found.get_by_text("A foreign hook is one that")).to_be_visible()
    rows = found.get_by_role("table", name="Foreign hooks").locator("tbody tr[aria-rowindex]")
    expect(rows).to_have_count(2)
    first = rows.first.locator("td")
    expect(first).to_have_text(["layer4", "Sequential", "forward", "spy.<locals>.hook"])
    found = panel(page, demo, "pass")
    expect(found.get_by_text("None found.")).to_be_visible()


def test_names_are_text_never_markup(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed")
    found.locator(".lanes").focus()
    page.keyboard.press("End")
    expect(found.locator(".detail .path")).to_have_text(HOSTILE)
    for tab in ("Table", "Events", "Foreign"):
        found.get_by_role("tab", name=tab).click()
        expect(found.get_by_role("table").get_by_text(HOSTILE).first).to_be_attached()
    expect(found.locator("img")).to_have_count(0)
    assert page.evaluate("window.stolen") is None


def saved(page: Page, found: Locator, name: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        found.get_by_role("button", name=name).click()
    download: Download = waiting.value
    path = folder / download.suggested_filename
    download.save_as(path)
    return path


def test_records_are_saved_as_json_and_csv(page: Page, demo: str, tmp_path: Path) -> None:
    found = opened(page, demo, "mixed")
    path = saved(page, found, "JSON", tmp_path)
    assert path.name == "hooks-2025-03-09T14-05-06.json"
    ledger = json.loads(path.read_text("utf-8"))
    assert ledger["summary"] == {"registered": 6, "removed": 3, "live": 3, "foreign": 2}
    assert [len(ledger[part]) for part in ("records", "events", "foreign")] == [6, 17, 2]

    path = saved(page, found, "CSV", tmp_path)
    assert path.name == "hooks-2025-03-09T14-05-06.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["path"] for row in rows] == [record["path"] for record in ledger["records"]]
    assert rows[5]["class_name"] == HOSTILE
    assert rows[4]["purpose"] == "gradient, by tensor"
    assert rows[3]["purpose"] == "'=1+1"  # no formula for a spreadsheet to run
    assert rows[0]["removed_at"] == ""
    assert float(rows[2]["removed_at"]) == ledger["records"][2]["removed_at"]
    assert list(rows[0]) == list(ledger["records"][0])
    expect(page.get_by_text("runs: 1")).to_be_visible()


def test_what_was_chosen_outlives_a_rerun_and_causes_none(page: Page, demo: str) -> None:
    found = opened(page, demo, "pass", "Table")
    table = found.get_by_role("table", name="Hook records")
    found.get_by_role("searchbox", name="Filter").fill("classifier")
    table.get_by_role("button", name="id", exact=True).click()
    table.get_by_role("button", name="id", exact=True).click()
    expect(page.get_by_text("runs: 1")).to_be_visible()  # none of that ran the script
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("runs: 2")).to_be_visible()
    expect(table).to_be_visible()
    assert column(table, 1) == ["23", "22", "21", "20"]
    page.reload()  # a new session of the script, the same tab of the browser
    expect(table).to_be_visible()
    found.locator("summary").click()
    page.reload()
    expect(found.locator("summary")).to_be_visible()
    expect(table).to_be_hidden()


def test_a_thousand_hooks_open_at_once(page: Page, demo: str) -> None:
    found = panel(page, demo, "big")
    spent = found.evaluate(
        """async (root) => {
          const drawn = () => new Promise((done) =>
            requestAnimationFrame(() => requestAnimationFrame(done)));
          const start = performance.now();
          root.querySelector("summary").click();
          await drawn();
          for (const tab of ["table", "events", "timeline"]) {
            root.querySelector(`[data-tab=${tab}]`).click();
            await drawn();
          }
          return performance.now() - start;
        }"""
    )
    print(f"opened and walked through in {spent:.0f} ms")
    assert spent < 5_000
    found.get_by_role("tab", name="Events").click()
    events = found.get_by_role("table", name="Hook events in order")
    expect(events).to_have_attribute("aria-rowcount", "5001")
    assert events.locator("tbody tr").count() < 60  # only the rows in view are in the document
    found.locator("[data-view=events] .scroll").evaluate("box => (box.scrollTop = 1e9)")
    last = events.locator("tr[aria-rowindex='5001']")
    expect(last).to_contain_text("removed")
    expect(last).to_contain_text("encoder.layers.encoder_layer_199.mlp.4")


def test_a_panel_without_a_way_to_remove_has_no_button(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed")
    expect(found.locator(".take")).to_have_count(0)


def test_a_live_hook_is_taken_off_once_and_the_panel_stays_where_it_is(
    page: Page, demo: str
) -> None:
    found = opened(page, demo, "removable", "Table")
    table = found.get_by_role("table", name="Hook records")
    found.get_by_role("searchbox", name="Filter").fill("features")
    table.get_by_role("button", name="fires").click()
    buttons = table.get_by_role("button", name=re.compile("^Remove the"))
    expect(buttons).to_have_count(3)  # of four records two are live, and one leaked
    buttons.first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("taken off: [0]")).to_be_visible()
    expect(page.get_by_text("runs: 2")).to_be_visible()
    expect(buttons).to_have_count(2)
    assert column(table, 1) == ["0", "1", "2", "3"]
    expect(found.locator(".counts")).to_have_text("6 registered · 4 removed · 2 live · 2 foreign")
    expect(buttons.first).to_be_focused()  # the next one, for the keyboard
    expect(buttons.first).to_be_enabled()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("runs: 3")).to_be_visible()
    expect(page.get_by_text("taken off: [0]")).to_be_visible()  # and not once more


def test_a_live_hook_is_taken_off_in_the_timeline(page: Page, demo: str) -> None:
    found = opened(page, demo, "removable")
    buttons = found.locator(".space .take")
    expect(buttons).to_have_count(3)
    expect(buttons.nth(1)).to_have_accessible_name("Remove the forward hook on features.5")
    lanes = [b.evaluate("b => b.offsetTop") for b in buttons.all()]
    assert [round((top - AXIS) / LANE) for top in lanes] == [0, 1, 3]
    buttons.nth(1).click()
    expect(page.get_by_text("taken off: [1]")).to_be_visible()
    expect(buttons).to_have_count(2)
    expect(found.locator("canvas")).to_be_visible()


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "width": 900}], indirect=True)
def test_nothing_sticks_out_of_a_narrow_dark_page(page: Page, demo: str) -> None:
    found = opened(page, demo, "mixed")
    for tab in ("Timeline", "Table", "Events", "Foreign"):
        found.get_by_role("tab", name=tab).click()
        wide = found.evaluate("root => root.scrollWidth - root.clientWidth")
        assert wide <= 0, f"{tab} is {wide} px wider than its page"
    paper, ink = found.evaluate(
        """root => {
          const probe = document.createElement("i");
          root.append(probe);
          probe.style.color = "var(--paper)";
          const paper = getComputedStyle(probe).color;
          probe.remove();
          return [paper, getComputedStyle(root).color];
        }"""
    )
    assert sum(map(int, re.findall(r"\d+", paper)[:3])) < sum(map(int, re.findall(r"\d+", ink)[:3]))
