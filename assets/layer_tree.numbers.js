// The numbers of a layer: what they are called, how they are written, how long their bars are.

const MEASURES = {
  zeros: { title: "Zeros", long: "Share of zeros", bars: "bars from 0 to 100 %" },
  mean: { title: "Mean", long: "Mean", bars: "bars about zero: blue below it, red above" },
  std: { title: "Deviation", long: "Standard deviation", bars: "bars on a log scale" },
  largest: { title: "Largest", long: "Largest value", bars: "bars about zero: blue below it, red above" },
  norm: { title: "Norm", long: "Norm: the root of the sum of squares", bars: "bars on a log scale" },
  parameters: { title: "Parameters", long: "Parameters", bars: "bars on a log scale" },
};
const SIGNED = new Set(["mean", "largest"]);
const SHORTEST = 0.04; // of a bar on a log scale, so that the smallest is seen

/** «12.3 %», «4.65 M», «−0.0123», «—» where there is none. */
function written(measure, value) {
  if (value === undefined) return "—";
  if (typeof value === "string") return value;
  if (measure === "zeros") return `${(100 * value).toFixed(1)} %`;
  if (measure === "parameters") return wholeOf(value);
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e5 || size < 1e-3) ? value.toExponential(1) : short(value);
  return text.replaceAll("-", "−");
}

function wholeOf(value) {
  if (value >= 1e6) return `${short(value / 1e6)} M`;
  return value >= 1e4 ? `${short(value / 1e3)} k` : value.toLocaleString("en");
}

function short(value) {
  return Number(value.toPrecision(3)).toString();
}

/** A function from a value to its bar, [from, to] of the width, or null where there is none. */
function barsOf(measure, rows) {
  const values = rows.map((row) => row[measure]).filter((v) => typeof v === "number");
  if (measure === "zeros") return (value) => [0, value];
  if (SIGNED.has(measure)) {
    const peak = Math.max(...values.map(Math.abs), 0) || 1;
    // The root keeps the many small ones in sight beside the few large ones.
    return (value) => {
      const at = 0.5 + 0.5 * Math.sign(value) * Math.sqrt(Math.abs(value) / peak);
      return [Math.min(at, 0.5), Math.max(at, 0.5)];
    };
  }
  const above = values.filter((value) => value > 0);
  const [low, high] = [Math.log(Math.min(...above)), Math.log(Math.max(...above))];
  return (value) => {
    if (!(value > 0)) return null;
    return [0, high > low ? SHORTEST + (1 - SHORTEST) * ((Math.log(value) - low) / (high - low)) : 1];
  };
}

/** Rows by a number, the largest first or last; those without one at the end. */
function sorted(rows, measure, down) {
  const key = (row) => (typeof row[measure] === "number" ? row[measure] : null);
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return down ? y - x : x - y;
  });
}
