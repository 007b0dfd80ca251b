// From bytes to small maps: the formulas of `interp.colours`, on cells in 255 steps.

const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const floats = (text) => new Float32Array(decode(text).buffer);

/** The content of a payload as typed arrays. */
function decoded(data) {
  const each = (parts, read) => Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, read(text)]));
  return {
    ...data,
    cells: decode(data.cells),
    low: floats(data.low),
    high: floats(data.high),
    values: each(data.values, floats),
    orders: each(data.orders, (text) => new Uint32Array(decode(text).buffer)),
    colours: each(data.colours, decode),
  };
}

/** The range that a channel's colours span; null where there is nothing to tell apart. */
function scaleOf(content, channel, shared) {
  const { low, high } = content;
  const [bottom, top] = shared
    ? [low.reduce((a, b) => Math.min(a, b), Infinity), high.reduce((a, b) => Math.max(a, b), -Infinity)]
    : [low[channel], high[channel]];
  const { signed } = content;
  const peak = signed ? Math.max(top, -bottom) : top;
  const flat = top - bottom <= 1e-6 * Math.max(Math.abs(bottom), Math.abs(top));
  return flat || peak <= 0 ? null : { signed, low: signed ? -peak : 0, high: peak };
}

/** Draw one channel on a canvas of a pixel a cell. */
function drawChannel(canvas, content, channel, scale) {
  const { width, height, cells, low, high, colours } = content;
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const size = width * height;
  const step = (high[channel] - low[channel]) / 255;
  const table = new Uint8Array(4 * 256);
  for (let i = 0; i < 256; i += 1) table.set(colourOf(low[channel] + step * i, scale, colours), 4 * i);
  const [colour, pixels] = [new Uint32Array(table.buffer), new Uint32Array(image.data.buffer)];
  for (let i = 0; i < size; i += 1) pixels[i] = colour[cells[channel * size + i]];
  context.putImageData(image, 0, 0);
}

function colourOf(value, scale, colours) {
  if (!scale) return [208, 208, 208, 255];
  const share = Math.min(Math.max((value - scale.low) / (scale.high - scale.low), 0), 1);
  const at = 3 * Math.floor(255 * share + 0.5);
  const table = scale.signed ? colours.signed : colours.positive;
  return [table[at], table[at + 1], table[at + 2], 255];
}

function drawLegend(canvas, scale, colours) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(256, 1);
  for (let i = 0; i < 256; i += 1) {
    image.data.set(colourOf(scale.low + (i / 255) * (scale.high - scale.low), scale, colours), 4 * i);
  }
  context.putImageData(image, 0, 0);
}
