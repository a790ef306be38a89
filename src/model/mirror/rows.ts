/** Which events the mirror database receives, and the rows that they become. */

import type { PayloadOf } from "../events/event_table.ts";

/**
 * The mirrored kinds: feedback, and the descriptions of live sessions. See
 * docs/deployment/mirror.md.
 */
export const MIRRORED_KINDS: ReadonlySet<string> = new Set(
  ["operator_feedback_submitted", "vlm", "vlm_tiered", "clip_vlm", "clip_vlm_tiered"],
);

/** What the mirror needs of an event. */
export interface MirroredEvent {
  readonly seq: number;
  readonly runId: string;
  readonly kind: string;
  /** The time of the event, epoch milliseconds. */
  readonly ptsMs: number;
  /** The payload as JSON text. */
  readonly payload: string;
}

export type MirrorTable = "feedback" | "descriptions";

/** A row without the instance id, which all rows of a service have in common. */
export interface MirrorRow {
  readonly table: MirrorTable;
  readonly seq: number;
  /** The values by column, see `MIRROR_COLUMNS`. */
  readonly values: Readonly<Record<string, string | number>>;
}

/** The row of an event, which is of one of `MIRRORED_KINDS`. */
export function mirrorRow({ seq, runId, kind, ptsMs, payload }: MirroredEvent): MirrorRow {
  const common = { seq, run_id: runId, recorded_ms: ptsMs };
  if (kind === "operator_feedback_submitted") {
    const { session_id, rating, category, feedback } = JSON.parse(payload) as PayloadOf<typeof kind>;
    return {
      table: "feedback",
      seq,
      values: {
        ...common,
        session_id,
        rating,
        category: storable(category),
        feedback: storable(feedback),
      },
    };
  }
  const { session_id, frame_index, pts_ms, confidence, description } = JSON.parse(payload) as PayloadOf<
    "vlm"
  >;
  const event_type = kind;
  return {
    table: "descriptions",
    seq,
    values: {
      ...common,
      session_id,
      event_type,
      frame_index,
      pts_ms,
      confidence,
      description: storable(description),
    },
  };
}

/** A text as PostgreSQL takes it: without character 0, and without half of a surrogate pair. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}
