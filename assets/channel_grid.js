// The channels of a layer. All are here: pages, order and scale are drawn without the server.

const grids = new WeakMap();
const number = (value) => {
  const size = Math.abs(value);
  const text = size && (size >= 1e5 || size < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
  return text.replaceAll("-", "−");
};
const whole = (value) => value.toLocaleString("en");
const ordinal = (place) => {
  const tens = place % 100;
  const end = tens > 10 && tens < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[place % 10] ?? "th";
  return `${whole(place)}${end}`;
};

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".channels");
  if (!grids.has(root)) grids.set(root, new Grid(root));
  const grid = grids.get(root);
  grid.send = setTriggerValue;
  grid.show(data);
}

class Grid {
  constructor(root) {
    this.root = root;
    const find = (selector) => root.querySelector(selector);
    Object.assign(this, {
      select: find("select"), scale: find(".scale"), back: find(".back"), on: find(".on"),
      range: find(".range"), tiles: find(".tiles"), about: find(".about"), legend: find(".legend"),
    });
    this.listen();
  }

  /** Take a payload over: maps that are here already are not read again. */
  show(data) {
    if (data === this.data) return;
    const fresh = data.identity !== this.data?.identity;
    this.data = data;
    if (fresh) this.content = decoded(data);
    this.single = data.grid[0] * data.grid[1] === 1;
    this.root.dataset.testid = `grid-${data.key}`;
    this.root.classList.toggle("single", this.single);
    this.tiles.setAttribute("aria-label", `${whole(data.count)} channels, ${data.page} a page`);
    this.root.classList.toggle("named", data.names.length > 0);
    if (this.select.options.length !== Object.keys(data.titles).length) {
      this.select.replaceChildren(...Object.entries(data.titles).map(([value, title]) => new Option(title, value)));
    }
    const turned = data.order !== this.order;
    [this.order, this.shared] = [data.order, data.shared];
    if (fresh || (turned && data.value !== this.focused)) this.goTo(data.value);
    this.fill();
  }

  get list() {
    return this.content.orders[this.order];
  }

  goTo(channel) {
    this.focused = channel;
    this.page = Math.floor(Math.max(this.list.indexOf(channel), 0) / this.data.page);
  }

  // ── drawing ────────────────────────────────────────────────────────────────────────────────

  fill() {
    const { page: size, count } = this.data;
    const from = this.page * size;
    const shown = [...this.list.slice(from, from + size)];
    while (this.tiles.children.length > shown.length) this.tiles.lastElementChild.remove();
    shown.forEach((channel, i) => this.fillTile(this.tiles.children[i] ?? this.tiles.appendChild(this.blank()), channel));
    this.select.value = this.order;
    for (const button of this.scale.children) {
      const on = (button.dataset.scale === "shared") === this.shared;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    this.scale.hidden = this.single;
    this.range.textContent = `${whole(from + 1)}–${whole(from + shown.length)} of ${whole(count)}`;
    this.back.disabled = from === 0;
    this.on.disabled = from + size >= count;
    this.back.parentElement.hidden = count <= size;
    if (!shown.includes(this.focused)) this.focused = shown.includes(this.data.value) ? this.data.value : shown[0];
    this.mark();
    this.fillLegend();
  }

  blank() {
    const tile = document.createElement("div");
    tile.className = "tile";
    tile.setAttribute("role", "option");
    tile.append(document.createElement("canvas"), document.createElement("span"), document.createElement("i"));
    return tile;
  }

  fillTile(tile, channel) {
    const [canvas, label, bar] = tile.children;
    tile.dataset.channel = channel;
    const name = this.data.names[channel];
    label.textContent = name ? `${name} (${channel})` : channel;
    tile.setAttribute("aria-label", this.sentence(channel));
    tile.title = this.sentence(channel);
    canvas.hidden = this.single;
    const measure = this.order === "index" ? "contribution" : this.order;
    const values = this.content.values[measure];
    const peak = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    bar.className = values[channel] < 0 ? "against" : "for";
    bar.style.setProperty("--share", Math.min(Math.abs(values[channel]) / peak, 1));
    bar.dataset.value = this.single ? number(values[channel]) : "";
    if (this.single) return;
    const scale = scaleOf(this.content, channel, this.shared);
    tile.classList.toggle("flat", !scale);
    drawChannel(canvas, this.content, channel, scale);
  }

  fillLegend() {
    const scale = this.single || !this.shared ? null : scaleOf(this.content, 0, true);
    this.legend.hidden = !scale;
    if (!scale) return;
    this.legend.querySelector(".low").textContent = number(scale.low);
    this.legend.querySelector(".high").textContent = number(scale.high);
    drawLegend(this.legend.querySelector("canvas"), scale, this.content.colours);
  }

  sentence(channel) {
    const { values, orders } = this.content;
    const name = this.data.names[channel];
    const place = ordinal(orders.contribution.indexOf(channel) + 1);
    const head = `${this.single ? "Unit" : "Channel"} ${channel}${name ? `, ${name}` : ""}: contribution ${number(values.contribution[channel])}, ${place} of ${whole(this.data.count)}`;
    const { low, high } = this.content;
    if (!this.single && low[channel] === 0 && high[channel] === 0) return `${head} · dead: zero everywhere on this picture`;
    if (this.single) return `${head} · value ${number(values.mean[channel])}`;
    return `${head} · mean ${number(values.mean[channel])} · largest ${number(values.maximum[channel])} · variance ${number(values.variance[channel])}`;
  }

  mark() {
    const value = this.pending ?? this.data.value;
    for (const tile of this.tiles.children) {
      const channel = Number(tile.dataset.channel);
      tile.setAttribute("aria-selected", String(channel === value));
      tile.tabIndex = channel === this.focused ? 0 : -1;
    }
    this.about.textContent = this.sentence(this.pointed ?? this.focused);
  }

  // ── what the reader does ───────────────────────────────────────────────────────────────────

  pick(channel) {
    this.focused = channel;
    if (channel === this.data.value) {
      this.mark();
      return;
    }
    this.pending = channel;
    this.mark();
    this.pending = null;
    this.send("picked", String(channel));
  }

  turn(by) {
    const last = Math.floor((this.data.count - 1) / this.data.page);
    const page = Math.min(Math.max(this.page + by, 0), last);
    if (page === this.page) return false;
    this.page = page;
    this.fill();
    return true;
  }

  see(order, shared) {
    if (order === this.order && shared === this.shared) return;
    if (order !== this.order) this.page = 0;
    [this.order, this.shared] = [order, shared];
    this.fill();
    this.send("view", `${order} ${shared ? "shared" : "own"}`);
  }

  focusOn(channel) {
    this.focused = channel;
    this.mark();
    this.tiles.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  listen() {
    const channelAt = ({ target }) => {
      const tile = target.closest(".tile");
      return tile ? Number(tile.dataset.channel) : undefined;
    };
    this.select.addEventListener("change", () => this.see(this.select.value, this.shared));
    this.scale.addEventListener("click", ({ target }) => {
      const { scale } = target.closest("button")?.dataset ?? {};
      if (scale) this.see(this.order, scale === "shared");
    });
    this.scale.addEventListener("keydown", (event) => {
      if (!/^Arrow/.test(event.key)) return;
      event.preventDefault();
      this.see(this.order, !this.shared);
      this.scale.querySelector('[aria-checked="true"]').focus();
    });
    this.back.addEventListener("click", () => this.turn(-1));
    this.on.addEventListener("click", () => this.turn(1));
    this.tiles.addEventListener("click", (event) => {
      const channel = channelAt(event);
      if (channel !== undefined) this.pick(channel);
    });
    this.tiles.addEventListener("pointerover", (event) => {
      this.pointed = channelAt(event);
      this.mark();
    });
    this.tiles.addEventListener("pointerleave", () => {
      this.pointed = undefined;
      this.mark();
    });
    this.tiles.addEventListener("keydown", (event) => this.act(event));
  }

  act(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = [...this.tiles.children].map((tile) => Number(tile.dataset.channel));
    const at = shown.indexOf(Number(event.target.closest(".tile")?.dataset.channel));
    if (at < 0) return;
    const styles = getComputedStyle(this.tiles);
    const count = (tracks) => tracks.split(" ").length;
    // Maps run in rows, bars in columns.
    const [across, down] = this.single ? [count(styles.gridTemplateRows), 1] : [1, count(styles.gridTemplateColumns)];
    const places = {
      ArrowRight: at + across, ArrowLeft: at - across, ArrowDown: at + down, ArrowUp: at - down,
      Home: 0, End: shown.length - 1,
    };
    this.pointed = undefined;
    if (event.key in places) {
      const to = places[event.key];
      if (shown[to] !== undefined) this.focusOn(shown[to]);
      else if (event.key === "ArrowRight" && this.turn(1)) this.focusOn(Number(this.tiles.firstElementChild.dataset.channel));
      else if (event.key === "ArrowLeft" && this.turn(-1)) this.focusOn(Number(this.tiles.lastElementChild.dataset.channel));
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      if (this.turn(event.key === "PageDown" ? 1 : -1)) this.focusOn(Number(this.tiles.firstElementChild.dataset.channel));
    } else if (event.key === "Enter" || event.key === " ") this.pick(shown[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
