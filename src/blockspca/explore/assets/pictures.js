// Pictures, by plotly.js, which the server has from the installed package. It is loaded once the
// first components are on the page; until then pictures wait, and the page is used without them.
import { colour } from "./dom.js";

const LIBRARY = "assets/plotly.min.js";
// A picture in words is beside each; the library's own buttons are reached by no key.
const CONFIG = { displayModeBar: false, logging: 0, doubleClick: false };
// Milliseconds: while a slider moves, pictures wait for a pause, and only so long.
const PAUSE = 150;
const LATEST = 600;

const all = new Set();
const waiting = new Set();
let library = null;
let drawing = false;
let quiet = 0; // when the pause after the last question is over
let timer = 0;
let drawn = () => {};

export const whenDrawn = (action) => { drawn = action; };

export function loadLibrary(onFailure) {
  if (library || document.querySelector(`script[src="${LIBRARY}"]`)) return;
  const script = document.createElement("script");
  script.src = LIBRARY;
  script.addEventListener("load", () => { library = window.Plotly; next(); });
  script.addEventListener("error", onFailure);
  document.head.append(script);
}

// Whether all is drawn that can be.
export const state = () => (!library ? "waiting" : drawing || waiting.size ? "drawing" : "drawn");

export const redraw = () => { for (const picture of all) picture.draw(); };

export const hold = () => { quiet = performance.now() + PAUSE; };

// One picture at a time, in moments without work: a slider that moves on comes first.
const idle = window.requestIdleCallback ?? ((action) => setTimeout(action, 0));

function next() {
  if (!library || drawing || !waiting.size) return;
  const due = (picture) => (picture.urgent ? 0 : Math.min(quiet, picture.since + LATEST));
  const picture = [...waiting].reduce((first, other) => (due(other) < due(first) ? other : first));
  const wait = due(picture) - performance.now();
  clearTimeout(timer);
  if (wait > 0) { timer = setTimeout(next, wait); return; }
  drawing = true;
  idle(async () => {
    waiting.delete(picture);
    try { await picture.render(); }
    catch (error) { console.error(error); } // one that fails does not stop the others
    finally { drawing = false; }
    if (waiting.size) next(); else drawn();
  }, { timeout: PAUSE });
}

export class Picture {
  // What is drawn is asked for when it is drawn: `content` gives { traces, layout, config } or null.
  constructor(place, content, { events = {}, urgent = false } = {}) {
    Object.assign(this, { place, content, events, urgent, size: "", grabs: false });
    all.add(this);
    // The library keeps what a finger does from the page, which then cannot be scrolled.
    place.addEventListener("touchstart", (event) => { if (!this.grabs) event.stopPropagation(); }, { capture: true, passive: true });
    new ResizeObserver(() => { if (this.size !== this.measure()) this.draw(); }).observe(place);
  }

  measure() { return `${this.place.clientWidth} × ${this.place.clientHeight}`; }

  get shown() { return this.place.clientWidth > 0 && this.place.clientHeight > 0; }

  draw() {
    if (!waiting.has(this)) this.since = performance.now();
    waiting.add(this);
    next();
  }

  async render() {
    const made = this.shown ? this.content() : null;
    if (!made) return;
    const first = !this.size;
    this.size = this.measure();
    const layout = { ...frame(), width: this.place.clientWidth, height: this.place.clientHeight, ...made.layout };
    await library.react(this.place, made.traces, layout, { ...CONFIG, ...made.config });
    if (first) for (const [name, action] of Object.entries(this.events)) this.place.on(name, action);
  }

  // The label of a point, as if it was pointed at.
  point(where) { if (this.size) library.Fx.hover(this.place, where); }

  async svg() {
    if (!this.size) return null;
    const { clientWidth: width, clientHeight: height } = this.place;
    return library.toImage(this.place, { format: "svg", width, height, imageDataOnly: true });
  }

  forget() {
    all.delete(this);
    waiting.delete(this);
    if (this.size) library.purge(this.place);
  }
}

// The library reads some markup in texts; names are shown as they are.
export const literal = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const faded = (ink, alpha) => ink.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);

// Cells with (hardly) a gap: without one the library styles their image in a way that the page's
// policy refuses.
export const CELLS = { type: "heatmap", xgap: 0.01, ygap: 0.01, showscale: false, hoverinfo: "none", hoverongaps: false };

// -- what all pictures have alike, in the colours of the theme -----------------------------

function frame() {
  const [card, ink, line, soft] = ["--card", "--ink", "--line", "--soft"].map(colour);
  return {
    paper_bgcolor: card, plot_bgcolor: card, showlegend: false, dragmode: false, hovermode: false,
    margin: { l: 54, r: 12, t: 12, b: 42 },
    font: { family: "system-ui, sans-serif", size: 12, color: soft },
    hoverlabel: { bgcolor: card, bordercolor: line, font: { color: ink }, align: "left" },
  };
}

export function axis(title, more = {}) {
  const line = colour("--line");
  return { title: { text: title, standoff: 6 }, gridcolor: line, zerolinecolor: line, fixedrange: true, nticks: 7, ...more };
}
