/** The steps of a procedure in a form: written, moved, added, removed. */

import { el } from "./dom.js";
import { area, check, field, text } from "./forms.js";

/** @typedef {{instruction: string, tool_name?: string | null, condition?: string | null, is_optional?: boolean}} Step */

/** @param {Step[]} steps */
export function stepsEditor(steps) {
  const list = el("ol", { class: "steps" }, steps.map(stepOf));
  list.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    if (button) rearrange(/** @type {HTMLLIElement} */ (button.closest("li")), button);
  });
  const add = () => {
    list.append(stepOf({ instruction: "" }));
    list.lastElementChild.querySelector("textarea").focus();
  };
  return el("fieldset", {}, el("legend", {}, "Steps"), list, el("button", { type: "button", onclick: add }, "Add a step"));
}

/** @param {HTMLFormElement} form @returns {Step[]} in their order */
export function stepsOf(form) {
  return [...form.querySelectorAll(".steps > li")].map((item) => {
    const value = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ (item.querySelector(`[name=${name}]`)).value.trim();
    return {
      instruction: value("instruction"), tool_name: value("tool_name") || null, condition: value("condition") || null,
      is_optional: /** @type {HTMLInputElement} */ (item.querySelector("[name=is_optional]")).checked,
    };
  });
}

/** @param {Step} step */
function stepOf({ instruction, tool_name: tool = "", condition = "", is_optional: optional = false }) {
  const move = (/** @type {string} */ act, /** @type {string} */ label) =>
    el("button", { type: "button", class: "quiet", value: act, "aria-label": `${label} this step` }, label);
  return el("li", {},
    field("Instruction", area("instruction", instruction, { required: true }), "{{name}} stands for a value of the conversation"),
    el("div", { class: "columns" },
      field("Tool", text("tool_name", tool, { pattern: "[a-zA-Z0-9_\\-]{1,64}" })),
      field("Only if", text("condition", condition))),
    el("div", { class: "actions" }, field("Optional", check("is_optional", optional)),
      move("up", "Move up"), move("down", "Move down"), move("remove", "Remove")));
}

/** @param {HTMLLIElement} item @param {HTMLButtonElement} button */
function rearrange(item, button) {
  if (button.value === "up") item.previousElementSibling?.before(item);
  if (button.value === "down") item.nextElementSibling?.after(item);
  if (button.value !== "remove") return button.focus();
  const next = item.nextElementSibling ?? item.previousElementSibling;
  if (!next) return; // a procedure has a step at least
  item.remove();
  /** @type {HTMLElement} */ (next.querySelector("textarea")).focus();
}
