/** Tokens by section as a stacked bar. Colors come from `data-section` in console.css. */

import { el } from "./dom.js";
import { count, words } from "./format.js";

/** @typedef {{name: string, tokens: number}} Share */

/** The order in which the sections stand in working memory. */
export const SECTIONS = ["tools", "system_prompt", "procedure", "knowledge", "episodes", "history", "message"];

/** @param {Share[]} sections */
export const used = (sections) => sections.reduce((sum, { tokens }) => sum + tokens, 0);

/**
 * @param {Share[]} sections
 * @param {number} whole tokens that the full width stands for; what the sections leave is drawn as free
 */
export function bar(sections, whole) {
  const shares = sections.filter(({ tokens }) => tokens > 0);
  const free = Math.max(0, whole - used(sections));
  const text = shares.map(({ name, tokens }) => `${words(name)} ${count(tokens)}`);
  return el("div", { class: "bar", role: "img", "aria-label": `Tokens: ${[...text, `free ${count(free)}`].join(", ")}` },
    shares.map(({ name, tokens }) => segment(name, tokens)),
    free > 0 && segment("free", free));
}

/** @param {string} name @param {number} tokens */
function segment(name, tokens) {
  const node = el("span", { class: "segment", dataset: { section: name }, title: `${words(name)}: ${count(tokens)} tokens` });
  node.style.flexGrow = tokens;
  return node;
}
