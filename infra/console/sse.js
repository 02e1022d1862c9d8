/** Server-sent events over fetch (the WHATWG event stream format; EventSource can neither POST nor send a token). */

/**
 * @typedef {{name: string, data: any}} StreamEvent `data` is the parsed JSON
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<StreamEvent>}
 */
export async function* events(body) {
  let name = "message";
  /** @type {string[]} */
  let data = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length) yield { name, data: JSON.parse(data.join("\n")) };
      [name, data] = ["message", []];
    } else if (!line.startsWith(":")) { // a comment only keeps the connection open
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      if (field === "data") data.push(value);
    }
  }
}

/** @param {ReadableStream<Uint8Array>} body */
async function* lines(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const complete = rest.split("\n");
      rest = /** @type {string} */ (complete.pop());
      for (const line of complete) yield line.replace(/\r$/, "");
      if (done) return;
    }
  } finally {
    await reader.cancel(); // also when the consumer stops early: the server learns that nobody listens
  }
}
