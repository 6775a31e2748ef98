// The blocks: a slider over the threshold, and the matrix to read entry by entry.
(function () {
  const data = pageData.blocks;
  const heatmap = document.getElementById("heatmap");
  const slider = document.getElementById("epsilon");
  const sorted = document.getElementById("sorted");
  const text = document.getElementById("epsilon-text");
  const value = document.getElementById("value");
  const list = document.getElementById("block-list");
  const marker = document.getElementById("marker");
  const places = marker.dataset.places.split(" ").map((p) => p.split(","));
  const m = data.names.length;

  // A[i][j], from the rows of the upper triangle.
  const A = Array.from({ length: m }, () => new Array(m));
  let next = 0;
  for (let i = 0; i < m; i++) {
    for (let j = i; j < m; j++) {
      A[i][j] = A[j][i] = data.upper[next++];
    }
  }
  let strongest = 0;
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < i; j++) strongest = Math.max(strongest, Math.abs(A[i][j]));
  }
  strongest = strongest || 1;

  heatmap.setAttribute("viewBox", `-1.2 -0.2 ${m + 1.4} ${m + 0.4}`);
  const cells = element("g", {}, heatmap);
  const marks = element("g", {}, heatmap);
  const frames = element("g", {}, heatmap);
  const cursor = element("rect", { class: "cursor", width: 1, height: 1 }, heatmap);
  cursor.style.display = "none";
  const rects = [];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < m; j++) {
      const rect = element("rect", { width: 1.02, height: 1.02 }, cells);
      rect.pair = [i, j];
      rects.push(rect);
    }
  }

  // place[i]: where feature i stands; at[p]: which feature stands at p.
  let place = [];
  let at = [];
  function arrange() {
    place = sorted.checked ? data.names.map((_, i) => i) : data.rank.slice();
    at = [];
    place.forEach((p, i) => { at[p] = i; });
    for (const rect of rects) {
      rect.setAttribute("x", place[rect.pair[1]]);
      rect.setAttribute("y", place[rect.pair[0]]);
    }
    marks.replaceChildren();
    data.component.forEach((number, i) => {
      if (!number) return;
      const spot = { x: -0.9, y: place[i] + 0.2, width: 0.6, height: 0.6, class: "used" };
      const mark = element("rect", spot, marks);
      element("title", {}, mark).textContent =
        data.names[i] + " is in component " + number;
    });
  }

  function groups(level) {
    const found = new Map();
    data.labels[level].forEach((label, i) => {
      if (!found.has(label)) found.set(label, []);
      found.get(label).push(i);
    });
    return [...found.values()].sort((a, b) => b.length - a.length);
  }

  function draw() {
    const level = Number(slider.value);
    const epsilon = data.levels[level];
    for (const rect of rects) {
      const a = A[rect.pair[0]][rect.pair[1]];
      const strength = Math.abs(a) > epsilon ? Math.min(1, Math.abs(a) / strongest) : 0;
      rect.setAttribute("class", a >= 0 ? "plus" : "minus");
      rect.setAttribute("fill-opacity", strength.toFixed(3));
    }
    const blocks = groups(level);
    frames.replaceChildren();
    if (sorted.checked) {
      for (const block of blocks) {
        const start = Math.min(...block);
        const side = block.length;
        const box = { x: start, y: start, width: side, height: side, class: "frame" };
        if (side > 1) element("rect", box, frames);
      }
    }
    const count = data.blocks[level];
    const largest = data.largest[level];
    const words =
      `ε = ${epsilon.toPrecision(4)}: ${count} ${count === 1 ? "block" : "blocks"}, ` +
      `the largest of ${largest} ${largest === 1 ? "feature" : "features"}`;
    text.textContent = words;
    slider.setAttribute("aria-valuetext", words);
    heatmap.setAttribute("aria-label", "Matrix of the features at " + words);
    marker.setAttribute("cx", places[level][0]);
    marker.setAttribute("cy", places[level][1]);
    listBlocks(blocks.filter((block) => block.length > 1));
  }

  function listBlocks(blocks) {
    list.replaceChildren();
    const heading = document.createElement("p");
    heading.textContent = blocks.length
      ? "Blocks of more than one feature" + (m < data.total ? ", among those shown:" : ":")
      : "Every feature is a block of its own.";
    list.appendChild(heading);
    const items = document.createElement("ol");
    for (const block of blocks.slice(0, 6)) {
      const item = document.createElement("li");
      const names = block.slice(0, 8).map((i) => data.names[i]).join(", ");
      const more = block.length > 8 ? `, and ${block.length - 8} more` : "";
      item.textContent = `${names}${more} (${block.length})`;
      items.appendChild(item);
    }
    list.appendChild(items);
    if (blocks.length > 6) {
      const rest = document.createElement("p");
      rest.textContent = `and ${blocks.length - 6} smaller ones`;
      list.appendChild(rest);
    }
  }

  let row = 0;
  let column = 0;
  function read(i, j) {
    row = place[i];
    column = place[j];
    cursor.style.display = "";
    cursor.setAttribute("x", column);
    cursor.setAttribute("y", row);
    value.textContent =
      i === j
        ? `variance of ${data.names[i]}: ${A[i][i]}`
        : `${data.names[i]} × ${data.names[j]}: ${A[i][j]}`;
  }
  function pointed(event) {
    if (event.target.pair) read(...event.target.pair);
  }
  cells.addEventListener("pointermove", pointed);
  cells.addEventListener("click", pointed);
  heatmap.addEventListener("keydown", (event) => {
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const to = (p, step) => Math.max(0, Math.min(m - 1, p + step));
    read(at[to(row, move[0])], at[to(column, move[1])]);
  });

  document.getElementById("shown").textContent =
    m < data.total
      ? `${m} of ${data.total} features are shown: those of the components, and those ` +
        "with the largest entries."
      : "";
  slider.max = data.levels.length - 1;
  slider.value = data.start;
  slider.addEventListener("input", draw);
  sorted.addEventListener("change", () => { arrange(); draw(); cursor.style.display = "none"; });
  arrange();
  draw();
})();
