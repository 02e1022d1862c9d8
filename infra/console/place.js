/** Where the user is: view, agent, conversation and procedure, kept in the address so that reload, back and links work. */

const KEYS = ["view", "agent", "conversation", "procedure"];

/** Announces `change` with `detail`: the set of keys that changed. */
export class Place extends EventTarget {
  constructor() {
    super();
    /** @type {Record<string, string | null>} */
    this.now = read();
    addEventListener("hashchange", () => this.#take(read()));
  }

  get view() { return this.now.view ?? "chat"; }
  get agent() { return this.now.agent; }
  get conversation() { return this.now.conversation; }
  get procedure() { return this.now.procedure; }

  /**
   * @param {Record<string, string | null>} change keys to set; null clears one
   * @param {{quietly?: boolean}} [options] quietly: leave no entry in the history
   * @returns {boolean} whether anything changed
   */
  go(change, { quietly = false } = {}) {
    const next = { ...this.now, ...change };
    const hash = new URLSearchParams(/** @type {[string, string][]} */ (KEYS.map((key) => [key, next[key]]).filter(([, v]) => v)));
    if (quietly) history.replaceState(null, "", `#${hash}`);
    else history.pushState(null, "", `#${hash}`);
    return this.#take(next);
  }

  /** Let everybody look again. */
  announce(changed = new Set(KEYS)) {
    this.dispatchEvent(new CustomEvent("change", { detail: changed }));
  }

  /** @param {Record<string, string | null>} next */
  #take(next) {
    const changed = new Set(KEYS.filter((key) => next[key] !== this.now[key]));
    this.now = next;
    if (changed.size) this.announce(changed);
    return changed.size > 0;
  }
}

function read() {
  const hash = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, hash.get(key)]));
}
