/** The published shape of a processing profile, and the profile of each mode. No route reads them. See
 * docs/frames.md#modes.
 */

import * as z from "zod";
import { type Mode } from "../mode.ts";
import { mode, unit } from "../events/payload_shapes.ts";

/** A processing profile. Closed. The keys are in camelCase, unlike those of all other shapes on the wire. */
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

/** The profile of each mode. */
export const PROCESSING_DEFAULTS: { readonly [M in Mode]: Readonly<ProcessingConfig> } = {
  balanced: {
    mode: "balanced",
    fps: 1.0,
    segmentLength: 60,
    maxSummaryLength: 250,
    minConfidence: 0.35,
    samplingRate: 4,
    allowFallback: true,
    keepAliveMinutes: 35,
  },
  detailed: {
    mode: "detailed",
    fps: 2.5,
    segmentLength: 45,
    maxSummaryLength: 400,
    minConfidence: 0.30,
    samplingRate: 8,
    allowFallback: true,
    keepAliveMinutes: 35,
  },
  efficiency: {
    mode: "efficiency",
    fps: 0.5,
    segmentLength: 90,
    maxSummaryLength: 150,
    minConfidence: 0.45,
    samplingRate: 2,
    allowFallback: false,
    keepAliveMinutes: 35,
  },
  custom: {
    mode: "custom",
    fps: 1.0,
    segmentLength: 60,
    maxSummaryLength: 250,
    minConfidence: 0.35,
    samplingRate: 4,
    allowFallback: false,
    keepAliveMinutes: 35,
  },
};
