/** What was said in a conversation, to read. */

import { el } from "./dom.js";
import { markdown } from "./markdown.js";

/** @typedef {{seq: number, role: string, turn_id: string, stop_reason: string | null, content: any[]}} Message a line of the log */

/**
 * All messages of a conversation, oldest first.
 * @param {import("./api.js").Api} api
 * @param {string} conversation
 * @returns {Promise<Message[]>}
 */
export const messagesOf = (api, conversation) => api.list(`/conversations/${conversation}/messages`);

/** @param {Message[]} messages @param {number | null} [marked] the `seq` of a message to point out */
export function transcript(messages, marked = null) {
  return el("ol", { class: "transcript" }, messages.flatMap(({ seq, role, content }) => content.map((block) =>
    el("li", { class: `${block.type === "text" ? role : "tool"} ${seq === marked ? "marked" : ""}` }, said(block)))));
}

/** @param {any} block of the Messages API */
function said(block) {
  if (block.type === "text") return markdown(block.text);
  if (block.type === "tool_use") return [el("code", {}, block.name), el("pre", { tabindex: "0" }, JSON.stringify(block.input, null, 2))];
  return el("details", { class: block.is_error ? "failed" : "" }, el("summary", {}, block.is_error ? "Failed" : "Result"),
    el("pre", { tabindex: "0" }, typeof block.content === "string" ? block.content : JSON.stringify(block.content, null, 2)));
}
