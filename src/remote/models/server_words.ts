/** What a model server says of why it refuses, for the log and the operator, and when it wants to be asked
 * again.
 */

import { boundedWait } from "../../base/retry_after.ts";

/**
 * The words of a server's answer: one line of at most 300 characters, without keys; null where the body has
 * none.
 */
export function serverWords(body: Uint8Array, secrets: readonly string[]): string | null {
  const text = new TextDecoder().decode(body).toWellFormed();
  const told = (wordsOf(text) ?? text).replace(ANSI, "").replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  const known = secrets.flatMap(spellings).reduce((line, secret) => line.replaceAll(secret, HIDDEN), told);
  const line = HIDING.reduce((words, [pattern, put]) => words.replace(pattern, put), known);
  if (line === "") return null;
  return line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

const WORDS_MAX = 300;
const HIDDEN = "***";
// deno-lint-ignore no-control-regex
const ANSI = /\x1b\[[\d;]*[A-Za-z]/g;

/** How a server may repeat a secret: as it is, in a query and in JSON. */
function spellings(secret: string): string[] {
  return secret === "" ? [] : [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
}

/** What looks like a secret, and what is put there. */
const HIDING: readonly (readonly [RegExp, string])[] = [
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]{1,300}@/gi, `$1${HIDDEN}@`],
  [/([?&][\w.-]{1,60}=)[^\s&"'<>]+/g, `$1${HIDDEN}`],
  [/\b(bearer|basic)\s+[^\s"',;]+/gi, `$1 ${HIDDEN}`],
  [
    /((?:key|token|secret|passw(?:or)?d|pwd|authorization|credential)["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|apikey)\s+)?)[^\s"',;}]+/gi,
    `$1${HIDDEN}`,
  ],
  [/\b((?:key|token|secret|password)\s+["'`(]?)(?=[^\s"'`)]*\d)[^\s"'`)]{8,}/gi, `$1${HIDDEN}`],
  [/\beyJ[\w-]{5,}\.[\w.-]+/g, HIDDEN],
  [
    /\b(?:sk|pk|rk|gsk|csk|hf|xai|AIza|AKIA|ASIA|nvapi|gh[a-z]|github|glpat|xox[a-z]|r8|fw|pplx|tgp)[-_*A-Za-z0-9]{8,}/g,
    HIDDEN,
  ],
  [/\b(?=\w*\d)(?=\w*[A-Za-z])\w{32,}\b/g, HIDDEN],
];

/**
 * The message in the forms of OpenAI, vLLM, Ollama, FastAPI, Google and others; else the text itself, of HTML
 * its words.
 */
function wordsOf(text: string): string | null {
  const event = /^(?:event:[^\n]*\n)?data: *([{[][^\n]*)/.exec(text.trimStart())?.[1];
  try {
    return saidIn(JSON.parse(event ?? text), 0);
  } catch {
    return text.replace(/<(?:style|script)\b[^>]{0,200}>[^<]*/gi, " ").replace(/<[^<>]{0,1000}>/g, " ")
      .replace(/&(?:#39|\w{2,4});/g, (entity) => ENTITIES.get(entity) ?? entity);
  }
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["&amp;", "&"],
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&#39;", "'"],
  ["&nbsp;", " "],
]);

/** Where servers have their words, the likeliest first. */
const PLACES = [
  ...["error", "errors", "message", "error_message", "errorMessage", "detail", "reason", "msg"],
  ...["fault", "faultstring", "error_description", "title"],
];
const DEPTH_MAX = 6;

function saidIn(value: unknown, depth: number): string | null {
  if (depth > DEPTH_MAX || typeof value !== "object" || value === null) {
    return typeof value === "string" && value.trim() !== "" ? withinText(value, depth) : null;
  }
  const parts = Array.isArray(value) ? value.slice(0, 1) : PLACES.map((name) => Reflect.get(value, name));
  const said = parts.map((part) => saidIn(part, depth + 1)).find((words) => words !== null) ?? null;
  // A server that asks others for the answer has there what they said.
  const { raw } = (Reflect.get(value, "metadata") ?? {}) as { raw?: unknown };
  const further = typeof raw === "string" ? saidIn(raw, depth + 1) : null;
  return said !== null && further !== null ? `${said}: ${further}` : said;
}

/** The message within a text, which may be an error that another server wrote, passed on. */
function withinText(text: string, depth: number): string {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    return saidIn(JSON.parse(text), depth + 1) ?? text;
  } catch {
    return text;
  }
}

/**
 * The wait for which a refusal asks in its body: `"retryDelay": "11s"` of Google, `"retry_after": 3`, "try
 * again in 1m2.5s". Null where it asks for none. At most a day.
 */
export function waitMsIn(text: string): number | null {
  const field = FIELD.exec(text);
  if (field !== null) return boundedWait(Number(field[2]) * (field[1] === "_ms" ? 1 : 1000));
  const { groups: { hours = 0, minutes = 0, amount, unit } = {} } = WORDS.exec(text) ?? {};
  if (amount === undefined) return null;
  const seconds = (Number(hours) * 60 + Number(minutes)) * 60;
  return boundedWait(seconds * 1000 + Number(amount) * (/^m/i.test(unit!) ? 1 : 1000));
}

const FIELD = /"(?:retryDelay|retry_?after(_ms)?|estimated_time)"\s*:\s*"?(\d{1,9}(?:\.\d{1,9})?)/i;
const WORDS =
  /\b(?:try again|retry(?:ing)?) (?:in|after) +(?:(?<hours>\d{1,3})h)?(?:(?<minutes>\d{1,4})m)?(?<amount>\d{1,9}(?:\.\d{1,9})?) ?(?<unit>ms|milliseconds?|s\b|sec)/i;
