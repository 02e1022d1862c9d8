/** The agent's documents: upload, status, reindex, delete. */

import { confirmed } from "./confirm.js";
import { byId, el, fill, redraw } from "./dom.js";
import { count, counted, reason, score, size, when, words } from "./format.js";

const POLL_MS = 1000; // while a document is on its way
const POLL_MAX_MS = 10_000;

export class Knowledge {
  #loads = 0;
  #timer = 0;

  /** @param {import("./api.js").Api} api @param {import("./place.js").Place} place */
  constructor(api, place) {
    this.api = api;
    this.place = place;
    this.rows = byId("documents");
    this.status = byId("knowledge-status");
    this.input = byId("files");
    const zone = byId("drop");
    this.input.addEventListener("change", () => this.#uploadAll());
    for (const name of ["dragover", "dragleave", "drop"]) {
      zone.addEventListener(name, (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        zone.classList.toggle("over", name === "dragover");
        if (name === "drop") this.#uploadAll(event.dataTransfer?.files);
      });
    }
    byId("knowledge-search").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#search(byId("knowledge-query").value.trim());
    });
    byId("reindex-all").addEventListener("click", () =>
      this.#change(() => this.api.post(`${this.#path}/reindex-all`), "Every document will be indexed again."));
    place.addEventListener("change", (/** @type {any} */ { detail: changed }) => {
      if (changed.has("agent")) fill(byId("found"));
      this.load();
    });
  }

  get #path() {
    return `/agents/${this.place.agent}/documents`;
  }

  /** @param {number} [wait] ms until the next look at unfinished documents; grows while nothing changes */
  async load(wait = POLL_MS) {
    clearTimeout(this.#timer);
    const load = ++this.#loads;
    if (this.place.view !== "knowledge" || !this.place.agent || !this.api.session.isAdmin) return;
    try {
      const documents = await this.api.get(this.#path);
      if (load !== this.#loads) return;
      redraw(this.rows, documents.map((/** @type {any} */ document) => this.#row(document)),
        !documents.length && el("tr", {}, el("td", { colspan: 6, class: "empty" }, "No documents yet.")));
      if (documents.some((/** @type {any} */ { status }) => status === "pending" || status === "indexing")) {
        this.#timer = setTimeout(() => this.load(Math.min(wait * 1.3, POLL_MAX_MS)), wait);
      }
    } catch (error) {
      if (load === this.#loads) this.#say(error);
    }
  }

  /** @param {any} document */
  #row(document) {
    const { document_id: id, file_name: name, status, failure_reason: reason } = document;
    const button = (/** @type {string} */ label, /** @type {() => unknown} */ act) =>
      el("button", { type: "button", class: "quiet", "aria-label": `${label} ${name}`, dataset: { key: `${label} ${id}` }, onclick: act }, label);
    return el("tr", { dataset: { document: id } },
      el("th", { scope: "row" }, name),
      el("td", {}, el("span", { class: `badge ${status}` }, words(status)), reason && el("p", { class: "remark" }, reason)),
      el("td", { dataset: { label: "Size" } }, document.size_bytes === null ? "–" : size(document.size_bytes)),
      el("td", { dataset: { label: "Chunks" } }, count(document.chunk_count)),
      el("td", { dataset: { label: "Changed" } }, when(document.updated_at)),
      el("td", {}, el("div", { class: "actions" },
        button("Reindex", () => this.#change(() => this.api.patch(`${this.#path}/${id}/reindex`), `${name} will be indexed again.`)),
        button("Delete", async () => {
          if (await confirmed(`Delete ${name} and what was learned from it?`, "Delete")) {
            await this.#change(() => this.api.delete(`${this.#path}/${id}`), `${name} is deleted.`);
          }
        }))));
  }

  /** @param {string} query */
  async #search(query) {
    const found = byId("found");
    if (!query) return fill(found);
    try {
      const { semantic_min_score: minimum, semantic_top_k: most } = await this.api.get(`/agents/${this.place.agent}/memory-config`);
      const { chunks, near_misses: misses } = await this.api.post(`/agents/${this.place.agent}/knowledge/search`, { query, min_score: minimum, top_k: most });
      fill(found, el("p", { class: "remark" }, `${counted(chunks.length, "chunk")} of relevance ${score(minimum)} or more, ${counted(misses.length, "near miss", "near misses")}`),
        el("ol", {}, [...chunks, ...misses].map(chunkFound)));
    } catch (error) {
      fill(found, el("p", { class: "notice error" }, reason(error)));
    }
  }

  /** @param {FileList | undefined | null} [files] */
  async #uploadAll(files = this.input.files) {
    const chosen = [...(files ?? [])];
    this.input.value = "";
    for (const file of chosen) {
      this.#say(`Uploading ${file.name}…`);
      await this.#change(() => this.#upload(file), `${file.name} is uploaded and will be indexed.`);
    }
  }

  /** @param {File} file */
  async #upload(file) {
    const { upload } = await this.api.post(this.#path, {
      file_name: file.name, media_type: file.type || null, size_bytes: file.size,
    });
    const form = new FormData();
    for (const [name, value] of Object.entries(upload.fields)) form.append(name, String(value));
    form.append("file", file); // S3 ignores what follows the file
    const response = await fetch(upload.url, { method: "POST", body: form });
    if (!response.ok) throw new Error(`${file.name} could not be stored: the bucket answered ${response.status}.`);
  }

  /** @param {() => Promise<unknown>} act @param {string} done */
  async #change(act, done) {
    try {
      await act();
      this.#say(done);
    } catch (error) {
      this.#say(error);
    }
    await this.load();
  }

  /** @param {unknown} what a remark or an error */
  #say(what) {
    this.status.textContent = reason(what);
    this.status.classList.toggle("error", what instanceof Error);
  }
}

/** @param {any} chunk */
function chunkFound({ file_name: name, heading, page, content, score: { relevance, cosine } }) {
  const place = [heading, page && `page ${page}`].filter(Boolean).join(", ");
  return el("li", {}, el("details", {},
    el("summary", {}, place ? `${name} (${place})` : name, el("small", {}, ` relevance ${score(relevance)}, cosine ${score(cosine)}`)),
    el("pre", { tabindex: "0" }, content)));
}
