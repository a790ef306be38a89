/** The messages between the sandboxed Workers and the broker, which alone may start programs. */

import * as z from "zod";
import { REPORT_BYTES } from "../frame_reports.ts";
import type { Outcome } from "../process.ts";
import { runJob, streamJob } from "../jobs/jobs.ts";

const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/**
 * Bytes of output that a job may have: more than the longest WAV. Everything longer comes through a pipe, a
 * socket or a file.
 */
const maxStdoutBytes = z.int().min(0).max(8 << 20);
const reports = z.instanceof(SharedArrayBuffer).refine(({ byteLength }) => byteLength === REPORT_BYTES)
  .nullable().default(null);
const nice = z.int().min(0).max(19).default(0);
const maxStderrBytes = z.int().min(0).max(64 << 10);
/** Most bytes of input: more than the longest window of Opus. */
const INPUT_BYTES_MAX = 4 << 20;
/** Longest deadline, milliseconds: that of the longest decode. */
const DEADLINE_MAX_MS = 1_800_000;

/** What a Worker asks for. */
const brokerOrder = z.discriminatedUnion("type", [
  /** Order to run a job to its end. Answered by `done`, `refused` or `failed`. */
  z.strictObject({
    type: z.literal("run"),
    id,
    job: runJob,
    deadlineMs: z.int().min(1).max(DEADLINE_MAX_MS),
    maxStdoutBytes,
    maxStderrBytes,
    reports,
    nice,
    input: z.instanceof(Uint8Array).refine(({ length }) => length <= INPUT_BYTES_MAX).nullable(),
  }),
  /**
   * Order to start a job. Answered by `stderr`, any number of times, and `done`. Its output and input are
   * sockets on which the Worker listens.
   */
  z.strictObject({
    type: z.literal("start"),
    id,
    job: streamJob,
    maxStderrBytes,
    reports,
    nice,
    input: z.string().max(4096).nullable(),
    output: z.string().max(4096).nullable(),
    wantsStderr: z.boolean(),
  }),
  z.strictObject({ type: z.literal("kill"), id, why: z.enum(["killed", "out_of_time", "out_of_space"]) }),
  /**
   * Order to give another Worker a connection of its own, for jobs of live sessions only; the port comes with
   * the message.
   */
  z.strictObject({ type: z.literal("connect"), id }),
  /** Order when the Worker of a connection has ended: everything that runs for it is killed. */
  z.strictObject({ type: z.literal("disconnect"), id }),
]);

export type BrokerOrder = z.infer<typeof brokerOrder>;

/** Most values in an order: the longest list of frames, and everything else. */
const VALUES_MAX = 4096;
const TEXT_CHARS_MAX = 64 << 10;

/** The order in a message; null for what is none. What is larger than any order is not looked at closely. */
export function orderIn(data: unknown): BrokerOrder | null {
  if (!isSmall(data)) return null;
  return brokerOrder.safeParse(data).data ?? null;
}

/** Whether data has no more than `VALUES_MAX` values; no more are looked at. */
function isSmall(data: unknown): boolean {
  const left = [data];
  let values = 0;
  let chars = 0;
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value === "string") chars += value.length;
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) continue;
    if (Array.isArray(value) && value.length > VALUES_MAX) return false;
    for (const name in value) {
      chars += name.length;
      if (++values > VALUES_MAX || chars > TEXT_CHARS_MAX) return false;
      left.push((value as Record<string, unknown>)[name] ?? null);
    }
  }
  return chars <= TEXT_CHARS_MAX;
}

/** What the broker answers. */
export type BrokerAnswer =
  | { readonly type: "stderr"; readonly id: number; readonly part: Uint8Array }
  | { readonly type: "done"; readonly id: number; readonly outcome: Outcome }
  /** The order breaks a rule of the broker: a bug, or code that should not run there. */
  | { readonly type: "refused"; readonly id: number; readonly message: string }
  /** The program cannot be started. */
  | { readonly type: "failed"; readonly id: number; readonly message: string };
