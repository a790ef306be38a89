/** What is checked: headers and a body as a person has pasted them, and what is wrong with them. Nothing of
 * it is sent or stored.
 */

import { signal } from "@preact/signals";
import { verifyWebhook } from "../../../../client/mod.ts";
import { whenCallerChanges } from "../../../service/session.ts";
import { durationText } from "../../../text/time.ts";

export interface Pasted {
  readonly headers: string;
  readonly body: string;
}

const NOTHING: Pasted = { headers: "", body: "" };
export const pasted = signal<Pasted>(NOTHING);
whenCallerChanges(() => void (pasted.value = NOTHING));
/** Counts the wishes to check a delivery, so that the box comes into view. */
export const checkWishes = signal(0);

/** Puts a delivery into the box. */
export function checkThis(headers: string, body: string): void {
  pasted.value = { headers, body };
  checkWishes.value += 1;
}

export interface Verdict {
  readonly isRight: boolean;
  readonly text: string;
}

/** Receivers refuse older deliveries. */
const TOLERANCE_MS = 300_000;
const NEEDED = [
  "webhook-id",
  "webhook-timestamp",
  "webhook-signature",
  "x-service-signature",
];

/** Whether the signatures are right, and if not, why; null while something is still missing. */
export async function verdict(
  secret: string,
  { headers: text, body }: Pasted,
  nowMs: number,
): Promise<Verdict | null> {
  if (secret.trim() === "" || text.trim() === "" || body === "") return null;
  const wrong = (why: string) => ({ isRight: false, text: why });
  if (!/^[0-9a-f]{64}$/i.test(secret.trim())) {
    return wrong(
      "The secret must be the 64 hex digits that were shown when the webhook was made.",
    );
  }
  const headers = headersOf(text);
  const missing = NEEDED.filter((name) => headers[name] === undefined);
  if (missing.length > 0) {
    return wrong(`These headers are missing: ${missing.join(", ")}.`);
  }
  const sentMs = Number(headers["webhook-timestamp"]) * 1000;
  const isOf = (text: string) => verifyWebhook(headers, text, secret.trim(), { nowMs: sentMs });
  if (await isOf(body)) {
    const ageMs = Math.abs(nowMs - sentMs);
    return ageMs <= TOLERANCE_MS ? { isRight: true, text: "The signatures are right." } : {
      isRight: true,
      text: `The signatures are right. The delivery is ${
        durationText(ageMs)
      } old: a receiver that gets it now refuses it.`,
    };
  }
  if (await isOf(body.trim())) {
    return wrong(
      "The signatures are right without the blanks or line breaks around the body: those were not sent.",
    );
  }
  if (
    await verifyWebhook(headers, body, secret.trim(), { toleranceSecs: null })
  ) {
    return wrong(
      "The body is right, but webhook-id, webhook-timestamp or webhook-signature is not as it was sent.",
    );
  }
  return wrong(
    "The signatures are not of this body with this secret: one of them was changed, or the secret is another webhook's.",
  );
}

/** `name: value` in lines, or a JSON object. */
function headersOf(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of entriesOf(text)) {
    headers[name.trim().toLowerCase()] = value.trim();
  }
  return headers;
}

function entriesOf(text: string): [string, string][] {
  if (text.trim().startsWith("{")) {
    try {
      return Object.entries(JSON.parse(text)).map((
        [name, value],
      ) => [name, String(value)]);
    } catch {
      // read as lines
    }
  }
  return text.split("\n").map((line) => line.replace(/^[<>]\s*/, "").split(/:(.*)/s))
    .filter((parts) => parts.length > 1).map((
      [name, value],
    ) => [name!, value!]);
}
