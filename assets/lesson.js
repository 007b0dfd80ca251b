// A lesson: its code, what it printed and the values travelling. It only reads.

const LEFT_ON = (count) =>
  `${count} ${count === 1 ? "hook was" : "hooks were"} never removed by this code: the ledger calls ` +
  "them leaked. They were taken off when the run ended.";

const shown = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement }) {
  const root = parentElement.querySelector(".lesson");
  if (shown.get(root) === data) return;
  if (!shown.has(root)) connectCopy(root);
  shown.set(root, data);
  const find = (selector) => root.querySelector(selector);
  find(".listing ol").replaceChildren(...listing(data.lines, data.marks, data.kinds));
  find("pre").textContent = data.printed.trimEnd();
  find(".time").textContent = `${(1000 * data.seconds).toFixed(1)} ms`;
  find(".left").textContent = data.left ? LEFT_ON(data.left) : "";
  find(".left").hidden = !data.left;
  fillHooks(find(".recorded ul"), data);
  fillDrawing(find(".drawing"), data.drawing);
}

/** Hooks of one kind with one fate are one row: twelve layers are not twelve of them. */
function fillHooks(list, { hooks, kinds }) {
  const rows = new Map();
  for (const hook of hooks) {
    const fate = [hook.kind, hook.fires, hook.changed, hook.status].join("|");
    if (!rows.has(fate)) rows.set(fate, { ...hook, paths: [] });
    rows.get(fate).paths.push(hook.path);
  }
  const items = [...rows.values()].map((row) => {
    const bad = row.status === "leaked";
    const changed = row.changed ? `changed a value ${times(row.changed)}, ` : "";
    const fires = row.fires ? `fired ${times(row.fires)}, ${changed}` : "";
    return element(
      "li", "", mark(row.kind),
      element(
        "span", "", `${kinds[row.kind]} on `, element("code", "", pathsOf(row.paths)),
        element("span", "quiet", ` ${fires}`), element("span", bad ? "bad" : "quiet", row.status),
      ),
    );
  });
  list.replaceChildren(...items);
}

const times = (count) => (count === 1 ? "once" : `${count} times`);

function pathsOf(paths) {
  const different = [...new Set(paths)];
  if (different.length > 3) return `${different[0]} … ${different.at(-1)} (${paths.length})`;
  return different.join(", ") + (different.length < paths.length ? ` (${paths.length})` : "");
}

function fillDrawing(section, drawing) {
  section.hidden = !drawing;
  if (!drawing) return;
  section.querySelector("h3").textContent = drawing.title;
  section.querySelector(".lanes").hidden = drawing.shape !== "flow";
  section.querySelector(".lanes :last-child").hidden = !drawing.nodes?.some((node) => node.gradient);
  const picture = drawing.shape === "flow" ? drawFlow(drawing) : drawBars(drawing);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", drawing.alt);
  section.querySelector(".stage").replaceChildren(picture);
}

function connectCopy(root) {
  const button = root.querySelector(".copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(shown.get(root).program);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed by the browser"; // no permission, or no HTTPS
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
