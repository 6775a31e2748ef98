// The scores: other components on the axes, arrows, labels to hide, samples to read.
(function () {
  const data = pageData.scores;
  const svg = document.getElementById("scores");
  if (!data || !svg) return;
  const width = svg.viewBox.baseVal.width;
  const height = svg.viewBox.baseVal.height;
  const [left, right, top, bottom] = data.margins;
  const frame = { left, right: width - right, top, bottom: height - bottom };
  const axes = svg.querySelector(".axes");
  const dots = [...svg.querySelectorAll(".points use")];
  const arrows = svg.querySelector(".arrows");
  const cursor = svg.querySelector(".cursor");
  const readout = document.getElementById("sample");
  const chosen = { x: document.getElementById("axis-x"), y: document.getElementById("axis-y") };
  const wanted = document.getElementById("arrows");
  const hiddenGroups = new Set();
  const MOST_NAMES = 14;
  const LONGEST = 22;

  const axis = (way) => Number(chosen[way].value);
  function place(way, value) {
    const { low, high } = data.axes[axis(way)];
    const share = (value - low) / (high - low);
    return way === "x"
      ? frame.left + share * (frame.right - frame.left)
      : frame.bottom - share * (frame.bottom - frame.top);
  }

  function text(attributes, words) {
    element("text", attributes, axes).textContent = words;
  }

  function drawAxes() {
    axes.replaceChildren();
    for (const [value, words] of data.axes[axis("x")].ticks) {
      text({ x: place("x", value), y: frame.bottom + 16, class: "tick mid" }, words);
    }
    for (const [value, words] of data.axes[axis("y")].ticks) {
      const y = place("y", value);
      element("line", { x1: frame.left, x2: frame.right, y1: y, y2: y, class: "grid" }, axes);
      text({ x: frame.left - 6, y: y + 4, class: "tick end" }, words);
    }
    const middle = (frame.top + frame.bottom) / 2;
    text({ x: (frame.left + frame.right) / 2, y: height - 5, class: "tick mid" },
      `component ${axis("x") + 1}`);
    text({ transform: `translate(12 ${middle}) rotate(-90)`, class: "tick mid" },
      `component ${axis("y") + 1}`);
  }

  function drawDots() {
    const across = data.columns[axis("x")];
    const up = data.columns[axis("y")];
    dots.forEach((dot, i) => {
      dot.setAttribute("x", place("x", across[i]).toFixed(2));
      dot.setAttribute("y", place("y", up[i]).toFixed(2));
      dot.setAttribute("visibility", hiddenGroups.has(data.group[i]) ? "hidden" : "visible");
    });
    cursor.setAttribute("visibility", "hidden");
  }

  // As long as the frame allows: a correlation of 1 has the same length in both ways.
  function arrowLength(shown, origin) {
    let most = 0.48 * Math.min(frame.right - frame.left, frame.bottom - frame.top);
    for (const { dx, dy } of shown) {
      const across = dx > 0 ? frame.right - origin.x : origin.x - frame.left;
      const up = dy > 0 ? origin.y - frame.top : frame.bottom - origin.y;
      if (dx) most = Math.min(most, across / Math.abs(dx));
      if (dy) most = Math.min(most, up / Math.abs(dy));
    }
    return most;
  }

  function drawArrows() {
    arrows.replaceChildren();
    if (!wanted.checked) return;
    const [a, b] = [axis("x"), axis("y")];
    const shown = data.arrows
      .filter((arrow) => arrow.of.includes(a) || arrow.of.includes(b))
      .map((arrow) => ({ name: arrow.name, dx: arrow.values[a], dy: arrow.values[b] }))
      .sort((one, other) => Math.hypot(other.dx, other.dy) - Math.hypot(one.dx, one.dy));
    const inside = (low, value, high) => Math.max(low, Math.min(high, value));
    const origin = {
      x: inside(frame.left + 20, place("x", 0), frame.right - 20),
      y: inside(frame.top + 20, place("y", 0), frame.bottom - 20),
    };
    const length = arrowLength(shown, origin);
    for (const arrow of shown) {
      arrow.x = origin.x + length * arrow.dx;
      arrow.y = origin.y - length * arrow.dy;
      const line = { x1: origin.x, y1: origin.y, x2: arrow.x, y2: arrow.y, class: "arrow" };
      const made = element("line", line, arrows);
      element("title", {}, made).textContent =
        `${arrow.name}: correlation ${arrow.dx} with component ${a + 1}, ` +
        `${arrow.dy} with component ${b + 1}`;
      const turn = Math.atan2(arrow.y - origin.y, arrow.x - origin.x) * 180 / Math.PI;
      element("path", {
        d: "M0,0l-7,-3v6z", class: "arrow-head",
        transform: `translate(${arrow.x} ${arrow.y}) rotate(${turn})`,
      }, arrows);
    }
    nameArrows(shown.slice(0, MOST_NAMES));
  }

  // Names beside the tips, moved up or down where they would cover each other or, if a
  // little is enough for that, a tip: at the edge of the picture a name has no room beside it.
  function nameArrows(shown) {
    const taken = [];
    const sorted = shown.slice().sort((one, other) => one.y - other.y);
    for (const arrow of sorted) {
      const words = arrow.name.length > LONGEST ? arrow.name.slice(0, LONGEST - 1) + "…" : arrow.name;
      const name = element("text", { class: "arrow-name", x: arrow.x + 4, y: arrow.y + 4 }, arrows);
      name.textContent = words;
      const box = name.getBBox();
      let x = arrow.dx < 0 ? arrow.x - 4 - box.width : arrow.x + 4;
      x = Math.max(2, Math.min(width - 2 - box.width, x));
      const covers = (y) => taken.some((other) =>
        x < other.x + other.width && other.x < x + box.width &&
        Math.abs(y - other.y) < box.height * 0.92);
      const hides = (y) => covers(y) || shown.some((tip) =>
        x - 2 < tip.x && tip.x < x + box.width + 2 &&
        y - 0.85 * box.height - 2 < tip.y && tip.y < y + 0.25 * box.height + 2);
      const fits = (y) => y <= frame.bottom - 2 && y - box.height >= frame.top;
      const level = Math.max(frame.top + box.height, Math.min(frame.bottom - 2, arrow.y + 4));
      const nearest = (taboo, most) => {
        for (let step = 0; step <= most; step += 2) {
          const free = [level + step, level - step].filter((y) => !taboo(y) && (!step || fits(y)));
          if (free.length) return free[0];
        }
      };
      const y = nearest(hides, 40) ?? nearest(covers, 120) ?? level;
      name.setAttribute("x", x);
      name.setAttribute("y", y);
      taken.push({ x, y, width: box.width });
    }
  }

  function draw() {
    drawAxes();
    drawDots();
    drawArrows();
    svg.setAttribute("aria-label",
      `Scores of ${dots.length} samples on components ${axis("x") + 1} and ${axis("y") + 1}.`);
  }

  let current = -1;
  function read(i) {
    current = i;
    const values = ["x", "y"].map(
      (way) => `component ${axis(way) + 1}: ${data.columns[axis(way)][i]}`);
    const label = data.groups.length ? `, ${data.groups[data.group[i]]}` : "";
    readout.textContent = `${data.names[i]}${label} (${values.join(", ")})`;
    cursor.setAttribute("cx", dots[i].getAttribute("x"));
    cursor.setAttribute("cy", dots[i].getAttribute("y"));
    cursor.setAttribute("visibility", "visible");
  }
  for (const event of ["pointermove", "click"]) {
    svg.querySelector(".points").addEventListener(event, (moved) => {
      const i = dots.indexOf(moved.target.closest("use"));
      if (i >= 0) read(i);
    });
  }
  // Left and right go by the score across, up and down by the other one.
  svg.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: ["x", -1], ArrowRight: ["x", 1], ArrowDown: ["y", -1], ArrowUp: ["y", 1] };
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    const column = data.columns[axis(way[0])];
    const order = dots.map((_, i) => i)
      .filter((i) => !hiddenGroups.has(data.group[i]))
      .sort((i, j) => column[i] - column[j]);
    if (!order.length) return;
    const at = order.indexOf(current);
    const next = at < 0 ? (order.length - 1) >> 1 : at + way[1];
    read(order[Math.max(0, Math.min(order.length - 1, next))]);
  });

  for (const key of document.querySelectorAll("button.key")) {
    const group = Number(key.dataset.group);
    key.addEventListener("click", () => {
      const shown = key.getAttribute("aria-pressed") === "true";
      key.setAttribute("aria-pressed", String(!shown));
      if (shown) hiddenGroups.add(group);
      else hiddenGroups.delete(group);
      drawDots();
    });
  }
  chosen.x.addEventListener("change", draw);
  chosen.y.addEventListener("change", draw);
  wanted.addEventListener("change", drawArrows);
  svg.setAttribute("role", "application");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-describedby", "scores-help");
  document.getElementById("score-controls").hidden = false;
  draw();
})();
