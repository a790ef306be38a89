/** Requests of the routes that read the timeline. */

import * as z from "zod";
import { body } from "./described_fields.ts";

export const QUERY_BODY = body("QueryRequest", {
  run_id: z.string(),
  kind: z.string().nullish(),
  from_seq: z.int().nonnegative().nullish(),
});

export type QueryBody = z.infer<typeof QUERY_BODY>;

/** Which frames of which decode are wanted; the whole of the latest unless given. */
export interface DecodeRange {
  /** Media times, milliseconds, both included. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** A `frames_decoded` event of the run; the latest unless given. */
  readonly sourceSeq?: number | undefined;
}

/** Which signals are wanted, and in how many bins. */
export interface SignalsQuery extends DecodeRange {
  readonly points?: number | undefined;
}
