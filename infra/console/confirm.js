/** Ask before something is lost. */

import { byId } from "./dom.js";

/**
 * @param {string} question
 * @param {string} action the label of the button that goes ahead
 * @returns {Promise<boolean>}
 */
export function confirmed(question, action) {
  const dialog = byId("confirm");
  byId("confirm-question").textContent = question;
  byId("confirm-go").textContent = action;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "go"), { once: true }));
}
