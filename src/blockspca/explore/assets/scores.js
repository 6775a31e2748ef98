// The samples on two axes: points, or counted cells where there are many.
import { $, colour, fill, h, number, plural } from "./dom.js";
import { CELLS, Picture, axis, faded, literal } from "./pictures.js";

const CORNERS = 1500; // of a lasso; the server takes some more
const component = (axis) => (axis < 0 ? "sample" : `component ${axis + 1}`);

export class Scores {
  constructor(connection) {
    this.connection = connection;
    this.message = null;
    this.at = -1;
    this.picture = new Picture($("scores"), () => this.content(), {
      events: {
        plotly_hover: (event) => this.pointed(event.points[0].pointNumber),
        plotly_selected: (event) => this.lasso(event?.lassoPoints),
      },
    });
    $("scores").addEventListener("keydown", (event) => this.key(event));
    // A finger that draws cannot scroll the page: it draws where that is asked for.
    this.draws = !matchMedia("(pointer: coarse)").matches;
    $("draws").hidden = this.draws;
    $("draws").addEventListener("click", () => {
      this.picture.grabs = this.draws = !this.draws;
      $("draws").setAttribute("aria-pressed", String(this.draws));
      this.picture.draw();
    });
  }

  show(message) {
    this.message = message;
    this.at = -1;
    const { points, grid } = message;
    const places = points ? points.x : grid.cell.map((cell) => cell % grid.across);
    this.order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
    const kind = (axis) => (axis < 0 ? "the order of the samples" : `component ${axis + 1}`);
    $("scores").setAttribute("aria-label",
      `${plural(message.samples, "sample")}: ${kind(message.axes[0])} across, ${kind(message.axes[1])} up. ` +
      `Arrow keys go from ${points ? "sample to sample" : "cell to cell"}.`);
    fill($("legend"), message.legend.map((name, i) => h("span", { class: `swatch ${this.shade(i)}` }, name)));
    this.picture.draw();
  }

  shade(code) {
    if (code < 0) return "plain";
    return this.message.ordered ? `shade-${code}` : `colour-${code}`;
  }

  // The colour of each code that occurs.
  inks(codes) {
    return new Map([...new Set(codes)].sort((a, b) => a - b).map((code) => [code, colour(code < 0 ? "--blue" : `--${this.shade(code)}`)]));
  }

  content() {
    const { message } = this;
    if (!message) return null;
    const [left, right, low, high] = message.ranges;
    const layout = {
      dragmode: this.draws && "lasso", hovermode: "closest", newselection: { line: { color: colour("--ink"), width: 1, dash: "dash" } },
      xaxis: axis(component(message.axes[0]), { range: [left, right], showgrid: false, zeroline: false }),
      yaxis: axis(component(message.axes[1]), { range: [low, high], zeroline: false }),
    };
    return { traces: message.points ? [this.points()] : this.cells(), layout };
  }

  points() {
    const { x, y, names, colour: codes } = this.message.points;
    const inks = this.inks(codes);
    return {
      type: "scatter", mode: "markers", x, y, text: names.map((name, i) => literal(name + this.label(i))),
      hovertemplate: "%{text}<extra></extra>",
      marker: { size: x.length > 600 ? 5 : 7, opacity: 0.8, color: codes.map((code) => inks.get(code)) },
    };
  }

  // A cell's number is the place of its colour, and a part that grows with its samples.
  cells() {
    const { grid, ranges: [left, right, low, high] } = this.message;
    const inks = this.inks(grid.colour);
    const place = new Map([...inks.keys()].map((code, i) => [code, i]));
    const most = Math.log1p(Math.max(...grid.count));
    const z = Array.from({ length: grid.up }, () => Array(grid.across).fill(null));
    grid.cell.forEach((cell, i) => {
      z[Math.floor(cell / grid.across)][cell % grid.across] = place.get(grid.colour[i]) + (0.999 * Math.log1p(grid.count[i])) / most;
    });
    const [dx, dy] = [(right - left) / grid.across, (high - low) / grid.up];
    const scale = [...inks.values()].flatMap((ink, i) => [[i / inks.size, faded(ink, 0.25)], [(i + 1 - 1e-6 * (i + 1 < inks.size)) / inks.size, ink]]);
    return [{ ...CELLS, z, x0: left + dx / 2, dx, y0: low + dy / 2, dy, zmin: 0, zmax: inks.size, colorscale: scale }];
  }

  label(i) {
    const code = this.message.points.colour[i];
    return code >= 0 ? `, ${this.message.legend[code]}` : "";
  }

  // A sample, or the row and column of a cell.
  pointed(which) {
    if (this.message.points) this.say(which);
    else this.ask(which[0] * this.message.grid.across + which[1]);
  }

  say(i) {
    this.at = i;
    const { x, y, names } = this.message.points;
    $("sample").textContent = `Sample ${names[i]}: ${number(x[i])}, ${number(y[i])}${this.label(i)}`;
  }

  ask(cell) {
    const i = this.message.grid.cell.indexOf(cell);
    if (i < 0 || i === this.at) return;
    this.at = i;
    this.connection.send({ type: "cell", cell });
  }

  lasso(line) {
    if (!line) return;
    const every = Math.ceil(line.x.length / CORNERS);
    const corners = line.x.map((x, i) => [x, line.y[i]]).filter((_, i) => i % every === 0);
    if (corners.length >= 3) this.connection.send({ type: "lasso", corners });
  }

  told(message) {
    const names = message.names.join(", ") + (message.count > message.names.length ? ", …" : "");
    const kinds = message.colours.map(([name, count]) => `${name}: ${count}`).join(", ");
    const place = message.type === "lasso" ? "inside the line" : "here";
    $("sample").textContent = `${plural(message.count, "sample")} ${place}${kinds ? ` (${kinds})` : ""}${names ? `: ${names}` : ""}`;
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !this.message) return;
    event.preventDefault();
    const now = this.order.indexOf(this.at);
    const next = this.order[Math.max(0, Math.min(this.order.length - 1, now < 0 ? 0 : now + step))];
    if (this.message.points) {
      this.say(next);
      this.picture.point([{ curveNumber: 0, pointNumber: next }]);
    } else {
      this.ask(this.message.grid.cell[next]);
    }
  }
}
