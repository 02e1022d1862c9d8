/** What was remembered of the user's past sessions: list, search as a turn would, delete. */

import { confirmed } from "./confirm.js";
import { byId, el, fill } from "./dom.js";
import { counted, reason, score, when } from "./format.js";

/** @type {Record<string, string>} */
const SUMMARY = { model: "summary by the model", extractive: "extract", verbatim: "kept word for word" };

export class Episodes {
  #loads = 0;
  /** @type {string | null} */
  #more = null;

  /** @param {import("./api.js").Api} api @param {import("./place.js").Place} place */
  constructor(api, place) {
    this.api = api;
    this.place = place;
    this.list = byId("episodes");
    this.moreButton = byId("more-episodes");
    this.query = byId("episode-query");
    this.status = byId("episode-status");
    byId("episode-search").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.load();
    });
    this.query.addEventListener("input", () => this.query.value === "" && this.load());
    this.moreButton.addEventListener("click", () => this.#page());
    place.addEventListener("change", () => this.load());
  }

  async load() {
    this.#loads += 1;
    if (this.place.view !== "episodes" || !this.place.agent) return;
    this.#more = null;
    fill(this.list);
    if (this.query.value.trim()) await this.#search();
    else await this.#page();
  }

  async #page() {
    const load = this.#loads;
    this.moreButton.hidden = true;
    await this.#say(async () => {
      const { items, next_cursor: next } = await this.api.get("/episodes",
        { agent_id: this.place.agent, user_id: this.api.session.claims.sub, cursor: this.#more });
      if (load !== this.#loads) return null;
      this.list.append(...items.map((/** @type {any} */ episode) => this.#card(episode)));
      this.#more = next;
      this.moreButton.hidden = next === null;
      return this.list.hasChildNodes() ? "" : "Nothing is remembered yet. A session becomes an episode when it ends.";
    });
  }

  async #search() {
    const load = this.#loads;
    this.moreButton.hidden = true;
    await this.#say(async () => {
      const { episodes, near_misses: misses } = await this.api.post("/episodes/search", { agent_id: this.place.agent, query: this.query.value.trim() });
      if (load !== this.#loads) return null;
      fill(this.list, episodes.map((/** @type {any} */ found) => this.#found(found, true)), misses.map((/** @type {any} */ found) => this.#found(found, false)));
      return `${counted(episodes.length, "episode")} would be recalled for this message, ${counted(misses.length, "near miss", "near misses")}.`;
    });
  }

  /** @param {any} episode */
  #card(episode) {
    const facts = [`${counted(episode.message_count, "message")}`, SUMMARY[episode.summary_source] ?? episode.summary_source, episode.archived_at && "archived"];
    return el("li", { class: "card-inline" },
      el("h2", {}, when(episode.started_at)), el("p", {}, episode.summary),
      episode.key_facts.length > 0 && el("ul", {}, episode.key_facts.map((/** @type {string} */ fact) => el("li", {}, fact))),
      el("p", { class: "remark" }, facts.filter(Boolean).join(" · ")),
      el("div", { class: "actions" }, this.#open(episode),
        el("button", { type: "button", class: "quiet", "aria-label": `Delete the episode of ${when(episode.started_at)}`, onclick: () => this.#delete(episode) }, "Delete")));
  }

  /** @param {any} found @param {boolean} recalled */
  #found(found, recalled) {
    const { relevance, cosine } = found.score;
    return el("li", { class: `card-inline ${recalled ? "" : "left-out"}` },
      el("h2", {}, when(found.started_at)), el("p", {}, found.summary),
      found.matched.length > 0 && el("ul", {}, found.matched.map((/** @type {string} */ fact) => el("li", {}, fact))),
      el("p", { class: "remark" }, [relevance === null ? "by date" : `relevance ${score(relevance)}, cosine ${score(cosine)}`,
        !recalled && "below the minimum relevance", found.archived && "archived"].filter(Boolean).join(" · ")),
      el("div", { class: "actions" }, this.#open(found)));
  }

  /** @param {{conversation_id: string, started_at: string}} episode */
  #open({ conversation_id: conversation, started_at: at }) {
    return el("button", { type: "button", class: "quiet", "aria-label": `Open the conversation of ${when(at)}`,
      onclick: () => this.place.go({ view: "chat", conversation }) }, "Open the conversation");
  }

  /** @param {any} episode */
  async #delete({ episode_id: id }) {
    if (!(await confirmed("Delete this episode with its whole conversation? It cannot be brought back.", "Delete"))) return;
    await this.#say(async () => {
      await this.api.delete(`/episodes/${id}`);
      await this.load();
      return "The episode is deleted.";
    });
    byId("episodes-title").focus();
  }

  /** @param {() => Promise<string | null>} act resolves to what there is to say; null when it was overtaken */
  async #say(act) {
    try {
      const said = await act();
      if (said !== null) this.status.textContent = said;
    } catch (error) {
      this.status.textContent = reason(error);
    }
  }
}
