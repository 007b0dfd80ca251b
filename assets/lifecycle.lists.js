// What stands around the timeline: live hooks, filters, and the lists below.

const LISTS = ["events", "records", "foreign"];
const FOREIGN =
  "A foreign hook is one that no ledger of this program registered: other code put it on the model. " +
  "It is part of the network, so that it runs on the copies that this program hooks, and it is left " +
  "where it is: take it off where it was put on.";

const BY = { user: "you", engine: "the program", lesson: "a lesson" };

function listColumns() {
  const run = { key: "number", title: "run", width: 44, num: true, text: (r) => String(r.run.number) };
  const origin = { key: "origin", title: "by", width: 84, text: (r) => BY[r.origin] ?? r.origin };
  const events = eventColumns.map((each) =>
    each.key === "shapes" ? { ...each, text: (e) => e.shapes, node: (e) => pathText(e.shapes) } : each);
  const kept = recordColumns(null).filter((each) => each.key !== "id")
    .map((each) => ({ ...each, width: { path: 186, purpose: 104 }[each.key] ?? each.width }));
  kept.splice(3, 0, origin);
  return {
    records: [run, ...kept],
    events,
    foreign: [{ ...run, title: "first seen in run", width: 110, num: false }, ...foreignColumns],
  };
}

function takeLive(life, record) {
  const button = element("button", "take", "Remove");
  button.type = "button";
  button.dataset.take = `${record.run.number}/${record.id}`;
  button.setAttribute("aria-label", `Remove the ${labelOf(record.kind)} hook on ${pathOf(record.path)}`);
  button.addEventListener("click", () => {
    life.taken = true;
    for (const each of life.root.querySelectorAll("[data-take]")) each.disabled = true;
    life.send(button.dataset.take);
  });
  return button;
}

function fillLive(life) {
  const live = life.runs.flatMap((run) => run.records).filter((r) => r.removed_at === null);
  life.find(".alive").hidden = live.length === 0;
  const items = live.map((record) => element(
    "li", "", mark(record.kind), element("span", "", labelOf(record.kind)),
    pathText(pathOf(record.path)), element("span", "grey", record.class_name),
    element("span", "", record.purpose),
    element("span", "grey num", `${whole.format(record.fires)} ${record.fires === 1 ? "fire" : "fires"} · run ${record.run.number}`),
    ...(record.run.removable ? [takeLive(life, record)] : []),
  ));
  life.find(".alive ul").replaceChildren(...items);
  // The button that was used is gone: the keyboard goes on at the next one.
  if (life.taken && !life.root.getRootNode().activeElement) {
    (life.find(".alive [data-take]") ?? life.box).focus({ preventScroll: true });
  }
  life.taken = false;
}

const CHIPS = {
  kind: { of: (record) => record.kind, parts: (kind) => [mark(kind), KINDS[kind].label] },
  state: { of: (record) => stateOf(record), parts: (state) => [state] },
  origin: {
    of: (record) => record.origin,
    parts: (origin) => [`by ${BY[origin] ?? origin}`],
  },
};

// A chip for each value there is, with the count of hooks; what was pressed stays pressed.
function fillChips(life) {
  const records = life.runs.flatMap((run) => run.records);
  for (const name in CHIPS) {
    const counts = new Map(name === "kind" ? KIND_ORDER.map((kind) => [kind, 0]) : []);
    for (const record of records) {
      const value = CHIPS[name].of(record);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const chosen = life.filters[name];
    for (const value of chosen) if (!counts.has(value)) chosen.delete(value);
    if (name !== "kind" && counts.size < 2) counts.clear(); // nothing to tell apart
    const chips = [...counts].map(([value, count]) => {
      const chip = element(
        "button", count ? "" : "none", ...CHIPS[name].parts(value), element("span", "n", whole.format(count)),
      );
      chip.type = "button";
      chip.dataset.value = value;
      chip.setAttribute("aria-pressed", String(chosen.has(value)));
      chip.addEventListener("click", () => {
        if (!chosen.delete(value)) chosen.add(value);
        chip.setAttribute("aria-pressed", String(chosen.has(value)));
        life.filter();
      });
      return chip;
    });
    life.find(`[data-chips=${name}]`).replaceChildren(...chips);
  }
}

function connectTabs(life) {
  const tabs = [...life.root.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => life.open(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      life.open(next.dataset.tab);
      next.focus();
    });
  });
}

function fillLists(life) {
  const { root, find, run, found, runs, tab } = life;
  const foreign = runs.flatMap((each) => each.foreign.map((hook) => ({ ...hook, run: each })));
  const rows = { events: run.events, records: found, foreign };
  const words = {
    events: "This run registered no hook.", records: "Nothing matches the filter.", foreign: "",
  };
  for (const name of LISTS) {
    const button = find(`[data-tab=${name}]`);
    const chosen = name === tab;
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    button.querySelector(".n").textContent = whole.format(rows[name].length);
    root.querySelector(`[role=tabpanel][data-view=${name}]`).hidden = !chosen;
  }
  find("[data-tab=foreign] .n").className = foreign.length ? "n warn" : "n";
  find(".what").textContent = foreign.length ? FOREIGN : `None found. ${FOREIGN}`;
  find(".dropped").hidden = !run.dropped;
  find(".dropped").textContent =
    `${whole.format(run.dropped)} earlier events of this run were not kept.`;
  life.tables[tab](rows[tab], words[tab]);
  if (tab === "events" && life.event) life.tables.events.mark(life.event);
}
