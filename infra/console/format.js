/** Numbers and dates for people. */

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });

/** @param {number} n */
export const count = (n) => whole.format(n);

/** @param {number} n @param {string} noun @param {string} [nouns] */
export const counted = (n, noun, nouns = `${noun}s`) => `${count(n)} ${n === 1 ? noun : nouns}`;

/** @param {number} part @param {number} total */
export function percent(part, total) {
  const share = total > 0 ? (100 * part) / total : 0;
  return share > 0 && share < 0.1 ? "< 0.1 %" : `${short.format(share)} %`;
}

/** @param {number} ms */
export const duration = (ms) => (ms < 1000 ? `${short.format(ms < 10 ? ms : Math.round(ms))} ms` : `${short.format(ms / 1000)} s`);

/** @param {number | null | undefined} n a score in [-1, 1] */
export const score = (n) => (n === null || n === undefined ? "–" : n.toFixed(2));

/** @param {number} bytes */
export function size(bytes) {
  for (const [unit, scale] of /** @type {[string, number][]} */ ([["MB", 2 ** 20], ["KB", 2 ** 10]])) {
    if (bytes >= scale) return `${short.format(bytes / scale)} ${unit}`;
  }
  return `${bytes} B`;
}

/** @param {string} iso */
export function when(iso) {
  const then = new Date(iso);
  const day = then.toDateString() === new Date().toDateString() ? "today" : date.format(then);
  return `${day}, ${clock.format(then)}`;
}

/** @param {unknown} error */
export const reason = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string} name a name of the wire, such as `system_prompt` */
export const words = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
