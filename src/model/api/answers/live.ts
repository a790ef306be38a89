/** Answers of the routes of live sessions: their shapes. See docs/live.md#whip. */

import * as z from "zod";
import { restrictedZone } from "../../events/policy_payloads.ts";
import { count, jsonObject, open, positive, sha256, text, unit } from "../../events/payload_shapes.ts";
import { CLIP_SOUND_STATES } from "../../live/recording/record_plan.ts";
import { SOURCE_STATES } from "../sources.ts";
import { SOURCE_KINDS } from "../../sources/source_file.ts";
import {
  answer,
  nextCursorField,
  requestIdField,
  runIdField,
  runStatus,
  sessionIdField,
} from "./answer_fields.ts";
import { named, namedEnum } from "../../schemas/named_shapes.ts";
import { LIVE_SOURCES } from "../../events/run_payloads.ts";

export const LIVE_SOURCE = answer("LiveSource", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  session_id: sessionIdField,
  generation: positive,
  source_uri: text,
  status: z.literal("processing"),
}));

export const CLOSED_LIVE_SOURCE = answer("ClosedLiveSource", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  session_id: sessionIdField,
  status: runStatus,
}));

export const UPDATED_PROMPT = answer("Prompt", () => ({
  session_id: sessionIdField,
  prompt: z.string().nullable().describe("Null for the built-in one"),
  output_schema: jsonObject.nullable(),
}));

export const LIVE_SESSION = answer("LiveSession", () => ({
  run_id: runIdField,
  session_id: sessionIdField,
  generation: positive,
  source: namedEnum("LiveSourceKind", LIVE_SOURCES).describe(
    "A publisher, or a source that the service pulls",
  ),
  source_uri: z.string().describe("Empty for a publisher"),
  state: named("LiveState", z.enum(["connecting", "live", "interrupted", "ending"])),
  opened_at_ms: count.describe("Epoch milliseconds, as all times here but those of `signals`"),
  connected_at_ms: count.nullable(),
  last_frame_at_ms: count.nullable().describe("When frames were last decoded, to the second"),
  gap: named(
    "SourceGap",
    open({
      since_ms: count,
      attempts: count,
      next_attempt_at_ms: count.nullable().describe("Null while an attempt is under way"),
    }),
  ).nullable().describe("Of a pulled source that gives no frames"),
  picture_size: named(
    "LivePictureSize",
    open({
      width: positive,
      height: positive,
      scaled_from: open({ width: positive, height: positive }).nullable().describe(
        "Their own size, where there is no memory for it, or where it has more pixels than 3840x2160; null where they are not scaled",
      ),
    }),
  ).nullable().describe("Of the newest pictures, as they are analysed; null before the first"),
  frames: named(
    "FrameCounts",
    open({
      received: count.describe("Access units of a publisher; 0 of a pulled source"),
      decoded: count,
      dropped: count,
      kept: count.describe("Frames that the gate kept"),
    }),
  ).describe("Since the session was opened, counted once a second"),
  prompt: z.string().nullable().describe("Null for the built-in one"),
  restricted_zone: restrictedZone.nullable(),
  last_seq: positive.describe("The newest event of the run"),
  picture: named("KeptPicture", open({ seq: positive, sha256 })).nullable().describe(
    "The newest stored picture, and the event that names it",
  ),
}));

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

export const LIVE_SESSIONS = answer(
  "LiveSessionList",
  () => ({ request_id: requestIdField, sessions: z.array(LIVE_SESSION()) }),
);

export const WATCHED_SESSION = answer("WatchedSession", () => ({
  ...LIVE_SESSION().shape,
  request_id: requestIdField,
  signals: open({
    pts_ms: z.array(count).describe("Media time of the first frame of each 100 ms"),
    motion: z.array(unit).describe("The largest of those frames"),
    novelty: z.array(unit),
  }).describe("Columns of one length, of the last minute at most"),
}));
