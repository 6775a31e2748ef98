// The page: controls change the state, the state is asked, answers are shown.
import { Blocks } from "./blocks.js";
import { Path, Shares } from "./charts.js";
import { showComponents } from "./components.js";
import { Connection } from "./connection.js";
import { $, fill, h, number, percent, plural, save } from "./dom.js";
import * as panels from "./panels.js";
import { hold, loadLibrary, redraw, state as picturesAre, whenDrawn } from "./pictures.js";
import { Scores } from "./scores.js";
import { DEFAULT, Store } from "./store.js";

const SCHEMES = {
  disjoint: "No feature is used twice.",
  projection: "What earlier components have is projected out; features may be used again.",
  orthogonal: "Components are orthogonal.",
  hotelling: "Earlier components are subtracted; for comparison with other software.",
  residual: "Each component explains most of what earlier scores leave.",
  "residual-disjoint": "Most of what earlier scores leave, with features of its own.",
  uncorrelated: "Scores are uncorrelated.",
};

let hello = null;
let asked = 0;
const known = new Map(); // names of features by index
const store = new Store((state) => changed(state));
const connection = new Connection((message) => heard(message), () => lost());
const scores = new Scores(connection);
const blocks = new Blocks(store);
const path = new Path((k) => chooseK(k));
const shares = new Shares();
const pictures = { path: path.picture, share: shares.picture, scores: scores.picture, heat: blocks.picture };
const nameOf = (index) => known.get(index) ?? `feature ${index}`;

// -- out: a state becomes a question ---------------------------------------------

function changed(state) {
  showControls(state);
  panels.showHistory(store);
  panels.showChosen(store, nameOf);
  panels.showExports(state, hello);
  blocks.update();
  $("alert").hidden = true;
  if (hello) ask(state);
}

function ask(state) {
  asked += 1;
  hold();
  performance.mark(`asked ${asked}`);
  $("components").classList.add("stale");
  offer(false);
  working("…");
  const unknown = [...state.include, ...state.exclude].filter((i) => !known.has(i));
  if (unknown.length) connection.send({ type: "names", features: unknown });
  connection.send({ type: "ask", id: asked, state });
}

// -- in: messages are shown --------------------------------------------------------

function heard(message) {
  if (message.type === "hello") { greet(message); return; }
  remember(message);
  if (message.id !== asked && !["found", "names"].includes(message.type)) return;
  showing[message.type]?.(message);
}

function remember(message) {
  for (const feature of message.features ?? []) known.set(feature[0], feature[1]);
  for (const component of message.components ?? []) for (const feature of component.features) known.set(feature[0], feature[1]);
}

const showing = {
  components(message) {
    showComponents(message, store);
    measured("answer");
    requestAnimationFrame(() => loadLibrary(() => complain("The pictures could not be loaded: load the page again. Components and exports work without them.")));
    if (message.complete) { offer(true); rested(); }
  },
  summary: (message) => shares.show(message),
  scores: (message) => scores.show(message),
  path: (message) => path.show(message, store.state.k),
  progress(message) {
    const gap = message.gap === null ? "looking" : `no other choice is more than ${percent(message.gap)} better`;
    working(`Component ${message.component + 1}: variance ${number(message.objective)}, ${gap}`, message.gap);
  },
  stopped() { rested("Stopped; this is what is known."); },
  settled() { document.body.dataset.settled = asked; },
  refused(message) { rested(""); complain(message.message); },
  found: (message) => panels.showFound(message, store),
  names: () => { panels.showChosen(store, nameOf); },
  lasso: (message) => scores.told(message),
  cell: (message) => scores.told(message),
  prices: panels.showPrices,
  swaps(message) { panels.showSwaps(message); rested(); },
  sets(message) { panels.showSets(message); rested(); },
  drawn: (message) => working(`${message.done} of ${message.total} resamples`, 1 - message.done / message.total),
  stability(message) { panels.showStability(message); rested(); },
  blocks(message) { blocks.show(message); rested(); },
};

function measured(name) {
  const mark = performance.getEntriesByName(`asked ${asked}`)[0];
  if (mark) performance.measure(name, { start: mark.startTime, detail: asked });
  if (performance.getEntriesByName(name).length > 2000) { performance.clearMeasures(name); performance.clearMarks(); }
}

function working(words, gap = null) {
  $("said").textContent = words;
  $("stop").disabled = false;
  if (gap === null) $("gap").removeAttribute("value");
  else $("gap").value = Math.max(0, 1 - gap);
}

function rested(words) {
  $("said").textContent = words ?? $("components").querySelector(".soft, .badge")?.textContent ?? "";
  $("stop").disabled = true;
  $("gap").value = 1;
  document.body.dataset.answered = asked;
}

// What is asked about components is offered once there are some.
function offer(on) {
  for (const id of ["ask-swaps", "ask-sets", "ask-blocks"]) $(id).disabled = !on;
  $("ask-stability").disabled = !on || hello.matrix;
}

function complain(words) {
  $("alert").textContent = words;
  $("alert").hidden = false;
}

function lost() {
  hello = null;
  complain("The connection is lost. If blockspca has ended, start it again; what you saved is safe, and the link holds this state.");
}

// -- the first message ---------------------------------------------------------------

function greet(message) {
  hello = message;
  remember({ features: message.named });
  $("alert").hidden = true;
  document.title = `Explore: ${message.name}`;
  $("name").textContent = message.name;
  $("size").textContent = message.matrix ? `${plural(message.features, "feature")}, a matrix`
    : `${plural(message.samples, "sample")} × ${plural(message.features, "feature")}`;
  $("k").max = message.path_k;
  $("k-number").max = message.max_k;
  $("n_components").max = message.max_components;
  fill($("scheme"), message.schemes.map((name) => h("option", { value: name }, name)));
  $("contrast").hidden = !message.background;
  $("group-limits").hidden = !message.groups;
  $("scale").disabled = message.matrix;
  $("scores-card").hidden = message.matrix;
  if (store.at < 0) {
    const linked = Store.fromHash(location.hash);
    store.begin(linked ?? message.state, linked ? "from the link" : "start");
  } else {
    changed(store.state);
  }
}

// -- controls ------------------------------------------------------------------------

function showControls(state) {
  $("k").value = state.k;
  for (const id of ["k-number", "n_components", "seconds"]) if (document.activeElement !== $(id)) $(id).value = state[id === "k-number" ? "k" : id];
  $("k").setAttribute("aria-valuetext", plural(state.k, "feature"));
  $("scheme").value = state.scheme;
  $("scheme-why").textContent = state.n_components > 1 ? SCHEMES[state.scheme] ?? "" : "";
  $("scale").checked = state.scale;
  $("nonnegative").checked = state.nonnegative;
  $("contrast-on").checked = state.weight !== null;
  if (state.weight !== null) $("weight").value = state.weight;
  $("groups-on").checked = state.max_per_group !== null;
  if (state.max_per_group !== null) $("max_per_group").value = state.max_per_group;
  const constrained = state.include.length || state.exclude.length || state.max_per_group !== null || state.nonnegative;
  $("clear").hidden = !constrained;
  if (!constrained) $("price").hidden = true;
  path.show(null, state.k);
  showAxes(state);
}

function showAxes(state) {
  const axes = Array.from({ length: state.n_components }, (_, j) => [j, `component ${j + 1}`]).concat([[-1, "order of the samples"]]);
  ["axis-x", "axis-y"].forEach((id, i) => {
    fill($(id), axes.map(([value, name]) => h("option", { value }, name)));
    $(id).value = state.axes[i] < state.n_components ? state.axes[i] : -1;
  });
  const labels = [["", "none"], ...(hello?.labels ?? []).map((name) => [name, name]),
    ...axes.slice(0, -1).map(([j]) => [`component ${j + 1}`, `component ${j + 1}`])];
  fill($("label"), labels.map(([value, name]) => h("option", { value }, name)));
  $("label").value = state.label ?? "";
}

const chooseK = (k, dragging = false) => store.change({ k }, `k = ${k}`, dragging);

// A number from a field; null where it is none, or out of range.
function entered(id) {
  const field = $(id);
  const value = field.valueAsNumber;
  const ok = Number.isFinite(value) && field.checkValidity();
  field.setAttribute("aria-invalid", String(!ok));
  return ok ? value : null;
}

function onNumber(id, action) {
  $(id).addEventListener("change", () => { const value = entered(id); if (value !== null) action(value); });
}

function listen() {
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("k").addEventListener("input", () => chooseK(Number($("k").value), true));
  $("k").addEventListener("change", () => store.settle());
  onNumber("k-number", (k) => chooseK(Math.round(k)));
  onNumber("n_components", (n) => store.change({ n_components: Math.round(n) }, plural(Math.round(n), "component")));
  onNumber("seconds", (seconds) => store.change({ seconds }, `${seconds} s for a proof`));
  onNumber("weight", (weight) => { if ($("contrast-on").checked) store.change({ weight }, `background weight ${weight}`); });
  onNumber("max_per_group", (most) => { if ($("groups-on").checked) store.change({ max_per_group: Math.round(most) }, `at most ${Math.round(most)} of a group`); });
  const check = (id, action) => $(id).addEventListener("change", () => action($(id).checked));
  check("scale", (scale) => store.change({ scale }, scale ? "scaled" : "not scaled"));
  check("nonnegative", (nonnegative) => store.change({ nonnegative }, nonnegative ? "no negative loading" : "any sign"));
  check("contrast-on", (on) => store.change({ weight: on ? entered("weight") ?? 1 : null }, on ? "with background" : "without background"));
  check("groups-on", (on) => store.change({ max_per_group: on ? Math.round(entered("max_per_group") ?? 1) : null }, on ? "groups limited" : "groups not limited"));
  $("scheme").addEventListener("change", () => store.change({ scheme: $("scheme").value }, `scheme ${$("scheme").value}`));
  ["axis-x", "axis-y"].forEach((id, i) => $(id).addEventListener("change", () => {
    const axes = [...store.state.axes];
    axes[i] = Number($(id).value);
    store.change({ axes }, "axes");
  }));
  $("label").addEventListener("change", () => store.change({ label: $("label").value || null }, `colour ${$("label").value || "none"}`));
  $("search").addEventListener("input", () => connection.send({ type: "search", text: $("search").value }));
  $("clear").addEventListener("click", () => store.change({ include: [], exclude: [], max_per_group: null, nonnegative: false }, "no constraints"));
  $("stop").addEventListener("click", () => connection.send({ type: "stop" }));
  $("undo").addEventListener("click", () => store.undo());
  $("redo").addEventListener("click", () => store.redo());
  $("link").addEventListener("click", copyLink);
  listenPanels();
  window.addEventListener("hashchange", () => {
    const linked = Store.fromHash(location.hash);
    if (linked) store.change({ ...DEFAULT, ...linked }, "from the link");
  });
  document.addEventListener("keydown", shortcut);
}

function listenPanels() {
  const button = (id, words, message) => $(id).addEventListener("click", () => { const content = message(); if (content) { working(words); connection.send(content); } });
  button("ask-swaps", "Finding swaps …", () => ({ type: "swaps", component: 0 }));
  button("ask-sets", "Listing sets …", () => { const within = entered("within"); return within === null ? null : { type: "sets", within: within / 100 }; });
  button("ask-stability", "Drawing samples …", () => { const m = entered("resamples"); return m === null ? null : { type: "stability", resamples: Math.round(m) }; });
  button("ask-blocks", "Finding blocks …", () => ({ type: "blocks" }));
  for (const one of document.querySelectorAll("button.svg")) one.addEventListener("click", () => savePicture(one.dataset.picture));
}

async function savePicture(name) {
  const svg = await pictures[name].svg();
  if (svg) save(svg, `${name}.svg`, "image/svg+xml");
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    $("said").textContent = "The link is copied.";
  } catch {
    $("said").textContent = "Copy the address of this page: it holds the state.";
  }
}

function shortcut(event) {
  const typing = event.target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
  const control = event.ctrlKey || event.metaKey;
  if (control && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    if (event.shiftKey) store.redo(); else store.undo();
  } else if (control && event.key.toLowerCase() === "y" && !typing) {
    event.preventDefault();
    store.redo();
  } else if (event.key === "/" && !typing && !control) {
    event.preventDefault();
    $("search").focus();
  }
}

// -- light and dark --------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = `Theme: ${name}`;
  try { localStorage.setItem("theme", name); } catch { /* a browser may forbid it */ }
  redraw();
}

function begin() {
  listen();
  whenDrawn(() => measured("pictures"));
  let chosen = "auto";
  try { chosen = localStorage.getItem("theme") ?? "auto"; } catch { /* as above */ }
  theme(THEMES.includes(chosen) ? chosen : "auto");
  $("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
  if (matchMedia("(max-width: 50rem)").matches) $("more").open = false; // components first
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

begin();
// For tests and the curious: the state, and the answer's number.
window.explorer = {
  get state() { return store.state; },
  get asked() { return asked; },
  get entries() { return store.entries.map((entry) => entry.words); },
  get pictures() { return picturesAre(); },
};
