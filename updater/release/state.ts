/** What a device remembers of releases, as its state file has it. */

import { z } from "zod";
import { MANIFEST } from "./manifest.ts";

export const ACTIONS = ["stage_shadow", "stage_canary", "activate", "rollback"] as const;

const STATE = z.strictObject({
  format: z.literal(1),
  /** Of the newest manifest that was accepted: its sequence, and the SHA-256 of its bytes that were signed. */
  accepted: z.strictObject({ sequence: z.int(), digest: z.string() }).nullable(),
  /** Each release with the SHA-256 of what it may never change, the oldest first. */
  known: z.array(z.strictObject({ release_id: z.string(), identity: z.string() })),
  rejected: z.array(z.strictObject({ release_id: z.string(), reason: z.string(), at: z.string() })),
  /** Accepted, and not in use yet: its artifact is still to come. */
  incoming: MANIFEST.nullable(),
  /** In shadow or canary. `has_passed`: a report has passed its present stage. */
  candidate: z.strictObject({
    manifest: MANIFEST,
    stage: z.enum(["shadow", "canary"]),
    has_passed: z.boolean(),
  }).nullable(),
  current: MANIFEST.nullable(),
  previous: MANIFEST.nullable(),
  /** A call of the hook that was begun: it is made again until it is known how it ended. */
  pending: z.strictObject({
    action: z.enum(ACTIONS),
    /** Whose model is handed to the hook; null where a rollback finds no release to go back to. */
    release_id: z.string().nullable(),
    /** Of a rollback: the release that it takes out of use. */
    withdraws: z.string().nullable(),
  }).nullable(),
});

export type State = z.infer<typeof STATE>;
export type Pending = NonNullable<State["pending"]>;

export const NO_RELEASES: State = {
  format: 1,
  accepted: null,
  known: [],
  rejected: [],
  incoming: null,
  candidate: null,
  current: null,
  previous: null,
  pending: null,
};

/** The state in a file; null where it is none. */
export function readState(text: string): State | null {
  try {
    return STATE.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
