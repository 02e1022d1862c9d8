/** One procedure: its editor, its review beside the conversation that it was learned from, and its versions. */

import { confirmed } from "./confirm.js";
import { byId, el, fill } from "./dom.js";
import { counted, reason, when, words } from "./format.js";
import { area, check, choice, field, number, report, text } from "./forms.js";
import { stepsEditor, stepsOf } from "./steps.js";
import { transcript } from "./transcript.js";

const NEW = {
  procedure_id: null, name: "", description: "", trigger_kind: "phrases", trigger_pattern: "", example_phrases: [], priority: 0,
  is_active: true, steps: [{ instruction: "" }], status: "new", version: null, source_conversation_id: null,
};
const KINDS = /** @type {[string, string][]} */ ([
  ["phrases", "Phrases, one a line"], ["glob", "Glob, as in onboard*vendor"], ["regex", "Regular expression (RE2)"],
]);

export class ProcedurePage {
  /** @type {string | null} what is shown or being fetched */
  #shown = null;

  /** @param {import("./api.js").Api} api @param {import("./place.js").Place} place */
  constructor(api, place) {
    this.api = api;
    this.place = place;
    this.root = byId("procedure");
  }

  /** @param {string} id or `new`; an editor that shows it already is left as it is */
  async show(id) {
    if (this.#shown === id) return;
    this.#shown = id;
    fill(this.root, el("p", { class: "empty" }, "Loading the procedure…"));
    try {
      const procedure = id === "new" ? { ...NEW, agent_id: this.place.agent } : await this.api.get(`/procedures/${id}`);
      if (this.#shown === id) this.#draw(procedure);
    } catch (error) {
      if (this.#shown === id) fill(this.root, this.#back(), el("p", { class: "notice error" }, reason(error)));
    }
  }

  leave() {
    this.#shown = null;
    fill(this.root);
  }

  /** @param {any} procedure @param {string} [news] said in the status line of the editor */
  #draw(procedure, news = "") {
    const title = el("h2", { tabindex: "-1" }, procedure.name || "New procedure");
    const aside = el("div", { class: "aside" });
    const editor = this.#editor(procedure);
    fill(this.root, this.#back(),
      el("header", { class: "actions" }, title, el("span", { class: `badge ${procedure.status}` }, words(procedure.status)),
        procedure.version && el("span", { class: "badge" }, `version ${procedure.version}`)),
      el("div", { class: "split" }, editor, aside));
    report(editor, news);
    title.focus();
    if (!procedure.procedure_id) return fill(aside, el("p", { class: "remark" }, "What an administrator writes is approved as it is saved."));
    this.#besides(procedure).then((parts) => fill(aside, parts));
  }

  #back() {
    return el("p", {}, el("button", { type: "button", class: "quiet link", onclick: () => this.place.go({ procedure: null }) }, "← All procedures"));
  }

  /** @param {any} procedure */
  #editor(procedure) {
    const { procedure_id: id } = procedure;
    const scopes = /** @type {[string, string][]} */ ([["", "every agent"], ...(procedure.agent_id ? [[procedure.agent_id, agentName(procedure.agent_id)]] : [])]);
    const form = el("form", { class: "form", "aria-label": "Procedure" },
      field("Name", text("name", procedure.name, { required: true, maxlength: 200 })),
      field("Description", area("description", procedure.description, { required: true })),
      el("div", { class: "columns" },
        field("Trigger", choice("trigger_kind", procedure.trigger_kind, KINDS)),
        field("Followed by", choice("agent_id", procedure.agent_id ?? "", scopes))),
      field("Pattern", area("trigger_pattern", procedure.trigger_pattern, { required: true, class: "code", spellcheck: "false" })),
      field("Example phrases", area("example_phrases", procedure.example_phrases.join("\n")), "one a line; matched by meaning"),
      el("div", { class: "columns" },
        field("Priority", number("priority", procedure.priority, { min: -1000, max: 1000 })),
        field("In use", check("is_active", procedure.is_active))),
      stepsEditor(procedure.steps),
      el("p", { role: "status" }),
      el("div", { class: "actions" },
        el("button", { type: "submit", class: "primary" }, id ? "Save" : "Create"),
        id && el("button", { type: "button", class: "quiet", onclick: () => this.#delete(form, procedure) }, "Delete")));
    form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.#save(form, procedure);
    });
    return form;
  }

  /** @param {HTMLFormElement} form @param {any} procedure */
  #save(form, procedure) {
    const data = new FormData(form);
    const said = (/** @type {string} */ name) => String(data.get(name)).trim();
    const body = {
      name: said("name"), description: said("description"), trigger_kind: said("trigger_kind"), trigger_pattern: said("trigger_pattern"),
      example_phrases: said("example_phrases").split("\n").map((line) => line.trim()).filter(Boolean),
      priority: Number(said("priority")), is_active: data.has("is_active"), steps: stepsOf(form),
    };
    if (!procedure.procedure_id) return this.#change(form, () => this.api.post("/procedures", { ...body, agent_id: said("agent_id") || null }), "Created.");
    const shared = procedure.agent_id && !said("agent_id") ? { agent_id: null } : {};
    const path = `/procedures/${procedure.procedure_id}`;
    return this.#change(form, () => this.api.patch(path, { ...body, ...shared, version: procedure.version }), "Saved.");
  }

  /** @param {HTMLFormElement} form @param {any} procedure */
  async #delete(form, { procedure_id: id, name }) {
    if (!(await confirmed(`Delete the procedure ${name}?`, "Delete"))) return;
    try {
      await this.api.delete(`/procedures/${id}`);
      this.place.go({ procedure: null });
    } catch (error) {
      report(form, error);
    }
  }

  /** @param {any} procedure */
  async #besides(procedure) {
    const { procedure_id: id, status } = procedure;
    try {
      const [{ evidence, conversation, statistics }, versions] = await Promise.all([
        this.api.get(`/procedures/${id}/review`), this.api.get(`/procedures/${id}/versions`)]);
      return [
        status === "pending" && this.#review(procedure),
        el("p", { class: "remark" }, usage(statistics)),
        evidence.length > 0 && el("section", {}, el("h3", {}, "Evidence"), evidence.map(quoted)),
        conversation.length > 0 && el("section", {}, el("h3", {}, "The conversation that it was learned from"),
          transcript(conversation, evidence.find((/** @type {any} */ { outcome }) => outcome === "captured")?.quote_seq)),
        el("section", {}, el("h3", {}, "Versions"), this.#versions(procedure, versions)),
      ];
    } catch (error) {
      return el("p", { class: "notice error" }, reason(error));
    }
  }

  /** @param {any} procedure */
  #review({ procedure_id: id, version }) {
    const form = el("form", { class: "form card-inline", "aria-label": "Review" },
      el("h3", {}, "Review"),
      el("p", { class: "remark" }, "It is never followed before it is approved. Save what you edit first."),
      field("Note or reason", area("note", "")),
      el("p", { role: "status" }),
      el("div", { class: "actions" },
        el("button", { type: "submit", class: "primary", value: "approve" }, "Approve"),
        el("button", { type: "submit", class: "danger", value: "reject" }, "Reject")));
    form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const note = form.elements.note.value.trim();
      const approve = event.submitter?.getAttribute("value") === "approve";
      const body = approve ? { review_note: note || null, version } : { rejection_reason: note, version };
      this.#change(form, () => this.api.patch(`/procedures/${id}/${approve ? "approve" : "reject"}`, body), approve ? "Approved." : "Rejected.");
    });
    return form;
  }

  /** @param {any} procedure @param {any[]} versions */
  #versions({ procedure_id: id, version: current }, versions) {
    const form = /** @type {HTMLFormElement} */ (this.root.querySelector("form"));
    const rollBack = (/** @type {number} */ version) =>
      this.#change(form, () => this.api.post(`/procedures/${id}/rollback`, { version }), `As in version ${version} again.`);
    return el("ol", { class: "versions" }, versions.map(({ version, change, changed_by: who, changed_at: at, note }) => el("li", {},
      el("p", {}, el("strong", {}, `Version ${version}`), ` ${change} by ${who}, ${when(at)}`),
      note && el("p", { class: "remark" }, note),
      version !== current && el("button", { type: "button", class: "quiet", "aria-label": `Roll back to version ${version}`, onclick: () => rollBack(version) }, "Roll back"))));
  }

  /**
   * @param {HTMLFormElement} form says what went wrong
   * @param {() => Promise<any>} act resolves to the procedure as it is now
   * @param {string} done
   */
  async #change(form, act, done) {
    try {
      const procedure = await act();
      this.#shown = procedure.procedure_id;
      this.place.go({ procedure: procedure.procedure_id }, { quietly: true });
      this.#draw(procedure, done);
    } catch (error) {
      report(form, error);
    }
  }
}

/** @param {string} id */
const agentName = (id) => [...byId("agent").options].find(({ value }) => value === id)?.text ?? "another agent";

/** @param {{matches: number, sessions: number, completions: number | null, last_used_at: string | null}} statistics */
function usage({ matches, sessions, completions, last_used_at: last }) {
  if (!matches) return "Not used yet.";
  const done = completions === null ? "" : `, completed in ${completions}`;
  return `Followed in ${counted(matches, "turn")} of ${counted(sessions, "session")}${done}${last ? `; last ${when(last)}` : ""}.`;
}

/** @param {{quote: string | null, judged_at: string | null}} capture */
function quoted({ quote, judged_at: at }) {
  return el("figure", {}, el("blockquote", {}, quote ?? "–"), at && el("figcaption", { class: "remark" }, `judged ${when(at)}`));
}
