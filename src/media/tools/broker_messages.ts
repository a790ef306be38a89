/** The messages between the sandboxed Workers and the broker, which alone may start programs. */

import { z } from "zod";
import type { Outcome } from "../process.ts";
import { runJob, streamJob } from "./job.ts";

const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const bytesMax = z.int().min(0).max(2 ** 30);
/** As long as the longest decode. */
const DEADLINE_MAX_MS = 1_800_000;

/** What a Worker asks for; everything else is refused unread. */
export const brokerOrder = z.discriminatedUnion("type", [
  /** Answered by `done`, `refused` or `failed`. */
  z.strictObject({
    type: z.literal("run"),
    id,
    job: runJob,
    deadlineMs: z.int().min(1).max(DEADLINE_MAX_MS),
    maxStdoutBytes: bytesMax,
    maxStderrBytes: bytesMax,
    input: z.instanceof(Uint8Array).nullable(),
  }),
  /** Answered by `stderr`, any number of times, and `done`. Its output and input are sockets on which the Worker listens. */
  z.strictObject({
    type: z.literal("start"),
    id,
    job: streamJob,
    maxStderrBytes: bytesMax,
    input: z.string().max(4096).nullable(),
    output: z.string().max(4096).nullable(),
    wantsStderr: z.boolean(),
  }),
  z.strictObject({ type: z.literal("kill"), id, why: z.enum(["killed", "out_of_time", "out_of_space"]) }),
  /** Another Worker gets a connection of its own, for jobs of live sessions only; the port comes with the message. */
  z.strictObject({ type: z.literal("connect"), id }),
  /** That Worker has ended: everything that runs for it is killed. */
  z.strictObject({ type: z.literal("disconnect"), id }),
]);

export type BrokerOrder = z.infer<typeof brokerOrder>;

/** What the broker answers. */
export type BrokerAnswer =
  | { readonly type: "stderr"; readonly id: number; readonly part: Uint8Array }
  | { readonly type: "done"; readonly id: number; readonly outcome: Outcome }
  /** The order breaks a rule of the broker: a bug, or code that should not run there. */
  | { readonly type: "refused"; readonly id: number; readonly message: string }
  /** The program cannot be started. */
  | { readonly type: "failed"; readonly id: number; readonly message: string };
