// What the user chose about heatmaps: kept for the tab, and heard by every picture on the page.

const MEMORY = "hookscope.heatmap";
const CHOSEN = "hookscope-heatmap";

function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(MEMORY)) ?? {};
  } catch {
    return {}; // storage switched off or another program's text under our key: start from defaults
  }
}

function remember(choices) {
  window.dispatchEvent(new CustomEvent(CHOSEN, { detail: choices }));
  try {
    sessionStorage.setItem(MEMORY, JSON.stringify(choices));
  } catch {
    return; // storage switched off: the choices last as long as this page
  }
}

/** Call `act` with the choices at each change, until the signal ends it. */
function whenChosen(act, signal) {
  window.addEventListener(CHOSEN, ({ detail }) => act(detail), { signal });
}

/** Signed and unsigned maps are coloured from different families, so each keeps its own. */
const coloursKey = (signed) => (signed ? "signedColours" : "colours");

/** Colours, opacity and threshold of a map: what was chosen where it is on offer, or the default. */
function chosenFor(choices, { colours, defaults }, signed) {
  const called = (wanted) => colours.find(({ name }) => name === wanted);
  const { name, table } = called(choices[coloursKey(signed)]) ?? called(defaults.colours);
  return {
    colours: name,
    table: bytesFrom(table),
    opacity: choices.opacity ?? defaults.opacity,
    threshold: choices.threshold ?? defaults.threshold,
  };
}
