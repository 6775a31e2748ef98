// Bars beside the rows of a list: loadings, frequencies. Names and numbers are in the rows.
import { colour, h } from "./dom.js";
import { Picture } from "./pictures.js";

const narrow = matchMedia("(max-width: 50rem)"); // a bar is below its row

export class Bars {
  constructor() {
    this.place = h("div", { class: "bars", "aria-hidden": "true" });
    this.values = [];
    this.picture = new Picture(this.place, () => this.content(), { urgent: true }); // a part of the answer
  }

  // With `span`, lines from its lower to its upper ends.
  show(values, span = null) {
    Object.assign(this, { values, span });
    this.picture.draw();
  }

  content() {
    const { values, span } = this;
    if (!values.length) return null;
    const most = Math.max(...values.map(Math.abs), ...(span?.high ?? []), 1e-12);
    const least = values.some((value) => value < 0) ? -most : 0;
    const [plus, minus, ink] = ["--blue", "--orange", "--ink"].map(colour);
    const bars = {
      type: "bar", orientation: "h", x: values, y: values.map((_, i) => i),
      marker: { color: values.map((value) => (value < 0 ? minus : plus)) },
      ...(narrow.matches ? { width: 0.12, offset: 0.36 } : { width: 0.5 }),
    };
    if (span) {
      bars.error_x = {
        type: "data", symmetric: false, color: ink, thickness: 1.2, width: 2,
        array: span.high.map((high, i) => high - values[i]), arrayminus: span.low.map((low, i) => values[i] - low),
      };
    }
    const layout = {
      margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { visible: false, range: [1.02 * least, 1.02 * most] },
      yaxis: { visible: false, range: [values.length - 0.5, -0.5] },
    };
    return { traces: [bars], layout, config: { staticPlot: true } };
  }
}
