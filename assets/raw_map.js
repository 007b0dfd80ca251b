// The map on the layer's own grid, a square a cell, in the colours that are chosen for heatmaps.

const FLAT = 0xffd0d0d0; // the grey of `interp.render` for cells that cannot be coloured
const maps = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement }) {
  const root = parentElement.querySelector(".raw-map");
  if (!maps.has(root)) {
    const abort = new AbortController();
    maps.set(root, { abort });
    whenChosen((choices) => paint(root, maps.get(root).data, choices), abort.signal);
  }
  maps.get(root).data = data;
  paint(root, data, remembered());
  return () => {
    maps.get(root)?.abort.abort();
    maps.delete(root);
  };
}

function paint(root, data, choices) {
  const canvas = root.querySelector("canvas");
  const field = fieldFrom(data);
  const { table, threshold } = chosenFor(choices, data, data.scale.signed);
  const colours = colourTable(table, data.scale, threshold);
  colours[0] = FLAT;
  Object.assign(canvas, { width: data.map.width, height: data.map.height });
  canvas.setAttribute("aria-label", data.alt);
  paintHeat(canvas, indexCells(field, data.scale), colours, 0);
}
