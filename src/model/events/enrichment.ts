/** The second phase of a live alert: which events of a session are explained later, and the event that
 * explains one. See docs/live/events.md#enrichment.
 */

import type { PayloadOf } from "./event_table.ts";
import type { ENRICHMENT_REASONS } from "./live_payloads.ts";

/** Causes of events that may be explained. */
export const ENRICHED_CAUSES = ["zone", "trigger", "scene_cut"] as const;
export type EnrichedCause = typeof ENRICHED_CAUSES[number];

export interface EnrichPlan {
  readonly on: readonly EnrichedCause[];
  /** The time from the event to the latest time of its explanation. */
  readonly deadlineMs: number;
}

/** The explanation of an event: a description, or why there is none. */
export type Enrichment =
  | { readonly description: string }
  | { readonly reason: typeof ENRICHMENT_REASONS[number] };

/** An event that says that an explanation follows. */
export interface ExplainedEvent {
  readonly seq: number;
  readonly kind: string;
  /** The payload as it was written, or parsed from the log. */
  readonly payload: unknown;
}

/** Whether events of this kind may say that an explanation follows. */
export function mayBeExplained(kind: string): boolean {
  return kind === "restricted_zone_activity_entered" || kind === "marker_emitted" ||
    kind.startsWith("trigger.");
}

/** Whether the event says that an explanation follows. It does so by having a deadline. */
export function isToBeExplained({ kind, payload }: Omit<ExplainedEvent, "seq">): boolean {
  return mayBeExplained(kind) && typeof fieldsOf(payload).enrichment_deadline_ms === "number";
}

/** The frame of an event that is to be explained. */
export function explainedFrame(payload: unknown): number | null {
  const { frame_index, start_frame } = fieldsOf(payload);
  return numberOf(frame_index) ?? numberOf(start_frame);
}

export function enrichedPayload(
  { seq, kind, payload }: ExplainedEvent,
  enrichment: Enrichment,
): PayloadOf<"event_enriched"> {
  const { session_id, frame_index, start_frame, pts_ms, start_pts_ms, confidence, event_type, assertion } =
    fieldsOf(payload);
  return {
    session_id: String(session_id),
    cause_seq: seq,
    cause_kind: kind,
    frame_index: numberOf(frame_index) ?? numberOf(start_frame) ?? 0,
    pts_ms: numberOf(pts_ms) ?? numberOf(start_pts_ms) ?? 0,
    confidence: numberOf(confidence) ?? 0,
    event_type: textOf(event_type),
    zone: textOf(fieldsOf(assertion).policy_id),
    ...enrichment,
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
