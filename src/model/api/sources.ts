/** Named sources as callers see them. */

import * as z from "zod";
import { body } from "./described_fields.ts";
import type { RecordingLook } from "./recordings.ts";
import type { SourceKind } from "../sources/source_file.ts";

export const SOURCE_STATES = ["connecting", "live", "gap", "disabled", "failed"] as const;
/** `disabled`: nobody watches it at the moment; `failed`: it could not be connected to, and is asked again. */
export type SourceState = typeof SOURCE_STATES[number];

/** Whether a camera is armed, as callers see it. */
export interface ArmedLook {
  readonly name: string;
  readonly armed: boolean;
  readonly armed_by: "schedule" | "call";
  /** When it changes next, as far as is known, epoch milliseconds; null for not by itself. */
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
  /** Whether it is always watched. */
  readonly live: boolean;
  readonly state: SourceState;
  /** The caller's run that watches it; null where there is none, and for a run of another principal. */
  readonly run_id: string | null;
  readonly last_frame_age_ms: number | null;
  /** Why it gives no frames; null while it does, and where it is not known. */
  readonly reason: string | null;
  /** These three are null for a source that is not always watched. */
  readonly armed: boolean | null;
  readonly armed_by: "schedule" | "call" | null;
  readonly next_change_ms: number | null;
  /** Null where it is not recorded. */
  readonly recording: RecordingLook | null;
}
