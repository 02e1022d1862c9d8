/** The Context Inspector: what one past turn put before the model, or two turns side by side. */

import { SECTIONS, bar, used } from "./bar.js";
import { byId, el, fill } from "./dom.js";
import { count, counted, duration, percent, score, words } from "./format.js";

const ENLARGE_BELOW = 0.5; // of the budget; a fuller bar needs no enlargement

/** @type {Record<string, string>} the store that a section comes from */
const STORE = { procedure: "procedural", knowledge: "semantic", episodes: "episodic" };

/** @type {Record<string, string>} */
const LEFT_OUT = {
  below_min_score: "below the minimum relevance",
  section_cap: "the section's cap was reached",
  budget: "the budget was reached",
};

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
      const path = `/conversations/${this.place.conversation}/turns`;
      const reports = await Promise.all(shown.map(({ turnId }) => this.api.get(`${path}/${turnId}/context`)));
      if (load !== this.#loads) return;
      const scale = Math.max(...reports.map(({ sections }) => used(sections)), 1);
      fill(this.reports, reports.map((report, n) => account(shown[n].number, report, scale)));
    } catch (error) {
      if (load === this.#loads) fill(this.reports, el("p", { class: "notice error" }, String(/** @type {Error} */ (error).message)));
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

/**
 * @param {number} number of the turn
 * @param {any} report
 * @param {number} scale tokens that the width of the enlarged bar stands for, the same for all turns shown
 */
function account(number, report, scale) {
  const { sections, budget } = report;
  const share = used(sections) / budget.available;
  return el("section", { class: "report", "aria-label": `Turn ${number}` },
    el("h3", {}, `Turn ${number}`),
    el("p", {}, el("strong", {}, count(budget.used)), ` of ${count(budget.available)} tokens, ${percent(budget.used, budget.available)} of the budget`),
    bar(sections, budget.available),
    share < ENLARGE_BELOW && [zoom(share * (scale / Math.max(used(sections), 1))), bar(sections, scale)],
    sectionTable(report),
    sections.filter((/** @type {any} */ { items }) => items?.length).map(itemList),
    facts(report));
}

/** Lines that lead from the used part of one bar to the whole of the next. @param {number} share */
function zoom(share) {
  const node = el("div", { class: "zoom", "aria-hidden": "true" });
  node.style.setProperty("--share", `${100 * share}%`);
  return node;
}

/** The legend of the bars, and the same numbers for those who do not see them. @param {any} report */
function sectionTable({ sections, budget, stores }) {
  const byName = new Map(stores.map((/** @type {any} */ store) => [store.name, store]));
  const order = [...sections].sort((a, b) => SECTIONS.indexOf(a.name) - SECTIONS.indexOf(b.name));
  const row = (/** @type {any} */ { name, tokens, items = [] }) => {
    const store = byName.get(STORE[name]);
    return el("tr", { class: tokens ? "" : "none" },
      el("th", { scope: "row" }, el("span", { class: "swatch", dataset: { section: name } }), words(name),
        store?.degraded && el("span", { class: "badge warning" }, store.degraded)),
      el("td", {}, count(tokens)),
      el("td", {}, percent(tokens, budget.available)),
      el("td", {}, store ? items.filter((/** @type {any} */ item) => !item.left_out).length : "–"),
      el("td", {}, store?.enabled ? duration(store.ms) : store ? "off" : "–"));
  };
  return el("table", { class: "sections" },
    el("caption", { class: "visually-hidden" }, "Tokens by section"),
    el("thead", {}, el("tr", {}, ["Section", "Tokens", "Share", "Items", "Time"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, order.map(row), row({ name: "free", tokens: Math.max(0, budget.available - used(sections)) })));
}

/** Items of one section, best first; what was left out says why. @param {any} section */
function itemList({ name, items }) {
  return el("section", { class: "items" },
    el("h4", {}, el("span", { class: "swatch", dataset: { section: name } }), words(name)),
    el("ol", {}, items.map((/** @type {any} */ item) => el("li", { class: item.left_out ? "left-out" : "" },
      el("details", {},
        el("summary", {},
          el("span", { class: "source" }, item.source ?? item.item_id),
          el("span", { class: "verdict" }, verdict(item))),
        el("dl", {}, fact("Rank", item.score.rank), fact("Relevance", score(item.score.relevance)),
          fact("Threshold", score(item.threshold)), fact("Cosine", score(item.score.cosine)),
          item.rule && fact("Matched by", item.rule), fact("Tokens", count(item.tokens))),
        content(item))))));
}

/** @param {any} item */
function verdict(item) {
  const relevance = item.score.relevance === null ? item.rule ?? "" : score(item.score.relevance);
  return item.left_out ? `${relevance} · left out: ${LEFT_OUT[item.left_out] ?? words(item.left_out)}` : relevance;
}

/** @param {any} item */
function content(item) {
  if (item.state === "erased") return el("p", { class: "remark" }, "Erased since.");
  return [item.state === "changed" && el("p", { class: "remark" }, "Changed since; this is the text of now."),
    item.content && el("pre", { tabindex: "0" }, item.content)];
}

/** @param {any} report */
function facts({ pruning, usage, stores, model, stop_reason: stopReason, budget }) {
  const input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
  const degraded = stores.filter((/** @type {any} */ store) => store.degraded)
    .map((/** @type {any} */ store) => `${words(store.name)} ${store.degraded}`);
  return el("dl", { class: "facts" },
    fact("Model", model), fact("Stop reason", stopReason ?? "–"),
    fact("Pruning", `${words(pruning.strategy)}: ${counted(pruning.turns_kept, "turn")} kept, ${count(pruning.turns_dropped)} dropped`),
    fact("Input tokens", `${count(input)}: ${count(usage.cache_read_tokens)} read from cache, ${count(usage.cache_write_tokens)} written, ${count(usage.input_tokens)} uncached`),
    fact("Output tokens", `${count(usage.output_tokens)} of ${count(budget.output_reserve_tokens)} reserved`),
    fact("Degraded", degraded.join(", ") || "none"));
}

/** @param {string} name @param {string | number} value */
const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
