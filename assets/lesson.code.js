// The listing: a lesson's source line by line, with the lines that registered a hook marked.

const SPACE = "http://www.w3.org/2000/svg";
const RIGHT = "M2 .5 L9.5 5 L2 9.5 Z";
const LEFT = "M8 .5 L.5 5 L8 9.5 Z";
const SHAPES = {
  forward_pre: [RIGHT, true],
  forward: [RIGHT, false],
  full_backward_pre: [LEFT, true],
  full_backward: [LEFT, false],
  tensor: ["M5 0 L10 5 L5 10 L0 5 Z", false],
};

const colourOf = (kind) => `var(--hook-${kind.replaceAll("_", "-")})`;

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function mark(kind) {
  const [outline, hollow] = SHAPES[kind];
  const svg = document.createElementNS(SPACE, "svg");
  svg.setAttribute("viewBox", "0 0 10 10");
  svg.setAttribute("class", "mark");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(SPACE, "path");
  shape.setAttribute("d", outline);
  shape.style.stroke = colourOf(kind);
  shape.style.fill = hollow ? "none" : colourOf(kind);
  svg.append(shape);
  return svg;
}

function listing(lines, marks, titles) {
  return lines.map((pieces, index) => {
    const row = element("li", "", element("span", "number", String(index + 1)));
    const kind = marks[index + 1];
    row.append(kind ? mark(kind) : element("span"), codeOf(pieces));
    if (!kind) return row;
    row.className = "hooked";
    row.style.setProperty("--kind", colourOf(kind));
    row.title = `This line registers a ${titles[kind]}`;
    row.append(element("span", "unseen", `registers a ${titles[kind]}`));
    return row;
  });
}

/** A line too long for its place goes on below its own beginning. */
function codeOf(pieces) {
  const indent = pieces.map(([, piece]) => piece).join("").match(/^ */)[0];
  let left = indent.length;
  const spans = pieces.map(([kind, piece]) => {
    const cut = Math.min(left, piece.length);
    left -= cut;
    return element("span", classOf(kind), piece.slice(cut));
  });
  return element("code", "", element("span", "indent", indent), element("span", "rest", ...spans));
}

const classOf = (kind) => (kind === "number" ? "number-text" : kind);
