// The five kinds of hook, and how the panel writes names, times and sizes.

const RIGHT = "M2 .5 L9.5 5 L2 9.5 Z";
const LEFT = "M8 .5 L.5 5 L8 9.5 Z";
const KINDS = {
  forward_pre: { label: "forward pre", shape: RIGHT, hollow: true },
  forward: { label: "forward", shape: RIGHT },
  full_backward_pre: { label: "full backward pre", shape: LEFT, hollow: true },
  full_backward: { label: "full backward", shape: LEFT },
  tensor: { label: "tensor", shape: "M5 0 L10 5 L5 10 L0 5 Z" },
};

const twoDigits = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat("en");
const collator = new Intl.Collator("en", { numeric: true });

const ms = (seconds) => (seconds === null ? "–" : twoDigits.format(seconds * 1000));
const pathOf = (path) => path || "(root)";
const labelOf = (kind) => KINDS[kind]?.label ?? kind;

function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const power = Math.min(Math.floor(Math.log10(count) / 3), units.length);
  return `${(count / 1000 ** power).toFixed(1)} ${units[power - 1]}`;
}

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children); // strings become text nodes: names from user modules are never markup
  return node;
}

function colourOf(kind) {
  return kind in KINDS ? `var(--hook-${kind.replaceAll("_", "-")})` : "var(--grey)";
}

function mark(kind) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 10 10");
  svg.setAttribute("class", "mark");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, "path");
  shape.setAttribute("d", KINDS[kind]?.shape ?? "M2 2 L8 2 L8 8 L2 8 Z");
  shape.style.stroke = colourOf(kind);
  shape.style.fill = KINDS[kind]?.hollow ? "none" : colourOf(kind);
  svg.append(shape);
  return svg;
}

const kindCell = (row) => element("span", "kind", mark(row.kind), labelOf(row.kind));

// A path too long for its place loses its beginning: its end tells layers apart.
function pathText(text) {
  const words = element("bdi", "", text);
  words.dir = "ltr";
  return element("span", "mono path", words);
}


function statusClass(status) {
  if (status === "leaked") return "bad";
  return status === "removed" ? "grey" : "warn";
}
