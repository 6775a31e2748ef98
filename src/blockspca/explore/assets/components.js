// The components: loadings as bars, what is proved, and buttons to keep or leave out.
import { Bars } from "./bars.js";
import { $, fill, h, number, percent } from "./dom.js";

const bars = []; // of each component, kept from answer to answer

export function featureButtons(feature, store, where) {
  const [index, name] = feature;
  const { include, exclude } = store.state;
  const kept = include.includes(index);
  const out = exclude.includes(index);
  return [
    h("button", {
      type: "button", class: "small", "aria-pressed": String(kept), data: { key: `${where} keep ${index}` },
      "aria-label": `Keep ${name} in`, title: "Keep it in", onclick: () => toggle(store, "include", feature),
    }, "keep"),
    h("button", {
      type: "button", class: "small", "aria-pressed": String(out), data: { key: `${where} drop ${index}` },
      "aria-label": `Leave ${name} out`, title: "Leave it out", onclick: () => toggle(store, "exclude", feature),
    }, "drop"),
  ];
}

export function toggle(store, field, [index, name]) {
  const other = field === "include" ? "exclude" : "include";
  const present = store.state[field].includes(index);
  const next = store.state[field].filter((i) => i !== index);
  if (!present) next.push(index);
  const patch = { [field]: next.sort((a, b) => a - b), [other]: store.state[other].filter((i) => i !== index) };
  const action = field === "include" ? "kept in" : "left out";
  store.change(patch, present ? `${name} no longer ${action}` : `${name} ${action}`);
}

export function showComponents(message, store) {
  for (const one of bars.splice(message.components.length)) one.picture.forget();
  fill($("components"), message.components.map((component, j) => card(component, j, store)));
  message.components.forEach((component, j) => bars[j].show(component.loadings));
  $("components").classList.remove("stale");
}

function card(component, j, store) {
  bars[j] ??= new Bars();
  const rows = component.features.map((feature, i) => h("li", { data: { feature: feature[0] } },
    h("span", { class: "name", title: feature[2] ? `${feature[1]}, group ${feature[2]}` : feature[1] }, feature[1]),
    h("span", { class: "value" }, component.loadings[i].toFixed(3)),
    h("span", { class: "buttons" }, featureButtons(feature, store, `c${j}`)),
  ));
  return h("article", { class: "card component", "aria-labelledby": `component-${j}` },
    h("div", { class: "bar" }, h("h2", { id: `component-${j}` }, `Component ${j + 1}`),
      h("span", { class: component.proved ? "badge proved" : "badge" }, component.proved ? "proved optimal" : `gap ${percent(component.gap)}`)),
    h("p", { class: "facts" },
      "Variance ", h("b", { class: "objective" }, number(component.objective, 6)),
      ", at most ", h("b", { class: "upper-bound" }, number(component.upper_bound, 6)), " is possible."),
    component.proved ? null : h("p", { class: "soft" }, `${component.words[0].toUpperCase()}${component.words.slice(1)}.`),
    h("div", { class: "rows loadings" }, h("ol", { class: "plain" }, rows), bars[j].place),
  );
}
