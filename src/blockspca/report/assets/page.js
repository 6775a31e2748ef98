"use strict";
const pageData = JSON.parse(document.getElementById("page-data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.appendChild(made);
  return made;
}

// The button of the theme: dark or light, whatever the system prefers.
(function () {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefers.matches ? "dark" : "light")) === "dark";
  function show() {
    button.textContent = isDark() ? "Light mode" : "Dark mode";
  }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  prefers.addEventListener("change", show);
  button.hidden = false;
  show();
})();

// Pictures to save: with their style written into them, and always light, for paper.
(function () {
  const kept = [
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity",
    "font-family", "font-size", "font-weight", "text-anchor", "visibility",
  ];
  function withStyle(svg) {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((one, i) => {
      const style = getComputedStyle(one);
      for (const name of kept) to[i].setAttribute(name, style.getPropertyValue(name));
      to[i].removeAttribute("class");
    });
    const box = svg.viewBox.baseVal;
    copy.setAttribute("xmlns", SVG);
    copy.setAttribute("width", box.width > 100 ? box.width : 480);
    copy.removeAttribute("tabindex");
    const paper = { x: box.x, y: box.y, width: box.width, height: box.height, fill: "#fff" };
    copy.prepend(element("rect", paper, copy));
    return new XMLSerializer().serializeToString(copy);
  }
  for (const button of document.querySelectorAll("button.save")) {
    const svg = button.closest("figure").querySelector("svg");
    if (!svg) continue;
    button.hidden = false;
    const named = `Save the picture “${button.dataset.name}” as SVG`;
    button.setAttribute("aria-label", named);
    button.addEventListener("click", () => {
      const root = document.documentElement;
      const theme = root.dataset.theme;
      root.dataset.theme = "light";
      const text = withStyle(svg);
      if (theme) root.dataset.theme = theme;
      else delete root.dataset.theme;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
      link.download = button.dataset.name + ".svg";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();

// On paper nothing can be opened, so everything is.
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
