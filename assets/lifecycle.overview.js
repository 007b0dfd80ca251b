// All runs in small, with the part that is shown below in a frame that can be dragged.

const OVERVIEW = 44;

function paintOverview(canvas, life) {
  const { axis, colours } = life;
  const { width, left } = life.layout();
  if (width <= left) return;
  const x = (place) => left + (place / axis.length) * (width - left);
  const ground = groundOf(life, width, left, x);
  const ctx = sized(canvas, width, OVERVIEW);
  ctx.drawImage(ground, 0, 0, width, OVERVIEW);
  const [from, to] = life.view.map(x);
  ctx.globalAlpha = 0.72;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(left, 0, from - left, OVERVIEW);
  ctx.fillRect(to, 0, width - to, OVERVIEW);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colours.ink;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(from + 1, 1, Math.max(4, to - from - 2), OVERVIEW - 2);
}

// All handles, drawn once: thousands of them would slow down every step.
function groundOf(life, width, left, x) {
  const { axis, lanes, colours, ground } = life;
  const drawn = [axis, lanes, colours, width, window.devicePixelRatio];
  if (ground?.drawn.every((part, index) => part === drawn[index])) return ground.canvas;
  const canvas = document.createElement("canvas");
  const ctx = sized(canvas, width, OVERVIEW);
  life.ground = { canvas, drawn };
  ctx.font = colours.small;
  ctx.fillStyle = colours.grey;
  ctx.fillText(life.runs.length === 1 ? "1 run" : `all ${life.runs.length} runs`, 3, OVERVIEW / 2);
  for (const piece of axis.pieces) {
    ctx.fillStyle = colours.wash;
    ctx.fillRect(x(piece.left), 0, Math.max(1, x(piece.left + piece.width) - x(piece.left)), OVERVIEW);
  }
  const row = (OVERVIEW - 8) / Math.max(12, lanes.length);
  lanes.forEach((lane, index) => {
    ctx.fillStyle = colours[lane.kind];
    for (const record of lane.records) {
      const [from, to] = [x(axis.place(startOf(record))), x(axis.place(endOf(record)))];
      ctx.fillRect(from, 4 + index * row, Math.max(1, to - from), Math.max(0.75, row * 0.7));
    }
  });
  return canvas;
}

function listenToOverview(canvas, life) {
  const placeOf = (mouse) => {
    const { width, left } = life.layout();
    const x = mouse.clientX - canvas.getBoundingClientRect().left;
    return ((x - left) / (width - left)) * life.axis.length;
  };
  let held = null; // where in the frame it was taken
  canvas.addEventListener("pointerdown", (mouse) => {
    const at = placeOf(mouse);
    const [from, to] = life.view;
    held = at > from && at < to ? at - from : (to - from) / 2;
    canvas.setPointerCapture(mouse.pointerId);
    life.show(at - held, at - held + to - from);
  });
  canvas.addEventListener("pointermove", (mouse) => {
    if (held === null) return;
    const from = placeOf(mouse) - held;
    life.show(from, from + life.view[1] - life.view[0]);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => (held = null));
  }
}
