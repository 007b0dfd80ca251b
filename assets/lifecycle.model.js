// What the server sent, as objects again, and which lane each handle has.

const KIND_ORDER = Object.keys(KINDS);

function unpack({ runs, strings, kinds, whats }) {
  const text = (number) => strings[number];
  return runs.map((packed) => {
    const run = { ...packed };
    run.records = packed.records.map((row, id) => {
      const [kind, path, name, purpose, origin, status, returned, on, off, fires, seconds, held] = row;
      return {
        run, number: run.number, id, kind: kinds[kind], path: text(path), class_name: text(name), purpose: text(purpose),
        origin: text(origin), status: text(status), returned: text(returned), registered_at: on,
        removed_at: off, fires, seconds, bytes_held: held, marks: [],
      };
    });
    run.events = packed.at.map((at, index) => {
      const record = run.records[packed.hook[index]];
      const call = packed.call[index];
      return {
        run, record, index, at, what: whats[packed.what[index]], hook: record.id,
        kind: record.kind, path: record.path, call: call < 0 ? null : call,
        shapes: text(packed.shapes[index]), detail: text(packed.detail[index]),
      };
    });
    for (const event of run.events) {
      if (event.what !== "registered" && event.what !== "removed") event.record.marks.push(event);
    }
    run.order = orderOf(run);
    run.live = run.records.filter((record) => record.removed_at === null).length;
    const ends = run.records.map((record) => record.removed_at ?? record.registered_at);
    run.seconds = run.now ?? Math.max(0, ...ends);
    return run;
  });
}

// «never fired: the module did not run» is of the status «never fired».
const stateOf = (record) => record.status.split(":")[0];

// Paths of a run in the order in which they ran: of the first forward fire where there is one.
function orderOf(run) {
  const forward = run.events.filter((e) => e.what === "fired" && e.kind.startsWith("forward"));
  return [...new Set([...forward, ...run.records].map((item) => item.path))];
}

// One order for all runs: a path that a longer run does not know follows its neighbour.
function commonOrder(runs) {
  const order = [];
  for (const run of [...runs].sort((a, b) => b.order.length - a.order.length)) {
    const known = new Set(order);
    let place = 0;
    for (const path of run.order) {
      if (known.has(path)) place = order.indexOf(path) + 1;
      else order.splice(place++, 0, path);
    }
  }
  return new Map(order.map((path, place) => [path, place]));
}

const startOf = (record) => record.run.began + record.registered_at;
const endOf = (record) =>
  record.removed_at === null ? Infinity : record.run.began + record.removed_at;

// A lane is one kind of hook on one module; where two of them overlap in time there are more.
function lanesOf(records, order) {
  const lanes = new Map();
  for (const record of [...records].sort((a, b) => startOf(a) - startOf(b))) {
    for (let slot = 0; ; slot += 1) {
      const key = `${record.path}\n${record.kind}\n${slot}`;
      const lane = lanes.get(key);
      if (lane && endOf(lane.records.at(-1)) > startOf(record)) continue;
      if (lane) lane.records.push(record);
      else lanes.set(key, { path: record.path, kind: record.kind, slot, records: [record] });
      break;
    }
  }
  const rank = (lane) => [order.get(lane.path), KIND_ORDER.indexOf(lane.kind), lane.slot];
  return [...lanes.values()]
    .map((lane) => ({ lane, rank: rank(lane) }))
    .sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1] || a.rank[2] - b.rank[2])
    .map(({ lane }) => lane);
}

function recordFilter({ text, kind, state, origin }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (record) => {
    if (kind.size && !kind.has(record.kind)) return false;
    if (state.size && !state.has(stateOf(record))) return false;
    if (origin.size && !origin.has(record.origin)) return false;
    if (!words.length) return true;
    const fields = [
      pathOf(record.path), record.class_name, record.purpose, record.status, record.origin,
      labelOf(record.kind), record.run.title, record.run.page,
    ];
    const hay = fields.join("\n").toLowerCase();
    return words.every((word) => hay.includes(word));
  };
}
