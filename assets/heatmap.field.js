// The map and its place on the picture: numbers only, no drawing.

const LEVELS = 65534; // index 0 says «nothing here»; 1 to 65535 are the scaled values 0 to 1

function bytesFrom(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** The attribution's own grid with the affine way from a picture's pixel into it. */
function fieldFrom(data) {
  const grid = new Float32Array(bytesFrom(data.map.data).buffer);
  const { scale, offset, input, seen } = data.geometry;
  const axis = (k, gridSize, pixels) => ({
    scale: scale[k],
    offset: offset[k],
    input: input[k],
    gridSize,
    pixels,
    from: seen[k],
    to: seen[k + 2],
  });
  return {
    grid,
    failed: grid.every(Number.isNaN), // says nothing of what the model saw
    x: axis(0, data.map.width, data.picture.width),
    y: axis(1, data.map.height, data.picture.height),
  };
}

/** Grid position (fractional, clamped to the edge cells) of a pixel's index on one axis. */
function gridPosition(axis, pixel) {
  const inInput = axis.scale * pixel + axis.offset;
  const inGrid = ((inInput + 0.5) * axis.gridSize) / axis.input - 0.5;
  return Math.min(Math.max(inGrid, 0), axis.gridSize - 1);
}

function isSeen(axis, pixel) {
  return pixel + 0.5 >= axis.from && pixel + 0.5 <= axis.to;
}

/** Value of the map at a pixel of the original picture; NaN where the model saw nothing. */
function valueAt(field, x, y) {
  if (!isSeen(field.x, x) || !isSeen(field.y, y)) return NaN;
  const gx = gridPosition(field.x, x);
  const gy = gridPosition(field.y, y);
  const [x0, y0] = [Math.floor(gx), Math.floor(gy)];
  const x1 = Math.min(x0 + 1, field.x.gridSize - 1);
  const y1 = Math.min(y0 + 1, field.y.gridSize - 1);
  const row = (r) => {
    const [left, right] = [field.grid[r * field.x.gridSize + x0], field.grid[r * field.x.gridSize + x1]];
    return left + (gx - x0) * (right - left);
  };
  const [upper, lower] = [row(y0), row(y1)];
  return upper + (gy - y0) * (lower - upper);
}

/** The pixel whose value is furthest from zero: where a reader by keyboard starts. */
function hottestPixel(field) {
  let best = 0;
  field.grid.forEach((value, cell) => {
    if (Math.abs(value) > Math.abs(field.grid[best])) best = cell;
  });
  const pixel = (axis, cell) => {
    const inInput = ((cell + 0.5) * axis.input) / axis.gridSize - 0.5;
    const clamped = Math.min(Math.max((inInput - axis.offset) / axis.scale, 0), axis.pixels - 1);
    return Math.round(clamped);
  };
  const columns = field.x.gridSize;
  return { x: pixel(field.x, best % columns), y: pixel(field.y, Math.floor(best / columns)) };
}

function isDrawable(scale) {
  return Number.isFinite(scale.low) && Number.isFinite(scale.high) && scale.high > scale.low;
}

/** Where each of `count` samples along an axis falls in the grid. */
function samplesAlong(axis, count) {
  const samples = { cell: new Int32Array(count), part: new Float64Array(count), seen: new Uint8Array(count) };
  for (let i = 0; i < count; i += 1) {
    const pixel = ((i + 0.5) * axis.pixels) / count - 0.5;
    const position = gridPosition(axis, pixel);
    samples.cell[i] = Math.min(Math.floor(position), Math.max(axis.gridSize - 2, 0));
    samples.part[i] = position - samples.cell[i];
    samples.seen[i] = isSeen(axis, pixel) ? 1 : 0;
  }
  return samples;
}

/**
 * Scaled values of the rows `from` to `to` of a `width` × `height` rendering, as indices.
 *
 * Computed once per map and size: opacity, threshold and colours only look them up again.
 */
function indexRows(field, scale, width, height, from, to) {
  const indices = new Uint16Array(width * (to - from));
  if (!isDrawable(scale)) return indices;
  const across = samplesAlong(field.x, width);
  const down = samplesAlong(field.y, height);
  const columns = field.x.gridSize;
  const step = columns > 1 ? 1 : 0;
  const below = field.y.gridSize > 1 ? columns : 0;
  const blended = new Float64Array(columns);
  const factor = LEVELS / (scale.high - scale.low);
  for (let y = from; y < to; y += 1) {
    if (!down.seen[y]) continue;
    const start = down.cell[y] * columns;
    for (let c = 0; c < columns; c += 1) {
      const upper = field.grid[start + c];
      blended[c] = upper + down.part[y] * (field.grid[start + c + below] - upper);
    }
    const out = (y - from) * width;
    for (let x = 0; x < width; x += 1) {
      const left = blended[across.cell[x]];
      const value = left + across.part[x] * (blended[across.cell[x] + step] - left);
      if (!across.seen[x] || !Number.isFinite(value)) continue;
      indices[out + x] = 1 + Math.round(Math.min(Math.max((value - scale.low) * factor, 0), LEVELS));
    }
  }
  return indices;
}

/** The map's own cells as indices, a cell a pixel. */
function indexCells(field, scale) {
  const factor = LEVELS / (scale.high - scale.low);
  const indexOf = (value) =>
    isDrawable(scale) && Number.isFinite(value)
      ? 1 + Math.round(Math.min(Math.max((value - scale.low) * factor, 0), LEVELS))
      : 0;
  return Uint16Array.from(field.grid, indexOf);
}

/** One opaque colour per index, and nothing below the threshold. */
function colourTable(colours, scale, threshold) {
  const table = new Uint32Array(LEVELS + 2);
  const packed = new Uint32Array(256);
  const bytes = new Uint8Array(packed.buffer);
  for (let i = 0; i < 256; i += 1) bytes.set([...colours.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  for (let level = 0; level <= LEVELS; level += 1) {
    const share = level / LEVELS;
    const magnitude = scale.signed ? Math.abs(2 * share - 1) : share;
    if (magnitude >= threshold) table[level + 1] = packed[Math.round(share * 255)];
  }
  return table;
}
