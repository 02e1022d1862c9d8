/** The user's conversations with the agent, newest first. */

import { byId, el, fill, redraw } from "./dom.js";
import { counted, reason, when } from "./format.js";

const MOST = "200"; // one page of the API; older ones are found through their episodes

export class Conversations {
  #loads = 0;

  /** @param {import("./api.js").Api} api @param {import("./place.js").Place} place */
  constructor(api, place) {
    this.api = api;
    this.place = place;
    this.list = byId("conversation-list");
    this.endButton = byId("end-session");
    byId("new-conversation").addEventListener("click", () => {
      place.go({ view: "chat", conversation: null });
      byId("message").focus();
    });
    this.endButton.addEventListener("click", () => this.#end());
    place.addEventListener("change", () => this.load());
  }

  async load() {
    const load = ++this.#loads;
    const { agent, conversation } = this.place;
    if (!agent) return this.clear();
    try {
      const { items } = await this.api.get("/conversations", { agent_id: agent, user_id: this.api.session.claims.sub, limit: MOST });
      if (load !== this.#loads) return;
      redraw(this.list, items.map((/** @type {any} */ item) => this.#item(item)));
      if (!items.length) fill(this.list, el("li", { class: "empty" }, "No conversations yet."));
      this.endButton.hidden = !items.some((/** @type {any} */ item) =>
        item.conversation_id === conversation && item.status === "active");
    } catch (error) {
      if (load === this.#loads) fill(this.list, el("li", { class: "notice error" }, reason(error)));
    }
  }

  clear() {
    this.#loads += 1;
    fill(this.list);
    this.endButton.hidden = true;
  }

  /** @param {any} item */
  #item({ conversation_id: id, status, last_seq: messages, last_message_at: at }) {
    return el("li", {}, el("button", {
      type: "button", class: "quiet", dataset: { key: id }, "aria-current": id === this.place.conversation && "true",
      onclick: () => this.place.go({ view: "chat", conversation: id }),
    }, el("span", {}, when(at)), el("small", {}, counted(messages, "message"), status === "ended" && " · ended")));
  }

  async #end() {
    const { conversation } = this.place;
    try {
      await this.api.post(`/conversations/${conversation}/close`);
      byId("chat-status").textContent = "The session has ended; its episode will be written now.";
    } catch (error) {
      byId("chat-status").textContent = reason(error);
    }
    await this.load();
    byId("message").focus();
  }
}
