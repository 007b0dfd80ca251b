// Drawing: photo, heat and what the model never saw, on a canvas of any size.

const GAP = 12; // CSS pixels between the two pictures of «Side by side»

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

/** A tile of the hatching of `interp.render`, in pixels of the picture. */
function hatching(picture) {
  const step = Math.max(8, Math.floor(Math.max(picture.width, picture.height) / 96));
  const tile = newCanvas(step, step);
  const context = tile.getContext("2d");
  for (let y = 0; y < step; y += 1) {
    for (let x = 0; x < step; x += 1) {
      const light = (x + y) % step < Math.floor(step / 8);
      context.fillStyle = light ? "rgb(255 255 255 / 0.4)" : "rgb(0 0 0 / 0.5)";
      context.fillRect(x, y, 1, 1);
    }
  }
  return tile;
}

/** Dim and hatch what the model never saw. */
function paintUnseen(context, pane, field) {
  const picture = { width: field.x.pixels, height: field.y.pixels };
  const [sx, sy] = [pane.width / picture.width, pane.height / picture.height];
  // A pixel counts as seen by its centre.
  const edge = (axis, at, scale) => Math.ceil(Math.min(Math.max(at, 0), axis.pixels) * scale - 0.5);
  const [left, right] = [field.x.from, field.x.to].map((at) => pane.x + edge(field.x, at, sx));
  const [top, bottom] = [field.y.from, field.y.to].map((at) => pane.y + edge(field.y, at, sy));
  if (field.failed) return;
  if (right - left >= pane.width && bottom - top >= pane.height) return;
  const outside = new Path2D();
  outside.rect(pane.x, pane.y, pane.width, pane.height);
  outside.rect(left, top, right - left, bottom - top);
  const pattern = context.createPattern(hatching(picture), "repeat");
  pattern.setTransform(new DOMMatrix([sx, 0, 0, sy, pane.x, pane.y]));
  context.fillStyle = pattern;
  context.fill(outside, "evenodd");
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
    paintUnseen(context, pane, view.field);
    context.restore();
    if (pane.kind === "swipe") {
      context.fillStyle = "rgb(255 255 255 / 0.95)";
      context.fillRect(x + cut - unit, y, 2 * unit, height);
    }
  }
}
