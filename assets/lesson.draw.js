// The drawings: values that go right and gradients that come back left, or bars on one scale.

const AT_NODE = "node";
const PLACES = {
  forward_pre: [-1, "forward"],
  forward: [1, "forward"],
  full_backward_pre: [1, "back"],
  full_backward: [-1, "back"],
  tensor: [0, AT_NODE],
};

// Columns: node, edge, node, edge, … Rows: forward hooks, values, nodes, gradients, other hooks.
function drawFlow({ nodes, marks }) {
  const flow = element("div", "flow");
  const backward = nodes.some((node) => node.gradient);
  flow.style.gridTemplateColumns = nodes.map(() => "auto").join(" minmax(2.5rem, 1fr) ");
  nodes.forEach((node, index) => {
    const column = 2 * index + 1;
    place(flow, element("div", "value", node.value), 2, column);
    place(flow, element("div", `node ${node.kind}`, node.name), 3, column);
    place(flow, element("div", "gradient", node.gradient), 4, column);
    if (index + 1 < nodes.length) {
      const steps = [index, 2 * nodes.length - 3 - index];
      place(flow, drawEdge(node, marksAt(marks, index, index + 1), backward, steps), 3, column + 1);
    }
  });
  drawChips(flow, marks, 2 * nodes.length - 1);
  return flow;
}

function place(flow, child, row, column, span = 1) {
  child.style.gridRow = row;
  child.style.gridColumn = `${column} / span ${span}`;
  flow.append(child);
}

/** The hooks on the way from one node to the next: behind the first or before the second. */
function marksAt(marks, from, to) {
  return marks.filter(({ at, kind }) => {
    const side = PLACES[kind][0];
    return (side === 1 && at === from) || (side === -1 && at === to);
  });
}

function drawEdge(node, marks, backward, [forwardStep, backwardStep]) {
  if (node.beside) return element("div", "edge beside", node.then);
  const edge = element("div", "edge");
  if (node.then) edge.append(element("span", "then", node.then));
  const lane = (way, step) => {
    const line = element("div", `lane ${way}${backward ? "" : " alone"}`, element("span", "bead"));
    line.firstChild.style.setProperty("--step", step);
    const here = marks.find(({ kind }) => PLACES[kind][1] === way);
    if (here) line.append(mark(here.kind));
    edge.append(line);
  };
  lane("forward", forwardStep);
  if (backward) lane("back", backwardStep);
  return edge;
}

function drawChips(flow, marks, columns) {
  const cells = new Map();
  for (const each of marks) {
    const [side, lane] = PLACES[each.kind];
    const row = lane === "forward" ? 1 : 5;
    const column = 2 * each.at + 1 + side;
    const cell = `${row}/${column}`;
    if (!cells.has(cell)) {
      const end = { 1: " first", [columns]: " last" }[column] ?? "";
      cells.set(cell, element("div", `chips${end}`));
      place(flow, cells.get(cell), row, column);
    }
    const chip = element("div", "chip", mark(each.kind), each.text);
    chip.style.setProperty("--kind", colourOf(each.kind));
    cells.get(cell).append(chip);
  }
}

function drawBars({ bars }) {
  const longest = Math.max(...bars.map((bar) => bar.length), 1e-9);
  const list = element("dl", "bars");
  for (const { name, length, text, kind } of bars) {
    const bar = element("span", "bar");
    bar.style.width = `${(100 * length) / longest}%`;
    if (kind) bar.style.background = colourOf(kind);
    list.append(element("dt", "", name));
    list.append(element("dd", "", element("span", "track", bar), element("span", "amount", text)));
  }
  return list;
}
