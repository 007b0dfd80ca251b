// The network as a row of modules, lit by what has fired up to one event.

const TRACK = 118;
const HALF = 26;
const TOP = 22;

// «features.3.0.block» belongs to «features.3»: modules of one stage stand together.
function stageOf(path) {
  const parts = path.split(".");
  const number = parts.findIndex((part) => /^\d+$/.test(part));
  return number < 0 ? pathOf(parts[0]) : parts.slice(0, number + 1).join(".");
}

// What has fired on each module up to and with an event: its kinds of the way there and back.
function litUntil(run, last) {
  const lit = new Map();
  for (let index = 0; index <= last; index += 1) {
    const event = run.events[index];
    if (event.what !== "fired" && event.what !== "changed") continue;
    const one = lit.get(event.path) ?? {};
    one[event.kind.startsWith("forward") ? "there" : "back"] = event.kind;
    if (event.what === "changed") one.changed = event.kind;
    lit.set(event.path, one);
  }
  return lit;
}

function paintTrack(canvas, { run, event, colours }) {
  const width = canvas.parentElement.clientWidth;
  if (!width || !run.order.length) return;
  const ctx = sized(canvas, width, TRACK);
  const left = 78;
  const step = (width - left) / run.order.length;
  const gap = step > 8 ? 3 : step > 3 ? 1 : 0;
  const cell = Math.min(step, 90) - gap;
  const x = (place) => left + place * Math.min(step, 90);
  ctx.font = colours.font;
  ctx.fillStyle = colours.grey;
  ctx.fillText("forward →", 3, TOP + HALF / 2);
  ctx.fillText("← backward", 3, TOP + HALF * 1.5 + 2);
  const lit = event ? litUntil(run, event.index) : new Map();
  run.order.forEach((path, place) => {
    const { there, back } = lit.get(path) ?? {};
    paintCell(ctx, x(place), TOP, cell, there, colours);
    paintCell(ctx, x(place), TOP + HALF + 2, cell, back, colours);
  });
  paintStages(ctx, run, x, colours);
  if (event) paintLit(ctx, run.order.indexOf(event.path), event, { x, cell, left, width }, colours);
}

function paintCell(ctx, x, y, width, kind, colours) {
  ctx.fillStyle = kind ? colours[kind] : colours.cell;
  ctx.globalAlpha = kind ? 0.75 : 1;
  ctx.beginPath();
  ctx.roundRect(x, y, Math.max(0.75, width), HALF, Math.min(3, width / 3));
  ctx.fill();
  ctx.globalAlpha = 1;
}

function paintStages(ctx, run, x, colours) {
  ctx.font = colours.small;
  let start = 0;
  for (let place = 1; place <= run.order.length; place += 1) {
    const stage = stageOf(run.order[start]);
    if (place < run.order.length && stageOf(run.order[place]) === stage) continue;
    const room = x(place) - x(start) - 6;
    ctx.fillStyle = colours.line;
    ctx.fillRect(x(start), TOP - 5, Math.max(1, x(place) - x(start) - 3), 1);
    ctx.fillStyle = colours.grey;
    // The end of a path tells stages apart.
    const text = ctx.measureText(stage).width <= room ? stage : stage.slice(stage.lastIndexOf(".") + 1);
    if (ctx.measureText(text).width <= room) ctx.fillText(text, x(start), TOP - 14);
    start = place;
  }
}

function paintLit(ctx, place, event, { x, cell, left, width }, colours) {
  const wide = Math.max(cell, 5);
  const at = x(place) + (cell - wide) / 2;
  const there = event.kind.startsWith("forward");
  ctx.strokeStyle = colours.ink;
  ctx.lineWidth = 2;
  ctx.strokeRect(at - 2, TOP - 2, wide + 4, 2 * HALF + 6);
  if (event.what === "fired" || event.what === "changed") {
    ctx.fillStyle = colours[event.kind];
    ctx.fillRect(at, there ? TOP : TOP + HALF + 2, wide, HALF);
  }
  ctx.font = colours.mono;
  const text = pathOf(event.path);
  const room = ctx.measureText(text).width;
  const middle = x(place) + cell / 2;
  ctx.fillStyle = colours.ink;
  ctx.fillRect(Math.round(middle), TOP + 2 * HALF + 5, 1, 8);
  ctx.fillText(text, Math.min(Math.max(middle - room / 2, left), width - room - 2), TOP + 2 * HALF + 23);
}
