/** The published shape of a processing profile, and the profile of each mode. No route reads either. Contract 4.6. */

import { z } from "zod";
import { type Mode } from "../runs/mode.ts";
import { mode, unit } from "../events/payload_shapes.ts";

/** Closed. Keys are in the spelling of the published contract. */
export const processingConfig = z.strictObject({
  mode,
  fps: z.number().min(0.2).max(4),
  segmentLength: z.int().min(5).max(600).describe("Seconds"),
  maxSummaryLength: z.int().min(10).max(500),
  minConfidence: unit,
  samplingRate: z.int().min(1).max(30),
  allowFallback: z.boolean().default(false),
  keepAliveMinutes: z.int().min(30).max(45).default(35),
});

export type ProcessingConfig = z.output<typeof processingConfig>;

/** Contract 1.5: the profile that stands for each mode. */
export const PROCESSING_DEFAULTS: { readonly [M in Mode]: Readonly<ProcessingConfig> } = {
  balanced: profile("balanced", 1.0, 60, 250, 0.35, 4, true),
  detailed: profile("detailed", 2.5, 45, 400, 0.30, 8, true),
  efficiency: profile("efficiency", 0.5, 90, 150, 0.45, 2, false),
  custom: profile("custom", 1.0, 60, 250, 0.35, 4, false),
};

function profile(
  mode: Mode,
  fps: number,
  segmentLength: number,
  maxSummaryLength: number,
  minConfidence: number,
  samplingRate: number,
  allowFallback: boolean,
): ProcessingConfig {
  return {
    mode,
    fps,
    segmentLength,
    maxSummaryLength,
    minConfidence,
    samplingRate,
    allowFallback,
    keepAliveMinutes: 35,
  };
}
