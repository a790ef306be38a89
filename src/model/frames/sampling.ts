/** Which frames of a recording are analyzed, and at which rate. See docs/api/ingest.md#sampling. */

import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";

export type SamplingPolicy = "source_fps_adaptive" | "fixed";

export interface SamplingPlan {
  readonly policy: SamplingPolicy;
  /** The rate of the samples: frames per second of media time. */
  readonly sampleFps: number;
  /** The rate of the source by its frames' own times; null when they do not tell. */
  readonly sourceFps: number | null;
}

/** The fields of a request; each absent one has a default. */
export interface SamplingRequest {
  readonly policy?: string | null;
  readonly fixedFps?: number | null;
  readonly sampleFps?: number | null;
}

/**
 * Decides the rate. Refuses with 422 on `sampling_policy` (unknown policy), on `fixed_fps` and `sample_fps`
 * (out of range under any policy), and on `fixed_fps` where a fixed rate is missing. Under the adaptive
 * policy the rates of the caller are used only for a source of unknown rate.
 */
export function planSampling(
  request: SamplingRequest,
  sourceFps: number | null,
  route: "ingest" | "reason",
): SamplingPlan {
  const policy = parseSamplingPolicy(request.policy);
  if (!policy) throw refuse.invalid("sampling_policy", "must be source_fps_adaptive or fixed");
  checkRate("fixed_fps", request.fixedFps);
  if (route === "ingest") checkRate("sample_fps", request.sampleFps);
  const sampleFps = policy === "fixed" ? fixedRate(request, route) : adaptiveRate(request, sourceFps, route);
  return { policy, sampleFps, sourceFps };
}

/** The media time at which a decode of at most so many frames will end; null where that is not known. */
export function plannedEndMs(
  { sampleFps }: SamplingPlan,
  maxFrames: number,
  durationMs: number | null,
): number | null {
  if (durationMs === null) return null;
  return Math.round(Math.min(durationMs, maxFrames / sampleFps * 1000));
}

/**
 * The canonical name of a policy, in any case; `adaptive` is an alias, no name means the default. Null:
 * unknown.
 */
export function parseSamplingPolicy(name: string | null | undefined): SamplingPolicy | null {
  switch (name?.toLowerCase()) {
    case undefined:
    case "source_fps_adaptive":
    case "adaptive":
      return "source_fps_adaptive";
    case "fixed":
      return "fixed";
    default:
      return null;
  }
}

/**
 * Whether every decoded frame is taken. Otherwise frames are dropped to keep to the rate: for a fixed policy,
 * and for a source whose rate is unknown or too high. No frame is ever taken twice.
 */
export function takesEveryFrame({ policy, sourceFps }: SamplingPlan): boolean {
  return policy === "source_fps_adaptive" && sourceFps !== null && sourceFps <= LIMITS.sampling.fps.maximum;
}

/** Sampled frames that come in one second of media: not more than the source has. */
export function expectedFps({ sampleFps, sourceFps }: SamplingPlan): number {
  return Math.min(sampleFps, sourceFps ?? sampleFps);
}

function checkRate(field: string, rate: number | null | undefined): void {
  const { minimum, maximum } = LIMITS.sampling.fps;
  if (rate == null || (rate >= minimum && rate <= maximum)) return;
  throw refuse.invalid(field, `must be from ${minimum} to ${maximum}: got ${rate}`);
}

function fixedRate(request: SamplingRequest, route: "ingest" | "reason"): number {
  const rate = route === "ingest"
    ? request.sampleFps ?? request.fixedFps
    : request.fixedFps ?? LIMITS.sampling.fixedFpsReason;
  if (rate == null) throw refuse.invalid("fixed_fps", "is required when sampling_policy is fixed");
  return rate;
}

function adaptiveRate(
  request: SamplingRequest,
  sourceFps: number | null,
  route: "ingest" | "reason",
): number {
  const { minimum, maximum } = LIMITS.sampling.fps;
  const assumed = route === "ingest"
    ? request.sampleFps ?? request.fixedFps ?? LIMITS.sampling.unknownSourceFpsIngest
    : LIMITS.sampling.unknownSourceFpsReason;
  return Math.min(maximum, Math.max(minimum, sourceFps ?? assumed));
}
