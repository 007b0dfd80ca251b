// What drawings on a canvas share: round numbers for an axis, and real colours.

function niceStep(span, count) {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

// Canvas needs real colours: a custom property is only text until an element uses it.
function palette(probe) {
  const colour = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const style = getComputedStyle(probe);
  const colours = {
    ink: colour("var(--ink)"), grey: colour("var(--grey)"), line: colour("var(--line)"),
    wash: colour("var(--wash)"), paper: colour("var(--paper)"), bad: colour("var(--bad)"),
    other: colour("var(--grey)"),
    mono: `12px ${style.getPropertyValue("--mono")}`, font: `12px ${style.fontFamily}`,
  };
  for (const kind in KINDS) colours[kind] = colour(colourOf(kind));
  return colours;
}
