// Elements and numbers. Names from the data become text nodes, never markup.

export const $ = (id) => document.getElementById(id);

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "for" || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

// Put new children in place of the old ones; the focus stays on what has the same key.
export function fill(parent, ...children) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children.flat());
  if (key === undefined) return;
  const again = [...parent.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
  (again || parent.closest("[tabindex]"))?.focus({ preventScroll: true });
}

export function number(value, digits = 4) {
  if (value === null || value === undefined) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

export function percent(share, digits = 3) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  if (value !== 0 && Math.abs(value) < 0.001) return "<\u00a00.001\u00a0%";
  return `${Number(value.toPrecision(digits))}\u00a0%`;
}

export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// A colour of the style sheet, as the theme of now has it.
const probe = document.createElement("span");
probe.hidden = true;

export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

// About five round numbers from low to high.
export function ticks(low, high, whole = false) {
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((v) => v >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const values = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step) {
    values.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  }
  return values;
}
