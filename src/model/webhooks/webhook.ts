/** The rules of webhooks: what may be registered, the fold of their events, and which events match one. See
 * docs/events/webhooks.md.
 */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../contract/refusal.ts";
import { isBookkeeping } from "../events/event_table.ts";
import { quoted } from "../field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type Cooldown, storedCooldown } from "./cooldown.ts";
import { mayBeDisarmed, storedFilter, type WebhookFilter } from "./filter.ts";

/** A webhook as its `webhook_registered` event describes it. */
export interface Webhook {
  readonly webhookId: string;
  readonly runId: string;
  readonly url: string;
  /** The exact kinds, sorted, each once; empty for every kind that is not bookkeeping. */
  readonly eventKinds: readonly string[];
  /** The conditions on the content of events; null for none. */
  readonly filter: WebhookFilter | null;
  readonly cooldown: Cooldown | null;
  /** Which webhook of the file of sources it is; null for one that a caller registered. */
  readonly source: WebhookOfSource | null;
  /** The event behind which events are delivered: those with a higher seq. */
  readonly registeredSeq: number;
}

export interface WebhookOfSource {
  /** The name of the source. */
  readonly name: string;
  /** The name of the webhook in it. */
  readonly webhook: string;
}

/** A new webhook id: `wh_` and 24 hex digits from 12 secure random bytes. */
export function newWebhookId(randomBytes: (length: number) => Uint8Array<ArrayBuffer>): string {
  return `wh_${randomBytes(12).toHex()}`;
}

/**
 * The target of a registration, trimmed but otherwise unchanged, and its host name without the brackets of an
 * IPv6 address. Errors: 422 `url` with the rule of `targetFault`.
 */
export function webhookTarget(given: string, allowPrivate: boolean): { url: string; hostname: string } {
  const url = given.trim();
  const fault = targetFault(url, allowPrivate);
  if (fault === null) return { url, hostname: new URL(url).hostname.replace(/^\[|\]$/g, "") };
  // A URL with a password is not repeated.
  throw refuse.invalid("url", url.includes("@") ? fault : `${fault}: got ${quoted(url)}`);
}

/**
 * The rule that the target of a webhook breaks, null for none. It must have at most 2048 bytes, be https (or
 * http with `allowPrivate`), and have no user info and no fragment. Whether the host is public is checked
 * later, with its addresses.
 */
export function targetFault(url: string, allowPrivate: boolean): string | null {
  const bytes = utf8Length(url);
  if (bytes > LIMITS.webhook.urlBytesMax) {
    return `must be at most ${LIMITS.webhook.urlBytesMax} bytes, is ${bytes}`;
  }
  // The URL parser silently removes line breaks and tabs, so a URL with them is refused.
  const parsed = HAS_BLANK.test(url) || !url.isWellFormed() ? null : URL.parse(url);
  if (parsed === null) return "must be an absolute URL";
  if (parsed.protocol !== "https:" && !(allowPrivate && parsed.protocol === "http:")) {
    return allowPrivate ? "must be an https: or http: URL" : "must be an https: URL";
  }
  if (HAS_USER_INFO.test(url)) return "must have no user name or password";
  return url.includes("#") ? "must have no fragment" : null;
}

// deno-lint-ignore no-control-regex -- control characters are searched for
const HAS_BLANK = /[\u0000-\u0020\u007f]/;
/**
 * Whether a URL has user info. An empty user name counts as well, and the URL parser reads a backslash as a
 * slash.
 */
const HAS_USER_INFO = /^[a-z]+:[/\\]*[^/\\?#]*@/i;

/** The kinds of a registration, trimmed and sorted, without duplicates. Errors: 422 `event_kinds`. */
export function webhookKinds(given: readonly string[]): string[] {
  const fault = (rule: string) => refuse.invalid("event_kinds", rule);
  const { minimum, maximum } = LIMITS.webhook.kindBytes;
  if (given.length > LIMITS.webhook.eventKindsMax) {
    throw fault(`must have at most ${LIMITS.webhook.eventKindsMax} entries: got ${given.length}`);
  }
  const kinds = given.map((kind) => kind.trim());
  for (const kind of kinds) {
    const bytes = utf8Length(kind);
    if (bytes < minimum || bytes > maximum) {
      throw fault(`entries must have from ${minimum} to ${maximum} bytes: got ${bytes}`);
    }
    if (isBookkeeping(kind)) throw fault(`must not name webhook_ kinds: got ${quoted(kind)}`);
  }
  return [...new Set(kinds)].sort();
}

/** The kinds of the events that create and remove webhooks. */
export const WEBHOOK_KINDS: ReadonlySet<string> = new Set(["webhook_registered", "webhook_deleted"]);

/**
 * Folds one event of `WEBHOOK_KINDS`, in sequence order, into the webhooks by id. A malformed payload is
 * ignored.
 */
export function foldWebhook(
  hooks: Map<string, Webhook>,
  event: { readonly seq: number; readonly runId: string; readonly kind: string; readonly payload: string },
): void {
  const payload = parsed(event.payload) as
    | { readonly [Name in "webhook_id" | "url" | "event_kinds" | "filter" | "cooldown" | "source"]?: unknown }
    | null
    | undefined;
  const webhookId = payload?.webhook_id;
  if (typeof webhookId !== "string") return;
  const known = hooks.get(webhookId);
  if (event.kind === "webhook_deleted") {
    if (known?.runId === event.runId) hooks.delete(webhookId);
    return;
  }
  if (known !== undefined || typeof payload?.url !== "string" || !isTexts(payload.event_kinds)) return;
  const { url, event_kinds: eventKinds } = payload;
  const [filter, cooldown] = [storedFilter(payload.filter), storedCooldown(payload.cooldown)];
  const { runId, seq: registeredSeq } = event;
  const source = storedSource(payload.source);
  hooks.set(webhookId, { webhookId, runId, url, eventKinds, filter, cooldown, source, registeredSeq });
}

function storedSource(value: unknown): WebhookOfSource | null {
  const { name, webhook } = (value ?? {}) as { name?: unknown; webhook?: unknown };
  return typeof name === "string" && typeof webhook === "string" ? { name, webhook } : null;
}

/** Whether events of `kind` may match the webhook; for a trigger it also depends on the payload. */
export function mayMatch(hook: Webhook, kind: string): boolean {
  return !isBookkeeping(kind) && (hook.eventKinds.length === 0 || hook.eventKinds.includes(kind));
}

/** Whether an event is for webhooks at all, whatever their filters are: a trigger says so in its payload. */
export function isForWebhooks(event: { readonly kind: string; readonly payload: string }): boolean {
  if (!event.kind.startsWith("trigger.")) return true;
  const payload = parsed(event.payload) as
    | { trigger?: { actions?: { webhook?: unknown } } }
    | null
    | undefined;
  return payload?.trigger?.actions?.webhook === true;
}

/** Whether an event of this kind is delivered whatever is in its payload. */
export function isForAnyPayload(hook: Webhook, kind: string): boolean {
  return mayMatch(hook, kind) && !mayBeDisarmed(kind) && hook.filter === null;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
