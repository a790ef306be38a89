/** The refusals of the API description: which statuses a route has, and what an answer of each status is. */

import { REFUSALS } from "../../base/refusal.ts";
import type { Route } from "../call.ts";
import { JSON_TYPE, type Operation, refTo } from "./operation.ts";
import type { AnswerHeaderName } from "./parameters.ts";

const WRITTEN_BODIES = [JSON_TYPE, "application/sdp", "application/trickle-ice-sdpfrag"];

/** Every status that a route may refuse with: those of its operation, and those that come before its handler. */
export function refusalsOf({ method, once }: Route, { failures, body, access }: Operation): number[] {
  const media = Object.keys(body ?? {});
  const statuses = [
    ...[...failures, 403, 414, 421, 429],
    ...(access === "open" ? [] : [401, 422]), // 422 also for a tenant id that is too long
    ...(once ? [409, 422] : []),
    ...(access === undefined && method !== "GET" ? [503, 507] : []), // a write that the disk or the quota refuses
    ...(media.includes(JSON_TYPE) ? [415] : []),
    ...(media.some((type) => WRITTEN_BODIES.includes(type)) ? [400, 408, 413] : []),
  ];
  return [...new Set(statuses)].toSorted((a, b) => a - b);
}

/** Refusals that come as plain text from every route. */
const PLAIN_ONLY = [408, 412, 413, 414, 415, 416];
/** Refusals that come from before the handler, so that they have the envelope on every route. */
const ENVELOPE_ONLY = [401, 421, 429];

/** The name of the response of a status; of a route that refuses in text, it may have that too. */
export function refusalName(status: number, isPlain: boolean): string {
  const hasBoth = isPlain && !PLAIN_ONLY.includes(status) && !ENVELOPE_ONLY.includes(status);
  return hasBoth ? `Live${status}` : `Refused${status}`;
}

/** A response for each status of a refusal, with the codes that it may have. */
export function refusalResponses(): Record<string, object> {
  const statuses = new Set([...Object.values(REFUSALS).map(({ status }) => status), ...PLAIN_ONLY]);
  return Object.fromEntries(
    [...statuses].toSorted((a, b) => a - b).flatMap((status) => {
      const inText = PLAIN_ONLY.includes(status) || status === 400;
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
  const codes = [...new Set(rows.map(({ code }) => code))];
  const coded = { properties: { error: { properties: { code: { enum: codes } } } } };
  const reasons = rows.map(({ code, when }) => `\`${code}\`: ${when}`);
  const header = HEADERS[status];
  return {
    description: [
      ...reasons,
      ...(inText ? [PLAIN_REASONS[status] ?? "In plain text from a live session."] : []),
    ]
      .join("\n\n"),
    ...(header && { headers: { [header]: { $ref: `#/components/headers/${header}` } } }),
    ...(status === 409 &&
      { headers: { "retry-after": { $ref: "#/components/headers/retry-after-of-key" } } }),
    content: {
      ...(rows.length > 0 &&
        { [JSON_TYPE]: { schema: { allOf: [{ $ref: refTo("ErrorEnvelope") }, coded] } } }),
      ...(inText && { "text/plain": { schema: { type: "string" } } }),
    },
  };
}

/** See docs/api.md#plain-rejections. */
const PLAIN_REASONS: Readonly<Record<number, string>> = {
  400: "Malformed JSON, a body that was cut short, or a value in the URL that is no number; in plain text.",
  408: "The body did not arrive in time.",
  412: "A condition on a file or an ICE session does not hold.",
  413: "The body is too long.",
  414: "The URL is too long.",
  415: "The content type is not what the route takes.",
  416: "No byte of the file is in the range.",
};
