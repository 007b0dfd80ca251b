// The component: opens, searches, moves and picks. Only a pick talks to the server.

const pickers = new WeakMap();

/** Called by Streamlit on mount and again, on the same elements, with new data or a new theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".picker");
  if (!pickers.has(root)) pickers.set(root, new Picker(root));
  const picker = pickers.get(root);
  picker.send = (value) => setTriggerValue("picked", value);
  picker.show(data);
  return () => picker.destroy();
}

class Picker {
  constructor(root) {
    this.root = root;
    for (const part of ["label", "help", "tip", "control", "chosen", "popup", "search", "count", "list", "nothing"]) {
      this[part] = root.querySelector(`.${part}`);
    }
    this.shown = []; // the entries in the list, in its order
    this.active = null; // the one that Enter picks
    this.listen();
    this.listenToKeys();
    connectHelp(this.help, this.tip);
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    window.removeEventListener("keydown", this.escape, true);
  }

  get isOpen() {
    return this.popup.matches(":popover-open");
  }

  /** Take over what Python says; an open popup stays open, with its search and its place. */
  show(data) {
    if (data === this.data) return;
    this.data = data;
    this.waitFor(false);
    this.groups = entriesOf(data.groups);
    const { root, label, help, tip, control, chosen, search } = this;
    const name = `picker-${data.key}`;
    root.dataset.testid = name;
    control.dataset.testid = `${name}-button`;
    search.dataset.testid = `${name}-search`;
    label.textContent = data.label;
    help.hidden = !data.help;
    help.setAttribute("aria-label", `About ${data.label}`);
    tip.textContent = data.help;
    search.placeholder = data.placeholder;
    search.setAttribute("aria-label", `${data.placeholder}, ${data.label}`);
    const option = this.entryOf(data.value)?.option;
    chosen.replaceChildren(...chosenParts(option));
    control.title = option ? fullText(option) : "";
    if (this.isOpen) this.refresh();
  }

  entryOf(value) {
    return this.groups.flatMap((group) => group.entries).find((e) => e.option.value === value);
  }

  // ── opening and closing ────────────────────────────────────────────────────────────────────

  open(text = "") {
    this.search.value = "";
    this.fill();
    this.popup.showPopover();
    fitWidth(this.popup, this.list, this.control);
    // The whole list decides where there is room, not what a first letter leaves of it.
    this.place = null;
    this.height = this.popup.scrollHeight - this.list.clientHeight + this.list.scrollHeight;
    this.follow();
    this.moveTo(this.entryOf(this.data.value) ?? this.firstFree(), "centre");
    this.search.focus();
    if (!text) return;
    this.search.value = text;
    this.find();
  }

  close() {
    this.popup.hidePopover();
    this.control.focus();
  }

  /** Keep the popup at the control whatever moves it: scrolling, a resize, a rerun above it. */
  follow() {
    const { left, top, width } = this.control.getBoundingClientRect();
    const place = [left, top, width, innerWidth, innerHeight].join();
    if (place !== this.place) placePopup(this.popup, this.height, this.control);
    this.place = place;
    this.frame = requestAnimationFrame(() => this.isOpen && this.follow());
  }

  // ── the list ───────────────────────────────────────────────────────────────────────────────

  fill() {
    const words = wordsOf(this.search.value);
    const groups = findMatches(this.groups, words);
    this.shown = groups.flatMap((group) => group.entries);
    this.list.replaceChildren(...groups.map((group) => sectionOf(group, words)));
    for (const { row, option } of this.shown) {
      row.setAttribute("aria-selected", String(option.value === this.data.value));
    }
    this.sayCount(words);
  }

  sayCount(words) {
    const all = this.groups.reduce((sum, group) => sum + group.entries.length, 0);
    const none = this.shown.length === 0;
    const number = (count) => count.toLocaleString("en");
    this.count.textContent = words.length ? `${number(this.shown.length)} of ${number(all)}` : "";
    this.list.hidden = none;
    this.nothing.hidden = !none;
    this.nothing.querySelector(".next").hidden = all === 0;
    const query = this.search.value.trim();
    this.nothing.querySelector(".why").textContent = all
      ? `No match for “${query}”`
      : "Nothing to choose from yet.";
  }

  firstFree() {
    return this.shown.find(({ option }) => !option.disabled) ?? this.shown[0];
  }

  /** A new search: the best match becomes the active one. */
  find() {
    this.fill();
    this.list.scrollTop = 0;
    this.moveTo(this.firstFree());
  }

  /** The same search on new options. */
  refresh() {
    const { scrollTop } = this.list;
    const value = this.active?.option.value;
    this.fill();
    this.list.scrollTop = scrollTop;
    this.moveTo(this.shown.find(({ option }) => option.value === value) ?? this.firstFree());
  }

  /** Make an entry the active one and, on request, bring it into view. */
  moveTo(entry, how = "") {
    this.active?.row?.classList.remove("active");
    this.active = entry ?? null;
    if (!entry) {
      this.search.removeAttribute("aria-activedescendant");
      return;
    }
    entry.row.classList.add("active");
    this.search.setAttribute("aria-activedescendant", entry.row.id);
    if (how) scrollToRow(this.list, entry.row, how);
  }

  pick(entry) {
    if (!entry || entry.option.disabled) return;
    this.close();
    const { value } = entry.option;
    // While Python has not answered an earlier pick, taking it back must reach it too.
    if (value === this.data.value && !this.pending) return;
    this.waitFor(true);
    this.send(value);
  }

  /** The old choice stays, pale, until Python has answered; it answers a refused pick too. */
  waitFor(pending) {
    this.pending = pending;
    this.control.setAttribute("aria-busy", String(pending));
  }

  // ── events ─────────────────────────────────────────────────────────────────────────────────

  listen() {
    const { control, popup, search, list, label } = this;
    let wasOpen = false;
    // A press outside the popup closes it, so by the click on the control it is closed again.
    control.addEventListener("pointerdown", () => { wasOpen = this.isOpen; });
    control.addEventListener("click", () => {
      if (!wasOpen) this.open();
      wasOpen = false;
    });
    label.addEventListener("click", () => control.focus());
    popup.addEventListener("beforetoggle", ({ newState }) => {
      const opening = newState === "open";
      control.setAttribute("aria-expanded", String(opening));
      window[opening ? "addEventListener" : "removeEventListener"]("keydown", this.escape, true);
    });
    search.addEventListener("input", () => this.find());
    this.root.querySelector(".clear").addEventListener("click", () => {
      search.value = "";
      this.find();
      search.focus();
    });
    const entryAt = ({ target }) => {
      const row = target.closest("[role=option]");
      return row && this.shown.find((entry) => entry.row === row);
    };
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the search keeps the focus
    list.addEventListener("click", (event) => this.pick(entryAt(event)));
    list.addEventListener("pointermove", (event) => {
      const entry = entryAt(event);
      delete list.dataset.keys;
      if (entry && entry !== this.active) this.moveTo(entry);
    });
  }

  listenToKeys() {
    this.control.addEventListener("keydown", (event) => {
      const { key, ctrlKey, metaKey, altKey, isComposing } = event;
      const letter = key.length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey && !isComposing;
      if (!letter && key !== "ArrowDown" && key !== "ArrowUp") return;
      event.preventDefault();
      event.stopPropagation(); // Streamlit has one-letter shortcuts
      this.open(letter ? key : "");
    });
    this.search.addEventListener("keydown", (event) => event.isComposing || this.act(event));
    // At the window, before Streamlit's listener at the document closes a popover around this one.
    this.escape = (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    };
  }

  act(event) {
    const { shown, list } = this;
    if (event.key === "Tab") {
      this.close(); // and on from the control
      return;
    }
    const at = shown.indexOf(this.active);
    const page = Math.max(1, Math.floor(list.clientHeight / (this.active?.row.offsetHeight || 1)) - 1);
    const places = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page,
      Home: 0, End: shown.length - 1,
    };
    if (event.key in places) {
      list.dataset.keys = "";
      this.moveTo(shown[Math.min(Math.max(places[event.key], 0), shown.length - 1)], "near");
    } else if (event.key === "Enter") this.pick(this.active);
    else return;
    event.preventDefault();
  }
}
