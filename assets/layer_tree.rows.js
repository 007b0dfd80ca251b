// The lines of the tree, and which of them are shown.

const MOST_ROWS = 40; // shown when a network is first seen

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children); // strings become text nodes: a name is never markup
  return node;
}

/** The rows as a tree: each knows its level, its parent and its children. */
function linked(rows) {
  const byPath = new Map(rows.map((row) => [row.path, row]));
  for (const row of rows) row.children = [];
  for (const row of rows) {
    const cut = row.path.lastIndexOf(".");
    row.name = row.path.slice(cut + 1);
    row.parent = byPath.get(row.path.slice(0, Math.max(cut, 0))) ?? null;
    row.level = row.parent ? row.parent.level + 1 : 1;
    row.parent?.children.push(row);
    row.hay = `${row.path} ${row.kind}`.toLowerCase();
  }
  return byPath;
}

/** The branches that are open at first: as many levels as fit, and those above what is chosen. */
function openAtFirst(rows) {
  let level = 1;
  const upTo = (most) => rows.filter((row) => row.level <= most).length;
  while (upTo(level + 1) <= MOST_ROWS && rows.some((row) => row.level > level)) level += 1;
  return new Set(rows.filter((row) => row.level < level && row.children.length).map((row) => row.path));
}

function visibleRows(rows, open) {
  return rows.filter((row) => {
    for (let above = row.parent; above; above = above.parent) if (!open.has(above.path)) return false;
    return true;
  });
}

/** A line. `flat` writes the whole path, without place in the tree; `cells` says which numbers. */
function lineOf(row, { flat, open, cells, wide }) {
  const line = element("div", "line");
  line.setAttribute("role", "treeitem");
  line.setAttribute("aria-level", flat ? 1 : row.level);
  line.dataset.path = row.path;
  line.tabIndex = -1;
  line.style.setProperty("--level", flat ? 0 : row.level - 1);
  if (!row.calls) line.setAttribute("aria-disabled", "true");
  const branch = !flat && row.children.length > 0;
  if (branch) line.setAttribute("aria-expanded", String(open.has(row.path)));
  const name = element("span", "name", element("i", branch ? "fold" : "leaf"), pathOf(flat ? row.path : row.name));
  if (row.star) name.append(starOf());
  name.append(element("span", "kind", row.kind));
  if (row.calls > 1) name.append(element("span", "calls", `×${row.calls}`));
  line.append(name, element("span", "shape", shapeOf(row, wide)));
  for (const { measure, bar } of cells) line.append(cellOf(row, measure, bar));
  return line;
}

/** «1280×7×7»; with words and air where there is room. */
function shapeOf(row, wide) {
  if (!row.calls) return "never runs";
  if (!row.shape) return "no tensor";
  return wide ? row.shape : row.shape.replaceAll(" × ", "×").replace(" tokens", "");
}

/** A path too long for its place loses its beginning: its end tells layers apart. */
function pathOf(text) {
  const inner = element("bdi", "", text);
  inner.dir = "ltr";
  return element("span", "path", inner);
}

function starOf() {
  const star = element("span", "star", "★");
  star.setAttribute("role", "img");
  star.setAttribute("aria-label", "recommended");
  return star;
}

function cellOf(row, measure, bar) {
  const value = row[measure];
  const cell = element("span", "cell", element("b", "", row.calls || measure === "parameters" ? written(measure, value) : ""));
  cell.dataset.measure = measure;
  const span = typeof value === "number" && row.calls ? bar(value) : null;
  if (span) {
    const track = element("i", SIGNED.has(measure) ? (value < 0 ? "bar against" : "bar for") : "bar");
    track.style.left = `${100 * span[0]}%`;
    track.style.width = `${100 * (span[1] - span[0])}%`;
    cell.append(element("i", "track", track));
  }
  return cell;
}

/** All that is known of a layer, below the tree. */
function aboutOf(row) {
  if (!row) return [];
  const head = element("p", "who", element("span", "path", row.path), element("span", "kind", row.kind));
  if (!row.calls) {
    const why = element("p", "why", `Never runs: ${row.reason ?? "no reason is known"}.`);
    return [head, why];
  }
  const facts = Object.entries(MEASURES).map(([name, { long }]) => [long.split(":")[0], written(name, row[name])]);
  if (row.channels) facts.push(["Dead channels", `${row.dead ?? 0} of ${row.channels.toLocaleString("en")}`]);
  const layouts = {
    nchw: "channels × height × width", nhwc: "height × width × channels, shown channels first",
    tokens: "tokens", vector: "a vector", other: "no known layout",
  };
  const shape = [row.shape, layouts[row.layout], row.calls > 1 && `${row.calls} calls, numbers of the first`];
  const list = element("dl", "", ...facts.map(([term, text]) => element("div", "", element("dt", "", term), element("dd", "", text))));
  const parts = [head, element("p", "how", shape.filter(Boolean).join(" · ")), list];
  if (row.star) parts.push(element("p", "why", `★ ${row.reason}`));
  return parts;
}
