// A gallery of pictures to choose one from. It talks to the server only when one is picked.

const REST_MS = 300;
const galleries = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".gallery");
  if (!galleries.has(root)) galleries.set(root, new Gallery(root));
  const gallery = galleries.get(root);
  gallery.send = (value) => setTriggerValue("picked", value);
  gallery.show(data);
  return () => {
    gallery.destroy();
    galleries.delete(root);
  };
}

class Gallery {
  constructor(root) {
    this.root = root;
    this.row = root.querySelector(".row");
    this.row.addEventListener("click", ({ target }) => this.pick(target.closest(".tile")));
    this.row.addEventListener("keydown", (event) => this.move(event));
    this.row.addEventListener("scroll", () => this.fade(), { passive: true });
    this.abort = new AbortController();
    whenChosen((choices) => this.paintHeat(choices), this.abort.signal);
    this.observer = new ResizeObserver(() => {
      this.reveal("instant");
      this.fade();
    });
    this.observer.observe(this.row);
  }

  destroy() {
    clearTimeout(this.resting);
    this.abort.abort();
    this.observer.disconnect();
  }

  get tiles() {
    return [...this.row.children];
  }

  /** Take a payload over; the same one again (a new theme) changes nothing. */
  show(data) {
    if (data === this.data) return;
    const first = !this.data;
    this.data = data;
    this.root.dataset.testid = `gallery-${data.key}`;
    this.root.classList.toggle("strip", data.strip);
    this.root.toggleAttribute("data-columns", Boolean(data.columns));
    this.root.style.setProperty("--columns", data.columns);
    if (data.aspect) this.root.style.setProperty("--aspect", data.aspect);
    this.row.setAttribute("aria-label", data.label);
    // Each tile keeps its place in the page, so that the focus and the old picture stay until the
    // new one is there.
    const blank = this.root.querySelector("template").content.firstElementChild;
    data.tiles.forEach((tile, i) => fillTile(this.row.children[i] ?? this.row.appendChild(blank.cloneNode(true)), tile));
    while (this.row.children.length > data.tiles.length) this.row.lastElementChild.remove();
    this.paintHeat(remembered());
    this.chosen = data.value;
    // Where the arrow keys are on their way, that is newer than what the server knows.
    if (!this.resting) this.mark(data.value);
    this.reveal(first ? "instant" : "smooth");
    this.fade();
  }

  /** Lay the maps over their pictures, in the colours that are chosen for heatmaps. */
  paintHeat(choices) {
    this.data.tiles.forEach((tile, i) => {
      if (tile.heat) paintTile(this.row.children[i], tile, chosenFor(choices, this.data, tile.heat.scale.signed));
    });
  }

  mark(value) {
    const { tiles } = this;
    const chosen = tiles.findIndex((tile) => tile.dataset.value === value);
    tiles.forEach((tile, i) => {
      tile.setAttribute("aria-checked", String(i === chosen));
      tile.tabIndex = i === Math.max(chosen, 0) ? 0 : -1;
    });
  }

  pick(tile) {
    if (!tile) return;
    clearTimeout(this.resting);
    this.resting = null;
    const { value } = tile.dataset;
    this.mark(value);
    this.reveal("smooth");
    if (value === this.chosen) return;
    this.chosen = value; // before the answer: a double click is one pick
    this.send(value);
  }

  /** The arrow keys choose, as in any radio group, but only where they come to rest. */
  move(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { tiles } = this;
    const now = tiles.indexOf(event.target.closest(".tile"));
    const columns = this.data.strip ? 1 : getComputedStyle(this.row).gridTemplateColumns.split(" ").length;
    const places = {
      ArrowRight: (now + 1) % tiles.length,
      ArrowLeft: (now - 1 + tiles.length) % tiles.length,
      ArrowDown: now + columns,
      ArrowUp: now - columns,
      Home: 0,
      End: tiles.length - 1,
    };
    if (now < 0 || !(event.key in places)) return;
    event.preventDefault();
    const tile = tiles[places[event.key]];
    if (!tile) return;
    tile.focus({ preventScroll: true });
    this.mark(tile.dataset.value);
    this.reveal("smooth");
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.pick(tile), REST_MS);
  }

  /** Bring the chosen tile into the row's own window; the page itself stays where it is. */
  reveal(behavior) {
    const tile = this.row.querySelector("[aria-checked=true]");
    if (!tile || this.row.scrollWidth <= this.row.clientWidth) return;
    const margin = 44;
    const left = tile.offsetLeft - margin;
    const right = left + tile.offsetWidth + 2 * margin - this.row.clientWidth;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const to = Math.max(right, Math.min(left, this.row.scrollLeft));
    this.row.scrollTo({ left: to, behavior: calm ? "instant" : behavior });
  }

  /** Fade the edges behind which there is more. */
  fade() {
    const { scrollLeft, scrollWidth, clientWidth } = this.row;
    const more = [scrollLeft > 4 && "before", scrollLeft + clientWidth < scrollWidth - 4 && "after"];
    this.row.dataset.more = more.filter(Boolean).join(" ");
  }
}

function fillTile(element, tile) {
  const find = (selector) => element.querySelector(selector);
  element.dataset.value = tile.value;
  element.title = [tile.title, tile.detail].filter(Boolean).join(" · ");
  element.classList.toggle("mono", tile.mono);
  const picture = find("img");
  const canvas = find("canvas");
  picture.hidden = !tile.url || Boolean(tile.heat);
  canvas.toggleAttribute("hidden", !tile.heat);
  canvas.setAttribute("aria-label", tile.alt);
  picture.alt = tile.alt;
  if (tile.url && picture.src !== tile.url) picture.src = tile.url;
  find(".blank").toggleAttribute("hidden", Boolean(tile.url));
  find("bdi").textContent = tile.title;
  const parts = tile.detail.split(" · ").filter(Boolean).map((text) => {
    const part = document.createElement("span");
    part.textContent = text;
    return part;
  });
  find(".detail").replaceChildren(...parts);
}
