/** The agent itself: its prompt, and how its memory is configured. */

import { byId, el, fill } from "./dom.js";
import { reason } from "./format.js";
import { area, check, choice, field, number, report, text } from "./forms.js";

const SCORE = { min: 0, max: 1, step: 0.01 };

/**
 * The properties of the memory configuration: name, label, hint, and the choices or the range.
 * @type {Record<string, [string, string, string, (string[] | Record<string, number>)?][]>}
 */
const MEMORY = {
  "Working memory": [
    ["max_working_memory_tokens", "Budget", "tokens", { min: 1000, max: 1_000_000 }],
    ["output_reserve_tokens", "Kept for the answer", "tokens", { min: 256, max: 128_000 }],
    ["reserved_for_current", "Kept for the message and tools", "tokens", { min: 0, max: 100_000 }],
    ["pruning_strategy", "Pruning of history", "", ["fifo", "sliding_window", "summarize"]],
    ["sliding_window_turns", "Sliding window", "turns", { min: 1, max: 1000 }],
    ["min_history_turns", "History that is always kept", "turns", { min: 0, max: 100 }],
    ["context_layout", "Layout", "cache: history before the memories", ["documented", "cache"]],
  ],
  Episodes: [
    ["episodic_enabled", "Recall past sessions", ""],
    ["episodic_recall_mode", "Recall by", "", ["semantic", "recency", "both"]],
    ["episodic_top_k", "At most", "episodes", { min: 1, max: 50 }],
    ["episodic_min_score", "Minimum relevance", "0 to 1", SCORE],
    ["episodic_max_tokens", "Section", "tokens", { min: 50, max: 100_000 }],
    ["session_idle_minutes", "A session ends when idle for", "minutes", { min: 1, max: 10_080 }],
    ["session_max_hours", "A session lasts at most", "hours", { min: 1, max: 168 }],
    ["episodic_retention_days", "Messages are kept", "days; 0: always", { min: 0, max: 36_500 }],
    ["episodic_archive_days", "Episodes are kept", "days; 0: always", { min: 0, max: 36_500 }],
    ["pii_redaction", "Redact personal data", "before anything is stored of a session"],
  ],
  Knowledge: [
    ["semantic_enabled", "Recall documents", ""],
    ["semantic_search", "Search", "", ["vector", "hybrid"]],
    ["semantic_top_k", "At most", "chunks", { min: 1, max: 50 }],
    ["semantic_min_score", "Minimum relevance", "0 to 1", SCORE],
    ["semantic_context_max_tokens", "Section", "tokens", { min: 50, max: 100_000 }],
  ],
  Procedures: [
    ["procedural_enabled", "Follow procedures", ""],
    ["procedural_min_score", "Minimum relevance", "0 to 1; for matches by meaning", SCORE],
    ["procedural_learning", "Learn from conversations", "candidates wait for a review"],
  ],
};

export class AgentPage {
  #loads = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./place.js").Place} place
   * @param {(agentId: string) => void} onChange an agent is new or has another name
   */
  constructor(api, place, onChange) {
    this.api = api;
    this.place = place;
    this.onChange = onChange;
    this.root = byId("agent-body");
    byId("new-agent").addEventListener("click", () => this.#draw(null));
    place.addEventListener("change", () => this.load());
  }

  async load() {
    const load = ++this.#loads;
    const { view, agent } = this.place;
    if (view !== "agent" || !this.api.session.isAdmin) return;
    try {
      const shown = agent && await this.api.get(`/agents/${agent}`);
      if (load === this.#loads) this.#draw(shown || null);
    } catch (error) {
      if (load === this.#loads) fill(this.root, el("p", { class: "notice error" }, reason(error)));
    }
  }

  /** @param {any} agent null: one that is to be made */
  #draw(agent) {
    fill(this.root, this.#identity(agent), agent && this.#memory(agent));
    if (!agent) this.root.querySelector("input").focus();
  }

  /** @param {any} agent */
  #identity(agent) {
    const form = el("form", { class: "form", "aria-label": "Agent" },
      el("h2", {}, agent ? "Who it is" : "A new agent"),
      field("Name", text("name", agent?.name, { required: true, maxlength: 200 })),
      field("Description", text("description", agent?.description)),
      field("System prompt", area("system_prompt", agent?.system_prompt ?? "", { required: true, rows: 6 })),
      field("Model", text("model", agent?.model), "empty: the configured one"),
      el("p", { role: "status" }),
      el("div", { class: "actions" }, el("button", { type: "submit", class: "primary" }, agent ? "Save" : "Create")));
    this.#onSubmit(form, async () => {
      const body = { ...Object.fromEntries(new FormData(form)), model: form.elements.model.value.trim() || null };
      const saved = agent ? await this.api.patch(`/agents/${agent.agent_id}`, body) : await this.api.post("/agents", body);
      this.onChange(saved.agent_id);
    });
    return form;
  }

  /** @param {any} agent */
  #memory({ agent_id: id, memory_config: config }) {
    const form = el("form", { class: "form", "aria-label": "Memory" },
      el("h2", {}, "How it remembers"),
      el("p", { class: "remark" }, "A change holds from the next turn on, in running conversations too."),
      el("div", { class: "groups" }, Object.entries(MEMORY).map(([group, properties]) =>
        el("fieldset", {}, el("legend", {}, group), properties.map(([name, label, hint, kind]) => field(label, control(name, config[name], kind), hint))))),
      el("p", { role: "status" }),
      el("div", { class: "actions" }, el("button", { type: "submit", class: "primary" }, "Save")));
    this.#onSubmit(form, async () => {
      const names = Object.values(MEMORY).flatMap((properties) => properties.map(([name]) => name));
      const changed = names.filter((name) => valueOf(form.elements[name]) !== config[name]);
      const changes = Object.fromEntries(changed.map((name) => [name, valueOf(form.elements[name])]));
      Object.assign(config, await this.api.patch(`/agents/${id}/memory-config`, changes));
    });
    return form;
  }

  /** @param {HTMLFormElement} form @param {() => Promise<void>} save */
  #onSubmit(form, save) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await save();
        report(form, "Saved.");
      } catch (error) {
        report(form, error);
      }
    });
  }
}

/** @param {string} name @param {any} value @param {string[] | Record<string, number>} [kind] */
function control(name, value, kind) {
  if (!kind) return check(name, value);
  return Array.isArray(kind) ? choice(name, value, kind.map((option) => [option, option.replace("_", " ")])) : number(name, value, kind);
}

/** @param {HTMLInputElement} input */
function valueOf(input) {
  if (input.type === "checkbox") return input.checked;
  return input.type === "number" ? Number(input.value) : input.value;
}
