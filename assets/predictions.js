// The most likely classes as bars. It talks to the server only when one is picked.

const views = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".predictions");
  if (!views.has(root)) views.set(root, new Predictions(root));
  const view = views.get(root);
  view.send = (index) => setTriggerValue("picked", index);
  view.show(data);
}

class Predictions {
  constructor(root) {
    this.root = root;
    this.row = root.querySelector(".row");
    this.row.addEventListener("click", ({ target }) => this.pick(target.closest("button")));
  }

  /** Take a payload over; the same one again (a new theme) changes nothing. */
  show(data) {
    if (data === this.data) return;
    this.data = data;
    this.root.querySelector(".empty").hidden = data.items.length > 0;
    this.row.hidden = data.items.length === 0;
    // Each rank keeps its element, so that its bar moves from the old length to the new one.
    const blank = this.root.querySelector("template").content.firstElementChild;
    data.items.forEach((item, i) => fillItem(this.row.children[i] ?? this.row.appendChild(blank.cloneNode(true)), item));
    while (this.row.children.length > data.items.length) this.row.lastElementChild.remove();
    this.mark(data.chosen);
  }

  mark(chosen) {
    this.chosen = chosen;
    for (const button of this.row.querySelectorAll("button")) {
      const explained = Number(button.dataset.index) === chosen;
      button.setAttribute("aria-current", String(explained));
      button.querySelector(".unseen-label").textContent = explained ? "explained" : "";
    }
  }

  pick(button) {
    const index = Number(button?.dataset.index);
    if (!button || index === this.chosen) return;
    this.mark(index); // before the answer: a double click is one pick
    this.send(index);
  }
}

function fillItem(element, item) {
  const button = element.firstElementChild;
  button.dataset.index = item.index;
  button.title = item.hint;
  button.querySelector(".name").textContent = item.name;
  button.querySelector(".percent").textContent = item.percent;
  button.querySelector(".bar").style.width = `${100 * item.share}%`;
}
