// Time on the axis: the busy pieces side by side, the idle time between them cut out.

const CUT = 0.5; // seconds in which a run does nothing
const WIDEST_GAP = 0.26; // between two pieces, in mean widths of a piece
const PAD = 0.04; // before the first and after the last event of a piece, in its own width
const SHORTEST = 1e-4; // seconds that a piece with one event lasts

// Stretches of time in which something happened in a run.
function busyOf(run) {
  const times = run.records.flatMap((r) => [r.registered_at, r.removed_at ?? r.registered_at]);
  for (const event of run.events) times.push(event.at);
  times.sort((a, b) => a - b);
  const busy = [];
  for (const time of times) {
    const last = busy.at(-1);
    if (last && time - last.to < CUT) last.to = time;
    else busy.push({ from: time, to: time });
  }
  return busy.map(({ from, to }) => ({ from: from + run.began, to: to + run.began, runs: [run] }));
}

function piecesOf(runs) {
  const pieces = [];
  for (const piece of runs.flatMap(busyOf).sort((a, b) => a.from - b.from)) {
    const last = pieces.at(-1);
    if (!last || piece.from > last.to) pieces.push(piece);
    else {
      last.to = Math.max(last.to, piece.to);
      last.runs = [...new Set([...last.runs, ...piece.runs])];
    }
  }
  return pieces;
}

// `place` leads from a time to its place on an axis of `length`.
function makeAxis(runs, scale) {
  const pieces = piecesOf(runs);
  const lengths = pieces.map(({ from, to }) => Math.max(to - from, SHORTEST));
  const mean = lengths.reduce((sum, length) => sum + length, 0) / (pieces.length || 1);
  const gap = Math.min(WIDEST_GAP, 0.03 * pieces.length); // about as wide whatever their number
  let left = gap;
  pieces.forEach((piece, index) => {
    piece.width = scale === "equal" ? 1 : lengths[index] / mean;
    piece.seconds = lengths[index];
    piece.left = left;
    left += piece.width + gap;
  });
  const inner = (piece, time) => {
    const share = Math.min(1, Math.max(0, (time - piece.from) / piece.seconds));
    return piece.left + piece.width * (PAD + share * (1 - 2 * PAD));
  };
  const place = (time) => {
    if (time === Infinity) return left;
    let [low, high] = [0, pieces.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pieces[middle].from <= time) low = middle;
      else high = middle - 1;
    }
    return inner(pieces[low], time);
  };
  return { pieces, gap, length: Math.max(left, 1), place };
}

// Some part of the axis, no larger than all of it and no smaller than a thousandth of a piece.
function windowAt(axis, from, to) {
  const size = Math.min(axis.length, Math.max(to - from, 1e-3));
  const start = Math.min(Math.max(from + (to - from - size) / 2, 0), axis.length - size);
  return [start, start + size];
}

// A moment in a run; of hooks that are on for minutes milliseconds say nothing.
const moment = (seconds) => (seconds < 10 ? `${ms(seconds)} ms` : `${twoDigits.format(seconds)} s`);

function idleText(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
