// The timeline: which handle is pointed at, and what its record says.

const LANE = 22;
const AXIS = 26;

// The event drawn nearest to a time, where one is near enough to be meant.
function eventAt(events, time, near) {
  const distance = (event) => Math.abs(event.at - time);
  const close = events.filter((event) => distance(event) <= near);
  return close.sort((a, b) => distance(a) - distance(b))[0] ?? null;
}

// Keys and pointer in the words of the timeline: where they point, and what they pin.
function listen(lanes, canvas, { state, hover, point, pinTo, redraw }) {
  const moves = {
    ArrowDown: () => pinTo((state.pinned ?? -1) + 1), ArrowUp: () => pinTo((state.pinned ?? 1) - 1),
    PageDown: () => pinTo((state.pinned ?? 0) + 12), PageUp: () => pinTo((state.pinned ?? 0) - 12),
    Home: () => pinTo(0), End: () => pinTo(state.records.length - 1),
    Escape: () => point((state.pinned = null)),
  };
  lanes.addEventListener("keydown", (key) => {
    if (!(key.key in moves)) return;
    key.preventDefault();
    moves[key.key]();
  });
  lanes.addEventListener("focus", () => lanes.matches(":focus-visible") && pinTo(state.pinned ?? 0));
  lanes.addEventListener("scroll", redraw);
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => {
    state.pointer = null;
    point(state.pinned);
  });
  canvas.addEventListener("click", () => (state.pinned = state.at));
}

function makeTimeline(view, take = null) {
  const lanes = view.querySelector(".lanes");
  const space = view.querySelector(".space");
  const canvas = view.querySelector("canvas");
  const detail = view.querySelector(".detail");
  const nothing = view.querySelector(".nothing");
  const probe = element("span");
  probe.hidden = true;
  view.append(probe);
  const state = { records: [], events: new Map(), seconds: 1, at: null, pointer: null, pinned: null };
  let frame = 0;

  const layout = () => {
    const width = lanes.clientWidth;
    const left = Math.round(Math.min(330, Math.max(150, width * 0.32)));
    return { width, left, span: Math.max(1, width - left - 16) };
  };
  const redraw = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      paint(canvas, lanes, layout(), state, palette(probe));
      for (const button of space.querySelectorAll(".take")) {
        button.hidden = button.offsetTop < AXIS + lanes.scrollTop; // under the axis
      }
    });
  };
  const placeButtons = () => {
    for (const button of space.querySelectorAll(".take")) button.remove();
    state.records.forEach((record, row) => {
      if (!take || record.removed_at !== null) return;
      const button = take(record);
      button.style.top = `${AXIS + row * LANE + 1}px`;
      button.addEventListener("pointerenter", () => point(row));
      button.addEventListener("focus", () => point(row));
      space.append(button);
    });
  };

  function point(row, event = null) {
    state.at = row;
    fillDetail(detail, state.records[row], event);
    redraw();
  }

  function pinTo(row) {
    if (!state.records.length) return;
    state.pinned = Math.min(Math.max(row, 0), state.records.length - 1);
    const top = state.pinned * LANE;
    const room = lanes.clientHeight - AXIS - LANE;
    if (lanes.scrollTop > top) lanes.scrollTop = top;
    if (lanes.scrollTop < top - room) lanes.scrollTop = top - room;
    point(state.pinned);
  }

  function hover(mouse) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [mouse.clientX - box.left, mouse.clientY - box.top];
    const row = Math.floor((y - AXIS + lanes.scrollTop) / LANE);
    const { left, span } = layout();
    const time = ((x - left) / span) * state.seconds;
    state.pointer = x >= left && time <= state.seconds ? x : null;
    if (y < AXIS || !state.records[row]) return point(state.pinned);
    const near = (4 / span) * state.seconds;
    const events = state.events.get(state.records[row].id) ?? [];
    return point(row, eventAt(events, time, near));
  }

  listen(lanes, canvas, { state, hover, point, pinTo, redraw });

  function show(records, words, ledger, fires) {
    const pinned = state.records[state.pinned]?.id;
    const at = records.findIndex((record) => record.id === pinned);
    state.pinned = at < 0 ? null : at;
    Object.assign(state, { records, events: fires, pointer: null });
    const ends = ledger.records.map((r) => r.removed_at ?? r.registered_at);
    state.seconds = Math.max(ledger.seconds, ...ends) || 1e-3;
    space.style.height = `${AXIS + records.length * LANE + 6}px`;
    lanes.hidden = records.length === 0;
    detail.hidden = lanes.hidden;
    nothing.textContent = records.length ? "" : words;
    lanes.setAttribute(
      "aria-label", `Timeline of ${records.length} hooks. Up and down arrows move between them.`,
    );
    placeButtons();
    point(state.pinned);
  }
  const observer = new ResizeObserver(redraw);
  observer.observe(lanes);
  return { show, close: () => observer.disconnect() };
}

function fillDetail(box, record, event) {
  if (!record) {
    box.replaceChildren(element("span", "grey", "Point at a bar, or use ↑ and ↓, to read its record."));
    return;
  }
  const number = (label, value) => element("span", "num grey", `${label} `, element("b", "", value));
  const who = element(
    "div", "who", mark(record.kind), element("span", "", labelOf(record.kind)),
    pathText(pathOf(record.path)), element("span", "grey", record.class_name),
    element("span", "", record.purpose),
  );
  const removed = record.removed_at === null ? [] : [number("removed", `${ms(record.removed_at)} ms`)];
  box.replaceChildren(
    who, number("registered", `${ms(record.registered_at)} ms`), ...removed,
    number("fires", whole.format(record.fires)), number("inside", `${ms(record.seconds)} ms`),
    number("held", bytes(record.bytes_held)), element("span", "grey", `by ${record.origin}, #${record.id}`),
  );
  // «removed» is said by its time already.
  if (record.status !== "removed") box.append(element("span", statusClass(record.status), record.status));
  if (!event) return;
  const call = event.call === null ? "" : ` in call #${event.call}`;
  const words = `${event.what} at ${ms(event.at)} ms${call}`;
  box.append(element("span", event.what === "error" ? "bad" : "", words), pathText(event.shapes.join(", ")));
}
