/** Requests of the routes that read the timeline. */

import { z } from "zod";

export const QUERY_BODY = z.strictObject({
  run_id: z.string(),
  kind: z.string().nullish(),
  from_seq: z.int().nonnegative().nullish(),
});

export type QueryBody = z.infer<typeof QUERY_BODY>;

/** Which signals are wanted, and in how many bins; the whole decode unless given. */
export interface SignalsQuery {
  /** Media times, milliseconds, both included. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly points?: number | undefined;
  /** A `frames_decoded` event of the run; the latest unless given. */
  readonly sourceSeq?: number | undefined;
}
