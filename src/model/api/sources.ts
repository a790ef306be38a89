/** Named sources as callers see them. */

import type { SourceKind } from "../sources/source_file.ts";

export const SOURCE_STATES = ["connecting", "live", "gap", "disabled", "failed"] as const;
/** `disabled`: nobody watches it at the moment; `failed`: it could not be connected to, and is asked again. */
export type SourceState = typeof SOURCE_STATES[number];

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
}
