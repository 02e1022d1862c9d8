/** Who is signed in: a bearer token, kept for the life of the tab. */

const KEY = "octopus.token";

/** Announces `change` when somebody signs in or out. */
export class Session extends EventTarget {
  constructor() {
    super();
    /** @type {string | null} why the last session ended, when it was not the user's wish */
    this.endedBecause = null;
    /** @type {string | null} */
    this.token = sessionStorage.getItem(KEY);
    this.#acceptOffer();
    addEventListener("hashchange", () => this.#acceptOffer());
  }

  /** Take a token out of the address (`#token=…`), so that it is neither seen nor bookmarked. */
  #acceptOffer() {
    const hash = new URLSearchParams(location.hash.slice(1));
    const offered = hash.get("token");
    if (!offered) return;
    hash.delete("token");
    history.replaceState(null, "", location.pathname + location.search + (hash.size ? `#${hash}` : ""));
    this.use(offered);
  }

  /** What the token says; the servers verify it, this page only shows it. */
  get claims() {
    try {
      const payload = (this.token ?? "").split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
      const bytes = Uint8Array.from(atob(payload), (char) => char.charCodeAt(0));
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch {
      return {};
    }
  }

  get roles() {
    const groups = this.claims["cognito:groups"] ?? this.claims.groups ?? [];
    return new Set(typeof groups === "string" ? groups.split(" ") : groups);
  }

  get isAdmin() {
    return this.roles.has("OctopusAdmin");
  }

  get mayInspect() {
    return this.roles.has("OctopusDebug");
  }

  /**
   * Get a token from the local issuer.
   * @param {{tenant_id: string, sub: string, groups: string[]}} who
   */
  async signIn(who) {
    const response = await fetch("/issuer/token", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(who),
    });
    const body = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(body.error_description ?? `The issuer answered ${response.status}; paste a token instead.`);
    this.use(body.access_token);
  }

  /** @param {string} token */
  use(token) {
    this.token = token.trim().replace(/^bearer\s+/i, "");
    this.endedBecause = null;
    sessionStorage.setItem(KEY, this.token);
    this.dispatchEvent(new Event("change"));
  }

  /** @param {string | null} [because] */
  end(because = null) {
    this.token = null;
    this.endedBecause = because;
    sessionStorage.removeItem(KEY);
    this.dispatchEvent(new Event("change"));
  }
}
