/** The skill library: the list of procedures with filters, and the tester. One procedure is shown by procedure.js. */

import { byId, el, fill, redraw } from "./dom.js";
import { count, counted, reason, score, when, words } from "./format.js";
import { ProcedurePage } from "./procedure.js";

/** @type {Record<string, string>} */
const VERDICT = {
  followed: "would be followed",
  outranked: "another one goes first",
  below_min_score: "below the minimum relevance",
  pending: "waits for a review",
  disabled: "is switched off",
};

export class Skills {
  #loads = 0;

  /** @param {import("./api.js").Api} api @param {import("./place.js").Place} place */
  constructor(api, place) {
    this.api = api;
    this.place = place;
    this.page = new ProcedurePage(api, place);
    this.filters = byId("skill-filters");
    this.rows = byId("procedures");
    this.queue = byId("queue");
    this.trial = byId("trial");
    this.filters.addEventListener("change", () => this.load());
    byId("new-procedure").addEventListener("click", () => place.go({ procedure: "new" }));
    byId("skill-test").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.#try();
    });
    place.addEventListener("change", (/** @type {any} */ { detail: changed }) => {
      if (changed.has("agent")) fill(this.trial);
      this.load();
    });
  }

  async load() {
    const load = ++this.#loads;
    const { view, agent, procedure } = this.place;
    if (view !== "skills" || !this.api.session.isAdmin) return;
    byId("skill-list").hidden = procedure !== null;
    byId("procedure").hidden = procedure === null;
    if (procedure !== null) return this.page.show(procedure);
    this.page.leave();
    const chosen = new FormData(this.filters);
    try {
      const [listed, pending, statistics] = await Promise.all([
        this.api.list("/procedures", { agent_id: agent, status: String(chosen.get("status")), is_active: String(chosen.get("is_active")) }),
        this.api.list("/procedures", { status: "pending" }),
        this.api.get("/procedures/statistics"),
      ]);
      if (load !== this.#loads) return;
      this.queue.hidden = pending.length === 0;
      fill(this.queue, `${counted(pending.length, "procedure")} learned from conversations ${pending.length === 1 ? "waits" : "wait"} for a review: `,
        pending.map((item) => this.#link(item)));
      const used = new Map(statistics.map((/** @type {any} */ item) => [item.procedure_id, item.matches]));
      redraw(this.rows, listed.map((item) => this.#row(item, used.get(item.procedure_id) ?? 0)),
        !listed.length && el("tr", {}, el("td", { colspan: 7, class: "empty" }, "No procedures.")));
    } catch (error) {
      if (load === this.#loads) fill(this.rows, el("tr", {}, el("td", { colspan: 7, class: "error" }, reason(error))));
    }
  }

  /** @param {any} procedure @param {number} matches */
  #row(procedure, matches) {
    return el("tr", { class: procedure.is_active ? "" : "none" },
      el("th", { scope: "row" }, this.#link(procedure), el("p", { class: "remark" }, procedure.description)),
      el("td", {}, el("span", { class: `badge ${procedure.status}` }, words(procedure.status)), !procedure.is_active && el("span", { class: "badge" }, "Off")),
      el("td", {}, el("code", {}, procedure.trigger_pattern), el("small", {}, ` ${procedure.trigger_kind}`)),
      el("td", { dataset: { label: "For" } }, procedure.agent_id ? "this agent" : "every agent"),
      el("td", { dataset: { label: "Priority" } }, procedure.priority),
      el("td", { dataset: { label: "Followed" } }, `${count(matches)} ×`),
      el("td", { dataset: { label: "Changed" } }, when(procedure.updated_at)));
  }

  /** @param {any} procedure */
  #link({ procedure_id: id, name }) {
    return el("button", { type: "button", class: "quiet link", dataset: { key: id }, onclick: () => this.place.go({ procedure: id }) }, name);
  }

  async #try() {
    const message = byId("trial-message").value.trim();
    if (!message) return;
    try {
      const { candidates, enabled, min_score: minimum } = await this.api.post("/procedures/test", { agent_id: this.place.agent, message });
      fill(this.trial,
        !enabled && el("p", { class: "notice warning" }, "Procedural memory is switched off for this agent."),
        el("ul", {}, candidates.map((/** @type {any} */ candidate) => this.#candidate(candidate, message, minimum))),
        !candidates.length && el("p", { class: "empty" }, "Nothing comes near."));
    } catch (error) {
      fill(this.trial, el("p", { class: "notice error" }, reason(error)));
    }
  }

  /** @param {any} candidate @param {string} message @param {number} minimum */
  #candidate({ procedure, rule, verdict, start, end, relevance, cosine }, message, minimum) {
    return el("li", {}, this.#link(procedure),
      el("span", { class: `badge ${verdict === "followed" ? "approved" : ""}` }, VERDICT[verdict] ?? words(verdict)),
      el("p", { class: "remark" }, `by ${rule}`,
        start !== null && [": ", message.slice(0, start), el("mark", {}, message.slice(start, end)), message.slice(end)],
        relevance !== null && `: relevance ${score(relevance)} of at least ${score(minimum)}, cosine ${score(cosine)}`));
  }
}
