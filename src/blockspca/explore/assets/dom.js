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

export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// A colour of the style sheet, as the theme of now has it.
const probe = document.createElement("span");
probe.hidden = true;

export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function save(text, name, kind) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
