// The heads of a vision transformer: a row a block, a column a head, the mean at the end.

const views = new WeakMap();
const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** Called by Streamlit on mount and again with every new payload or theme. */
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".heads");
  if (!views.has(root)) views.set(root, new Heads(root));
  const view = views.get(root);
  view.send = (value) => setTriggerValue("picked", value);
  view.show(data);
}

class Heads {
  constructor(root) {
    this.root = root;
    for (const part of ["tiles", "rollout", "about"]) this[part] = root.querySelector(`.${part}`);
    this.listen();
  }

  show(data) {
    if (data === this.data) return;
    const fresh = data.identity !== this.data?.identity;
    this.data = data;
    this.root.dataset.testid = `heads-${data.key}`;
    this.columns = data.heads + 1;
    if (fresh) this.fill();
    this.mark(data.value);
  }

  fill() {
    const { data, columns } = this;
    this.cells = decode(data.cells);
    this.colours = decode(data.colours);
    this.tiles.style.setProperty("--columns", columns);
    this.tiles.replaceChildren();
    for (let column = -1; column < columns; column += 1) {
      this.label(column < 0 ? "" : column < data.heads ? column : "mean", "head");
    }
    data.paths.forEach((path, block) => {
      this.label(block, "block", path);
      for (let column = 0; column < columns; column += 1) this.tiles.append(this.tile(block, column));
    });
    this.draw(this.rollout.querySelector("canvas"), data.paths.length * columns);
    this.rollout.dataset.value = "rollout";
  }

  label(text, kind, title = "") {
    const label = document.createElement("span");
    label.className = kind;
    label.textContent = text;
    label.title = title;
    label.setAttribute("aria-hidden", "true");
    this.tiles.append(label);
  }

  tile(block, column) {
    const tile = document.createElement("div");
    tile.className = "tile";
    tile.setAttribute("role", "option");
    const mean = column === this.data.heads;
    tile.dataset.value = `${block}-${mean ? "mean" : column}`;
    tile.dataset.words = `Block ${block} (${this.data.paths[block]}), ${mean ? "mean of its heads" : `head ${column}`}`;
    tile.setAttribute("aria-label", tile.dataset.words);
    tile.title = tile.dataset.words;
    const canvas = document.createElement("canvas");
    this.draw(canvas, block * this.columns + column);
    tile.append(canvas);
    return tile;
  }

  draw(canvas, place) {
    const { width, height } = this.data;
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i += 1) {
      const at = 3 * this.cells[place * width * height + i];
      image.data.set([this.colours[at], this.colours[at + 1], this.colours[at + 2], 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  }

  mark(value) {
    const tiles = [...this.tiles.querySelectorAll(".tile")];
    const chosen = tiles.find((tile) => tile.dataset.value === value);
    for (const tile of tiles) {
      tile.setAttribute("aria-selected", String(tile === chosen));
      tile.tabIndex = tile === (chosen ?? tiles[0]) ? 0 : -1;
    }
    this.rollout.setAttribute("aria-pressed", String(value === "rollout"));
    this.tell(chosen);
  }

  tell(tile) {
    this.about.textContent = tile?.dataset.words ?? "Rollout: all blocks and heads together";
  }

  pick(value) {
    if (value === this.data.value) return;
    this.mark(value);
    this.send(value);
  }

  listen() {
    this.root.addEventListener("click", ({ target }) => {
      const { value } = target.closest("[data-value]")?.dataset ?? {};
      if (value) this.pick(value);
    });
    this.tiles.addEventListener("pointerover", ({ target }) => {
      const tile = target.closest(".tile");
      if (tile) this.tell(tile);
    });
    this.tiles.addEventListener("keydown", (event) => {
      const tiles = [...this.tiles.querySelectorAll(".tile")];
      const at = tiles.indexOf(event.target.closest(".tile"));
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      const places = {
        ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + this.columns, ArrowUp: at - this.columns,
        Home: 0, End: tiles.length - 1,
      };
      if (event.key in places) {
        const tile = tiles[places[event.key]];
        if (tile) {
          for (const other of tiles) other.tabIndex = other === tile ? 0 : -1;
          tile.focus();
          this.tell(tile);
        }
      } else if (event.key === "Enter" || event.key === " ") this.pick(tiles[at].dataset.value);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}
