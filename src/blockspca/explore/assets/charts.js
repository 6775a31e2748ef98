// Small pictures in SVG: the path over k, and the shares against ordinary PCA.
import { $, fill, h, number, percent, s, ticks } from "./dom.js";

const WIDTH = 440;
const HEIGHT = 250;
const EDGE = { left: 56, right: 14, top: 12, bottom: 40 };

export function showPath(path, k, onChoose) {
  const values = path.upper_bound.map((bound, i) => bound ?? path.objective[i]);
  const top = 1.05 * Math.max(...values, ...path.objective);
  const last = Math.max(path.k[path.k.length - 1], k);
  const x = (value) => EDGE.left + (value / last) * (WIDTH - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const parts = [];
  for (const value of ticks(0, top)) {
    parts.push(s("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(value), y2: y(value), class: "grid" }));
    parts.push(s("text", { x: EDGE.left - 6, y: y(value) + 4, class: "tick end" }, number(value)));
  }
  for (const value of ticks(0, last, true)) {
    parts.push(s("text", { x: x(value), y: HEIGHT - EDGE.bottom + 17, class: "tick mid" }, number(value)));
  }
  parts.push(s("text", { x: (EDGE.left + WIDTH) / 2, y: HEIGHT - 6, class: "tick mid" }, "features k"));
  const low = path.k.map((q, i) => `${x(q)},${y(path.objective[i])}`);
  const high = path.k.map((q, i) => `${x(q)},${y(values[i])}`);
  parts.push(s("polygon", { points: [...low, ...high.slice().reverse()].join(" "), class: "band" }));
  parts.push(s("polyline", { points: low.join(" "), class: "line" }));
  const here = path.k.indexOf(k);
  if (here >= 0) parts.push(s("circle", { cx: x(k), cy: y(path.objective[here]), r: 9, class: "here" }));
  path.k.forEach((q, i) => {
    const words = `k = ${q}: variance ${number(path.objective[i], 6)}, at most ${number(path.upper_bound[i], 6)}`;
    parts.push(s("circle", {
      cx: x(q), cy: y(path.objective[i]), r: 4.5, class: path.proved[i] ? "dot" : "dot open",
      "data-k": q, onclick: () => onChoose(q),
    }, s("title", {}, words)));
  });
  const proved = path.proved.filter(Boolean).length;
  const label = `Variance of the first component for k from ${path.k[0]} to ${path.k[path.k.length - 1]}; ${proved} of ${path.k.length} proved optimal.`;
  fill($("path"), s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "chart" }, parts));
}

export function showShares(summary) {
  if (summary.shares === null) {
    fill($("share"), h("p", { class: "soft" }, "Less a background there is no total variance to be a share of."));
    return;
  }
  const rows = [
    ["variance", summary.shares.reduce((a, b) => a + (b ?? 0), 0), "sparse"],
    ["R²", summary.r2, "sparse"],
    ["PCA", summary.pca, "dense"],
  ];
  const left = 74;
  const width = WIDTH - left - 76;
  const parts = [];
  rows.forEach(([name, share, kind], i) => {
    const y = 10 + 40 * i;
    const wide = width * Math.max(0, Math.min(1, share ?? 0));
    parts.push(s("text", { x: left - 8, y: y + 18, class: "tick end" }, name));
    parts.push(s("rect", { x: left, y, width, height: 26, class: "back" }));
    parts.push(s("rect", { x: left, y, width: wide, height: 26, class: kind }));
    parts.push(s("text", { x: left + width + 8, y: y + 18, class: "tick" }, share === null ? "…" : percent(share)));
  });
  const label = `The components have ${percent(rows[0][1])} of the variance and predict ${percent(summary.r2)}; ` +
    `as many ordinary components predict ${summary.pca === null ? "an unknown share" : percent(summary.pca)}.`;
  fill($("share"), s("svg", { viewBox: `0 0 ${WIDTH} 132`, role: "img", "aria-label": label, class: "chart" }, parts));
}
