// What is asked for, its history, and the link that restores it.
import { same } from "./dom.js";

export const DEFAULT = {
  k: 5, n_components: 1, scheme: "residual", scale: false, include: [], exclude: [],
  max_per_group: null, nonnegative: false, weight: null, seconds: 10,
  label: null, axes: [0, 1], epsilon: null,
};

export class Store {
  constructor(onChange) {
    this.onChange = onChange;
    this.entries = [];
    this.at = -1;
    this.dragging = false;
  }

  get state() {
    return this.at < 0 ? DEFAULT : this.entries[this.at].state;
  }

  get canUndo() { return this.at > 0; }
  get canRedo() { return this.at < this.entries.length - 1; }

  begin(state, words) {
    this.entries = [{ state: { ...DEFAULT, ...state }, words }];
    this.at = 0;
    this.tell();
  }

  // With `dragging`, further values of the same drag take the place of the first one.
  change(patch, words, dragging = false) {
    const state = { ...this.state, ...patch };
    if (same(state, this.state)) return;
    const replaces = dragging && this.dragging && this.at === this.entries.length - 1;
    this.entries.splice(replaces ? this.at : this.at + 1);
    this.entries.push({ state, words });
    if (this.entries.length > 200) this.entries.shift();
    this.at = this.entries.length - 1;
    this.dragging = dragging;
    this.tell();
  }

  settle() { this.dragging = false; }

  go(at) {
    if (at < 0 || at >= this.entries.length || at === this.at) return;
    this.at = at;
    this.dragging = false;
    this.tell();
  }

  undo() { this.go(this.at - 1); }
  redo() { this.go(this.at + 1); }

  tell() {
    history.replaceState(null, "", `${location.pathname}${this.hash()}`);
    this.onChange(this.state);
  }

  hash() {
    const changed = Object.entries(this.state).filter(([name, value]) => !same(value, DEFAULT[name]));
    return changed.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(changed)))}` : "#";
  }

  // The state in a link; null if there is none, or none that can be read.
  static fromHash(hash) {
    if (hash.length < 2) return null;
    try {
      const state = JSON.parse(decodeURIComponent(hash.slice(1)));
      return state && typeof state === "object" && !Array.isArray(state) ? state : null;
    } catch {
      return null;
    }
  }
}
