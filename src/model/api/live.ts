/** What the routes of live sessions take and answer: shapes; the rules are in model/live/attach.ts. */

import * as z from "zod";
import { count, jsonObject, open, positive, sha256, text, unit } from "../events/payload_shapes.ts";
import { restrictedZone } from "../events/policy_payloads.ts";
import { LIVE_SOURCES } from "../events/run_payloads.ts";
import type { Extent } from "../frames/coordinates.ts";
import { ATTACH, livePrompt } from "../live/attach.ts";
import type { RestrictedZone } from "../policies/zone.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";
import { answer, requestIdField, runIdField, runStatus, sessionIdField } from "./answer_fields.ts";
import { body, sourceUri } from "../schemas/described_fields.ts";

/**
 * A new prompt. An empty or null one restores the built-in one; a body without one is at fault, as it may be
 * a misspelt one.
 */
export const PROMPT_BODY = body("PromptRequest", {
  prompt: livePrompt.nullable(),
  /**
   * The schema of the answers: any JSON value, as one that is no object is refused with the name of the
   * field.
   */
  output_schema: z.unknown().optional(),
});
export type PromptBody = z.infer<typeof PROMPT_BODY>;

/** A live source, with the fields of `x-attach-config`. */
export const LIVE_SOURCE_BODY = body("LiveSourceRequest", { source_uri: sourceUri, ...ATTACH.shape });
export type LiveSourceBody = z.infer<typeof LIVE_SOURCE_BODY>;

/** An open session as its owner sees it; times are epoch milliseconds. */
export interface LiveSessionLook {
  readonly run_id: string;
  readonly session_id: string;
  readonly generation: number;
  readonly source: "whip" | "live";
  /** The `source_uri` of a pulled source; empty for a publisher. */
  readonly source_uri: string;
  readonly state: "connecting" | "live" | "interrupted" | "ending";
  readonly opened_at_ms: number;
  readonly connected_at_ms: number | null;
  readonly last_frame_at_ms: number | null;
  readonly gap: {
    readonly since_ms: number;
    readonly attempts: number;
    readonly next_attempt_at_ms: number | null;
  } | null;
  readonly picture_size: {
    readonly width: number;
    readonly height: number;
    readonly scaled_from: Extent | null;
  } | null;
  readonly frames: {
    readonly received: number;
    readonly decoded: number;
    readonly dropped: number;
    readonly kept: number;
  };
  readonly prompt: string | null;
  readonly restricted_zone: RestrictedZone | null;
  readonly last_seq: number;
  readonly picture: { readonly seq: number; readonly sha256: string } | null;
}

/** The signals of a session, as columns of one length. */
export interface LiveSignals {
  readonly pts_ms: readonly number[];
  readonly motion: readonly number[];
  readonly novelty: readonly number[];
}

/** One session, with its signals of the last minute. */
export interface WatchedSession extends LiveSessionLook {
  readonly signals: LiveSignals;
}

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
