/** Form controls with labels, and what a refused form says at the control that is wrong. */

import { el } from "./dom.js";

/**
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint = "") {
  if (control.getAttribute("type") === "checkbox") {
    return el("label", { class: "check" }, control, el("span", {}, label, hint && el("small", {}, ` ${hint}`)));
  }
  return el("label", {}, label, hint && el("small", {}, ` ${hint}`), control);
}

/** @param {string} name @param {string | null} value @param {Record<string, unknown>} [props] */
export function text(name, value, props = {}) {
  return el("input", { name, value: value ?? "", autocomplete: "off", ...props });
}

/** @param {string} name @param {string} value @param {Record<string, unknown>} [props] */
export function area(name, value, props = {}) {
  return el("textarea", { name, rows: 2, ...props }, value);
}

/** @param {string} name @param {number} value @param {Record<string, unknown>} [props] such as min, max, step */
export const number = (name, value, props = {}) => el("input", { type: "number", name, value, required: true, ...props });

/** @param {string} name @param {boolean} checked */
export const check = (name, checked) => el("input", { type: "checkbox", name, checked });

/** @param {string} name @param {string} value @param {[string, string][]} options value and label */
export function choice(name, value, options) {
  return el("select", { name }, options.map(([option, label]) => el("option", { value: option, selected: option === value }, label)));
}

/**
 * Show why the server refused a form: the words in its status line, the focus on the control that they are about.
 * @param {HTMLFormElement} form with an element of role status
 * @param {unknown} outcome an error, or the good news
 */
export function report(form, outcome) {
  const failed = outcome instanceof Error;
  const status = /** @type {HTMLElement} */ (form.querySelector("[role=status]"));
  status.textContent = failed ? outcome.message : String(outcome);
  status.classList.toggle("error", failed);
  for (const marked of form.querySelectorAll("[aria-invalid]")) marked.removeAttribute("aria-invalid");
  const at = /** @type {{field?: string | null}} */ (outcome).field;
  const control = failed && at ? [...form.elements].find((candidate) => candidate.getAttribute("name") === at) : null;
  if (control instanceof HTMLElement) {
    control.setAttribute("aria-invalid", "true");
    control.focus();
  }
}
