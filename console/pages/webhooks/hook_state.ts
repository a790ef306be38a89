/** How a webhook is, in a word for tables and in sentences: only what the service has told. */

import type { WebhookOfRun } from "../../../client/mod.ts";
import { counted } from "../../text/numbers.ts";
import { durationText } from "../../text/time.ts";

export interface HookState {
  readonly word: "up to date" | "delivering" | "sending again" | "failing" | "receiver gone";
  readonly mark: string;
  readonly tone: "good" | "busy" | "bad";
}

export function hookState(hook: WebhookOfRun): HookState {
  if (hook.state === "gone") {
    return { word: "receiver gone", mark: "✕", tone: "bad" };
  }
  if (hook.failing_since_ms !== null) {
    return { word: "failing", mark: "✕", tone: "bad" };
  }
  if (hook.redelivery !== null) {
    return { word: "sending again", mark: "◐", tone: "busy" };
  }
  if (isBehind(hook)) return { word: "delivering", mark: "◐", tone: "busy" };
  return { word: "up to date", mark: "●", tone: "good" };
}

/** Whether the run has events that the webhook has not come to. */
export function isBehind(
  { last_terminal_seq, run_last_seq }: WebhookOfRun,
): boolean {
  return last_terminal_seq < run_last_seq;
}

/** What is happening, such as `It has been failing for 12 min; 2 attempts at event 77; next try in 8 s.` */
export function hookSentence(hook: WebhookOfRun, nowMs: number): string {
  const { state, gone_since_ms, failing_since_ms, retry, redelivery } = hook;
  if (state === "gone") {
    const ago = durationText(Math.max(0, nowMs - (gone_since_ms ?? nowMs)));
    return `The receiver answered 410 Gone ${ago} ago: no event is sent to it. Send events again to start it again.`;
  }
  if (failing_since_ms !== null) {
    const since = `It has been failing for ${durationText(Math.max(0, nowMs - failing_since_ms))}`;
    if (retry === null) {
      return `${since}. The last event was given up; the next one is tried when it comes.`;
    }
    return `${since}; ${counted(retry.attempts.length, "attempt")} at event ${retry.seq}; ${
      nextTry(retry.next_attempt_ms, nowMs)
    }.`;
  }
  if (redelivery !== null) {
    return `Events ${redelivery.from_seq} to ${redelivery.to_seq} are being sent again.`;
  }
  return isBehind(hook)
    ? "It is being sent the latest events."
    : "Everything that matches has been delivered or given up.";
}

/** The page's head line over all webhooks; null where none fails. */
export function failingSentence(
  hooks: readonly WebhookOfRun[],
  nowMs: number,
): string | null {
  const failing = hooks.filter(({ state, failing_since_ms }) =>
    state === "active" && failing_since_ms !== null
  );
  if (failing.length === 0) return null;
  const longest = nowMs -
    Math.min(...failing.map(({ failing_since_ms }) => failing_since_ms!));
  const [who, some] = failing.length === 1
    ? ["1 webhook has", ""]
    : [`${failing.length} webhooks have`, "up to "];
  return `${who} been failing for ${some}${durationText(Math.max(0, longest))}.`;
}

function nextTry(nextMs: number | null, nowMs: number): string {
  if (nextMs === null) return "an attempt is under way";
  const leftMs = nextMs - nowMs;
  return leftMs < 1000
    ? "the next try is due now"
    : `next try in ${durationText(Math.round(leftMs / 1000) * 1000)}`;
}

/** The address without what only machines read: `hooks.example.com/events`. */
export function shortUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null
    ? url
    : `${parsed.host}${parsed.pathname === "/" ? "" : parsed.pathname}${parsed.search}`;
}

/** The conditions of a webhook beside the kinds, as the end of a sentence; empty where it has none. */
export function conditionsText(
  { filter, cooldown }: Pick<WebhookOfRun, "filter" | "cooldown">,
): string {
  const { labels, zones, sources, min_confidence: least, armed } = filter ?? {};
  const parts = [
    labels && `labelled ${labels.join(" or ")}`,
    zones && `in zone ${zones.join(" or ")}`,
    sources && `of source ${sources.join(" or ")}`,
    armed && (armed === "any" ? "armed or not" : "while disarmed"),
    least !== undefined && `with confidence ${least} or more`,
    cooldown && `once in ${cooldown.interval_ms / 1000} s for each ${cooldown.per.join(", ") || "webhook"}`,
  ].filter(Boolean);
  return parts.length === 0 ? "" : `; ${parts.join(", ")}`;
}
