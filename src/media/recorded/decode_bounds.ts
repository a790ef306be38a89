/** How long a decode may take and how much it may use, and which ends of ffmpeg are faults of the medium. */

import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { MediaInput } from "../input.ts";
import { mediaFault, reasonIn } from "../media_fault.ts";
import type { MediaInfo } from "../probe.ts";
import type { Outcome } from "../process.ts";

export interface DecodeScope {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  readonly maxFrames: number;
}

/** What is kept of ffmpeg's complaints. */
export const DECODE_ERROR_BYTES = 8 << 10;

/** Longest decode: so many times the length of the medium, plus a start, within bounds; for slow and busy machines. */
const DEADLINE_PER_MEDIA = 10;
const DEADLINE_START_MS = 60_000;
const DEADLINE_MAX_MS = 1_800_000;
/** A caller waits for the answer all the while. */
const ENDLESS_DEADLINE_MAX_MS = 600_000;
/** For media of unknown length: the bytes of one millisecond of 0.8 Mbit/s video. */
const BYTES_PER_MS = 100;

export function decodeDeadlineMs(scope: DecodeScope): number {
  const { info, maxFrames, plan } = scope;
  if (isEndless(scope)) {
    return Math.min(
      ENDLESS_DEADLINE_MAX_MS,
      DEADLINE_START_MS + Math.round(maxFrames / plan.sampleFps * 1000),
    );
  }
  const mediaMs = info.durationMs ?? info.sizeBytes / BYTES_PER_MS;
  return Math.min(DEADLINE_MAX_MS, DEADLINE_START_MS + Math.round(mediaMs * DEADLINE_PER_MEDIA));
}

/** CPU time of all threads together: all processors for as long as the decode may take. */
export function decodeCpuSeconds(scope: DecodeScope): number {
  return decodeDeadlineMs(scope) / 1000 * processors();
}

/**
 * A camera or a live playlist: it gives frames at the pace of the clock and does not end. Who asks for frames of one gets
 * `maxFrames`, or as many as have come by the deadline.
 */
export function isEndless({ input, info }: Pick<DecodeScope, "input" | "info">): boolean {
  return input.path === null && info.durationMs === null;
}

export function processors(): number {
  return navigator.hardwareConcurrency;
}

/** Some frames and an unhappy end are a damaged file; no frame, or our own limits, are a refusal. */
export function refuseFailure(
  outcome: Omit<Outcome, "stdout">,
  frames: number,
  { isEndless, limit }: { isEndless: boolean; limit: string },
): void {
  if (outcome.end === "out_of_time" && isEndless && frames > 0) return;
  if (outcome.end === "out_of_time") throw mediaFault(limit);
  if (outcome.end === "killed") throw mediaFault("the decoder broke down on it");
  if (frames > 0) return;
  throw mediaFault(outcome.stderr === "" ? "no frame of it can be decoded" : reasonIn(outcome.stderr));
}
