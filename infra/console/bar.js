/** Tokens by section as a stacked bar. Colors come from `data-section` in console.css. */

import { el } from "./dom.js";
import { count, words } from "./format.js";

/** @typedef {{name: string, tokens: number}} Share */

/** @param {Share[]} sections */
export const used = (sections) => sections.reduce((sum, { tokens }) => sum + tokens, 0);

/**
 * @param {Share[]} sections
 * @param {number} whole tokens that the full width stands for; what is left is drawn as free
 * @param {number} [reserve] tokens at the end that are kept for the answer
 */
export function bar(sections, whole, reserve = 0) {
  const shares = [...sections, { name: "answer_reserve", tokens: reserve }].filter(({ tokens }) => tokens > 0);
  const free = Math.max(0, whole - used(shares));
  const parts = free > 0 ? shares.toSpliced(reserve ? -1 : shares.length, 0, { name: "free", tokens: free }) : shares;
  const text = parts.map(({ name, tokens }) => `${words(name)} ${count(tokens)}`);
  return el("div", { class: "bar", role: "img", "aria-label": `Tokens: ${text.join(", ")}` },
    parts.map(({ name, tokens }) => segment(name, tokens)));
}

/** @param {string} name @param {number} tokens */
function segment(name, tokens) {
  const node = el("span", { class: "segment", dataset: { section: name }, title: `${words(name)}: ${count(tokens)} tokens` });
  node.style.flexGrow = tokens;
  return node;
}
