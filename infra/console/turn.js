/** One turn on the page: the question, the answer as it grows, tool calls, and what the memories contributed. */

import { bar, used } from "./bar.js";
import { el, fill } from "./dom.js";
import { count, duration, percent, words } from "./format.js";
import { markdown } from "./markdown.js";

/** @typedef {{name: string, tokens: number, count: number, ms: number | null, degraded: "failed" | "late" | null}} Section */

export class TurnView {
  /** @type {string | null} null until the server has begun the turn */
  turnId = null;
  /** @type {string | null} */
  conversationId = null;
  #text = "";
  /** @type {HTMLElement | null} the text part that is growing */
  #part = null;
  #frame = 0;

  /**
   * @param {number} number counts the turns of the conversation from 1
   * @param {string} question
   * @param {{onInspect: ((turn: TurnView) => void) | null}} options null: the user may not inspect
   */
  constructor(number, question, { onInspect }) {
    this.number = number;
    this.answer = el("div", { class: "answer" });
    this.notice = el("div", { class: "notice", hidden: true });
    this.memoryBar = el("div", { class: "bar", hidden: true });
    this.account = el("p");
    this.actions = el("div", { class: "actions" });
    this.inspectButton = onInspect && el("button", {
      type: "button", class: "quiet", hidden: true, onclick: () => onInspect(this),
      "aria-label": `Inspect the working memory of turn ${number}`,
    }, "Inspect");
    if (this.inspectButton) this.actions.append(this.inspectButton);
    this.element = el("article", { class: "turn", "aria-label": `Turn ${number}` },
      el("h3", { class: "visually-hidden" }, `Turn ${number}`),
      el("div", { class: "question" }, question),
      this.answer, this.notice,
      el("footer", {}, this.memoryBar, this.account, this.actions));
  }

  /** Forget an earlier attempt and wait for the answer. */
  begin() {
    cancelAnimationFrame(this.#frame);
    this.#text = "";
    this.#part = null;
    fill(this.answer);
    fill(this.account);
    this.memoryBar.hidden = true;
    this.notice.hidden = true;
    this.actions.querySelector(".retry")?.remove();
    this.answer.setAttribute("aria-busy", "true");
  }

  /** @param {string} conversationId @param {string} turnId */
  known(conversationId, turnId) {
    this.conversationId = conversationId;
    this.turnId = turnId;
    if (this.inspectButton) this.inspectButton.hidden = false;
  }

  /** @param {string} detail why the turn has not begun yet */
  wait(detail) {
    fill(this.account, detail);
  }

  /** @param {string} text more of the answer; drawn at most once per frame */
  add(text) {
    if (!this.#part) {
      this.#text = "";
      this.#part = el("div", { class: "text" });
      this.answer.append(this.#part);
    }
    this.#text += text;
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  /**
   * The model calls a tool. What it says after that is a new part of the answer.
   * @param {string} id
   * @param {string} name
   */
  toolCall(id, name) {
    this.#draw();
    this.#part = null;
    this.answer.append(el("details", { class: "tool", dataset: { call: id } },
      el("summary", {}, el("code", {}, name), " ", el("span", { class: "outcome" }, "running…"))));
  }

  /** @param {string} id @param {boolean} failed @param {string} [remark] */
  toolResult(id, failed, remark = "") {
    const call = this.#tool(id);
    if (!call) return;
    fill(call.querySelector(".outcome"), failed ? "failed" : "done", remark && ` · ${remark}`);
    call.classList.toggle("failed", failed);
  }

  /** @param {string} id @param {unknown} detail arguments or result, where the log has them */
  toolDetail(id, detail) {
    this.#tool(id)?.append(el("pre", { tabindex: "0" }, typeof detail === "string" ? detail : JSON.stringify(detail, null, 2)));
  }

  /** @param {{sections: Section[], used_tokens: number, max_working_memory_tokens: number}} memory */
  memory({ sections, used_tokens: tokens, max_working_memory_tokens: whole }) {
    const slowest = Math.max(0, ...sections.map(({ ms }) => ms ?? 0));
    const drawn = bar(sections, used(sections));
    this.memoryBar.replaceWith(drawn);
    this.memoryBar = drawn;
    fill(this.account, `${count(tokens)} tokens, ${percent(tokens, whole)} of the budget`,
      slowest > 0 && ` · recalled in ${duration(slowest)}`,
      sections.filter(({ degraded }) => degraded).map(({ name, degraded }) =>
        el("span", { class: "badge warning" }, `${words(name)} ${degraded}`)));
  }

  /** @param {string} [remark] */
  end(remark = "") {
    this.#draw();
    this.answer.removeAttribute("aria-busy");
    if (remark) this.account.append(this.account.hasChildNodes() ? ` · ${remark}` : remark);
  }

  /**
   * @param {string} text what went wrong
   * @param {{kind?: "error" | "warning", retry?: (() => void) | null}} [options]
   */
  fail(text, { kind = "error", retry = null } = {}) {
    this.end();
    this.notice.className = `notice ${kind}`;
    this.notice.hidden = false;
    fill(this.notice, text);
    if (retry) this.actions.prepend(el("button", { type: "button", class: "retry", onclick: retry }, "Retry"));
  }

  /** @param {string} id */
  #tool(id) {
    return [...this.answer.querySelectorAll("details.tool")].find((node) => node.dataset.call === id);
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#part) fill(this.#part, markdown(this.#text));
  }
}
