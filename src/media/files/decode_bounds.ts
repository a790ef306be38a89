/** How long a decode may take and how much CPU time it may use, and which outcomes of ffmpeg are faults of
 * the medium.
 */

import { endedEarly, type SourceEnd } from "../../model/frames/ended_early.ts";
import { expectedFps, type SamplingPlan, takesEveryFrame } from "../../model/frames/sampling.ts";
import type { MediaInput } from "../input.ts";
import { faultIn, largerThanAllowed, mediaFault, reasonIn, timeFault, tooLargeSize } from "../media_fault.ts";
import type { MediaInfo } from "../media_info.ts";
import type { Outcome } from "../process.ts";
import { processors } from "../tool_limits.ts";
import type { DecodedLength } from "./decode_worker.ts";

export interface DecodeScope {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  readonly maxFrames: number;
}

/** How much of ffmpeg's error output is kept. */
export const DECODE_ERROR_BYTES = 8 << 10;

/**
 * Longest decode: the length of the medium times this, plus a start, up to a maximum. It is long for the sake
 * of slow and busy machines.
 */
const DEADLINE_PER_MEDIA = 10;
const DEADLINE_START_MS = 60_000;
const DEADLINE_MAX_MS = 1_800_000;
/**
 * Longest decode of a source that does not end, milliseconds; a caller waits for the answer all this time.
 */
const ENDLESS_DEADLINE_MAX_MS = 600_000;
/** Bytes of one millisecond of video at 0.8 Mbit/s, for media of unknown length. */
const BYTES_PER_MS = 100;

export function decodeDeadlineMs(scope: DecodeScope): number {
  const { info, maxFrames, plan } = scope;
  if (isEndless(scope)) {
    return Math.min(
      ENDLESS_DEADLINE_MAX_MS,
      DEADLINE_START_MS + Math.round(maxFrames / expectedFps(plan) * 1000),
    );
  }
  const mediaMs = info.durationMs ?? info.sizeBytes / BYTES_PER_MS;
  return Math.min(DEADLINE_MAX_MS, DEADLINE_START_MS + Math.round(mediaMs * DEADLINE_PER_MEDIA));
}

/** CPU time of all threads together: every processor for as long as the decode may take. */
export function decodeCpuSeconds(scope: DecodeScope): number {
  return decodeDeadlineMs(scope) / 1000 * processors();
}

/**
 * Whether the source is a camera or a live playlist, which gives frames in real time and does not end. A
 * decode of it gives `maxFrames` frames, or as many as have come by the deadline.
 */
export function isEndless({ input, info }: Pick<DecodeScope, "input" | "info">): boolean {
  return input.path === null && info.durationMs === null;
}

/**
 * Frames that ffmpeg decodes for `maxFrames` rows: one more shows whether the source goes on. A camera always
 * does, and nobody should wait for its next frame. Null where it is not known how many there are between two
 * rows: then the reader ends it.
 */
export function framesToDecode(scope: DecodeScope): number | null {
  return takesEveryFrame(scope.plan) ? scope.maxFrames + (isEndless(scope) ? 0 : 1) : null;
}

/**
 * Throws a Refusal where no frame was decoded or one of our limits was reached, of which `late` tells. Frames
 * and then an error are a damaged file: see `endOf`.
 */
export function refuseFailure(
  outcome: Omit<Outcome, "stdout">,
  frames: number,
  { scope, late }: { scope: Pick<DecodeScope, "input" | "info">; late: string },
): void {
  const { end } = outcome;
  if (end === "out_of_time" && isEndless(scope) && frames > 0) return;
  if (end === "out_of_time" || end === "out_of_cpu") {
    throw timeFault(end, { isStream: scope.input.path === null, work: "decoding it", late });
  }
  if (outcome.end === "killed") throw mediaFault("the decoder broke down on it");
  if (frames > 0) return;
  if (outcome.stderr === "") throw mediaFault("no frame of it can be decoded");
  throw faultIn(outcome.stderr);
}

/**
 * How a source ended of which all frames that there are were decoded. `sourceFault` is why a part of it did
 * not come; null where all came. An endless one announces no end, and may have met the limit of time.
 */
export function endOf(
  scope: DecodeScope,
  { outcome, length, sourceFault }: {
    readonly outcome: Omit<Outcome, "stdout">;
    readonly length: DecodedLength;
    readonly sourceFault: string | null;
  },
): SourceEnd {
  const { info } = scope;
  if (isEndless(scope)) {
    const late = outcome.end === "out_of_time"
      ? `it had not ended, and its decode met the limit of ${decodeDeadlineMs(scope) / 1000} s`
      : null;
    const warning = sourceFault ?? late;
    return warning === null ? {} : { source_warning: warning };
  }
  const missing = sourceFault ?? (info.isCutOff ? CUT_OFF : null);
  const hasFailed = outcome.end === "exited" && outcome.code !== 0;
  const complaint = outcome.stderr === "" && !hasFailed ? null : reasonIn(outcome.stderr);
  const early = endedEarly({ ...length, announcedMs: info.announcedEndMs ?? null, missing, complaint });
  if (early) return { ended_early: early };
  const leftOut = tooLargeSize(outcome.stderr, info.video?.codec ?? "");
  const said = hasFailed || complaint === null ? complaint : holeIn(scope, length);
  const warning = missing ?? (leftOut ? largerThanAllowed(leftOut) : said);
  return warning === null ? {} : { source_warning: warning };
}

/**
 * Why a film in which something is damaged lacks a part in the middle, where its frames stop for a while;
 * null where it lacks none.
 */
function holeIn({ info, plan }: DecodeScope, { longestMs }: DecodedLength): string | null {
  const usualMs = 1000 / Math.min(info.video?.averageFps ?? HOLE_FPS, expectedFps(plan));
  if (longestMs < Math.max(HOLE_MS, HOLE_FRAMES * usualMs)) return null;
  return `a part of it is damaged, and for up to ${(longestMs / 1000).toFixed(1)} s there is no frame`;
}

/**
 * Shortest gap that counts as a lost part, milliseconds; in a slow film HOLE_FRAMES frames. A shorter one is
 * a few frames, which may be missing for other reasons.
 */
const HOLE_MS = 500;
const HOLE_FRAMES = 5;
/** Frames a second that are assumed for a film that does not say its rate. */
const HOLE_FPS = 10;

const CUT_OFF = "the file is cut off: it ends before its container does";
