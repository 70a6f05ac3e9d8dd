// The network as SVG: partitions coloured by device, pan, zoom, keyboard, selection.
import { element, shorten, slug, svg, VERDICTS } from "./dom.js";
import { layout, NODE } from "./layout.js";

export class GraphView {
  constructor(host, nodes, select) {
    this.nodes = nodes;
    this.select = select;
    this.at = new Array(nodes.length);
    this.boxes = new Array(nodes.length);
    this.blocks = layout(nodes.map((node) => node.inputs), this.at);
    this.scale = 1;
    this.offset = { x: 0, y: 0 };
    this.stage = svg("g");
    this.pieces = [];
    this.root = svg(
      "svg",
      { role: "group", "aria-label": "network graph; arrow keys move between nodes, plus and minus zoom", tabindex: "0" },
      this.stage,
    );
    this.buttons = element(
      "div",
      { class: "zoom" },
      element("button", { type: "button", "aria-label": "zoom in", onclick: () => this.zoom(1.4) }, "+"),
      element("button", { type: "button", "aria-label": "zoom out", onclick: () => this.zoom(1 / 1.4) }, "−"),
      element("button", { type: "button", onclick: () => this.fit() }, "Fit"),
    );
    host.append(this.root, this.buttons);
    this.drawBlock();
    this.drawRest();
    this.listen();
    this.start();
  }

  // Draws the next block; false once there is none left.
  drawBlock() {
    const { value: block, done } = this.blocks.next();
    if (done) return false;
    const edges = [];
    for (const index of block) {
      for (const producer of this.nodes[index].inputs) {
        if (this.at[producer]) edges.push(curve(this.at[producer], this.at[index]));
      }
    }
    const ys = block.map((index) => this.at[index].y);
    const reach = block.flatMap((index) => this.nodes[index].inputs.filter((p) => this.at[p]).map((p) => this.at[p].y));
    const path = svg("path", { class: "edges", d: edges.join("") });
    const group = svg("g");
    this.stage.append(path, group);
    this.pieces.push({ shape: path, top: Math.min(least(reach), least(ys)), bottom: most(ys) });
    this.pieces.push({ shape: group, top: least(ys), bottom: most(ys) });
    for (const index of block) {
      const node = this.nodes[index];
      const { x, y } = this.at[index];
      this.boxes[index] = svg(
        "g",
        { transform: `translate(${x - NODE.width / 2},${y - NODE.height / 2})`, "data-node": index },
        svg("rect", { width: NODE.width, height: NODE.height, rx: 7 }),
        svg("text", { x: 8, y: 14, class: "op" }, shorten(node.op, 20)),
        svg("text", { x: 8, y: 27, class: "name" }, shorten(node.name, 23)),
      );
      if (this.target) this.paintBox(index);
      group.append(this.boxes[index]);
    }
    this.cull();
    return true;
  }

  drawRest() {
    setTimeout(() => {
      if (this.drawBlock()) this.drawRest();
      else document.documentElement.dataset.complete = "true";
    });
  }

  drawAll() {
    while (this.drawBlock());
  }

  paint(target, matches) {
    this.target = target;
    this.matches = matches;
    this.boxes.forEach((_, index) => this.paintBox(index));
  }

  paintBox(index) {
    const verdict = this.target.verdicts[index];
    const faint = this.matches && !this.matches.has(index) ? " faint" : "";
    const mark = this.target.marked === index ? " marked" : "";
    const chosen = index === this.selected ? " selected" : "";
    const box = this.boxes[index];
    box.setAttribute("class", `node v-${slug(verdict)}${faint}${mark}${chosen}`);
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", `${this.nodes[index].op} ${this.nodes[index].name}: ${VERDICTS[verdict] ?? verdict}`);
  }

  show(index, move) {
    if (!this.boxes[index]) this.drawAll();
    this.boxes[this.selected]?.classList.remove("selected");
    this.selected = index;
    this.boxes[index].classList.add("selected");
    if (move) {
      const { width, height } = this.size();
      if (this.scale < 0.6) this.scale = 0.8;
      this.offset = { x: width / 2 - this.at[index].x * this.scale, y: height / 2 - this.at[index].y * this.scale };
      this.apply();
    }
  }

  size() {
    const { width, height } = this.root.getBoundingClientRect();
    return { width: width || 600, height: height || 600 };
  }

  start() {
    const { width } = this.size();
    this.scale = 1;
    this.offset = { x: width / 2, y: 12 };
    this.apply();
  }

  fit() {
    this.drawAll();
    const { width, height } = this.size();
    const xs = this.at.map((p) => p.x);
    const ys = this.at.map((p) => p.y);
    const [left, right] = [least(xs) - NODE.width, most(xs) + NODE.width];
    const [top, bottom] = [least(ys) - NODE.height, most(ys) + NODE.height];
    this.scale = Math.min(1, width / (right - left), height / (bottom - top));
    this.offset = { x: width / 2 - ((left + right) / 2) * this.scale, y: height / 2 - ((top + bottom) / 2) * this.scale };
    this.apply();
  }

  zoom(factor, around) {
    const { width, height } = this.size();
    const point = around ?? { x: width / 2, y: height / 2 };
    const scale = Math.min(4, Math.max(0.02, this.scale * factor));
    const change = scale / this.scale;
    this.offset = { x: point.x - (point.x - this.offset.x) * change, y: point.y - (point.y - this.offset.y) * change };
    this.scale = scale;
    this.apply();
  }

  apply() {
    this.stage.setAttribute("transform", `translate(${this.offset.x},${this.offset.y}) scale(${this.scale})`);
    this.root.classList.toggle("far", this.scale < 0.35);
    this.cull();
  }

  // What lies outside the window is not drawn: a long network moves as smoothly as a short one.
  cull() {
    const { height } = this.size();
    const [first, last] = [-this.offset.y / this.scale - 60, (height - this.offset.y) / this.scale + 60];
    for (const piece of this.pieces) {
      const hidden = piece.bottom < first || piece.top > last;
      if (hidden === piece.hidden) continue;
      piece.hidden = hidden;
      piece.shape.setAttribute("display", hidden ? "none" : "inline");
    }
  }

  listen() {
    const pointers = new Map();
    let moved = false;
    this.root.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      moved = false;
    });
    this.root.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      if (pointers.size === 2) {
        const [other] = [...pointers.values()].filter((p) => p.pointerId !== event.pointerId);
        const before = Math.hypot(last.clientX - other.clientX, last.clientY - other.clientY);
        const after = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
        const box = this.root.getBoundingClientRect();
        this.zoom(after / (before || 1), { x: event.clientX - box.left, y: event.clientY - box.top });
      } else {
        this.offset.x += event.clientX - last.clientX;
        this.offset.y += event.clientY - last.clientY;
        this.apply();
      }
      moved ||= Math.hypot(event.movementX, event.movementY) > 2;
      pointers.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      this.root.addEventListener(name, (event) => pointers.delete(event.pointerId));
    }
    this.root.addEventListener("click", (event) => {
      const box = event.target.closest("[data-node]");
      if (box && !moved) this.select(Number(box.dataset.node), false);
    });
    this.root.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = this.root.getBoundingClientRect();
        if (event.ctrlKey || event.metaKey || !event.shiftKey) {
          this.zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - box.left, y: event.clientY - box.top });
        } else {
          this.offset.x -= event.deltaY;
          this.apply();
        }
      },
      { passive: false },
    );
    this.root.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (step) {
        const next = this.selected === undefined ? 0 : this.selected + step;
        this.select(Math.min(this.nodes.length - 1, Math.max(0, next)), true);
      } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }
}

const least = (numbers) => numbers.reduce((a, b) => Math.min(a, b), Infinity);
const most = (numbers) => numbers.reduce((a, b) => Math.max(a, b), -Infinity);

function curve(from, to) {
  const [x1, y1, x2, y2] = [from.x, from.y + NODE.height / 2, to.x, to.y - NODE.height / 2].map(Math.round);
  const far = y2 - y1 > 400 ? 120 + Math.min(240, (y2 - y1) / 20) : 0;
  const bend = Math.max(14, Math.min(60, (y2 - y1) / 2));
  return far
    ? `M${x1} ${y1}C${x1 + far} ${y1 + 60} ${x2 + far} ${y2 - 60} ${x2} ${y2}`
    : `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}
