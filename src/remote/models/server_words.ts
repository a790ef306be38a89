/** What a model server says of why it refuses, for the log and the operator. */

/** One line of at most 300 characters, without keys; null where the body has no words. */
export function serverWords(body: Uint8Array, secrets: readonly string[]): string | null {
  const text = new TextDecoder().decode(body).toWellFormed();
  const told = wordsOf(text).replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  const known = secrets.filter((secret) => secret !== "")
    .reduce((line, secret) => line.replaceAll(secret, HIDDEN), told);
  const line = known
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]{1,300}@/gi, `$1${HIDDEN}@`)
    .replace(/([?&][\w.-]{1,60}=)[^\s&"'<>]+/g, `$1${HIDDEN}`)
    .replace(/\b(bearer|basic)\s+[^\s"',;]+/gi, `$1 ${HIDDEN}`)
    .replace(/\b(?:sk|pk|gsk|hf|xai|AIza)[-_*A-Za-z0-9]{8,}/g, HIDDEN)
    .replace(/\b(?=\w*\d)(?=\w*[A-Za-z])\w{32,}\b/g, HIDDEN);
  if (line === "") return null;
  return line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

const WORDS_MAX = 300;
const HIDDEN = "***";

/** The message in the forms of OpenAI, vLLM, Ollama, FastAPI and Google; else the text itself, of HTML its words. */
function wordsOf(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.replace(/<(?:style|script)\b[^>]{0,200}>[^<]*/gi, " ").replace(/<[^<>]{0,1000}>/g, " ");
  }
  for (let depth = 0; depth < 4; depth++) {
    if (typeof value === "string") return value;
    if (Array.isArray(value)) value = value[0];
    if (typeof value !== "object" || value === null) break;
    const { error, message, detail, msg } = value as Record<string, unknown>;
    value = error ?? message ?? detail ?? msg;
  }
  return typeof value === "string" ? value : text;
}
