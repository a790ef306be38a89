/** The text of a payload that search reads, and the media time that a hit shows. */

import { payloadFields } from "./payload_json.ts";

/** The part of a payload that search reads. */
export interface DescribedPayload {
  readonly description: string;
  /** Media time, or undefined when the payload has none. */
  readonly ptsMs: number | undefined;
  readonly indexName: string | null;
  /** What the event says of its own certainty; null where it says nothing. */
  readonly confidence: number | null;
}

/**
 * What search reads of a payload. The text is `description`, or else `summary`. The media time is `pts_ms`,
 * or else the start of a chunk or of a marker. Undefined for a payload without either text. See
 * docs/api/reading.md#search.
 */
export function describedPayload(json: string): DescribedPayload | undefined {
  // Most payloads have neither and need not be parsed.
  if (!json.includes('"description"') && !json.includes('"summary"')) return undefined;
  const payload = payloadFields(json);
  const description = [payload?.description, payload?.summary].find((text) => typeof text === "string");
  if (payload === undefined || description === undefined) return undefined;
  const { pts_ms, pts_start_ms, start_pts_ms, index_name, confidence } = payload;
  return {
    description,
    ptsMs: [pts_ms, pts_start_ms, start_pts_ms].find((time) => typeof time === "number"),
    indexName: typeof index_name === "string" ? index_name : null,
    confidence: typeof confidence === "number" ? confidence : null,
  };
}
