// Where everything of the drawing stands, in pixels, for a given width.

const GAP = 2; // between blocks
const BREAK = 9; // between stages
const TALL = 52; // the tallest block
const DOT = 7; // radius of a mark
const ROW = 17; // between marks that stand above one another
const SIDES = {
  forward_pre: { up: true, edge: 0 },
  forward: { up: true, edge: 1 },
  full_backward_pre: { up: false, edge: 1 },
  full_backward: { up: false, edge: 0 },
  tensor: { up: false, edge: 0.5 },
};

/** Blocks from left to right and marks above and below them. */
function layOut({ stages, marks }, width) {
  const all = stages.flatMap((stage) => stage.blocks);
  const free = width - GAP * (all.length - stages.length) - BREAK * (stages.length - 1);
  const unit = Math.max(free, all.length) / all.reduce((sum, block) => sum + block.width, 0);
  const blocks = [];
  let x = 0;
  const rows = stages.map((stage) => {
    const start = x;
    for (const block of stage.blocks) {
      const wide = Math.max(unit * block.width, 1);
      blocks.push({ ...block, x, wide, tall: TALL * block.height });
      x += wide + GAP;
    }
    x += BREAK - GAP;
    return { path: stage.path, x: start, wide: x - BREAK - start };
  });
  const placed = stack(marks.map((mark) => {
    const { up, edge } = SIDES[mark.kind];
    const { x: left, wide } = blocks[mark.block];
    const inset = Math.min(DOT, wide / 2);
    const at = left + inset + edge * (wide - 2 * inset);
    return { ...mark, up, x: Math.min(Math.max(at, DOT), Math.max(width - DOT, DOT)) };
  }));
  return { blocks, rows, marks: placed, above: levels(placed, true), below: levels(placed, false) };
}

/** Give each mark the lowest level at which it touches no other. */
function stack(marks) {
  const taken = new Map();
  return [...marks].sort((a, b) => a.x - b.x).map((mark) => {
    let level = 0;
    while (mark.x - (taken.get(`${mark.up} ${level}`) ?? -Infinity) < 2 * DOT + 1) level += 1;
    taken.set(`${mark.up} ${level}`, mark.x);
    return { ...mark, level };
  });
}

function levels(marks, up) {
  return Math.max(1, ...marks.filter((mark) => mark.up === up).map((mark) => mark.level + 1));
}
