// Drawing: photo, heat and what the model never saw, on a canvas of any size.

const GAP = 12; // CSS pixels between the two pictures of «Side by side»
const STRIP = 2_000_000; // pixels coloured at a time when a large picture is saved

function newCanvas(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

/** Rectangles in which a view shows the picture: `kind` says what each one carries. */
function panesFor(mode, width, height, gap) {
  if (mode !== "side-by-side") return [{ x: 0, y: 0, width, height, kind: mode }];
  return [
    { x: 0, y: 0, width, height, kind: "photo" },
    gap.stacked
      ? { x: 0, y: height + gap.size, width, height, kind: "overlay" }
      : { x: width + gap.size, y: 0, width, height, kind: "overlay" },
  ];
}

/** Size of one picture in CSS pixels so that the whole view fits, and how two of them stand. */
function fitView(mode, picture, room, tallest) {
  const fit = (width, height) => Math.min(width / picture.width, height / picture.height);
  const beside = fit((room - GAP) / 2, tallest);
  const above = fit(room, (tallest - GAP) / 2);
  const double = mode === "side-by-side";
  const stacked = double && above > 1.6 * beside;
  const scale = Math.max(double ? (stacked ? above : beside) : fit(room, tallest), 1e-6);
  return {
    stacked,
    width: Math.max(picture.width * scale, 1),
    height: Math.max(picture.height * scale, 1),
  };
}

/** Colour rows of indices onto a canvas, `top` rows down. */
function paintHeat(canvas, indices, table, top) {
  const rows = indices.length / canvas.width;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, rows);
  const words = new Uint32Array(pixels.data.buffer);
  for (let i = 0; i < words.length; i += 1) words[i] = table[indices[i]];
  context.putImageData(pixels, 0, top);
}

/** The heat of a whole picture at `width` × `height`, strip by strip to bound the memory. */
function heatAt(field, scale, table, width, height) {
  const canvas = newCanvas(width, height);
  const rows = Math.max(1, Math.floor(STRIP / width));
  for (let top = 0; top < height; top += rows) {
    const end = Math.min(top + rows, height);
    paintHeat(canvas, indexRows(field, scale, width, height, top, end), table, top);
  }
  return canvas;
}

/** Dim and hatch what the model never saw, and frame what it did. */
function paintUnseen(context, pane, field, unit) {
  const [sx, sy] = [pane.width / field.x.pixels, pane.height / field.y.pixels];
  const left = pane.x + Math.max(field.x.from, 0) * sx;
  const top = pane.y + Math.max(field.y.from, 0) * sy;
  const right = pane.x + Math.min(field.x.to, field.x.pixels) * sx;
  const bottom = pane.y + Math.min(field.y.to, field.y.pixels) * sy;
  const whole = right - left > pane.width - 0.5 * sx && bottom - top > pane.height - 0.5 * sy;
  if (whole) return;
  context.save();
  const outside = new Path2D();
  outside.rect(pane.x, pane.y, pane.width, pane.height);
  outside.rect(left, top, right - left, bottom - top);
  context.clip(outside, "evenodd");
  context.fillStyle = "rgb(0 0 0 / 0.55)";
  context.fillRect(pane.x, pane.y, pane.width, pane.height);
  context.strokeStyle = "rgb(255 255 255 / 0.16)";
  context.lineWidth = unit;
  context.beginPath();
  for (let x = pane.x - pane.height; x < pane.x + pane.width; x += 10 * unit) {
    context.moveTo(x, pane.y + pane.height);
    context.lineTo(x + pane.height, pane.y);
  }
  context.stroke();
  context.restore();
  context.strokeStyle = "rgb(255 255 255 / 0.9)";
  context.lineWidth = unit;
  context.strokeRect(left + unit / 2, top + unit / 2, right - left - unit, bottom - top - unit);
}

/** Draw every pane of a view: `unit` is the width of a hairline in this canvas's pixels. */
function paintView(context, view, unit) {
  context.imageSmoothingQuality = "high";
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  for (const pane of view.panes) {
    const { x, y, width, height } = pane;
    context.drawImage(view.photo, x, y, width, height);
    if (pane.kind === "photo") continue;
    const cut = pane.kind === "swipe" ? Math.round(width * view.divider) : 0;
    context.save();
    context.beginPath();
    context.rect(x + cut, y, width - cut, height);
    context.clip();
    context.globalAlpha = view.opacity;
    context.drawImage(view.heat, x, y);
    context.globalAlpha = 1;
    paintUnseen(context, pane, view.field, unit);
    context.restore();
    if (pane.kind === "swipe") {
      context.fillStyle = "rgb(255 255 255 / 0.95)";
      context.fillRect(x + cut - unit, y, 2 * unit, height);
    }
  }
}
