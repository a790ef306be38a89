/** The refusals of the API description: which statuses a route has, and what an answer of each status is. */

import { REFUSALS } from "../../contract/refusal.ts";
import { REJECTIONS } from "../answers/reply.ts";
import type { AnswerHeaderName } from "../route/parameters.ts";
import { JSON_TYPE, type Route } from "../route/route.ts";
import { refTo } from "./components.ts";

const WRITTEN_BODIES = [JSON_TYPE, "application/sdp", "application/trickle-ice-sdpfrag"];

/** Every status that a route may refuse with: those of its row, and those that come before its handler. */
export function refusalsOf({ method, once, failures, body, access }: Route): number[] {
  const media = Object.keys(body ?? {});
  const statuses = [
    ...[...failures, 403, 414, 421, 429],
    ...(access === "open" ? [] : [401, 422]), // 422 also for a tenant id that is too long
    ...(once ? [409, 422] : []),
    // a write that the disk or the quota refuses
    ...(access === undefined && method !== "GET" ? [503, 507] : []),
    ...(media.includes(JSON_TYPE) ? [415] : []),
    ...(media.some((type) => WRITTEN_BODIES.includes(type)) ? [400, 408, 413] : []),
  ];
  return [...new Set(statuses)].toSorted((a, b) => a - b);
}

/** Refusals that are plain text for every caller. */
const PLAIN_ONLY = [412, 416];
/** Refusals that come from before the handler: text, or the envelope for a caller that asks for JSON. */
const BEFORE_HANDLERS = Object.keys(REJECTIONS).map(Number);
/** Refusals that come from before the handler and have the envelope for every caller. */
const ENVELOPE_ONLY = [401, 421, 429];

/** The name of the response of a status; of a route that refuses in text, it may have that too. */
export function refusalName(status: number, isPlain: boolean): string {
  const hasBoth = isPlain && ![...PLAIN_ONLY, ...BEFORE_HANDLERS, ...ENVELOPE_ONLY].includes(status);
  return hasBoth ? `Live${status}` : `Refused${status}`;
}

/**
 * A response for each status of a refusal; all that are JSON have one shape, so that a generated client has
 * one class of them.
 */
export function refusalResponses(): Record<string, object> {
  const statuses = new Set([...Object.values(REFUSALS).map(({ status }) => status), ...PLAIN_ONLY]);
  return Object.fromEntries(
    [...statuses].toSorted((a, b) => a - b).flatMap((status) => {
      const inText = PLAIN_ONLY.includes(status) || BEFORE_HANDLERS.includes(status);
      const ordinary = [refusalName(status, false), refusalResponse(status, { inText })] as const;
      const ofLive = refusalName(status, true);
      return ofLive === ordinary[0]
        ? [ordinary]
        : [ordinary, [ofLive, refusalResponse(status, { inText: true })] as const];
    }),
  );
}

/** The header that every refusal of a status has. */
const HEADERS: Readonly<Record<number, AnswerHeaderName>> = { 416: "content-range", 429: "retry-after" };

function refusalResponse(status: number, { inText }: { inText: boolean }): object {
  const rows = Object.values(REFUSALS).filter((row) => row.status === status);
  const reasons = rows.map(({ code, when }) => `\`${code}\`: ${when}`);
  const header = HEADERS[status];
  return {
    description: [
      ...reasons,
      ...(inText ? [textReason(status)] : []),
    ]
      .join("\n\n"),
    ...(header && { headers: { [header]: { $ref: `#/components/headers/${header}` } } }),
    ...(status === 409 &&
      { headers: { "retry-after": { $ref: "#/components/headers/retry-after-of-key" } } }),
    content: {
      ...(rows.length > 0 &&
        { [JSON_TYPE]: { schema: { $ref: refTo("ErrorEnvelope") } } }),
      ...(inText && { "text/plain": { schema: { type: "string" } } }),
    },
  };
}

/** Says when the answer is text. See docs/api.md#plain-rejections. */
function textReason(status: number): string {
  if (status === 412) return "A condition on a file or an ICE session does not hold; in plain text.";
  if (status === 416) return "No byte of the file is in the range; in plain text.";
  return BEFORE_HANDLERS.includes(status)
    ? "In plain text where the request reached no handler and does not ask for JSON by `Accept`, and from a live session."
    : "In plain text from a live session.";
}
