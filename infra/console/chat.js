/** The conversation: its log, the composer, and the answer that is being streamed. */

import { byId, el, fill } from "./dom.js";
import { duration, reason } from "./format.js";
import { messagesOf } from "./transcript.js";
import { TurnView } from "./turn.js";

const NEAR_BOTTOM = 40; // px

export class Chat {
  /** @type {TurnView[]} */
  turns = [];
  /** @type {string | null} the conversation that the log shows */
  #shown = null;
  /** @type {AbortController | null} of the answer under way */
  #answering = null;
  #loads = 0;
  #bottom = 0; // where following the answer has put the top of the log

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./place.js").Place} place
   * @param {{onInspect: (turn: TurnView) => void, onTurn: (turn: TurnView) => void}} listeners
   */
  constructor(api, place, { onInspect, onTurn }) {
    this.api = api;
    this.place = place;
    this.onInspect = onInspect;
    this.onTurn = onTurn;
    this.log = byId("log");
    this.status = byId("chat-status");
    this.input = byId("message");
    this.sendButton = byId("send");
    this.stopButton = byId("stop");
    byId("composer").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#submit();
    });
    this.input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.stopButton.addEventListener("click", () => this.stop());
    place.addEventListener("change", () => this.show());
  }

  /** @returns {boolean} whether there was an answer to stop */
  stop() {
    this.#answering?.abort();
    return this.#answering !== null;
  }

  /** Show what the address says, unless the log shows it already. */
  async show() {
    const { agent, conversation } = this.place;
    if (this.#shown === key(agent, conversation)) return;
    this.#shown = key(agent, conversation);
    this.stop();
    this.turns = [];
    const load = ++this.#loads;
    if (!agent || !conversation) return this.#greet();
    fill(this.log, el("p", { class: "empty" }, "Loading the conversation…"));
    try {
      const messages = await messagesOf(this.api, conversation);
      if (load !== this.#loads) return; // the user has gone elsewhere
      fill(this.log);
      for (const turn of Map.groupBy(messages, ({ turn_id: id }) => id).values()) this.#restore(turn);
      this.#follow(true);
    } catch (error) {
      if (load === this.#loads) fill(this.log, el("p", { class: "notice error" }, reason(error)));
    }
  }

  /** Forget everything; somebody else may sign in. */
  reset() {
    this.stop();
    this.#shown = null;
    this.turns = [];
    fill(this.log);
  }

  #greet() {
    fill(this.log, el("p", { class: "empty" }, this.place.agent
      ? "A new conversation. Ask something; Enter sends, Shift+Enter starts a new line, Escape stops an answer."
      : "There is no agent to talk to."));
  }

  #submit() {
    const message = this.input.value.trim();
    if (!message || this.#answering || !this.place.agent) return;
    this.input.value = "";
    const turn = this.#append(message);
    this.#ask(turn, {
      agent_id: this.place.agent,
      ...(this.place.conversation && { conversation_id: this.place.conversation }),
      message,
      message_id: crypto.randomUUID(),
    });
  }

  /**
   * @param {TurnView} turn
   * @param {Record<string, string>} request sent again unchanged by a retry: the message id makes it the same turn
   */
  async #ask(turn, request) {
    const control = new AbortController();
    this.#busy(control);
    const retry = () => this.#answering || this.#ask(turn, request);
    turn.begin();
    this.#follow(true);
    let ended = false;
    try {
      for await (const { name, data } of this.api.chat(request, control.signal)) {
        if (control.signal.aborted) break;
        if (name === "waiting") turn.wait(data.detail);
        else if (name === "turn_start") this.#started(turn, data);
        else if (name === "memory") turn.memory(data);
        else if (name === "token") turn.add(data.text);
        else if (name === "tool_call") turn.toolCall(data.tool_call_id, data.tool_name);
        else if (name === "tool_result") turn.toolResult(data.tool_call_id, data.is_error, duration(data.elapsed_ms));
        else if (name === "turn_end") {
          ended = true;
          turn.end(`answered in ${duration(data.elapsed_ms)}${data.stop_reason === "end_turn" ? "" : ` · ${data.stop_reason}`}`);
        } else if (name === "error") {
          ended = true;
          turn.fail(data.detail, { retry: data.retryable ? retry : null });
        }
        this.#follow();
      }
      if (!ended && !control.signal.aborted) turn.fail("The connection closed before the answer was complete.", { retry });
    } catch (error) {
      if (!control.signal.aborted) {
        const { message, retryable = true } = /** @type {any} */ (error);
        turn.fail(message, { retry: retryable ? retry : null });
      }
    } finally {
      if (control.signal.aborted) turn.fail("Stopped.", { kind: "warning", retry });
      if (this.#answering === control) this.#busy(null);
      this.#follow();
      if (turn.turnId) this.onTurn(turn);
    }
  }

  /** @param {TurnView} turn @param {{turn_id: string, conversation_id: string, continued_from?: string | null}} start */
  #started(turn, start) {
    turn.known(start.conversation_id, start.turn_id);
    if (start.continued_from) {
      this.log.insertBefore(el("p", { class: "divider" }, "That session had ended; this is a new one."), turn.element);
    }
    this.#shown = key(this.place.agent, start.conversation_id); // the log shows it already
    this.place.go({ conversation: start.conversation_id }, { quietly: true });
  }

  /** @param {AbortController | null} control */
  #busy(control) {
    this.#answering = control;
    this.sendButton.hidden = control !== null;
    this.stopButton.hidden = control === null;
    this.status.textContent = control ? "Answering…" : "";
  }

  /** @param {string} question */
  #append(question) {
    this.log.querySelector(".empty")?.remove();
    const turn = new TurnView(this.turns.length + 1, question, {
      onInspect: this.api.session.mayInspect ? this.onInspect : null,
    });
    this.turns.push(turn);
    this.log.append(turn.element);
    return turn;
  }

  /** @param {boolean} [again] also when the user has scrolled up */
  #follow(again = false) {
    if (!again && this.log.scrollTop < this.#bottom - NEAR_BOTTOM) return;
    this.log.scrollTop = this.log.scrollHeight;
    this.#bottom = this.log.scrollTop;
  }

  /** @param {import("./transcript.js").Message[]} messages of one turn */
  #restore(messages) {
    const blocks = (/** @type {boolean} */ asked) =>
      messages.filter(({ role }) => (role === "user") === asked).flatMap(({ content }) => content);
    const turn = this.#append(blocks(true).map(({ text = "" }) => text).join(""));
    turn.known(/** @type {string} */ (this.place.conversation), messages[0].turn_id);
    for (const block of blocks(false)) {
      if (block.type === "text") turn.add(block.text);
      if (block.type === "tool_use") {
        turn.toolCall(block.id, block.name);
        turn.toolDetail(block.id, block.input);
      }
      if (block.type === "tool_result") {
        turn.toolResult(block.tool_use_id, Boolean(block.is_error));
        turn.toolDetail(block.tool_use_id, block.content);
      }
    }
    const stop = messages.at(-1)?.stop_reason;
    turn.end(stop && stop !== "end_turn" ? `ended early: ${stop}` : "");
  }
}

/** @param {string | null} agent @param {string | null} conversation */
const key = (agent, conversation) => `${agent} ${conversation}`;
