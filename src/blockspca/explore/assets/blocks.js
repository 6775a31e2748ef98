// The covariance of the strongest features, in the order of blocks, with a threshold.
import { $, colour, number, plural } from "./dom.js";
import { CELLS, Picture, faded, literal } from "./pictures.js";

const ROOM = 9; // pixels of a row that has its name beside it
const LETTER = 6.2; // pixels, about

export class Blocks {
  constructor(store) {
    this.store = store;
    this.message = null;
    this.picture = new Picture($("heat"), () => this.content(), {
      events: {
        plotly_hover: (event) => this.say(...event.points[0].pointNumber),
      },
    });
    $("epsilon").addEventListener("input", () => {
      store.change({ epsilon: this.message.levels[Number($("epsilon").value)] }, "threshold ε", true);
    });
    $("epsilon").addEventListener("change", () => store.settle());
    $("heat").addEventListener("keydown", (event) => this.key(event));
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
    this.picture.draw();
  }

  entry(i, j) {
    const d = this.message.names.length;
    const [a, b] = i <= j ? [i, j] : [j, i];
    return this.message.upper[a * d - (a * (a - 1)) / 2 + (b - a)];
  }

  content() {
    if (!this.message || $("blocks").hidden) return null;
    const { names, levels } = this.message;
    const d = names.length;
    const epsilon = levels[this.level];
    const largest = Math.max(...this.message.upper.map(Math.abs), 1e-300);
    const z = names.map((_, i) => names.map((__, j) => {
      const value = this.entry(i, j);
      return i === j || Math.abs(value) > epsilon ? value : null;
    }));
    const [plus, minus, ink] = ["--blue", "--orange", "--ink"].map(colour);
    const traces = [
      {
        ...CELLS, z, zmin: -largest, zmax: largest, xgap: 1, ygap: 1, hoverongaps: true,
        colorscale: [[0, minus], [0.5 - 1e-9, faded(minus, 0.12)], [0.5, faded(plus, 0.12)], [1, plus]],
      },
      { type: "scatter", mode: "lines", ...this.outlines(), line: { color: ink, width: 1 }, hoverinfo: "skip" },
    ];
    const { clientWidth: width, clientHeight: height } = $("heat");
    const beside = width - height;
    const named = height / d >= ROOM && beside > 10 * LETTER;
    const most = Math.floor(beside / LETTER) - 1;
    const short = (name) => literal(name.length > most ? `${name.slice(0, most - 1)}…` : name);
    const axis = { showgrid: false, zeroline: false, fixedrange: true, visible: false };
    const layout = {
      hovermode: "closest", margin: { l: named ? beside : beside / 2, r: named ? 0 : beside / 2, t: 0, b: 0 },
      xaxis: { ...axis, range: [-0.6, d - 0.4] },
      yaxis: { ...axis, range: [d - 0.4, -0.6], visible: named, tickvals: names.map((_, i) => i), ticktext: names.map(short), tickfont: { size: 10 }, ticks: "" },
    };
    return { traces, layout };
  }

  // A square around each block, one line with breaks.
  outlines() {
    const labels = this.message.labels[this.level];
    const line = { x: [], y: [] };
    for (let start = 0; start < labels.length;) {
      let end = start + 1;
      while (end < labels.length && labels[end] === labels[start]) end += 1;
      const [a, b] = [start - 0.5, end - 0.5];
      if (end - start > 1) {
        line.x.push(a, b, b, a, a, null);
        line.y.push(a, a, b, b, a, null);
      }
      start = end;
    }
    return line;
  }

  say(i, j) {
    const { names } = this.message;
    if (i < 0 || j < 0 || i >= names.length || j >= names.length) return;
    this.cursor = [i, j];
    const value = number(this.entry(i, j));
    $("pair").textContent = i === j ? `Variance of ${names[i]}: ${value}` : `${names[i]} × ${names[j]}: ${value}`;
  }

  key(event) {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step || !this.message) return;
    event.preventDefault();
    this.say(this.cursor[0] + step[0], this.cursor[1] + step[1]);
  }
}
