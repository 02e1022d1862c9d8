/** The Octopus API as this page uses it. Errors arrive as problem documents (RFC 9457) and leave as `Problem`. */

import { events } from "./sse.js";

/** An answer that is not a success; `message` says what to change. */
export class Problem extends Error {
  /** @param {number} status @param {any} document @param {string | null} [retryAfter] seconds */
  constructor(status, document, retryAfter = null) {
    const wait = retryAfter && document.retryable ? ` Retry in ${retryAfter} s.` : "";
    super((document.detail ?? document.title ?? `The server answered ${status}.`) + wait);
    this.status = status;
    this.retryable = document.retryable ?? status >= 500;
    /** @type {string | null} the field of the request that is wrong */
    this.field = document.field ?? null;
  }
}

export class Api {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
  }

  /** @param {string} path @param {Record<string, string | null | undefined>} [query] */
  get(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value);
    const search = new URLSearchParams(/** @type {[string, string][]} */ (given));
    return this.#json("GET", given.length ? `${path}?${search}` : path);
  }

  /**
   * All items of a list that comes in pages.
   * @param {string} path @param {Record<string, string | null | undefined>} [query]
   * @returns {Promise<any[]>}
   */
  async list(path, query = {}) {
    const items = [];
    for (let cursor = null, first = true; first || cursor; first = false) {
      const page = await this.get(path, { ...query, cursor });
      items.push(...page.items);
      cursor = page.next_cursor;
    }
    return items;
  }

  /** @param {string} path @param {unknown} [body] */
  post(path, body = {}) {
    return this.#json("POST", path, body);
  }

  /** @param {string} path @param {unknown} [body] */
  patch(path, body = {}) {
    return this.#json("PATCH", path, body);
  }

  /** @param {string} path */
  delete(path) {
    return this.#json("DELETE", path);
  }

  /**
   * One turn as its events arrive.
   * @param {unknown} body
   * @param {AbortSignal} signal stops the answer
   */
  async *chat(body, signal) {
    const response = await this.#send("POST", "/chat", body, "text/event-stream", signal);
    yield* events(/** @type {ReadableStream<Uint8Array>} */ (response.body));
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async #json(method, path, body) {
    const response = await this.#send(method, path, body, "application/json");
    return response.status === 204 ? null : response.json();
  }

  /**
   * @param {string} method @param {string} path @param {unknown} body
   * @param {string} accept @param {AbortSignal} [signal]
   */
  async #send(method, path, body, accept, signal) {
    /** @type {Record<string, string>} */
    const headers = { Accept: accept, Authorization: `Bearer ${this.session.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(`/v1${path}`, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
    }).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, { detail: "The server does not answer. Is it running?", retryable: true });
    });
    if (response.ok) return response;
    const problem = new Problem(response.status, await response.json().catch(() => ({})), response.headers.get("Retry-After"));
    if (response.status === 401) this.session.end(problem.message);
    throw problem;
  }
}
