// Draws the lanes in view, and all of them in small above.

const LANE = 20;
const HEAD = 44;

function coloursOf(probe) {
  const found = palette(probe);
  const colour = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const family = getComputedStyle(probe).fontFamily;
  return Object.assign(found, {
    accent: colour("var(--accent)"), cell: colour("var(--cell)"), chosen: colour("var(--chosen)"),
    small: `11px ${family}`, bold: `600 12px ${family}`,
  });
}

function sized(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  ctx.textBaseline = "middle";
  return ctx;
}

function shortened(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  const letters = Math.floor((text.length * room) / ctx.measureText(text).width) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}

function paintLanes(canvas, box, life) {
  const { lanes, colours } = life;
  const height = Math.min(box.clientHeight, HEAD + lanes.length * LANE + 6);
  if (!box.clientWidth || height <= 0) return; // not on the screen
  const ctx = sized(canvas, box.clientWidth, height);
  const frame = { ...life.layout(), height, top: box.scrollTop };
  const first = Math.floor(frame.top / LANE);
  const last = Math.min(lanes.length, first + Math.ceil(height / LANE) + 1);
  const lineOf = (row) => HEAD + row * LANE - frame.top;
  paintPieces(ctx, frame, life);
  if (life.at) {
    ctx.fillStyle = colours.wash;
    ctx.fillRect(0, lineOf(life.at.row), frame.width, LANE);
  }
  for (let row = first; row < last; row += 1) {
    paintLaneLabel(ctx, lanes, row, Math.max(first, 0), lineOf(row) + LANE / 2, frame, life);
    ctx.save();
    ctx.beginPath();
    ctx.rect(frame.left, HEAD, frame.width - frame.left, height);
    ctx.clip();
    for (const record of lanes[row].records) paintHandle(ctx, record, lineOf(row) + LANE / 2, frame, life);
    ctx.restore();
  }
  paintHead(ctx, frame, life);
}

// The runs' grounds; what is between them is hatched.
function paintPieces(ctx, { left, width, height, x }, { axis, colours, run }) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 0, width - left, height);
  ctx.clip();
  ctx.strokeStyle = colours.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = left - height; at < width; at += 6) {
    ctx.moveTo(at, height);
    ctx.lineTo(at + height, 0);
  }
  ctx.stroke();
  for (const piece of axis.pieces) {
    const [from, to] = [x(piece.left), x(piece.left + piece.width)];
    if (to < left || from > width) continue;
    ctx.fillStyle = colours.paper;
    ctx.fillRect(from, 0, to - from, height);
    if (!piece.runs.includes(run)) continue;
    ctx.fillStyle = colours.chosen;
    ctx.fillRect(from, 0, to - from, height);
  }
  ctx.restore();
}

function paintLaneLabel(ctx, lanes, row, first, middle, { left }, { colours }) {
  const lane = lanes[row];
  ctx.save();
  ctx.translate(3, middle - 5);
  ctx.fillStyle = ctx.strokeStyle = colours[lane.kind];
  ctx.lineWidth = 1.5;
  const shape = new Path2D(KINDS[lane.kind].shape);
  ctx.stroke(shape);
  if (!KINDS[lane.kind].hollow) ctx.fill(shape);
  ctx.restore();
  ctx.font = colours.mono;
  const fits = Math.floor((left - 36) / ctx.measureText("0").width);
  const path = pathOf(lane.path);
  // A path is written once, at the first lane of its module that is in view.
  if (row > first && lanes[row - 1].path === lane.path) return;
  ctx.fillStyle = colours.ink;
  ctx.fillText(path.length <= fits ? path : `…${path.slice(1 - fits)}`, 22, middle);
}

function paintHandle(ctx, record, middle, frame, life) {
  const { axis, colours } = life;
  const start = frame.x(axis.place(startOf(record)));
  const live = record.removed_at === null;
  const end = Math.max(start + 2, frame.x(axis.place(endOf(record))));
  if (end < frame.left || start > frame.width) return;
  const colour = colours[record.kind];
  ctx.fillStyle = colour;
  if (live) {
    const fade = ctx.createLinearGradient(Math.max(start, end - 90), 0, end, 0);
    fade.addColorStop(0, colour);
    fade.addColorStop(1, colour.replace("rgb(", "rgba(").replace(")", ", 0)"));
    ctx.fillStyle = fade;
  }
  ctx.globalAlpha = life.pinned === record ? 0.6 : 0.32;
  ctx.fillRect(start, middle - 4, end - start, 8);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour;
  let before = -9;
  for (const event of record.marks) {
    const at = Math.round(frame.x(axis.place(record.run.began + event.at)));
    if (event.what === "error") {
      ctx.strokeStyle = colours.bad;
      ctx.lineWidth = 2;
      ctx.stroke(new Path2D(`M${at - 4} ${middle - 4} l8 8 m0 -8 l-8 8`));
    } else if (at !== before || event.what === "changed") {
      ctx.fillRect(at - 1, middle - 7, 2, 14);
      if (event.what === "changed") {
        ctx.beginPath();
        ctx.arc(at, middle - 6, 3, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    before = at; // a thousand fires in one pixel are one tick
  }
}

function paintHead(ctx, frame, life) {
  const { axis, colours } = life;
  const { left, width, height, x } = frame;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, HEAD - 1);
  ctx.fillStyle = colours.line;
  ctx.fillRect(0, HEAD - 1, width, 1);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 0, width - left, height);
  ctx.clip();
  axis.pieces.forEach((piece, index) => {
    const [from, to] = [x(piece.left), x(piece.left + piece.width)];
    const next = axis.pieces[index + 1];
    const gap = next ? [to, x(next.left)] : null;
    if (gap && gap[1] > left && gap[0] < width) paintIdle(ctx, gap, next.from - piece.to, colours);
    if (to < left || from > width) return;
    paintTitle(ctx, piece, Math.max(from, left), Math.min(to, width), life);
    paintTimes(ctx, piece, frame, life);
  });
  paintPlayhead(ctx, frame, life);
  ctx.restore();
}

function paintIdle(ctx, [from, to], seconds, colours) {
  const text = idleText(seconds);
  ctx.font = colours.small;
  if (ctx.measureText(text).width > to - from - 2) return;
  ctx.fillStyle = colours.grey;
  ctx.textAlign = "center";
  ctx.fillText(text, (from + to) / 2, 31);
  ctx.textAlign = "left";
}

function paintTitle(ctx, piece, from, to, { colours, run }) {
  ctx.font = piece.runs.includes(run) ? colours.bold : colours.font;
  ctx.fillStyle = colours.ink;
  const [one] = piece.runs;
  const numbers = piece.runs.map((each) => each.number).join(", ");
  const room = to - from - 8;
  const whole = piece.runs.length > 1 ? `Runs ${numbers}` : `${one.number} · ${one.title}`;
  ctx.fillText(shortened(ctx, whole, room) || shortened(ctx, numbers, room), from + 4, 12);
}

function paintTimes(ctx, piece, { x, left, width, height }, { axis, colours }) {
  const pixels = x(piece.left + piece.width) - x(piece.left);
  const step = niceStep(piece.seconds * 1000, pixels / 80);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  ctx.font = colours.small;
  for (let i = 0; i * step <= piece.seconds * 1000 * 1.0001; i += 1) {
    const at = x(axis.place(piece.from + (i * step) / 1000));
    if (at < left - 60 || at > width) continue;
    ctx.fillStyle = colours.line;
    ctx.fillRect(Math.round(at), HEAD - 7, 1, height);
    const text = `${(i * step).toFixed(digits)} ms`;
    if (at + ctx.measureText(text).width > x(piece.left + piece.width) + 2) continue;
    ctx.fillStyle = colours.grey;
    ctx.fillText(text, at, 31);
  }
}

function paintPlayhead(ctx, { x, height }, { axis, colours, event }) {
  if (!event) return;
  const at = Math.round(x(axis.place(event.run.began + event.at)));
  ctx.fillStyle = colours.accent;
  ctx.fillRect(at - 1, HEAD - 8, 2, height);
  ctx.fill(new Path2D(`M${at - 5} ${HEAD - 12} h10 l-5 7 z`));
}
