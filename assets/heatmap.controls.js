// The controls and the legend: what they say for a payload and the user's choices.

function formatValue(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "not a number";
  let text = value.toPrecision(3);
  if (size === 0) text = "0";
  else if (size >= 1e5 || size < 1e-3) text = value.toExponential(2);
  else if (size >= 1000) text = value.toFixed(0);
  return text.replace("-", "−").replace("e−", "e-").replace("e+", "e");
}

const percent = (share) => `${Math.round(100 * share)} %`.replace("-", "−");
const rgb = (table, i) => `rgb(${table[3 * i]} ${table[3 * i + 1]} ${table[3 * i + 2]})`;

function gradientOf(table) {
  const stops = Array.from({ length: 18 }, (_, i) => rgb(table, 15 * i));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function fillSwatches(root, colours, tables) {
  const swatches = colours.map(({ name, title }) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const ramp = document.createElement("span");
    Object.assign(input, { type: "radio", name: "colours", value: name, ariaLabel: title });
    input.dataset.testid = `heatmap-colours-${name}`;
    ramp.style.background = gradientOf(tables.get(name));
    label.title = title;
    label.append(input, ramp);
    return label;
  });
  root.querySelector(".swatches").replaceChildren(...swatches);
}

function fillSlider(root, id, value, text) {
  const input = root.querySelector(`#${id}`);
  input.value = value;
  input.style.setProperty("--filled", `${100 * value}%`);
  input.setAttribute("aria-valuetext", text);
  root.querySelector(`output[for=${id}]`).textContent = text;
}

function checkRadio(root, name, value) {
  for (const input of root.querySelectorAll(`[name=${name}]`)) input.checked = input.value === value;
}

/** The colour bar with its raw values; what the threshold leaves undrawn is pale. */
function fillLegend(root, scale, table, threshold) {
  const drawable = isDrawable(scale);
  const texts = drawable
    ? [scale.low, (scale.low + scale.high) / 2, scale.high].map(formatValue)
    : ["", "nothing to draw", ""];
  ["low", "mid", "high"].forEach((end, i) => {
    root.querySelector(`.numbers .${end}`).textContent = texts[i];
  });
  root.querySelector(".ramp").style.background = drawable ? gradientOf(table) : "";
  const [from, to] = scale.signed ? [50 - 50 * threshold, 50 + 50 * threshold] : [0, 100 * threshold];
  const dim = root.querySelector(".dim");
  dim.hidden = !drawable;
  Object.assign(dim.style, { left: `${from}%`, width: `${to - from}%` });
  const [upper, lower] = root.querySelectorAll(".mark");
  upper.style.left = `${to}%`;
  lower.style.left = `${from}%`;
  upper.hidden = !drawable || threshold === 0;
  lower.hidden = upper.hidden || !scale.signed;
}
