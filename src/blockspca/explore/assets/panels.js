// Lists beside the components: constraints, prices, swaps, sets, stability, history.
import { Bars } from "./bars.js";
import { $, fill, h, percent, plural } from "./dom.js";
import { featureButtons } from "./components.js";

const frequencies = new Bars();
const names = (features) => features.map((feature) => feature[1]).join(", ");

export function showFound(message, store) {
  if (message.text.trim() !== $("search").value.trim()) return;
  const rows = message.features.map((feature) => h("li", { class: "feature" },
    h("span", { class: "name", title: feature[1] }, feature[1]),
    h("span", { class: "buttons" }, featureButtons(feature, store, "found"))));
  fill($("found"), rows.length || !message.text.trim() ? rows : h("li", { class: "soft" }, "No feature has such a name."));
}

export function showChosen(store, nameOf) {
  const row = (field, words) => (index) => h("li", { class: "feature" },
    h("span", { class: "name" }, `${nameOf(index)} ${words}`),
    h("button", {
      type: "button", class: "small", "aria-label": `Remove: ${nameOf(index)} ${words}`, data: { key: `chosen ${field} ${index}` },
      onclick: () => store.change({ [field]: store.state[field].filter((i) => i !== index) }, `${nameOf(index)} no longer ${words}`),
    }, "remove"));
  fill($("chosen"), store.state.include.map(row("include", "kept in")), store.state.exclude.map(row("exclude", "left out")));
}

export function showPrices(message) {
  const rows = message.rows.map((row) => h("tr", {},
    h("th", { scope: "row" }, row.constraint),
    h("td", {}, percent(row.share), row.proved ? "" : h("span", { class: "soft" }, ` (${percent(row.least)} to ${percent(row.most)})`))));
  fill($("prices"), rows);
  $("price").hidden = false;
}

export function showSwaps(message) {
  fill($("swaps"), message.rows.map((row) => h("li", {},
    h("b", {}, names([row.without])), row.in.length ? " for " : " left out", h("b", {}, names(row.in)),
    ` costs ${percent(row.cost)}`,
    row.out.length > 1 ? h("span", { class: "soft" }, `; ${names(row.out.filter((f) => f[0] !== row.without[0]))} go too`) : "",
    row.proved ? "" : h("span", { class: "soft" }, " (not proved)"))));
}

export function showSets(message) {
  const certain = message.complete ? "and no other, proved" : "at least";
  $("sets-said").textContent = `${plural(message.count, "set")} within ${percent(message.within)}, ${certain}. ` +
    (message.in_all.length ? `In all of them: ${names(message.in_all)}.` : "No feature is in all of them.");
  fill($("sets"), message.rows.map((row) => h("li", {},
    row.in.length ? [h("b", {}, names(row.in)), " for ", h("b", {}, names(row.out))] : "The best set",
    ` costs ${percent(row.cost)}`)));
}

export function showStability(message) {
  $("stability-said").textContent = `${plural(message.resamples, "resample")}; two of them share ${percent(message.overlap)} of their features. ` +
    `${percent(message.proved)} of the resamples are proved optimal.`;
  const rows = message.features.map((feature, i) => h("li", {},
    h("span", { class: "name", title: feature[1] }, feature[1]),
    h("span", { class: "value" }, percent(message.frequency[i])),
    h("span", { class: "soft" }, `${Math.round(100 * message.low[i])}–${percent(message.high[i], 2)}`)));
  fill($("stability"), h("ul", { class: "plain" }, rows), frequencies.place);
  frequencies.show(message.frequency, message);
}

export function showHistory(store) {
  const rows = store.entries.map((entry, i) => h("li", {}, h("button", {
    type: "button", class: "small", "aria-current": i === store.at ? "step" : undefined, data: { key: `history ${i}` },
    onclick: () => store.go(i),
  }, entry.words)));
  fill($("history"), rows.reverse().slice(0, 30));
  $("undo").disabled = !store.canUndo;
  $("redo").disabled = !store.canRedo;
}

const EXPORTS = [
  ["script.py", "Python script"], ["command.txt", "Command line"], ["loadings.csv", "Loadings, CSV"],
  ["scores.csv", "Scores, CSV"], ["report.html", "Report, HTML"], ["certificates.zip", "Certificates"], ["component.proof", "Proof"], ["state.json", "State, JSON"],
];

// Proofs know of no background, and of several components some schemes.
const isProvable = (state, hello) => state.weight === null
  && (state.n_components === 1 || Boolean(hello?.recordable.includes(state.scheme)));

export function showExports(state, hello) {
  const hasSamples = Boolean(hello) && !hello.matrix;
  const query = new URLSearchParams({ state: JSON.stringify(state) });
  fill($("exports"), EXPORTS.filter(([file]) => (hasSamples || file !== "scores.csv") && (isProvable(state, hello) || file !== "component.proof")).map(([file, words]) =>
    h("li", {}, h("a", { href: `export/${file}?${query}`, download: file, data: { key: file } }, words))));
}
