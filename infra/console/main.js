/** The console: one page over the Octopus API. */

import { AgentPage } from "./agent.js";
import { Api } from "./api.js";
import { Chat } from "./chat.js";
import { Conversations } from "./conversations.js";
import { byId, el, fill } from "./dom.js";
import { Episodes } from "./episodes.js";
import { reason, words } from "./format.js";
import { Inspector } from "./inspector.js";
import { Knowledge } from "./knowledge.js";
import { Place } from "./place.js";
import { Session } from "./session.js";
import { Skills } from "./skills.js";

const VIEWS = ["chat", "knowledge", "skills", "episodes", "agent"];

const session = new Session();
const place = new Place();
const api = new Api(session);
const chat = new Chat(api, place, { onInspect: (turn) => inspector.open(turn), onTurn: answered });
const inspector = new Inspector(api, place, () => chat.turns);
const conversations = new Conversations(api, place);
new Knowledge(api, place);
new Skills(api, place);
new Episodes(api, place);
new AgentPage(api, place, agentChanged);
const agentPicker = byId("agent");

/** Tenant and user. */
let shownTo = "";

session.addEventListener("change", enter);
place.addEventListener("change", showView);
agentPicker.addEventListener("change", () => place.go({ agent: agentPicker.value, conversation: null, procedure: null }));
byId("sign-out").addEventListener("click", () => {
  session.end();
  location.assign(location.pathname); // nothing of what was shown stays in the page
});
byId("skip").addEventListener("click", (/** @type {Event} */ event) => {
  event.preventDefault();
  byId("main").focus();
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || byId("confirm").open) return;
  if (!chat.stop() && inspector.isOpen) inspector.close();
});
signInForms();
byId("conversation-drawer").open = !matchMedia("(max-width: 720px)").matches;
enter();

/** Show the page of whoever is signed in, or the way to sign in. */
async function enter() {
  const signedIn = session.token !== null;
  byId("sign-in").hidden = signedIn;
  byId("app").hidden = !signedIn;
  byId("account").hidden = !signedIn;
  byId("views").hidden = !signedIn;
  byId("sign-in-error").textContent = session.endedBecause ?? "";
  chat.reset();
  conversations.clear();
  if (!signedIn) {
    inspector.close();
    byId("user").focus();
    return;
  }
  const { sub = "unknown", tenant_id: tenant = "unknown" } = session.claims;
  if (shownTo && shownTo !== `${tenant} ${sub}`) return location.reload(); // somebody else, after a token expired
  shownTo = `${tenant} ${sub}`;
  fill(byId("who"), el("strong", {}, sub), ` at ${tenant}`);
  fill(byId("roles"), [...session.roles].map((role) => el("span", { class: "badge" }, String(role).replace("Octopus", ""))));
  for (const part of document.querySelectorAll("[data-for]")) {
    /** @type {HTMLElement} */ (part).hidden = (part.getAttribute("data-for") === "OctopusAdmin") !== session.isAdmin;
  }
  if (!(await chooseAgent())) place.announce();
}

/** @returns {Promise<boolean>} whether the choice has changed the place */
async function chooseAgent() {
  try {
    const agents = await api.get("/agents");
    const known = agents.find((/** @type {any} */ { agent_id: id }) => id === place.agent) ?? agents[0];
    fill(agentPicker, agents.map((/** @type {any} */ { agent_id: id, name }) => el("option", { value: id }, name)));
    byId("page-error").textContent = agents.length ? "" : "There is no agent yet; an administrator can make one under Agent.";
    agentPicker.value = place.agent ?? "";
    if (known?.agent_id === place.agent) return false;
    return place.go({ agent: known?.agent_id ?? null, conversation: null }, { quietly: true });
  } catch (error) {
    byId("page-error").textContent = reason(error);
    return false;
  }
}

function showView() {
  document.title = `${words(place.view)} – Octopus console`;
  for (const view of VIEWS) {
    byId(`view-${view}`).hidden = view !== place.view;
    const link = byId(`to-${view}`);
    link.href = `#view=${view}`;
    if (view === place.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.onclick = (/** @type {Event} */ event) => {
      event.preventDefault();
      place.go({ view, procedure: null });
    };
  }
  if (place.agent) agentPicker.value = place.agent;
}

/** @param {string} agent */
async function agentChanged(agent) {
  await chooseAgent();
  if (agent !== place.agent) place.go({ agent, conversation: null });
}

/** @param {import("./turn.js").TurnView} turn */
function answered(turn) {
  conversations.load();
  inspector.follow(turn);
}

function signInForms() {
  byId("sign-in-form").addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    try {
      await session.signIn({
        tenant_id: String(form.get("tenant")), sub: String(form.get("user")), groups: form.getAll("role").map(String),
      });
    } catch (error) {
      byId("sign-in-error").textContent = reason(error);
    }
  });
  byId("token-form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const field = byId("token");
    if (field.value.trim()) session.use(field.value);
    field.value = "";
  });
}
