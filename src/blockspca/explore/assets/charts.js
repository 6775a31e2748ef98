// The path over k with its bounds, and the shares against ordinary PCA.
import { $, colour, fill, h, number, percent, same } from "./dom.js";
import { Picture, axis, faded } from "./pictures.js";

export class Path {
  constructor(onChoose) {
    this.path = null;
    this.picture = new Picture($("path"), () => this.content(), { events: { plotly_click: (event) => onChoose(event.points[0].x) } });
  }

  show(path, k) {
    const { id, ...now } = path ?? this.path ?? {};
    if (!now.k || same({ now, k }, this.shown)) return;
    this.shown = { now, k };
    this.path = now;
    this.k = k;
    const { k: all, proved } = this.path;
    $("path").setAttribute("aria-label", `Variance of the first component for k from ${all[0]} to ${all[all.length - 1]}; ` +
      `${proved.filter(Boolean).length} of ${all.length} proved optimal.`);
    this.picture.draw();
  }

  content() {
    if (!this.path) return null;
    const { k: x, objective: y, upper_bound: bounds, proved } = this.path;
    const upper = bounds.map((bound, i) => bound ?? y[i]);
    const [blue, orange, card] = ["--blue", "--orange", "--card"].map(colour);
    const here = x.indexOf(this.k);
    const quiet = { hoverinfo: "skip", type: "scatter" };
    const traces = [
      { ...quiet, x, y: upper, mode: "lines", line: { width: 0, color: blue } },
      { ...quiet, x, y, mode: "lines", line: { width: 2, color: blue }, fill: "tonexty", fillcolor: faded(blue, 0.22) },
      {
        type: "scatter", x, y, mode: "markers", cliponaxis: false,
        marker: { size: 8, color: proved.map((is) => (is ? blue : card)), line: { width: 1.5, color: blue } },
        hovertemplate: x.map((q, i) => `k = ${q}: variance ${number(y[i], 6)}, at most ${number(bounds[i], 6)}<extra></extra>`),
      },
      { ...quiet, x: here < 0 ? [] : [this.k], y: here < 0 ? [] : [y[here]], mode: "markers", marker: { size: 15, color: "rgba(0,0,0,0)", line: { width: 2.5, color: orange } } },
    ];
    const top = 1.05 * Math.max(...upper, ...y);
    const layout = {
      hovermode: "x", xaxis: axis("features k", { range: [0, Math.max(x[x.length - 1], this.k) + 0.5], showgrid: false }),
      yaxis: axis("", { range: [0, top] }),
    };
    return { traces, layout };
  }
}

export class Shares {
  constructor() {
    this.rows = [];
    this.picture = new Picture($("share"), () => this.content());
  }

  show(summary) {
    const has = summary.shares !== null;
    $("share").hidden = !has;
    fill($("share-said"), has ? [] : h("p", { class: "soft" }, "Less a background there is no total variance to be a share of."));
    if (!has) return;
    const rows = [
      ["variance", summary.shares.reduce((a, b) => a + (b ?? 0), 0), "--blue"],
      ["R²", summary.r2, "--blue"],
      ["PCA", summary.pca, "--orange"],
    ];
    if (same(rows, this.rows)) return;
    this.rows = rows;
    $("share").setAttribute("aria-label", `The components have ${percent(this.rows[0][1])} of the variance and predict ${percent(summary.r2)}; ` +
      `as many ordinary components predict ${summary.pca === null ? "an unknown share" : percent(summary.pca)}.`);
    this.picture.draw();
  }

  content() {
    const { rows } = this;
    if (!rows.length) return null;
    const y = rows.map((_, i) => i);
    const bars = { type: "bar", orientation: "h", y, width: 0.65 };
    const traces = [
      { ...bars, x: rows.map(() => 1), marker: { color: colour("--tint") }, text: rows.map(([, share]) => (share === null ? "…" : percent(share))), textposition: "outside", cliponaxis: false },
      { ...bars, x: rows.map(([, share]) => Math.max(0, Math.min(1, share ?? 0))), marker: { color: rows.map(([, , ink]) => colour(ink)) } },
    ];
    const layout = {
      barmode: "overlay", margin: { l: 66, r: 66, t: 0, b: 0 }, xaxis: { visible: false, range: [0, 1] },
      yaxis: axis("", { range: [2.5, -0.5], tickvals: y, ticktext: rows.map(([name]) => name), ticklabelstandoff: 5, showgrid: false, zeroline: false }),
    };
    return { traces, layout, config: { staticPlot: true } };
  }
}
