// The hook panel: what the ledger of one run says. Nothing but «Remove» reruns the script.

const TABS = ["timeline", "table", "events", "foreign"];
const FOREIGN =
  "A foreign hook is one that the ledger of this run did not register: other code put it on the " +
  "model. It is part of the network, so that it runs on the copies that this program hooks.";

function matcher(text, kinds) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => {
    if (kinds.size && !kinds.has(row.kind)) return false;
    if (!words.length) return true;
    const fields = [
      pathOf(row.path), row.kind, labelOf(row.kind), row.class_name, row.purpose, row.status,
      row.origin, row.what, row.detail, row.name, row.shapes?.join(" "),
    ];
    const hay = fields.filter(Boolean).join("\n").toLowerCase();
    return words.every((word) => hay.includes(word));
  };
}

function makePanel(root, { key, removable }) {
  const find = (selector) => root.querySelector(selector);
  const view = (name) => find(`[data-view=${name}]`);
  const panel = { root, find, ledger: null, kinds: new Set(), text: "", fires: new Map() };
  const take = removable ? (record) => takeButton(panel, record) : null;
  const stored = `hookscope.hook_panel.${key}`;
  const kept = remembered(stored);
  panel.tab = TABS.includes(kept.tab) ? kept.tab : TABS[0];
  const details = find("details");
  details.open = kept.open === true;
  const keep = () => remember(stored, { open: details.open, tab: panel.tab });
  panel.choose = (tab) => {
    panel.tab = tab;
    keep();
    render(panel);
  };
  details.addEventListener("toggle", () => {
    keep();
    render(panel);
  });
  panel.timeline = makeTimeline(view("timeline"), take);
  panel.tables = {
    table: makeTable(view("table"), recordColumns(take), "Hook records", { sortable: true }),
    events: makeTable(view("events"), eventColumns, "Hook events in order"),
    foreign: makeTable(view("foreign"), foreignColumns, "Foreign hooks"),
  };
  for (const item of root.querySelectorAll("[data-legend]")) {
    item.querySelector("dt").prepend(mark(item.dataset.legend));
  }
  connectControls(panel);
  return panel;
}

// Only this talks to the server: it takes a live hook off by its handle.
function takeButton(panel, record) {
  const button = element("button", "take", "Remove");
  button.type = "button";
  button.dataset.take = record.id;
  button.setAttribute("aria-label", `Remove the ${labelOf(record.kind)} hook on ${pathOf(record.path)}`);
  button.addEventListener("click", () => {
    panel.taken = { id: record.id, view: button.closest("[data-view]") };
    for (const each of panel.root.querySelectorAll("[data-take]")) each.disabled = true;
    panel.send(record.id);
  });
  return button;
}

// The button that was used is gone after the run: the keyboard goes on at the next one.
function goOn(panel) {
  const { taken, root } = panel;
  panel.taken = null;
  if (!taken || root.getRootNode().activeElement) return;
  const left = [...taken.view.querySelectorAll("[data-take]")];
  const next = left.find((button) => Number(button.dataset.take) >= taken.id);
  (next ?? left.at(-1) ?? panel.find(`[data-tab=${panel.tab}]`)).focus({ preventScroll: true });
}

function connectControls(panel) {
  const { root, find } = panel;
  find("input").addEventListener("input", (event) => {
    panel.text = event.target.value;
    render(panel);
  });
  for (const kind in KINDS) {
    const chip = element("button", "", mark(kind), KINDS[kind].label, element("span", "n"));
    chip.type = "button";
    chip.dataset.kind = kind;
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      if (!panel.kinds.delete(kind)) panel.kinds.add(kind);
      chip.setAttribute("aria-pressed", String(panel.kinds.has(kind)));
      render(panel);
    });
    find(".kinds").append(chip);
  }
  const tabs = [...root.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => panel.choose(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      panel.choose(next.dataset.tab);
      next.focus();
    });
  });
  for (const button of root.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => save(panel.ledger, button.dataset.export));
  }
}

function fillSummary({ find, ledger }) {
  const { summary, failed } = ledger;
  const parts = ["registered", "removed", "live", "foreign"].flatMap((name, index) => {
    const warn = index > 1 && summary[name] > 0;
    const part = element("span", warn ? "warn" : "", `${whole.format(summary[name])} ${name}`);
    return index ? [" · ", part] : [part];
  });
  find(".counts").replaceChildren(...parts);
  find(".length").textContent = `${ms(ledger.seconds)} ms`;
  find(".length").style.marginLeft = "auto";
  find(".failed").replaceChildren(...(failed ? [element("span", "bad", `Run failed: ${failed}`)] : []));
  find(".failed").hidden = !failed;
  find(".failure").replaceChildren(...(failed ? [element("span", "bad", "Run failed: "), failed] : []));
  find(".failure").hidden = !failed;
}

function fillCounts({ find, ledger }) {
  const sizes = { table: ledger.records, events: ledger.events, foreign: ledger.foreign };
  for (const name in sizes) {
    find(`[data-tab=${name}] .n`).textContent = whole.format(sizes[name].length);
  }
  find("[data-tab=foreign] .n").className = ledger.foreign.length ? "n warn" : "n";
  find(".dropped").hidden = !ledger.dropped_events;
  find(".dropped").textContent =
    `${whole.format(ledger.dropped_events)} more events were not kept; ` +
    `these are the newest ${whole.format(ledger.events.length)}.`;
  find(".what").textContent = ledger.foreign.length ? FOREIGN : `None found. ${FOREIGN}`;
}

function countKinds(root, rows) {
  for (const chip of root.querySelectorAll("[data-kind]")) {
    const count = rows.filter((row) => row.kind === chip.dataset.kind).length;
    chip.querySelector(".n").textContent = whole.format(count);
    chip.classList.toggle("none", count === 0);
  }
}

function render(panel) {
  const { root, find, ledger, tab } = panel;
  if (!ledger || !find("details").open) return;
  for (const button of root.querySelectorAll("[role=tab]")) {
    const chosen = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }
  for (const name of TABS) find(`[data-view=${name}]`).hidden = name !== tab;
  const rows = { events: ledger.events, foreign: ledger.foreign }[tab] ?? ledger.records;
  countKinds(root, rows);
  const found = rows.filter(matcher(panel.text, panel.kinds));
  const all = found.length === rows.length;
  find(".shown").textContent = all ? "" : `${whole.format(found.length)} of ${whole.format(rows.length)}`;
  const empty = tab === "foreign" ? "" : "This run registered no hook.";
  const words = rows.length ? "Nothing matches the filter." : empty;
  if (tab === "timeline") panel.timeline.show(found, words, ledger, panel.fires);
  else panel.tables[tab](found, words);
}

function showLedger(panel, ledger) {
  const { find } = panel;
  panel.ledger = ledger;
  find(".empty").hidden = ledger !== null;
  find("details").hidden = ledger === null;
  if (ledger === null) return;
  panel.fires = new Map();
  for (const event of ledger.events) {
    if (event.what === "registered" || event.what === "removed") continue;
    if (!panel.fires.has(event.hook)) panel.fires.set(event.hook, []);
    panel.fires.get(event.hook).push(event);
  }
  fillSummary(panel);
  fillCounts(panel);
  render(panel);
}

// Streamlit calls the default export again after each rerun and each change of theme, on the same
// elements: what the reader chose must outlive that.
const panels = new WeakMap();

export default function hookPanel({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".panel");
  for (const name in data.colours) root.style.setProperty(name, data.colours[name]);
  if (!panels.has(root)) panels.set(root, makePanel(root, data));
  const panel = panels.get(root);
  panel.send = (id) => setTriggerValue("picked", id);
  showLedger(panel, data.ledger);
  goOn(panel);
  return () => panel.timeline.close();
}
