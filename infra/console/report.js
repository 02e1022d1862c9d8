/** The account of one turn, as the Context Inspector of the API gives it, drawn. */

import { bar, used } from "./bar.js";
import { el } from "./dom.js";
import { count, counted, duration, percent, score, words } from "./format.js";

const ENLARGE_BELOW = 0.5; // of the budget; a fuller bar needs no enlargement

/** @type {Record<string, string>} the store that a section comes from */
const STORE = { procedure: "procedural", knowledge: "semantic", episodes: "episodic" };

/** @type {Record<string, string>} */
const LEFT_OUT = {
  below_min_score: "below the minimum relevance",
  section_cap: "the section was full",
  budget: "the budget was full",
};

/**
 * @param {number} number of the turn
 * @param {any} report
 * @param {number} scale tokens that the width of the enlarged bar stands for, the same for all turns shown
 */
export function drawn(number, report, scale) {
  const { sections, budget } = report;
  const whole = budget.max_working_memory_tokens;
  const tokens = used(sections);
  return el("section", { class: "report", "aria-label": `Turn ${number}` },
    el("h3", {}, `Turn ${number}`),
    el("p", {}, el("strong", {}, count(budget.used)), ` of ${count(whole)} tokens, ${percent(budget.used, whole)} of the budget`),
    bar(sections, whole, budget.output_reserve_tokens),
    tokens < ENLARGE_BELOW * whole && [zoom(scale / whole), bar(sections, scale)],
    sectionTable(report),
    sections.map(details),
    facts(report));
}

/** Lines that lead from part of one bar to the whole of the next. @param {number} share */
function zoom(share) {
  const node = el("div", { class: "zoom", "aria-hidden": "true" });
  node.style.setProperty("--share", `${100 * share}%`);
  return node;
}

/** The legend of the bars, and the same numbers for those who do not see them. @param {any} report */
function sectionTable({ sections, budget, stores }) {
  const whole = budget.max_working_memory_tokens;
  const reserve = budget.output_reserve_tokens;
  const row = (/** @type {any} */ { name, tokens, items = [] }) => {
    const store = stores.find((/** @type {any} */ candidate) => candidate.name === STORE[name]);
    return el("tr", { class: tokens ? "" : "none" },
      el("th", { scope: "row" }, swatch(name), words(name),
        store?.degraded && el("span", { class: "badge warning" }, store.degraded)),
      el("td", {}, count(tokens)),
      el("td", {}, percent(tokens, whole)),
      el("td", {}, store ? items.filter((/** @type {any} */ item) => item.included).length : "–"),
      el("td", {}, store?.enabled ? duration(store.ms) : store ? "off" : "–"));
  };
  return el("table", { class: "sections" },
    el("caption", { class: "visually-hidden" }, "Tokens by section"),
    el("thead", {}, el("tr", {}, ["Section", "Tokens", "Share", "Items", "Time"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, sections.map(row),
      row({ name: "answer_reserve", tokens: reserve }),
      row({ name: "free", tokens: Math.max(0, whole - reserve - used(sections)) })));
}

/** What stood in a section: its items, best first, with the near misses; or its text. @param {any} section */
function details({ name, items, text, state }) {
  if (!items.length && !text) return null;
  return el("section", { class: "items" },
    el("h4", {}, swatch(name), words(name)),
    el("ol", {},
      text && el("li", {}, el("details", {}, el("summary", {}, el("span", { class: "source" }, "Text"), remark(state)), content({ text, state }))),
      items.map(itemOf)));
}

/** @param {any} item */
function itemOf(item) {
  const relevance = item.relevance === null ? item.rule ?? "" : score(item.relevance);
  const verdict = item.included ? relevance : [relevance, `left out: ${LEFT_OUT[item.left_out] ?? words(item.left_out)}`].filter(Boolean).join(" · ");
  return el("li", { class: item.included ? "" : "left-out" }, el("details", {},
    el("summary", {}, el("span", { class: "source" }, item.source ?? "Erased"), remark(item.state), el("span", { class: "verdict" }, verdict)),
    el("dl", {},
      fact("Rank", item.rank), fact("Relevance", score(item.relevance)), fact("Threshold", score(item.threshold)),
      fact("Cosine", ranked(item.cosine, item.cosine_rank)),
      item.share != null && fact("Words in common", ranked(item.share, item.share_rank)),
      item.rule && fact("Matched by", item.rule),
      item.decided_by && fact("Decided by", item.decided_by), fact("Tokens", count(item.tokens))),
    content(item)));
}

/** A score with its place among the candidates. @param {number | null} value @param {number | null} [rank] */
const ranked = (value, rank) => rank ? `${score(value)} (rank ${rank})` : score(value);

/** @param {string} state */
const remark = (state) => state !== "current" && el("span", { class: "badge warning" }, `${state} since`);

/** @param {{text: string | null, state: string}} stored */
function content({ text, state }) {
  return [state === "changed" && el("p", { class: "remark" }, "This is the text of now; it was another one in that turn."),
    text && el("pre", { tabindex: "0" }, text)];
}

/** @param {any} report */
function facts(report) {
  const { pruning, usage, timings, budget } = report;
  const input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
  const first = timings.first_token_ms;
  return el("dl", { class: "facts" },
    fact("Model", report.model),
    fact("Ended", `${report.status}, ${report.stop_reason ?? "no stop reason"}`),
    fact("Layout", report.layout),
    fact("Pruning", `${pruning.strategy}: ${counted(pruning.turns_kept, "turn")} kept, ${count(pruning.turns_dropped)} dropped`),
    pruning.summary_failed && fact("Summary", "failed; the oldest turns were dropped instead"),
    fact("Input tokens", `${count(input)}: ${count(usage.cache_read_tokens)} read from cache, ${count(usage.cache_write_tokens)} written to it, ${count(usage.input_tokens)} uncached`),
    fact("Output tokens", `${count(usage.output_tokens)} of ${count(budget.output_reserve_tokens)} reserved`),
    fact("Time", `log ${duration(timings.loaded_ms)}, memories ${duration(timings.read_ms)}, assembly ${duration(timings.assemble_ms)}, ` +
      `first word after ${first === null ? "–" : duration(first)}, all ${duration(timings.elapsed_ms)}`),
    report.tools.map((/** @type {any} */ tool) => fact(`Tool ${tool.name}`, `${tool.is_error ? "failed" : "done"}, ${duration(tool.elapsed_ms)}`)));
}

/** @param {string} section */
const swatch = (section) => el("span", { class: "swatch", dataset: { section } });

/** @param {string} name @param {string | number} value */
const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
