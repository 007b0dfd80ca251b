// The component: controls, pointer and keyboard. Nothing here runs the script again.

const TALLEST = 560;
const INVITATION = "Point at the picture to read a value, or focus it and press the arrow keys.";
const NOTHING = "Nothing to draw: the map is flat or has no value above zero.";
const views = new WeakMap();

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement }) {
  const root = parentElement.querySelector(".heatmap");
  let view = views.get(parentElement);
  if (!view || view.root !== root) {
    view?.destroy();
    view = new HeatmapView(root);
    views.set(parentElement, view);
  }
  view.show(data);
  return () => {
    view.destroy();
    views.delete(parentElement);
  };
}

class HeatmapView {
  constructor(root) {
    this.root = root;
    this.choices = remembered();
    this.canvas = this.find("canvas");
    this.markers = [...root.querySelectorAll(".marker")];
    this.divider = this.find(".divider");
    this.abort = new AbortController();
    this.loads = 0;
    this.teller = new Teller(() => this.shown(), (text) => this.say(text), this.abort.signal);
    this.listen();
    this.observer = new ResizeObserver(() => this.layOut());
    this.observer.observe(this.find(".stage"));
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  destroy() {
    this.observer.disconnect();
    this.abort.abort();
    cancelAnimationFrame(this.frame);
    this.loads += 1;
  }

  /** Take a payload over; the same one again (a new theme) changes nothing. */
  show(data) {
    if (data === this.data) return;
    const samePicture = this.data && data && this.data.picture.url === data.picture.url;
    this.data = data;
    this.loads += 1;
    this.find(".empty").hidden = Boolean(data);
    this.find(".filled").hidden = !data;
    this.root.dataset.ready = "false";
    if (!data) return;
    this.field = fieldFrom(data);
    this.tables = new Map(data.colours.map((c) => [c.name, bytesFrom(c.table)]));
    if (!samePicture) this.photo = this.pixel = null;
    this.canvas.setAttribute("aria-label", data.alt);
    this.find(".title").textContent = data.title;
    this.find(".source").textContent = data.source;
    fillSwatches(this.root, data.colours, this.tables);
    this.fillControls();
    this.layOut();
    if (!samePicture) this.load(data.picture.url);
  }

  async load(url) {
    const turn = this.loads;
    const image = new Image();
    image.src = url;
    try {
      await image.decode();
    } catch {
      this.say("This browser cannot decode the picture.");
      return;
    }
    if (turn !== this.loads) return;
    this.photo = image;
    this.schedule();
  }

  // ── choices ────────────────────────────────────────────────────────────────────────────────

  get coloursKey() {
    return coloursKey(this.data.scale.signed);
  }

  get colours() {
    return chosenFor(this.choices, this.data, this.data.scale.signed).colours;
  }

  choice(name) {
    const own = { mode: "overlay", divider: 0.5, ...this.data.defaults };
    return this.choices[name] ?? own[name];
  }

  choose(name, value) {
    this.choices = { ...this.choices, [name]: value };
    remember(this.choices);
    this.fillControls();
    if (name === "mode") this.layOut();
    if (name !== "divider" && name !== "opacity") this.heatStale = true;
    this.schedule();
  }

  reset() {
    this.choices = {};
    remember(this.choices);
    this.fillControls();
    this.heatStale = true;
    this.layOut();
    this.schedule();
  }

  fillControls() {
    const [opacity, threshold] = [this.choice("opacity"), this.choice("threshold")];
    const { scale, colours } = this.data;
    const level = isDrawable(scale) ? `${percent(threshold)} · ${formatValue(threshold * scale.high)}` : "–";
    fillSlider(this.root, "opacity", opacity, percent(opacity));
    fillSlider(this.root, "threshold", threshold, level);
    checkRadio(this.root, "mode", this.choice("mode"));
    checkRadio(this.root, "colours", this.colours);
    this.find(".chosen").textContent = colours.find((c) => c.name === this.colours).title;
    fillLegend(this.root, scale, this.tables.get(this.colours), threshold);
    this.placeDivider();
    this.read();
  }

  // ── drawing ────────────────────────────────────────────────────────────────────────────────

  layOut() {
    const room = this.find(".stage").clientWidth;
    if (!this.data || room === 0) return;
    const density = window.devicePixelRatio || 1;
    const mode = this.choice("mode");
    // Our own change of the stage's height comes back here through the observer.
    const layout = [room, density, mode, this.loads].join();
    if (layout === this.layout) return;
    const fitted = fitView(mode, this.data.picture, room, TALLEST);
    const [width, height] = [fitted.width, fitted.height].map((n) => Math.max(1, Math.round(n * density)));
    this.panes = panesFor(mode, width, height, { stacked: fitted.stacked, size: Math.round(GAP * density) });
    const last = this.panes.at(-1);
    Object.assign(this.canvas, { width: last.x + width, height: last.y + height });
    this.canvas.style.width = `${this.canvas.width / density}px`;
    this.canvas.style.height = `${this.canvas.height / density}px`;
    Object.assign(this, { layout, density, indices: null, scaledPhoto: null });
    this.placeDivider();
    this.read();
    // At once: setting its size has blanked the canvas, and a blank frame would flicker.
    if (this.photo) this.paint();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.photo && this.panes) this.paint();
    });
  }

  /** The heavy parts are kept: photo and indices per size, coloured heat per table. */
  paint() {
    const { width, height } = this.panes[0];
    if (!this.scaledPhoto) {
      this.scaledPhoto = newCanvas(width, height);
      const context = this.scaledPhoto.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(this.photo, 0, 0, width, height);
    }
    if (!this.indices) {
      this.indices = indexRows(this.field, this.data.scale, width, height, 0, height);
      this.heat = newCanvas(width, height);
      this.heatStale = true;
    }
    if (this.heatStale) paintHeat(this.heat, this.indices, this.table(), 0);
    this.heatStale = false;
    paintView(this.canvas.getContext("2d"), this.viewOf(this.panes, this.scaledPhoto, this.heat), this.density);
    this.teller.soon();
    this.root.dataset.ready = "true";
  }

  table() {
    return colourTable(this.tables.get(this.colours), this.data.scale, this.choice("threshold"));
  }

  viewOf(panes, photo, heat) {
    const [opacity, divider] = [this.choice("opacity"), this.choice("divider")];
    return { panes, photo, heat, opacity, divider, field: this.field };
  }

  // ── files ──────────────────────────────────────────────────────────────────────────────────

  /** What a file is to look like, and where to tell it. */
  shown() {
    if (!this.data) return null;
    const [opacity, threshold, mode, divider] = ["opacity", "threshold", "mode", "divider"].map((name) => this.choice(name));
    const stacked = (this.panes?.at(-1).y ?? 0) > 0;
    return { url: this.data.screen, view: { colours: this.colours, opacity, threshold, mode, divider, stacked } };
  }

  /** The server draws this view at the resolution of the original picture: press its download. */
  save() {
    document.querySelector(`.${this.data.saves[this.choice("mode")]} button`).click();
  }

  // ── reading values ─────────────────────────────────────────────────────────────────────────

  /** Pixel of the original picture under a pointer, and the pane it is in. */
  pixelAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) * (this.canvas.width / box.width);
    const y = (event.clientY - box.top) * (this.canvas.height / box.height);
    const pane = this.panes.find((p) => x >= p.x && x < p.x + p.width && y >= p.y && y < p.y + p.height);
    if (!pane) return null;
    const { width, height } = this.data.picture;
    return {
      x: Math.min(width - 1, Math.floor(((x - pane.x) / pane.width) * width)),
      y: Math.min(height - 1, Math.floor(((y - pane.y) / pane.height) * height)),
      // A mouse pointer marks its own place; a finger hides it and then is gone.
      pane: event.pointerType === "mouse" ? pane : null,
    };
  }

  /** Read at `pixel` (`pane`: the one the pointer is in, which needs no marker). */
  readAt(pixel) {
    this.pixel = pixel;
    this.read();
  }

  read() {
    this.placeMarkers();
    const readout = this.find(".readout");
    const { pixel } = this;
    if (!pixel) {
      delete readout.dataset.value;
      this.say(isDrawable(this.data.scale) ? INVITATION : NOTHING);
      return;
    }
    const value = valueAt(this.field, pixel.x, pixel.y);
    const { scale } = this.data;
    readout.dataset.value = String(value);
    this.say(`x ${pixel.x}, y ${pixel.y} · ${this.describe(value)}`);
    if (!isDrawable(scale) || Number.isNaN(value)) return;
    const share = Math.min(Math.max((value - scale.low) / (scale.high - scale.low), 0), 1);
    this.find(".chip").style.background = rgb(this.tables.get(this.colours), Math.round(255 * share));
  }

  describe(value) {
    const { x, y } = this.pixel;
    const { scale } = this.data;
    if (!isSeen(this.field.x, x) || !isSeen(this.field.y, y)) return "outside what the model saw";
    if (!isDrawable(scale)) return `value ${formatValue(value)}`;
    if (value < 0 && !scale.signed) return `value ${formatValue(value)} (below zero, not drawn)`;
    return `value ${formatValue(value)} (${percent(value / scale.high)} of max)`;
  }

  say(text) {
    this.find(".reading").textContent = text;
    this.find(".chip").style.background = "";
  }

  placeMarkers() {
    const { picture } = this.data;
    const [left, top] = [this.canvas.offsetLeft, this.canvas.offsetTop];
    this.markers.forEach((marker, i) => {
      const pane = this.panes?.[i];
      marker.hidden = !this.pixel || !pane || pane === this.pixel.pane;
      if (marker.hidden) return;
      const x = (pane.x + ((this.pixel.x + 0.5) / picture.width) * pane.width) / this.density;
      const y = (pane.y + ((this.pixel.y + 0.5) / picture.height) * pane.height) / this.density;
      marker.style.transform = `translate(${left + x}px, ${top + y}px)`;
    });
  }

  placeDivider() {
    const share = this.choice("divider");
    this.divider.hidden = this.choice("mode") !== "swipe";
    this.divider.setAttribute("aria-valuenow", Math.round(100 * share));
    this.divider.setAttribute("aria-valuetext", `${percent(share)} picture, ${percent(1 - share)} heat`);
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = this.canvas;
    this.divider.style.height = `${offsetHeight}px`;
    this.divider.style.transform = `translate(${offsetLeft + share * offsetWidth}px, ${offsetTop}px)`;
  }

  // ── events ─────────────────────────────────────────────────────────────────────────────────

  listen() {
    const on = (target, event, act) => target.addEventListener(event, act, { signal: this.abort.signal });
    on(this.root, "input", ({ target }) => {
      if (target.type === "range") this.choose(target.id, Number(target.value));
      else if (target.name === "mode") this.choose("mode", target.value);
      else if (target.name === "colours") this.choose(this.coloursKey, target.value);
    });
    on(this.find(".reset"), "click", () => this.reset());
    on(this.find(".save"), "click", () => this.save());
    on(this.canvas, "pointermove", (event) => this.readAt(this.pixelAt(event)));
    on(this.canvas, "pointerdown", (event) => this.readAt(this.pixelAt(event)));
    on(this.canvas, "pointerleave", (event) => event.pointerType === "mouse" && this.readAt(null));
    on(this.canvas, "focus", () => this.canvas.matches(":focus-visible") && this.readAt(hottestPixel(this.field)));
    on(this.canvas, "blur", () => this.readAt(null));
    on(this.canvas, "keydown", (event) => this.moveCrosshair(event));
    on(this.divider, "keydown", (event) => this.moveDivider(event));
    on(this.divider, "pointerdown", (event) => this.divider.setPointerCapture(event.pointerId));
    on(this.divider, "pointermove", (event) => {
      if (!this.divider.hasPointerCapture(event.pointerId)) return;
      const box = this.canvas.getBoundingClientRect();
      this.choose("divider", Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1));
    });
    on(window, "resize", () => this.layOut());
  }

  moveCrosshair(event) {
    const { width, height } = this.data.picture;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key === "Escape") this.readAt(null);
    if (!moves[event.key]) return;
    event.preventDefault();
    const start = this.pixel ?? hottestPixel(this.field);
    this.readAt({
      x: Math.min(Math.max(start.x + moves[event.key][0], 0), width - 1),
      y: Math.min(Math.max(start.y + moves[event.key][1], 0), height - 1),
    });
  }

  moveDivider(event) {
    const step = event.shiftKey ? 0.1 : 0.02;
    const now = this.choice("divider");
    const places = { ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step, Home: 0, End: 1 };
    if (!(event.key in places)) return;
    event.preventDefault();
    this.choose("divider", Math.min(Math.max(places[event.key], 0), 1));
  }
}
