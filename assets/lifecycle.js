// The lifecycle of all hooks of a session. Nothing but «Remove» reruns the script.

const AT_FIRST = 8; // runs shown at first: more of them would be slivers

class Life {
  constructor(root, key) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.stored = `hookscope.lifecycle.${key}`;
    const kept = remembered(this.stored);
    this.tab = LISTS.includes(kept.tab) ? kept.tab : LISTS[0];
    this.scale = kept.scale === "time" ? "time" : "equal";
    this.filters = { text: "", kind: new Set(), state: new Set(), origin: new Set() };
    Object.assign(this, { runs: [], lanes: [], found: [], view: null, run: null, step: 0, at: null, pinned: null });
    this.box = this.find(".lanes");
    this.overview = this.find(".overview");
    this.probe = element("span");
    this.probe.hidden = true;
    root.append(this.probe);
    this.redraw = this.redraw.bind(this);
    const columns = listColumns();
    const view = (name) => this.find(`[role=tabpanel][data-view=${name}]`);
    this.tables = {
      events: makeTable(view("events"), columns.events, "Events of the run", {
        onPick: (event) => this.goTo(event.index),
      }),
      records: makeTable(view("records"), columns.records, "Hooks of all runs", {
        sortable: true, onPick: (record) => this.pinRecord(record),
      }),
      foreign: makeTable(view("foreign"), columns.foreign, "Foreign hooks"),
    };
    this.player = makePlayer(this.find(".player"), this);
    this.connect();
  }

  connect() {
    listenToLanes(this.box, this);
    listenToOverview(this.overview, this);
    connectTabs(this);
    this.find("input[type=search]").addEventListener("input", (event) => {
      this.filters.text = event.target.value;
      this.filter();
    });
    const views = {
      in: () => zoomBy(this, ZOOM), out: () => zoomBy(this, 1 / ZOOM),
      all: () => this.show(0, this.axis.length), run: () => this.showRun(this.run),
    };
    const onClick = (name, act) => {
      for (const button of this.root.querySelectorAll(`[data-${name}]`)) {
        button.addEventListener("click", () => act(button.dataset[name]));
      }
    };
    onClick("zoom", (zoom) => views[zoom]());
    onClick("scale", (scale) => this.setScale(scale));
    onClick("export", (what) => saveRuns(this.runs, what));
  }

  /** Take over what Python says: what the reader chose stays where it is. */
  load(data) {
    if (data === this.data) return this.redraw();
    this.data = data;
    const before = { run: this.run?.number, step: this.step, pinned: this.pinned };
    const known = this.runs.length;
    this.runs = unpack(data);
    this.order = commonOrder(this.runs);
    this.axis = makeAxis(this.runs, this.scale);
    this.run = this.runs.find((run) => run.number === before.run) ?? this.best();
    this.step = before.run === this.run.number ? Math.min(before.step, this.run.events.length - 1) : 0;
    const pinned = before.pinned;
    this.pinned = this.runs.find((r) => r.number === pinned?.run.number)?.records[pinned.id] ?? null;
    fillLive(this);
    fillChips(this);
    fillRuns(this.player, this);
    if (!known) this.view = this.newest();
    this.filter();
    this.show(...this.view);
    this.choose(this.run, this.step);
    return undefined;
  }

  /** The newest run that did more than stand there. */
  best() {
    return this.runs.findLast((run) => run.events.length > 1) ?? this.runs.at(-1);
  }

  newest() {
    const { pieces, gap, length } = this.axis;
    const first = pieces[pieces.length - AT_FIRST];
    return first ? [first.left - gap, length] : [0, length];
  }

  setScale(scale) {
    this.scale = scale;
    this.keep();
    this.axis = makeAxis(this.runs, scale);
    for (const button of this.root.querySelectorAll("[data-scale]")) {
      button.setAttribute("aria-pressed", String(button.dataset.scale === scale));
    }
    this.show(...this.newest());
  }

  keep() {
    remember(this.stored, { tab: this.tab, scale: this.scale });
  }

  filter() {
    const fits = recordFilter(this.filters);
    const all = this.runs.flatMap((run) => run.records);
    this.found = all.filter(fits);
    this.lanes = lanesOf(this.found, this.order);
    this.find(".shown").textContent =
      this.found.length === all.length ? "" : `${whole.format(this.found.length)} of ${whole.format(all.length)} hooks`;
    this.find(".space").style.height = `${HEAD + this.lanes.length * LANE + 6}px`;
    this.box.hidden = this.lanes.length === 0;
    this.find(".nothing").textContent = this.lanes.length ? "" : "No hook matches the filter.";
    this.box.setAttribute("aria-label",
      `Timeline of ${this.found.length} hooks in ${this.lanes.length} lanes. Up and down arrows move ` +
      "between hooks, left and right in time, plus and minus zoom.");
    this.overview.setAttribute("aria-label", `All ${this.runs.length} runs in small`);
    if (this.pinned && !this.found.includes(this.pinned)) this.pinned = null;
    this.point(null);
    if (this.run && this.tables) fillLists(this);
  }

  open(tab) {
    this.tab = tab;
    this.keep();
    fillLists(this);
  }

  layout() {
    const width = this.box.clientWidth || this.overview.parentElement.clientWidth;
    const left = Math.round(Math.min(250, Math.max(130, width * 0.24)));
    const span = Math.max(1, width - left);
    const [from, to] = this.view;
    return { width, left, span, x: (place) => left + ((place - from) / (to - from)) * span };
  }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    if (!this.runs.length) return;
    const { color } = getComputedStyle(this.root);
    if (color !== this.ink) this.colours = coloursOf(this.probe); // the theme changed
    this.ink = color;
    paintOverview(this.overview, this);
    paintLanes(this.find(".space canvas"), this.box, this);
    paintTrack(this.find(".track"), this);
  }

  show(from, to) {
    this.view = windowAt(this.axis, from, to);
    this.redraw();
  }

  showRun(run) {
    const own = this.axis.pieces.filter((piece) => piece.runs.includes(run));
    if (!own.length) return;
    const margin = this.axis.gap / 2;
    this.show(own[0].left - margin, own.at(-1).left + own.at(-1).width + margin);
  }

  // ── the handle that is pointed at, and the one that is pinned ────────────────────────────────

  point(found) {
    this.at = found ?? this.whereIs(this.pinned);
    fillHandle(this.find(".detail"), this.at);
    this.redraw();
  }

  whereIs(record) {
    const row = record ? this.lanes.findIndex((lane) => lane.records.includes(record)) : -1;
    return row < 0 ? null : { row, record, event: null };
  }

  pin(found) {
    this.pinned = found?.record ?? null;
    if (this.pinned) {
      const mark = found.event ?? this.pinned.marks[0];
      this.choose(this.pinned.run, mark?.index ?? 0);
    }
    this.point(null);
  }

  pinRow(by) {
    const from = this.whereIs(this.pinned)?.row ?? (by > 0 ? -1 : 0);
    const row = Math.min(Math.max(from + by, 0), this.lanes.length - 1);
    const { records } = this.lanes[row];
    this.pinRecord(records.find((record) => record.run === this.run) ?? records.at(-1));
  }

  pinRecord(record) {
    this.pinned = record;
    this.reveal(record);
    this.point(null);
    this.choose(record.run, record.marks[0]?.index ?? 0);
  }

  /** Scroll the lanes, and the time where it must be, so that a handle is in view. */
  reveal(record) {
    const found = this.whereIs(record);
    if (!found) return;
    const top = found.row * LANE;
    const room = this.box.clientHeight - HEAD - LANE;
    if (this.box.scrollTop > top) this.box.scrollTop = top;
    if (this.box.scrollTop < top - room) this.box.scrollTop = top - room;
  }

  // ── the run that is stepped through ──────────────────────────────────────────────────────────

  choose(run, step = 0) {
    if (run !== this.run) this.player.stop();
    this.run = run;
    fillRun(this.find(".player"), this.player, this);
    this.goTo(step);
    fillLists(this);
  }

  goTo(step) {
    const { run } = this;
    this.step = Math.min(Math.max(step, 0), Math.max(0, run.events.length - 1));
    this.event = run.events[this.step] ?? null;
    fillEvent(this.find(".player"), this.player, this);
    if (!this.event) return this.redraw();
    this.find(".track").setAttribute("aria-label", `The network; ${pathOf(this.event.path)} is lit`);
    this.bringIntoView(this.event);
    if (this.tab === "events") this.tables.events.mark(this.event);
    return this.redraw();
  }

  bringIntoView(event) {
    const [from, to] = this.view;
    const at = this.axis.place(event.run.began + event.at);
    if (at < from || at > to) this.show(at - (to - from) / 2, at + (to - from) / 2);
    this.reveal(event.record);
  }
}

// Streamlit calls this again after each rerun and each change of theme, on the same elements.
const lives = new WeakMap();

export default function lifecycle({ key, data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".life");
  for (const name in data.colours) root.style.setProperty(name, data.colours[name]);
  if (!lives.has(root)) lives.set(root, new Life(root, key));
  const life = lives.get(root);
  life.send = (handle) => setTriggerValue("picked", handle);
  life.load(data);
  const observer = new ResizeObserver(life.redraw);
  observer.observe(root);
  return () => {
    observer.disconnect();
    life.player.stop();
  };
}
