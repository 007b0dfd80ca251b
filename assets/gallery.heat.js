// A tile whose picture carries a heatmap, drawn as the large one is.

const drawn = new WeakMap(); // of a canvas: the picture and the indices that it shows

/** Draw a tile's map on its picture with these colours, opacity and threshold. */
async function paintTile(element, tile, { table, opacity, threshold }) {
  const canvas = element.querySelector("canvas");
  const wanted = { opacity, table: colourTable(table, tile.heat.scale, threshold) };
  const known = drawn.get(canvas);
  if (known?.tile === tile) {
    known.wanted = wanted;
    if (known.photo) paintKnown(canvas, known);
    return;
  }
  const fresh = { tile, wanted };
  drawn.set(canvas, fresh);
  const photo = new Image();
  photo.src = tile.url;
  await photo.decode();
  if (drawn.get(canvas) !== fresh) return; // another picture has come meanwhile
  const { naturalWidth: width, naturalHeight: height } = photo;
  const field = fieldFrom(tile.heat);
  const indices = indexRows(field, tile.heat.scale, width, height, 0, height);
  Object.assign(fresh, { photo, field, indices });
  Object.assign(canvas, { width, height });
  paintKnown(canvas, fresh);
}

function paintKnown(canvas, { photo, field, indices, wanted }) {
  const { width, height } = canvas;
  const heat = newCanvas(width, height);
  paintHeat(heat, indices, wanted.table, 0);
  const panes = panesFor("overlay", width, height, {});
  paintView(canvas.getContext("2d"), { panes, photo, heat, opacity: wanted.opacity, field }, 1);
  canvas.dataset.ready = "true";
}
