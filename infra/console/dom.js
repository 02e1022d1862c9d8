/** Elements made from data. Text always becomes a text node: nothing on this page is parsed as HTML. */

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [props] attributes; `class`, `dataset`, and listeners as `onclick: fn`
 * @param {...(Node | string | number | null | undefined | false | Array<any>)} children
 * @returns {any} an HTMLElement of that tag
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "dataset") Object.assign(node.dataset, value);
    else if (typeof value === "function") node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

/**
 * Put these children in the place of the present ones.
 * @param {Element} node
 * @param {...any} children
 */
export function fill(node, ...children) {
  node.replaceChildren(...present(children));
}

/**
 * The same for a list that is drawn again: the focus stays with the control of the same `data-key`.
 * @param {Element} node
 * @param {...any} children
 */
export function redraw(node, ...children) {
  const focused = /** @type {HTMLElement} */ (document.activeElement);
  const key = node.contains(focused) ? focused.dataset.key : undefined;
  fill(node, ...children);
  const same = key && [...node.querySelectorAll("[data-key]")].find((control) => control.getAttribute("data-key") === key);
  if (same instanceof HTMLElement) same.focus();
}

/**
 * @param {string} id
 * @returns {any} the element of index.html with that id
 */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html has no element #${id}`);
  return node;
}

/** @param {Array<any>} children */
function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map((child) =>
    child instanceof Node ? child : String(child));
}
