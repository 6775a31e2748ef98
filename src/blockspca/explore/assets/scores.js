// The samples on two axes: points, or counted cells where there are many.
import { $, colour, fill, h, number, plural, s, ticks } from "./dom.js";

const EDGE = { left: 54, right: 12, top: 12, bottom: 34 };
const CATEGORIES = 10;

export class Scores {
  constructor(connection) {
    this.connection = connection;
    this.canvas = $("canvas");
    this.message = null;
    this.at = -1;
    this.corners = [];
    this.drawing = false;
    const on = (name, action) => this.canvas.addEventListener(name, action);
    on("pointerdown", (event) => this.begin(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", () => this.end());
    on("pointercancel", () => this.end());
    on("pointerleave", () => { if (!this.drawing) this.point(-1); });
    on("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe($("scores"));
  }

  show(message) {
    this.message = message;
    this.at = -1;
    this.corners = [];
    const { points } = message;
    this.order = points ? points.x.map((_, i) => i).sort((a, b) => points.x[a] - points.x[b]) : [];
    const kind = (axis) => (axis < 0 ? "the order of the samples" : `component ${axis + 1}`);
    this.canvas.setAttribute("aria-label",
      `${plural(message.samples, "sample")}: ${kind(message.axes[0])} across, ${kind(message.axes[1])} up.` +
      (points ? " Arrow keys go from sample to sample." : ""));
    fill($("legend"), message.legend.map((name, i) => h("span", { class: `swatch ${this.shade(i)}` }, name)));
    this.draw();
  }

  shade(code) {
    if (code < 0) return "plain";
    return this.message.ordered ? `shade-${code}` : `colour-${code % CATEGORIES}`;
  }

  ink(code) { return colour(code < 0 ? "--blue" : `--${this.shade(code)}`); }

  place(x, y) {
    const [left, right, low, high] = this.message.ranges;
    const { width, height } = this.size;
    return [
      EDGE.left + ((x - left) / (right - left)) * (width - EDGE.left - EDGE.right),
      height - EDGE.bottom - ((y - low) / (high - low)) * (height - EDGE.top - EDGE.bottom),
    ];
  }

  value(px, py) {
    const [left, right, low, high] = this.message.ranges;
    const { width, height } = this.size;
    return [
      left + ((px - EDGE.left) / (width - EDGE.left - EDGE.right)) * (right - left),
      low + ((height - EDGE.bottom - py) / (height - EDGE.top - EDGE.bottom)) * (high - low),
    ];
  }

  // What there is to see, as calls of a pen; the canvas and the SVG have one each.
  paint(pen) {
    const { message } = this;
    const { width, height } = this.size;
    const [left, right, low, high] = message.ranges;
    for (const value of ticks(left, right)) pen.text(number(value), this.place(value, low)[0], height - EDGE.bottom + 16, "middle");
    for (const value of ticks(low, high)) {
      const y = this.place(left, value)[1];
      pen.line(EDGE.left, y, width - EDGE.right, y);
      pen.text(number(value), EDGE.left - 6, y + 4, "end");
    }
    const name = (axis) => (axis < 0 ? "sample" : `component ${axis + 1}`);
    pen.text(name(message.axes[0]), (EDGE.left + width) / 2, height - 4, "middle");
    pen.turned(name(message.axes[1]), 12, (height - EDGE.bottom) / 2);
    if (message.points) {
      const { x, y, colour: codes } = message.points;
      const inks = new Map();
      x.forEach((value, i) => {
        const code = codes[i];
        if (!inks.has(code)) inks.set(code, this.ink(code));
        pen.dot(...this.place(value, y[i]), x.length > 600 ? 2.2 : 3.4, inks.get(code), 0.8);
      });
    } else {
      this.paintGrid(pen);
    }
  }

  paintGrid(pen) {
    const { grid, ranges } = this.message;
    const [left, right, low, high] = ranges;
    const most = Math.log1p(Math.max(...grid.count));
    const inks = new Map();
    grid.cell.forEach((cell, i) => {
      const column = cell % grid.across;
      const row = Math.floor(cell / grid.across);
      const [x0, y1] = this.place(left + ((right - left) * column) / grid.across, low + ((high - low) * row) / grid.up);
      const [x1, y0] = this.place(left + ((right - left) * (column + 1)) / grid.across, low + ((high - low) * (row + 1)) / grid.up);
      const code = grid.colour[i];
      if (!inks.has(code)) inks.set(code, this.ink(code));
      pen.cell(x0, y0, x1 - x0, y1 - y0, inks.get(code), 0.25 + (0.75 * Math.log1p(grid.count[i])) / most);
    });
  }

  draw() {
    if (!this.message) return;
    const width = Math.max(260, $("scores").clientWidth);
    const height = Math.max(240, Math.min(460, Math.round(width * 0.62)));
    this.size = { width, height };
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.paint(new CanvasPen(context));
    this.mark(context);
  }

  mark(context) {
    if (this.corners.length > 1) {
      context.globalAlpha = 1;
      context.strokeStyle = colour("--ink");
      context.setLineDash([5, 4]);
      context.beginPath();
      this.corners.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      context.stroke();
      context.setLineDash([]);
    }
    if (this.at >= 0 && this.message.points) {
      const { x, y } = this.message.points;
      context.globalAlpha = 1;
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(...this.place(x[this.at], y[this.at]), 7, 0, 7);
      context.stroke();
    }
  }

  where(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  begin(event) {
    if (!this.message) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drawing = true;
    this.corners = [this.where(event)];
  }

  move(event) {
    if (!this.message) return;
    const [x, y] = this.where(event);
    if (this.drawing) {
      const [px, py] = this.corners[this.corners.length - 1];
      if (Math.hypot(x - px, y - py) > 3 && this.corners.length < 1500) {
        this.corners.push([x, y]);
        this.draw();
      }
      return;
    }
    if (this.message.points) this.point(this.nearest(x, y));
    else this.cell(x, y);
  }

  end() {
    if (!this.drawing) return;
    this.drawing = false;
    if (this.corners.length >= 3) this.connection.send({ type: "lasso", corners: this.corners.map(([x, y]) => this.value(x, y)) });
    else this.corners = [];
    this.draw();
  }

  nearest(px, py) {
    const { x, y } = this.message.points;
    let best = -1;
    let least = 144;
    x.forEach((value, i) => {
      const [qx, qy] = this.place(value, y[i]);
      const far = (qx - px) ** 2 + (qy - py) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  point(i) {
    if (!this.message?.points || i === this.at) return;
    this.at = i;
    this.draw();
    if (i < 0) return;
    const { x, y, names, colour: codes } = this.message.points;
    const label = codes[i] >= 0 ? `, ${this.message.legend[codes[i]]}` : "";
    $("sample").textContent = `Sample ${names[i]}: ${number(x[i])}, ${number(y[i])}${label}`;
  }

  cell(px, py) {
    const { grid, ranges } = this.message;
    const [x, y] = this.value(px, py);
    const column = Math.floor(((x - ranges[0]) / (ranges[1] - ranges[0])) * grid.across);
    const row = Math.floor(((y - ranges[2]) / (ranges[3] - ranges[2])) * grid.up);
    if (column < 0 || row < 0 || column >= grid.across || row >= grid.up) return;
    const cell = row * grid.across + column;
    if (cell === this.at) return;
    this.at = cell;
    if (grid.cell.includes(cell)) this.connection.send({ type: "cell", cell });
  }

  told(message) {
    const names = message.names.join(", ") + (message.count > message.names.length ? ", …" : "");
    const kinds = message.colours.map(([name, count]) => `${name}: ${count}`).join(", ");
    const place = message.type === "lasso" ? "inside the line" : "here";
    $("sample").textContent = `${plural(message.count, "sample")} ${place}${kinds ? ` (${kinds})` : ""}${names ? `: ${names}` : ""}`;
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !this.message?.points) return;
    event.preventDefault();
    const now = this.order.indexOf(this.at);
    const next = Math.max(0, Math.min(this.order.length - 1, now < 0 ? 0 : now + step));
    this.point(this.order[next]);
  }

  svg() {
    if (!this.message) return null;
    const { width, height } = this.size;
    const pen = new SvgPen();
    this.paint(pen);
    return s("svg", { viewBox: `0 0 ${width} ${height}` }, pen.parts);
  }
}

class CanvasPen {
  constructor(context) {
    this.c = context;
    this.c.font = "12px system-ui, sans-serif";
    this.soft = colour("--soft");
    this.grid = colour("--line");
  }
  text(text, x, y, anchor) {
    this.c.globalAlpha = 1;
    this.c.fillStyle = this.soft;
    this.c.textAlign = anchor === "middle" ? "center" : "right";
    this.c.fillText(text, x, y);
  }
  turned(text, x, y) {
    this.c.save();
    this.c.translate(x, y);
    this.c.rotate(-Math.PI / 2);
    this.text(text, 0, 0, "middle");
    this.c.restore();
  }
  line(x0, y0, x1, y1) {
    this.c.globalAlpha = 1;
    this.c.strokeStyle = this.grid;
    this.c.lineWidth = 1;
    this.c.beginPath();
    this.c.moveTo(x0, y0);
    this.c.lineTo(x1, y1);
    this.c.stroke();
  }
  dot(x, y, radius, ink, alpha) {
    this.c.globalAlpha = alpha;
    this.c.fillStyle = ink;
    this.c.beginPath();
    this.c.arc(x, y, radius, 0, 7);
    this.c.fill();
  }
  cell(x, y, width, height, ink, alpha) {
    this.c.globalAlpha = alpha;
    this.c.fillStyle = ink;
    this.c.fillRect(x, y, width + 0.5, height + 0.5);
  }
}

class SvgPen {
  constructor() {
    this.parts = [];
    this.soft = colour("--soft");
    this.grid = colour("--line");
  }
  text(text, x, y, anchor, more = {}) {
    this.parts.push(s("text", { x, y, "text-anchor": anchor, fill: this.soft, "font-size": 12, "font-family": "sans-serif", ...more }, text));
  }
  turned(text, x, y) { this.text(text, 0, 0, "middle", { transform: `translate(${x} ${y}) rotate(-90)` }); }
  line(x1, y1, x2, y2) { this.parts.push(s("line", { x1, y1, x2, y2, stroke: this.grid })); }
  dot(cx, cy, r, fill, opacity) { this.parts.push(s("circle", { cx: cx.toFixed(2), cy: cy.toFixed(2), r, fill, opacity })); }
  cell(x, y, width, height, fill, opacity) {
    const short = (v) => v.toFixed(2);
    this.parts.push(s("rect", { x: short(x), y: short(y), width: short(width), height: short(height), fill, opacity: short(opacity) }));
  }
}
