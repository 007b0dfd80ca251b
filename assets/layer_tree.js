// The network as a tree. Only a pick and a change of width talk to the server.

const trees = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".layers");
  if (!trees.has(root)) trees.set(root, new Tree(root));
  const tree = trees.get(root);
  tree.send = setTriggerValue;
  tree.show(data);
}

class Tree {
  constructor(root) {
    this.root = root;
    for (const part of ["search", "count", "wide", "sort", "rows", "nothing", "about"]) {
      this[part] = root.querySelector(`.${part}`);
    }
    this.measure = "zeros";
    this.order = null; // or {measure, down}
    this.listen();
  }

  /** Take a payload over; what is folded, searched and sorted stays where the network does. */
  show(data) {
    if (data === this.data) return;
    const { network, value } = this.data ?? {};
    this.data = data;
    this.root.dataset.testid = `tree-${data.key}`;
    this.root.classList.toggle("full", data.wide);
    this.wide.querySelector("span").textContent = data.wide ? "Beside" : "All numbers";
    this.wide.title = data.wide ? "Put the tree beside the layer" : "A wide table with every number";
    this.byPath = linked(data.rows);
    this.search.placeholder = `Search ${data.rows.length} layers`;
    this.search.setAttribute("aria-label", "Search layers by path or class");
    this.rows.setAttribute("aria-label", `${data.rows.length} layers in the order of the network`);
    if (data.network !== network) {
      this.search.value = "";
      this.order = null;
      this.open = openAtFirst(data.rows);
    }
    const moved = data.value !== value || data.network !== network;
    if (moved) {
      this.unfoldTo(data.value);
      // Where the arrow keys are on their way, that is newer than what the server knows.
      if (!this.hasFocus) this.focused = data.value;
    }
    this.fill();
    if (moved && !this.hasFocus) this.reveal(this.lineOf(data.value), "centre");
  }

  get hasFocus() {
    return this.rows.contains(this.root.getRootNode().activeElement);
  }

  unfoldTo(path) {
    for (let above = this.byPath.get(path)?.parent; above; above = above.parent) this.open.add(above.path);
  }

  // ── drawing ────────────────────────────────────────────────────────────────────────────────

  fill() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const flat = Boolean(words.length || this.order);
    const found = this.data.rows.filter((row) => words.every((word) => row.hay.includes(word)));
    this.shown = flat ? found : visibleRows(this.data.rows, this.open);
    if (this.order) this.shown = sorted(this.shown, this.order.measure, this.order.down);
    const names = this.data.wide ? Object.keys(MEASURES) : [this.measure];
    const cells = names.map((measure) => ({ measure, bar: barsOf(measure, this.data.rows) }));
    const { hasFocus } = this;
    const { scrollTop } = this.rows;
    this.rows.replaceChildren(...this.shown.map((row) => lineOf(row, { flat, open: this.open, cells, wide: this.data.wide })));
    this.rows.scrollTop = scrollTop;
    this.rows.classList.toggle("flat", flat);
    this.count.textContent = words.length ? `${found.length} of ${this.data.rows.length}` : "";
    this.rows.hidden = !this.shown.length;
    this.nothing.hidden = this.shown.length > 0;
    this.nothing.textContent = `No layer matches “${this.search.value.trim()}”. Try a part of a path, or a class such as Conv2d.`;
    this.fillHeads(names);
    this.mark();
    if (hasFocus) this.rows.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  fillHeads(names) {
    const inOrder = this.headOf("Layer", null, "In the order of the network");
    const shape = element("span", "shape", "Output");
    const heads = names.map((name) => {
      const { title, long, bars } = MEASURES[name];
      return this.data.wide
        ? this.headOf(title, name, `${long}; ${bars}. Click to sort.`)
        : element("span", "cell", this.chooser(), this.headOf("", name, `Sort by ${long.toLowerCase()}`));
    });
    const active = this.root.getRootNode().activeElement;
    const focused = this.sort.contains(active) ? [...this.sort.querySelectorAll("button, select")].indexOf(active) : -1;
    this.sort.replaceChildren(inOrder, shape, ...heads);
    if (focused >= 0) this.sort.querySelectorAll("button, select")[focused]?.focus();
  }

  headOf(text, measure, title) {
    const head = element("button", measure ? "cell by" : "name by", text);
    head.type = "button";
    head.title = title;
    head.dataset.sort = measure ?? "";
    if (!text) head.setAttribute("aria-label", title);
    const now = this.order?.measure ?? null;
    head.setAttribute("aria-pressed", String(now === measure));
    if (measure && now === measure) head.dataset.way = this.order.down ? "down" : "up";
    return head;
  }

  chooser() {
    const select = element("select", "measure");
    select.setAttribute("aria-label", "Number shown");
    select.title = `${MEASURES[this.measure].long}; ${MEASURES[this.measure].bars}`;
    for (const [name, { title }] of Object.entries(MEASURES)) {
      const option = element("option", "", title);
      option.value = name;
      option.selected = name === this.measure;
      select.append(option);
    }
    return select;
  }

  mark() {
    const value = this.data.value;
    const shown = this.shown.some((row) => row.path === this.focused);
    const stop = shown ? this.focused : this.shown.find((row) => row.path === value)?.path ?? this.shown[0]?.path;
    for (const line of this.rows.children) {
      line.setAttribute("aria-selected", String(line.dataset.path === (this.pending ?? value)));
      line.tabIndex = line.dataset.path === stop ? 0 : -1;
    }
    this.tell(this.byPath.get(stop ?? value));
  }

  tell(row) {
    if (this.told === row) return;
    this.told = row;
    this.about.replaceChildren(...aboutOf(row));
  }

  lineOf(path) {
    return [...this.rows.children].find((line) => line.dataset.path === path);
  }

  /** Scroll the tree, never the page, until a line is in sight. */
  reveal(line, how = "near") {
    if (!line) return;
    const [at, box] = [line.getBoundingClientRect(), this.rows.getBoundingClientRect()];
    if (how === "centre") {
      if (at.top < box.top || at.bottom > box.bottom) this.rows.scrollTop += at.top - box.top - box.height / 2;
    } else if (at.top < box.top) this.rows.scrollTop += at.top - box.top;
    else if (at.bottom > box.bottom) this.rows.scrollTop += at.bottom - box.bottom;
  }

  // ── what the reader does ───────────────────────────────────────────────────────────────────

  focusOn(line) {
    if (!line) return;
    this.focused = line.dataset.path;
    for (const other of this.rows.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    line.tabIndex = 0;
    line.focus({ preventScroll: true });
    this.reveal(line);
    this.tell(this.byPath.get(this.focused));
  }

  fold(path, open) {
    if (open) this.open.add(path);
    else this.open.delete(path);
    this.focused = path;
    this.fill();
    this.focusOn(this.lineOf(path));
  }

  pick(path) {
    const row = this.byPath.get(path);
    if (!row?.calls || path === this.data.value) return;
    this.pending = path;
    this.mark();
    this.pending = null;
    this.send("picked", path);
  }

  sortBy(measure) {
    const now = this.order;
    if (!measure) this.order = null;
    else if (now?.measure !== measure) this.order = { measure, down: true };
    else this.order = now.down ? { measure, down: false } : null;
    this.fill();
    this.rows.scrollTop = 0;
  }

  listen() {
    this.search.addEventListener("input", () => {
      this.fill();
      this.rows.scrollTop = 0;
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.focusOn(this.rows.children[0]);
      else if (event.key === "Escape" && this.search.value) {
        this.search.value = "";
        this.fill();
      } else return;
      event.preventDefault();
    });
    this.wide.addEventListener("click", () => this.send("wide", !this.data.wide));
    this.sort.addEventListener("click", ({ target }) => {
      const head = target.closest(".by");
      if (head) this.sortBy(head.dataset.sort);
    });
    this.sort.addEventListener("change", ({ target }) => {
      this.measure = target.value;
      if (this.order) this.order = { measure: target.value, down: true };
      this.fill();
    });
    this.rows.addEventListener("click", ({ target }) => {
      const line = target.closest(".line");
      if (!line) return;
      const { path } = line.dataset;
      if (target.closest(".fold")) {
        this.fold(path, !this.open.has(path));
        return;
      }
      this.focusOn(line);
      this.pick(path);
    });
    this.rows.addEventListener("keydown", (event) => this.act(event));
  }

  /** The keys of a tree view: arrows, Home and End, Enter and the space bar. */
  act(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = event.target.closest(".line");
    const row = line && this.byPath.get(line.dataset.path);
    if (!row) return;
    const lines = [...this.rows.children];
    const at = lines.indexOf(line);
    const expanded = line.getAttribute("aria-expanded");
    const page = Math.max(1, Math.floor(this.rows.clientHeight / line.offsetHeight) - 1);
    const places = {
      ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1, PageDown: at + page, PageUp: at - page,
    };
    if (event.key in places) {
      this.focusOn(lines[Math.min(Math.max(places[event.key], 0), lines.length - 1)]);
    } else if (event.key === "ArrowRight") {
      if (expanded === "false") this.fold(row.path, true);
      else if (expanded === "true") this.focusOn(lines[at + 1]);
    } else if (event.key === "ArrowLeft") {
      if (expanded === "true") this.fold(row.path, false);
      else if (!this.rows.classList.contains("flat") && row.parent) this.focusOn(this.lineOf(row.parent.path));
    } else if (event.key === "Enter" || event.key === " ") this.pick(row.path);
    else return;
    event.preventDefault();
    event.stopPropagation(); // Streamlit has shortcuts of its own
  }
}
