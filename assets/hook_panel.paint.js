// Draws the timeline: only the lanes in view, however many there are.

function paint(canvas, lanes, { width, left, span }, state, colours) {
  const height = Math.min(lanes.clientHeight, AXIS + state.records.length * LANE + 6);
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  if (!canvas.width || !canvas.height) return; // closed, or another tab is shown
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  ctx.textBaseline = "middle";
  const x = (seconds) => left + (seconds / state.seconds) * span;
  const first = Math.floor(lanes.scrollTop / LANE);
  const last = Math.min(state.records.length, first + Math.ceil(height / LANE) + 1);
  const lineOf = (row) => AXIS + row * LANE - lanes.scrollTop;
  if (state.at !== null) {
    ctx.fillStyle = colours.wash;
    ctx.fillRect(0, lineOf(state.at), width, LANE);
  }
  paintGrid(ctx, x, height, state, colours, span);
  for (let row = first; row < last; row += 1) {
    const record = state.records[row];
    const middle = lineOf(row) + LANE / 2;
    paintLabel(ctx, record, middle, left - 14, colours);
    paintBar(ctx, record, middle, x, state.seconds, colours);
    paintTicks(ctx, state.events.get(record.id) ?? [], middle, x, colours);
  }
  paintAxis(ctx, x, width, state, colours, span);
}

function gridTimes(seconds, span) {
  const step = niceStep(seconds * 1000, span / 75);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const written = new Intl.NumberFormat("en", { minimumFractionDigits: digits });
  const times = [];
  for (let i = 0; i * step <= seconds * 1000 * 1.0001; i += 1) {
    times.push([(i * step) / 1000, `${written.format(i * step)} ms`]);
  }
  return times;
}

function paintGrid(ctx, x, height, state, colours, span) {
  ctx.fillStyle = colours.line;
  for (const [time] of gridTimes(state.seconds, span)) {
    ctx.fillRect(Math.round(x(time)), AXIS - 5, 1, height);
  }
  if (state.pointer === null) return;
  ctx.fillStyle = colours.grey;
  ctx.fillRect(Math.round(state.pointer), AXIS - 5, 1, height);
}

function paintAxis(ctx, x, width, state, colours, span) {
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, AXIS - 1);
  ctx.fillStyle = colours.line;
  ctx.fillRect(0, AXIS - 1, width, 1);
  ctx.font = colours.font;
  ctx.fillStyle = colours.grey;
  const write = (text, at) => {
    const room = ctx.measureText(text).width;
    ctx.fillText(text, Math.min(at, width - room - 2), AXIS / 2 - 1);
    return room;
  };
  const scrubber = state.pointer;
  for (const [time, text] of gridTimes(state.seconds, span)) {
    if (scrubber === null || Math.abs(x(time) - scrubber) > 62) write(text, x(time));
  }
  if (scrubber === null) return;
  ctx.fillStyle = colours.ink;
  const share = (scrubber - x(0)) / (x(state.seconds) - x(0));
  write(`${ms(share * state.seconds)} ms`, scrubber);
}

function paintLabel(ctx, record, middle, room, colours) {
  ctx.save();
  ctx.translate(3, middle - 5);
  const shape = new Path2D(KINDS[record.kind]?.shape ?? "M2 2 L8 2 L8 8 L2 8 Z");
  ctx.fillStyle = ctx.strokeStyle = colours[record.kind] ?? colours.other;
  ctx.lineWidth = 1.5;
  ctx.stroke(shape);
  if (!KINDS[record.kind]?.hollow) ctx.fill(shape);
  ctx.restore();
  ctx.font = colours.mono;
  const letter = ctx.measureText("0").width;
  const fits = Math.floor((room - 22) / letter);
  const path = pathOf(record.path);
  // The end of a path tells layers apart, so that is what is kept.
  const text = path.length <= fits ? path : `…${path.slice(1 - fits)}`;
  ctx.fillStyle = colours.ink;
  ctx.fillText(text, 22, middle);
  const start = 22 + ctx.measureText(`${text}  `).width;
  ctx.font = colours.font;
  if (start + ctx.measureText(record.class_name).width > room) return;
  ctx.fillStyle = colours.grey;
  ctx.fillText(record.class_name, start, middle);
}

function paintBar(ctx, record, middle, x, seconds, colours) {
  const colour = colours[record.kind] ?? colours.other;
  const live = record.removed_at === null;
  const start = x(record.registered_at);
  const end = live ? x(seconds) + 16 : Math.max(start + 2, x(record.removed_at));
  ctx.fillStyle = colour;
  if (live) {
    const fade = ctx.createLinearGradient(Math.max(start, end - 90), 0, end, 0);
    fade.addColorStop(0, colour);
    fade.addColorStop(1, colour.replace("rgb(", "rgba(").replace(")", ", 0)"));
    ctx.fillStyle = fade;
  }
  ctx.globalAlpha = 0.32;
  ctx.beginPath();
  ctx.roundRect(start, middle - 4, end - start, 8, 2);
  ctx.fill();
  ctx.globalAlpha = 1;
}

function paintTicks(ctx, events, middle, x, colours) {
  for (const event of events) {
    const at = x(event.at);
    if (event.what === "error") {
      ctx.strokeStyle = colours.bad;
      ctx.lineWidth = 2;
      ctx.stroke(new Path2D(`M${at - 4} ${middle - 4} l8 8 m0 -8 l-8 8`));
      continue;
    }
    ctx.fillStyle = colours[event.kind] ?? colours.other;
    ctx.fillRect(Math.round(at) - 1, middle - 8, 2, 16);
    if (event.what !== "changed") continue;
    ctx.beginPath();
    ctx.arc(Math.round(at), middle - 7, 3, 0, 2 * Math.PI);
    ctx.fill();
  }
}
