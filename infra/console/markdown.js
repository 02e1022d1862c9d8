/**
 * A small subset of Markdown, rendered to elements: headings, lists, quotes, fenced code, bold, italic, code, links.
 * Safe by construction: text only ever becomes a text node, elements come from the fixed names below, the only attribute
 * set from the text is `href`, and only for an http(s) address.
 */

import { el } from "./dom.js";

const FENCE = /^ {0,3}(```+|~~~+)/;
const BLOCK = [FENCE, /^#{1,6} /, /^ *([-*+]|\d{1,9}[.)]) /, /^> ?/, /^ {0,3}([-*_])( *\1){2,} *$/];
const INLINE = /(`+)(.+?)\1(?!`)|\*\*(?=\S)(.+?)\*\*|\*(?=[^\s*])(.+?)\*|(?<!\w)_(?=\S)(.+?)_(?!\w)|\[([^\]\n]+)\]\(([^()\s]+)\)/;

/** @param {string} text @returns {Node[]} */
export function markdown(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  /** @type {Node[]} */
  const nodes = [];
  while (lines.length) {
    if (!lines[0].trim()) lines.shift();
    else nodes.push(block(lines));
  }
  return nodes;
}

/** Take the lines of one block. @param {string[]} lines @returns {Node} */
function block(lines) {
  const first = lines[0];
  const fence = FENCE.exec(first);
  if (fence) return code(lines, fence[1]);
  const heading = /^(#{1,6}) +(.*)/.exec(first);
  if (heading) {
    lines.shift();
    return el(`h${Math.min(heading[1].length + 3, 6)}`, {}, inline(heading[2])); // the page owns h1 to h3
  }
  if (BLOCK[4].test(first)) {
    lines.shift();
    return el("hr");
  }
  if (BLOCK[2].test(first)) return list(lines, /^ *\d/.test(first));
  if (BLOCK[3].test(first)) {
    return el("blockquote", {}, markdown(take(lines, (line) => BLOCK[3].test(line)).map((line) => line.replace(BLOCK[3], "")).join("\n")));
  }
  const paragraph = take(lines, (line, n) => n === 0 || (line.trim() !== "" && !BLOCK.some((start) => start.test(line))));
  return el("p", {}, inline(paragraph.join("\n").trim()));
}

/** @param {string[]} lines @param {string} fence */
function code(lines, fence) {
  lines.shift();
  const content = take(lines, (line) => !line.trimStart().startsWith(fence));
  lines.shift();
  return el("pre", { tabindex: "0" }, el("code", {}, content.join("\n")));
}

/** @param {string[]} lines @param {boolean} ordered */
function list(lines, ordered) {
  const start = /\d+/.exec(lines[0])?.[0];
  /** @type {string[]} */
  const items = [];
  while (lines.length && BLOCK[2].test(lines[0]) && /^ *\d/.test(lines[0]) === ordered) {
    const own = take(lines, (line, n) => n === 0 || (/^ +\S/.test(line) && !BLOCK[2].test(line)));
    items.push(own.map((line, n) => (n ? line.trim() : line.replace(BLOCK[2], ""))).join("\n"));
  }
  return el(ordered ? "ol" : "ul", { start: ordered && start !== "1" && start }, items.map((item) => el("li", {}, inline(item))));
}

/** @param {string[]} lines @param {(line: string, n: number) => boolean} belongs @returns {string[]} */
function take(lines, belongs) {
  const end = lines.findIndex((line, n) => !belongs(line, n));
  return lines.splice(0, end < 0 ? lines.length : end);
}

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
  /** @type {(Node | string)[]} */
  const nodes = [];
  for (let match; (match = INLINE.exec(text)); text = text.slice(match.index + match[0].length)) {
    const [whole, , codeText, bold, star, underscore, label, address] = match;
    nodes.push(text.slice(0, match.index));
    if (codeText !== undefined) nodes.push(el("code", {}, codeText));
    else if (bold !== undefined) nodes.push(el("strong", {}, inline(bold)));
    else if (address !== undefined) nodes.push(link(label, address) ?? whole);
    else nodes.push(el("em", {}, inline(star ?? underscore)));
  }
  return [...nodes, text];
}

/** @param {string} label @param {string} address */
function link(label, address) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  return el("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, label);
}
