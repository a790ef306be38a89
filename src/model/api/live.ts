/** Request bodies of live sessions: their shapes. The rules about values are in model/live/attach.ts. */

import * as z from "zod";
import { ATTACH, livePrompt } from "../live/attach.ts";
import { body, sourceUri } from "./described_fields.ts";
import type { Extent } from "../frames/coordinates.ts";
import type { RestrictedZone } from "../policies/zone.ts";

/** An empty or null prompt restores the built-in one; a body without one is at fault, as it may be a misspelt one. */
export const PROMPT_BODY = body("PromptRequest", {
  prompt: livePrompt.nullable(),
  /** Any JSON value: one that is no object is refused with the name of the field. */
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
  /** Empty for a publisher. */
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

/** Columns of one length. */
export interface LiveSignals {
  readonly pts_ms: readonly number[];
  readonly motion: readonly number[];
  readonly novelty: readonly number[];
}

/** One session, with its signals of the last minute. */
export interface WatchedSession extends LiveSessionLook {
  readonly signals: LiveSignals;
}
