// The drawing: one block after the other, marks where hooks sit, names where there is room.

const LETTER = 6.7; // width of a letter of a stage's name
const TOLD = 6; // hooks of one mark that are named
const drawings = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement }) {
  const root = parentElement.querySelector(".network");
  if (!drawings.has(root)) drawings.set(root, new Network(root));
  const drawing = drawings.get(root);
  drawing.show(data);
  return () => {
    drawing.destroy();
    drawings.delete(root);
  };
}

class Network {
  constructor(root) {
    this.root = root;
    this.svg = root.querySelector("svg");
    this.tip = root.querySelector(".tip");
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(root);
    for (const event of ["pointerover", "focusin"]) this.svg.addEventListener(event, ({ target }) => this.tell(target));
    for (const event of ["pointerleave", "focusout"]) this.svg.addEventListener(event, () => this.tell(null));
  }

  destroy() {
    this.observer.disconnect();
  }

  show(data) {
    if (data === this.data) return;
    this.data = data;
    this.root.dataset.testid = `network-${data.key}`;
    this.svg.setAttribute("aria-label", data.alt);
    this.width = 0;
    this.draw();
  }

  draw() {
    const width = Math.round(this.root.clientWidth);
    if (!this.data || !width || width === this.width) return;
    this.width = width;
    const plan = layOut(this.data, width);
    const middle = 20 + plan.above * ROW + TALL / 2;
    const low = middle + TALL / 2 + plan.below * ROW + 8;
    this.svg.setAttribute("height", low + 32);
    const lit = new Set(this.data.lit?.blocks);
    const marked = new Set(plan.marks.map((mark) => mark.block));
    this.svg.replaceChildren(
      ...ways(width, low),
      line("axis", 0, middle, width, middle),
      ...plan.marks.map((mark) => stemOf(mark, plan, middle)),
      ...plan.blocks.map((block, i) => blockOf(block, middle, lit.has(i), marked.has(i))),
      ...namesOf(plan, low + 10, lit, width),
      ...plan.marks.map((mark) => markOf(mark, middle)),
    );
  }

  /** What lies under the pointer or has the focus, in words, beside it. */
  tell(target) {
    const part = target?.closest?.("[data-tip]");
    this.tip.hidden = !part;
    if (!part) return;
    const [first, ...rest] = part.dataset.tip.split("\n");
    const name = document.createElement("b");
    name.textContent = first;
    this.tip.replaceChildren(name, rest.length ? `\n${rest.join("\n")}` : "");
    const home = this.root.getBoundingClientRect();
    const box = part.getBoundingClientRect();
    const left = box.left + box.width / 2 - home.left - this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.max(0, Math.min(left, home.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${box.bottom - home.top + 6}px`;
  }
}

function part(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function line(kind, x1, y1, x2, y2) {
  return part("line", { class: kind, x1, y1, x2, y2 });
}

function ways(width, low) {
  return [
    part("text", { class: "way", x: 0, y: 11 }, "input · forward pass →"),
    part("text", { class: "way", x: width, y: 11, "text-anchor": "end" }, "scores"),
    part("text", { class: "way", x: width, y: low + 28, "text-anchor": "end" }, "← backward pass"),
  ];
}

function blockOf({ path, kind, x, wide, tall }, middle, lit, marked) {
  const names = ["block", lit && "lit", marked && "marked"].filter(Boolean).join(" ");
  const place = { x, y: middle - tall / 2, width: wide, height: tall, rx: Math.min(3, wide / 3) };
  return part("rect", { class: names, ...place, "data-path": path, "data-tip": `${path}\n${kind}` });
}

function stemOf({ kind, x, level, up, block }, plan, middle) {
  const edge = plan.blocks[block].tall / 2;
  const end = TALL / 2 + ROW * (level + 0.5);
  const way = up ? -1 : 1;
  return line(`stem ${kind}`, x, middle + way * edge, x, middle + way * end);
}

function markOf({ kind, title, labels, x, level, up }, middle) {
  const y = middle + (up ? -1 : 1) * (TALL / 2 + ROW * (level + 0.5));
  const said = labels.slice(0, TOLD);
  if (labels.length > TOLD) said.push(`and ${labels.length - TOLD} more`);
  const mark = part(
    "g",
    { class: `mark ${kind}`, tabindex: 0, role: "img", "data-kind": kind },
    part("circle", { class: "dot", cx: x, cy: y, r: DOT }),
  );
  mark.setAttribute("aria-label", `${title}: ${said.join("; ")}`);
  mark.dataset.tip = [title, ...said].join("\n");
  if (labels.length > 1) {
    mark.append(part("text", { x, y: y + 3.2, "text-anchor": "middle" }, String(Math.min(labels.length, 99))));
  }
  return mark;
}

/** The names of the stages, from the left, leaving out those for which there is no room. */
function namesOf({ rows, blocks }, y, lit, width) {
  let free = 0;
  const short = crowded(rows);
  return rows.flatMap(({ path, x, wide }) => {
    const isLit = blocks.some((block, i) => lit.has(i) && block.x >= x && block.x < x + wide);
    const name = shortened(path, short.has(parentOf(path)) ? 0 : roomOf(wide), roomOf(wide));
    const long = name.length * LETTER;
    const middle = Math.min(Math.max(x + wide / 2, long / 2), width - long / 2);
    if (middle - long / 2 < free) return [];
    free = middle + long / 2 + 8;
    const place = { x: middle, y, "text-anchor": "middle", "data-tip": path };
    return [part("text", { class: isLit ? "stage lit" : "stage", ...place }, name)];
  });
}

/** The parents of which most children have no room for their whole path: all of them are short. */
function crowded(rows) {
  const parents = new Map();
  for (const { path, wide } of rows) {
    const fits = path.length * LETTER <= roomOf(wide);
    parents.set(parentOf(path), [...(parents.get(parentOf(path)) ?? []), fits]);
  }
  return new Set([...parents].filter(([, fit]) => 2 * fit.filter(Boolean).length < fit.length).map(([parent]) => parent));
}

function roomOf(wide) {
  return wide + BREAK - 4;
}

function parentOf(path) {
  return path.slice(0, Math.max(path.lastIndexOf("."), 0));
}

/** As much of a path as there is room for; its end tells it from the others. */
function shortened(path, roomForAll, room) {
  const last = path.slice(path.lastIndexOf(".") + 1);
  const end = last.slice(last.indexOf("_") + 1);
  if (path.length * LETTER <= roomForAll || path === last) return path;
  return last.length * LETTER <= room ? last : end;
}
