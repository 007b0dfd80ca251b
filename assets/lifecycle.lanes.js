// The lanes under pointer and keyboard: zoom, pan, point, pin.

const ZOOM = 1.6;

function zoomBy(life, factor, around = 0.5) {
  const [from, to] = life.view;
  const centre = from + (to - from) * around;
  life.show(centre - (centre - from) / factor, centre + (to - centre) / factor);
}

function panBy(life, share) {
  const [from, to] = life.view;
  life.show(from + share * (to - from), to + share * (to - from));
}

// The handle under the pointer, and the event of it that is near.
function under(life, box, mouse) {
  const canvas = box.querySelector("canvas").getBoundingClientRect();
  const [x, y] = [mouse.clientX - canvas.left, mouse.clientY - canvas.top];
  const row = Math.floor((y - HEAD + box.scrollTop) / LANE);
  const lane = life.lanes[row];
  if (y < HEAD || !lane) return null;
  const layout = life.layout();
  const near = (record) => {
    const [from, to] = [startOf(record), endOf(record)].map((t) => layout.x(life.axis.place(t)));
    return x < from ? from - x : Math.max(0, x - to);
  };
  const record = lane.records.reduce((a, b) => (near(b) < near(a) ? b : a));
  if (x > layout.left && near(record) > 6) return { row, record: null, event: null };
  const distance = (e) => Math.abs(layout.x(life.axis.place(e.run.began + e.at)) - x);
  const events = record.marks.filter((event) => distance(event) <= 5);
  const event = events.sort((a, b) => distance(a) - distance(b))[0] ?? null;
  return { row, record, event };
}

// Which run a point of the head belongs to.
function runAt(life, box, mouse) {
  const canvas = box.querySelector("canvas").getBoundingClientRect();
  const { left, span } = life.layout();
  const [from, to] = life.view;
  const at = from + ((mouse.clientX - canvas.left - left) / span) * (to - from);
  const piece = life.axis.pieces.find((p) => p.left <= at && at <= p.left + p.width);
  return mouse.clientY - canvas.top < HEAD ? piece?.runs[0] : null;
}

function listenToLanes(box, life) {
  const canvas = box.querySelector("canvas");
  let drag = null;
  box.addEventListener("scroll", life.redraw);
  box.addEventListener("wheel", (wheel) => {
    const sideways = wheel.shiftKey ? wheel.deltaY : wheel.deltaX;
    if (wheel.ctrlKey || wheel.metaKey) {
      const { left, span } = life.layout();
      const x = wheel.clientX - canvas.getBoundingClientRect().left - left;
      zoomBy(life, Math.exp(-wheel.deltaY / 240), Math.min(1, Math.max(0, x / span)));
    } else if (Math.abs(sideways) > Math.abs(wheel.shiftKey ? 0 : wheel.deltaY)) {
      panBy(life, sideways / life.layout().span);
    } else return;
    wheel.preventDefault();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (mouse) => {
    if (mouse.button === 0) drag = { x: mouse.clientX, view: life.view, moved: false };
  });
  canvas.addEventListener("pointermove", (mouse) => {
    if (!drag) return life.point(under(life, box, mouse));
    const moved = mouse.clientX - drag.x;
    if (!drag.moved && Math.abs(moved) < 4) return null;
    drag.moved = true;
    canvas.setPointerCapture(mouse.pointerId);
    const [from, to] = drag.view;
    const shift = (-moved / life.layout().span) * (to - from);
    return life.show(from + shift, to + shift);
  });
  canvas.addEventListener("pointerup", (mouse) => {
    const moved = drag?.moved;
    drag = null;
    if (moved) return;
    const run = runAt(life, box, mouse);
    if (run) return life.choose(run);
    life.pin(under(life, box, mouse));
  });
  canvas.addEventListener("pointerleave", () => {
    if (!drag?.moved) drag = null;
    life.point(null);
  });
  canvas.addEventListener("dblclick", (mouse) => {
    const run = under(life, box, mouse)?.record?.run ?? runAt(life, box, mouse);
    if (run) life.showRun(run);
  });
  box.addEventListener("keydown", (key) => onKey(life, key));
}

function onKey(life, key) {
  if (key.ctrlKey || key.metaKey || key.altKey) return;
  const moves = {
    ArrowDown: () => life.pinRow(1), ArrowUp: () => life.pinRow(-1),
    PageDown: () => life.pinRow(12), PageUp: () => life.pinRow(-12),
    ArrowLeft: () => panBy(life, -0.15), ArrowRight: () => panBy(life, 0.15),
    "+": () => zoomBy(life, ZOOM), "=": () => zoomBy(life, ZOOM), "-": () => zoomBy(life, 1 / ZOOM),
    0: () => life.show(0, life.axis.length), r: () => life.showRun(life.run), R: () => life.showRun(life.run),
    Escape: () => life.pin(null),
  };
  if (!(key.key in moves)) return;
  key.preventDefault();
  key.stopPropagation(); // Streamlit runs the script at an «r»
  moves[key.key]();
}

function fillHandle(box, found) {
  if (!found?.record) {
    box.replaceChildren(element(
      "span", "grey",
      "Point at a bar to read its record; click to step to it. Drag to move in time, Ctrl and the " +
      "wheel to zoom; keys: ↑ ↓ bars, ← → time, + − zoom, 0 all, R this run.",
    ));
    return;
  }
  const { record, event } = found;
  const number = (label, value) => element("span", "num grey", `${label} `, element("b", "", value));
  const who = element(
    "div", "who", mark(record.kind), element("span", "", labelOf(record.kind)),
    pathText(pathOf(record.path)), element("span", "grey", record.class_name),
    element("span", "", record.purpose),
    element("span", "grey", `run ${record.run.number}, ${record.run.title}`),
  );
  const off = record.removed_at === null ? [] : [number("removed", moment(record.removed_at))];
  box.replaceChildren(
    who, number("registered", moment(record.registered_at)), ...off,
    number("fires", whole.format(record.fires)), number("inside", `${ms(record.seconds)} ms`),
    number("held", bytes(record.bytes_held)), element("span", "grey", `by ${record.origin}, #${record.id}`),
  );
  if (record.status !== "removed") box.append(element("span", statusClass(record.status), record.status));
  if (!event) return;
  const call = event.call === null ? "" : ` in call #${event.call}`;
  box.append(
    element("span", event.what === "error" ? "bad" : "", `${event.what} at ${moment(event.at)}${call}`),
    pathText(event.shapes),
  );
}
