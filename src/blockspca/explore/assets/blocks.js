// The covariance of the strongest features, in the order of blocks, with a threshold.
import { $, colour, number, plural } from "./dom.js";

export class Blocks {
  constructor(store) {
    this.store = store;
    this.message = null;
    this.canvas = $("heat");
    $("epsilon").addEventListener("input", () => {
      store.change({ epsilon: this.message.levels[Number($("epsilon").value)] }, "threshold ε", true);
    });
    $("epsilon").addEventListener("change", () => store.settle());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe($("blocks"));
  }

  show(message) {
    this.message = message;
    this.cursor = [0, 0];
    $("blocks").hidden = false;
    $("epsilon").max = message.levels.length - 1;
    this.update();
  }

  // The level of the state's ε; the middle one where it has none.
  get level() {
    const { levels } = this.message;
    const { epsilon } = this.store.state;
    if (epsilon === null) return Math.floor(levels.length / 2);
    let level = 0;
    while (level + 1 < levels.length && levels[level + 1] <= epsilon * (1 + 1e-9)) level += 1;
    return level;
  }

  update() {
    if (!this.message) return;
    const { level } = this;
    $("epsilon").value = level;
    const words = `ε = ${number(this.message.levels[level])}: ${plural(this.message.blocks[level], "block")} of ` +
      `${plural(this.message.total, "feature")}, the largest of ${this.message.largest[level]}; ` +
      `${this.message.names.length} features are shown.`;
    $("blocks-said").textContent = words;
    $("epsilon").setAttribute("aria-valuetext", words);
    this.draw();
  }

  entry(i, j) {
    const d = this.message.names.length;
    const [a, b] = i <= j ? [i, j] : [j, i];
    return this.message.upper[a * d - (a * (a - 1)) / 2 + (b - a)];
  }

  draw() {
    if (!this.message || $("blocks").hidden) return;
    const d = this.message.names.length;
    const width = Math.max(240, Math.min(560, this.canvas.parentElement.clientWidth));
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.height = Math.round(width * ratio);
    this.canvas.style.width = this.canvas.style.height = `${width}px`;
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const cell = width / d;
    this.cell = cell;
    const epsilon = this.message.levels[this.level];
    let most = 1e-300;
    for (let i = 0; i < d; i += 1) for (let j = i; j < d; j += 1) most = Math.max(most, Math.abs(this.entry(i, j)));
    const [plus, minus] = [colour("--blue"), colour("--orange")];
    for (let i = 0; i < d; i += 1) {
      for (let j = 0; j < d; j += 1) {
        const value = this.entry(i, j);
        if (i !== j && Math.abs(value) <= epsilon) continue;
        c.globalAlpha = 0.12 + (0.88 * Math.abs(value)) / most;
        c.fillStyle = value < 0 ? minus : plus;
        c.fillRect(j * cell, i * cell, Math.max(1, cell - 0.5), Math.max(1, cell - 0.5));
      }
    }
    c.globalAlpha = 1;
    c.strokeStyle = colour("--ink");
    const labels = this.message.labels[this.level];
    for (let start = 0; start < d;) {
      let end = start + 1;
      while (end < d && labels[end] === labels[start]) end += 1;
      if (end - start > 1) c.strokeRect(start * cell + 0.5, start * cell + 0.5, (end - start) * cell - 1, (end - start) * cell - 1);
      start = end;
    }
  }

  say(i, j) {
    const { names } = this.message;
    if (i < 0 || j < 0 || i >= names.length || j >= names.length) return;
    this.cursor = [i, j];
    const value = number(this.entry(i, j));
    $("pair").textContent = i === j ? `Variance of ${names[i]}: ${value}` : `${names[i]} × ${names[j]}: ${value}`;
  }

  point(event) {
    if (!this.message) return;
    const box = this.canvas.getBoundingClientRect();
    this.say(Math.floor((event.clientY - box.top) / this.cell), Math.floor((event.clientX - box.left) / this.cell));
  }

  key(event) {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step || !this.message) return;
    event.preventDefault();
    this.say(this.cursor[0] + step[0], this.cursor[1] + step[1]);
  }
}
