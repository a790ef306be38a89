/** Named sources and their recordings as callers see them, and what their routes take and answer. */

import * as z from "zod";
import { count, open, positive, text } from "../events/payload_shapes.ts";
import { CLIP_SOUND_STATES } from "../live/recording/record_plan.ts";
import { namedEnum } from "../schemas/named_shapes.ts";
import { SOURCE_KINDS, type SourceKind } from "../sources/source_file.ts";
import { answer, nextCursorField, requestIdField, runIdField } from "./answer_fields.ts";
import { body } from "../schemas/described_fields.ts";
import type { RecordingLook } from "./recordings.ts";

export const SOURCE_STATES = ["connecting", "live", "gap", "disabled", "failed"] as const;
/**
 * How a named source is. `disabled`: nobody watches it at the moment; `failed`: it could not be connected to,
 * and is asked again.
 */
export type SourceState = typeof SOURCE_STATES[number];

/** Whether a camera is armed, as callers see it. */
export interface ArmedLook {
  readonly name: string;
  readonly armed: boolean;
  readonly armed_by: "schedule" | "call";
  /** When that changes next, as far as is known, epoch milliseconds; null for not by itself. */
  readonly next_change_ms: number | null;
}

export const ARM_BODY = body("ArmRequest", {
  for_seconds: z.int().nullish().describe("For how long; until the schedule changes next unless given"),
});
export type ArmBody = z.infer<typeof ARM_BODY>;

export interface NamedSourceLook {
  readonly name: string;
  /** What a `source_uri` may be: `source:<name>`. */
  readonly source_uri: string;
  readonly kind: SourceKind;
  /** Whether the source is always watched. */
  readonly live: boolean;
  readonly state: SourceState;
  /** The caller's run that watches it; null where there is none, and for a run of another principal. */
  readonly run_id: string | null;
  readonly last_frame_age_ms: number | null;
  /** Why the source gives no frames; null while it does, and where it is not known. */
  readonly reason: string | null;
  /** Whether the camera is armed. Like the two fields below, null for a source that is not always watched. */
  readonly armed: boolean | null;
  readonly armed_by: "schedule" | "call" | null;
  readonly next_change_ms: number | null;
  /** How the source is recorded; null where it is not. */
  readonly recording: RecordingLook | null;
}

const nextChange = () =>
  count.nullable().describe(
    "When it changes next, as far as is known, epoch milliseconds; null for not by itself",
  );

const ARMED_BY = ["schedule", "call"] as const;

export const ARMED_SOURCE = answer("ArmedSource", () => ({
  request_id: requestIdField,
  name: text,
  armed: z.boolean(),
  armed_by: namedEnum("ArmedBy", ARMED_BY),
  next_change_ms: nextChange(),
}));

export const NAMED_SOURCE = answer("NamedSource", () => ({
  name: text,
  source_uri: text.describe("What a `source_uri` may be to name it"),
  kind: z.enum(SOURCE_KINDS).describe("How its media come"),
  live: z.boolean().describe("Whether it is always watched"),
  state: z.enum(SOURCE_STATES).describe(
    "`disabled`: nobody watches it at the moment; `failed`: it could not be connected to, and is asked again",
  ),
  run_id: runIdField.nullable().describe("The caller's run that watches it"),
  last_frame_age_ms: count.nullable().describe("To the second; null before the first frame"),
  reason: z.string().nullable().describe("Why it gives no frames; null while it does"),
  armed: z.boolean().nullable().describe("Whether an always-on camera is armed; null for any other source"),
  armed_by: namedEnum("ArmedBy", ARMED_BY).nullable(),
  next_change_ms: nextChange(),
  recording: open({
    hours: positive.describe("After how many hours a segment goes"),
    bytes: positive.nullable().describe("Beyond so many bytes the oldest segments go"),
    newest_end_at_ms: count.nullable().describe("The end of the newest segment; null before the first"),
  }).nullable().describe("How it is recorded all day; null where it is not"),
}));

export const NAMED_SOURCES = answer(
  "NamedSourceList",
  () => ({ request_id: requestIdField, sources: z.array(NAMED_SOURCE()) }),
);

export const RECORDED_SEGMENT = answer("RecordedSegment", () => ({
  segment_id: text.describe("When it begins, unique within its source"),
  start_at_ms: count.describe("Wall time; segments without a gap between them touch"),
  end_at_ms: count,
  run_id: runIdField.nullable().describe("The caller's run that was open when it began"),
  start_pts_ms: z.int().describe("Media time of its first frame, as events of the run count it"),
  end_pts_ms: z.int().describe("The end of its last frame"),
  bytes: positive,
  codec: text.describe("By RFC 6381, such as `avc1.42e01f, opus`"),
  sound: namedEnum("ClipSound", CLIP_SOUND_STATES).describe(
    "`not_supported`: MP4 cannot carry it to browsers",
  ),
  video_format: text.describe("Segments of the same formats fit into one export"),
  sound_format: text.nullable().describe("Null without sound"),
}));

export const RECORDED_SEGMENTS = answer("RecordedSegmentList", () => ({
  request_id: requestIdField,
  source: text,
  segments: z.array(RECORDED_SEGMENT()).describe("Oldest first"),
  next_cursor: nextCursorField,
}));
