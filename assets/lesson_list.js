// The lessons by number and title. It talks to the server only when one is picked.

const lists = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".lessons");
  if (!lists.has(root)) lists.set(root, new LessonList(root));
  const list = lists.get(root);
  list.send = (number) => setTriggerValue("picked", number);
  list.show(data);
}

class LessonList {
  constructor(root) {
    this.root = root;
    this.full = root.querySelector(".full");
    this.select = root.querySelector("select");
    this.full.addEventListener("click", ({ target }) => this.pick(target.closest("button")?.dataset.number));
    this.select.addEventListener("change", () => this.pick(this.select.value));
  }

  /** Take a payload over; the elements stay, so that the focus does. */
  show(data) {
    if (data === this.data) return;
    if (!this.data) this.build(data.groups);
    this.data = data;
    for (const button of this.full.querySelectorAll("button")) {
      const done = data.done.includes(Number(button.dataset.number));
      const sign = button.querySelector(".done");
      sign.textContent = done ? "✓" : "";
      if (done) sign.setAttribute("aria-label", "done");
    }
    for (const option of this.select.options) {
      const done = data.done.includes(Number(option.value));
      option.textContent = `${option.value}  ${option.dataset.title}${done ? "  ✓" : ""}`;
    }
    const all = this.select.options.length;
    this.root.querySelector(".progress").textContent = `${data.done.length} of ${all} exercises done`;
    this.mark(data.number);
  }

  build(groups) {
    for (const { title, lessons } of groups) {
      const heading = Object.assign(document.createElement("p"), { className: "heading", textContent: title });
      const rows = document.createElement("ol");
      rows.setAttribute("aria-label", title);
      const folded = Object.assign(document.createElement("optgroup"), { label: title });
      for (const lesson of lessons) {
        rows.append(row(lesson));
        const option = new Option("", lesson.number);
        option.dataset.title = lesson.title;
        folded.append(option);
      }
      this.full.append(heading, rows);
      this.select.append(folded);
    }
  }

  mark(number) {
    this.number = number;
    this.select.value = String(number);
    for (const button of this.full.querySelectorAll("button")) {
      button.setAttribute("aria-current", String(Number(button.dataset.number) === number));
    }
  }

  pick(text) {
    const number = Number(text);
    if (!number || number === this.number) return;
    this.mark(number); // before the answer: a double click is one pick
    this.send(number);
  }
}

function row({ number, title }) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button" });
  button.dataset.number = number;
  for (const [name, text] of [["number", number], ["name", title], ["done", ""]]) {
    button.append(Object.assign(document.createElement("span"), { className: name, textContent: text }));
  }
  item.append(button);
  return item;
}
