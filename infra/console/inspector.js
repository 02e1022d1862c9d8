/** The Context Inspector: what one past turn put before the model, or two turns side by side. */

import { used } from "./bar.js";
import { byId, el, fill } from "./dom.js";
import { reason } from "./format.js";
import { drawn } from "./report.js";

export class Inspector {
  /** @type {import("./turn.js").TurnView | null} */
  #turn = null;
  /** @type {import("./turn.js").TurnView | null} */
  #other = null;
  /** @type {HTMLElement | null} has the focus back on close */
  #opener = null;
  #loads = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./place.js").Place} place
   * @param {() => import("./turn.js").TurnView[]} turns of the conversation
   */
  constructor(api, place, turns) {
    this.api = api;
    this.place = place;
    this.turns = turns;
    this.panel = byId("inspector");
    this.title = byId("inspector-title");
    this.compare = byId("compare");
    this.reports = byId("reports");
    byId("inspector-close").addEventListener("click", () => this.close());
    this.compare.addEventListener("change", () => {
      this.#other = this.turns().find(({ turnId }) => turnId === this.compare.value) ?? null;
      this.#load();
    });
    place.addEventListener("change", () => this.#turn && !this.turns().includes(this.#turn) && this.close());
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  /** @param {import("./turn.js").TurnView} turn */
  open(turn) {
    if (!this.isOpen) this.#opener = /** @type {HTMLElement} */ (document.activeElement);
    this.panel.hidden = false;
    this.#turn = turn;
    this.#other = null;
    this.#load();
    this.title.focus();
  }

  /** Show the newest turn, where the reader is not comparing two. @param {import("./turn.js").TurnView} turn */
  follow(turn) {
    if (!this.isOpen || this.#other) return;
    this.#turn = turn;
    this.#load();
  }

  close() {
    this.panel.hidden = true;
    this.#turn = this.#other = null;
    this.#loads += 1;
    document.body.classList.remove("comparing");
    if (this.#opener?.isConnected) this.#opener.focus();
  }

  async #load() {
    const shown = [this.#turn, this.#other].filter((turn) => turn !== null);
    const load = ++this.#loads;
    document.body.classList.toggle("comparing", shown.length > 1);
    this.#offerOthers();
    this.reports.setAttribute("aria-busy", "true");
    try {
      const reports = await Promise.all(shown.map(({ conversationId, turnId }) =>
        this.api.get(`/conversations/${conversationId}/turns/${turnId}/context`)));
      if (load !== this.#loads) return;
      const scale = Math.max(...reports.map(({ sections }) => used(sections)), 1);
      fill(this.reports, reports.map((report, n) => drawn(shown[n].number, report, scale)));
    } catch (error) {
      if (load === this.#loads) fill(this.reports, el("p", { class: "notice error" }, reason(error)));
    } finally {
      if (load === this.#loads) this.reports.removeAttribute("aria-busy");
    }
  }

  #offerOthers() {
    const others = this.turns().filter((turn) => turn.turnId && turn !== this.#turn);
    this.compare.parentElement.hidden = others.length === 0;
    fill(this.compare, el("option", { value: "" }, "–"),
      others.map((turn) => el("option", { value: turn.turnId, selected: turn === this.#other }, `turn ${turn.number}`)));
  }
}
