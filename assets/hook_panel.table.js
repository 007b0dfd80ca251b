// Tables of any length: records, events, foreign hooks.

const recordColumns = (take) => [
  { key: "id", title: "id", width: 40, num: true, text: (r) => String(r.id) },
  ...(take ? [takeColumn(take)] : []),
  { key: "kind", title: "kind", width: 142, text: (r) => labelOf(r.kind), node: kindCell },
  {
    key: "path", title: "path, class", width: 224,
    text: (r) => `${pathOf(r.path)}  ${r.class_name}`,
    node: (r) => element("span", "layer", pathText(pathOf(r.path)), element("span", "grey", r.class_name)),
  },
  { key: "purpose", title: "purpose", width: 126, text: (r) => r.purpose },
  { key: "registered_at", title: "registered ms", width: 94, num: true, text: (r) => ms(r.registered_at) },
  { key: "removed_at", title: "removed ms", width: 86, num: true, text: (r) => ms(r.removed_at) },
  { key: "fires", title: "fires", width: 46, num: true, text: (r) => whole.format(r.fires) },
  { key: "seconds", title: "inside ms", width: 70, num: true, text: (r) => ms(r.seconds) },
  { key: "bytes_held", title: "held", width: 68, num: true, text: (r) => bytes(r.bytes_held) },
  {
    key: "status", title: "status", width: 84, text: (r) => r.status,
    node: (r) => element("span", statusClass(r.status), r.status),
  },
];

const takeColumn = (take) => ({
  key: "take", title: "", width: 84, text: () => "",
  node: (record) => (record.removed_at === null ? take(record) : ""),
});

const callOf = (event) => pathOf(event.path) + (event.call === null ? "" : `#${event.call}`);
const eventColumns = [
  { key: "at", title: "ms", width: 76, num: true, text: (e) => ms(e.at) },
  {
    key: "what", title: "what", width: 80, text: (e) => e.what,
    node: (e) => element("span", e.what === "error" ? "bad" : "", e.what),
  },
  { key: "kind", title: "kind", width: 142, text: (e) => labelOf(e.kind), node: kindCell },
  { key: "path", title: "path # call", width: 236, text: callOf, node: (e) => pathText(callOf(e)) },
  {
    key: "shapes", title: "shapes", width: 180, text: (e) => e.shapes.join(", "),
    node: (e) => pathText(e.shapes.join(", ")),
  },
  { key: "detail", title: "detail", width: 180, text: (e) => e.detail },
];
const foreignColumns = [
  { key: "path", title: "path", width: 220, text: (f) => pathOf(f.path), node: (f) => pathText(pathOf(f.path)) },
  { key: "class_name", title: "class", width: 160, text: (f) => f.class_name },
  { key: "kind", title: "kind", width: 150, text: (f) => labelOf(f.kind), node: kindCell },
  { key: "name", title: "callback", width: 220, text: (f) => f.name, node: (f) => pathText(f.name) },
];

const TABLE_ROW = 28;
const SPARE = 8; // rows drawn beyond the edges, so that a fast scroll shows no gap

function tableHead(columns, sortable, onSort) {
  const row = element("tr");
  for (const column of columns) {
    const head = element("th", column.num ? "num" : "");
    head.scope = "col";
    head.dataset.key = column.key;
    if (sortable && column.title) {
      const button = element("button", "", column.title);
      button.type = "button";
      button.addEventListener("click", () => onSort(column.key));
      head.append(button);
    } else head.append(column.title);
    row.append(head);
  }
  return element("thead", "", row);
}

function tableRow(columns, record, index) {
  const row = element("tr");
  row.setAttribute("aria-rowindex", index + 2);
  for (const column of columns) {
    const text = column.text(record);
    const cell = element("td", column.num ? "num" : "", column.node ? column.node(record) : text);
    if (!column.num && text) cell.title = text;
    row.append(cell);
  }
  return row;
}

function spaceRow(rows, columns) {
  const cell = element("td");
  cell.colSpan = columns.length;
  cell.style.height = `${rows * TABLE_ROW}px`;
  const row = element("tr", "space-row", cell);
  row.setAttribute("aria-hidden", "true");
  return row;
}

function compare(key, descending) {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === null || y === null) return (x === null) - (y === null); // unknown stays last
    return sign * (typeof x === "number" ? x - y : collator.compare(x, y)) || a.id - b.id;
  };
}

function tableAround(columns, label, head, body) {
  const widths = element("colgroup");
  const total = columns.reduce((sum, column) => sum + column.width, 0);
  for (const column of columns) {
    const col = element("col");
    col.style.width = `${(column.width / total) * 100}%`;
    widths.append(col);
  }
  const table = element("table", "", widths, head, body);
  table.style.minWidth = `${total}px`;
  table.setAttribute("aria-label", label);
  return table;
}

// Only the rows in view are in the document: 5,000 events scroll like 50.
// Picking a row, where rows can be picked, passes it on; `show.mark(row)` makes one the current.
function makeTable(view, columns, label, { sortable = false, onPick = null } = {}) {
  const order = { key: null, descending: false };
  const body = element("tbody");
  const head = tableHead(columns, sortable, sortBy);
  const table = tableAround(columns, label, head, body);
  const scroll = element("div", "scroll", table);
  scroll.tabIndex = 0;
  const nothing = element("p", "nothing");
  view.append(scroll, nothing);
  let rows = [];
  let source = [];
  let current = null;

  function draw() {
    const first = Math.max(0, Math.floor(scroll.scrollTop / TABLE_ROW) - SPARE);
    const last = Math.min(rows.length, first + Math.ceil(scroll.clientHeight / TABLE_ROW) + 2 * SPARE);
    const drawn = rows.slice(first, last).map((row, i) => tableRow(columns, row, first + i));
    if (current) drawn[rows.indexOf(current) - first]?.setAttribute("aria-current", "true");
    body.replaceChildren(
      spaceRow(first, columns), ...drawn, spaceRow(rows.length - last, columns),
    );
  }

  function sort() {
    rows = order.key ? [...source].sort(compare(order.key, order.descending)) : source;
    for (const cell of head.querySelectorAll("th")) {
      if (cell.dataset.key !== order.key) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    }
    draw();
  }

  function sortBy(key) {
    order.descending = order.key === key && !order.descending;
    order.key = key;
    scroll.scrollTop = 0;
    sort();
  }

  function mark(row) {
    current = row;
    const before = scroll.scrollTop;
    const top = rows.indexOf(row) * TABLE_ROW;
    const room = scroll.clientHeight - 2 * TABLE_ROW; // the head covers the first row
    if (top < before) scroll.scrollTop = top;
    else if (top > before + room) scroll.scrollTop = top - room / 2;
    if (scroll.scrollTop === before) draw(); // else the scroll event does
  }

  scroll.addEventListener("scroll", () => requestAnimationFrame(draw));
  if (onPick) {
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr[aria-rowindex]");
      if (row) onPick(rows[Number(row.getAttribute("aria-rowindex")) - 2]);
    });
  }
  function show(found, words) {
    source = found;
    scroll.hidden = found.length === 0;
    nothing.textContent = found.length ? "" : words;
    table.setAttribute("aria-rowcount", found.length + 1);
    // The body needs its height before the rows in view can be counted.
    body.replaceChildren(spaceRow(found.length, columns));
    sort();
  }
  return Object.assign(show, { mark });
}
