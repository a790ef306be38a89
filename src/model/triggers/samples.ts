/** What a program is evaluated on: samples in JSON, and the values of its signals at each of them. Contract 9.4. */

import { z } from "zod";
import { isSameSignal, type ScalarKind, type Signal, signal } from "./program.ts";

const value = z.number().nullish();

/** A score that is null or absent is missing; `observations` says everything else that was measured. */
export const triggerSample = z.strictObject({
  pts_ms: z.int().nonnegative(),
  motion_score: value,
  novelty_score: value,
  confidence: value,
  model_uncertainty: value,
  teacher_disagreement: value,
  observations: z.array(z.strictObject({ signal, value: z.number() })).nullish(),
});

export type TriggerSample = z.infer<typeof triggerSample>;

/** The scores that a sample says by their own key. */
const SAMPLE_SCORES = [
  "motion_score",
  "novelty_score",
  "confidence",
  "model_uncertainty",
  "teacher_disagreement",
] as const satisfies readonly (keyof TriggerSample & ScalarKind)[];

type SampleScore = typeof SAMPLE_SCORES[number];

/**
 * Writes the time of each sample and a row of the values of `signals`, NaN where one is missing; both arrays have
 * room for all.
 */
export function fillColumns(
  samples: readonly TriggerSample[],
  signals: readonly Signal[],
  { ptsMs, values }: { readonly ptsMs: Float64Array; readonly values: Float32Array },
): void {
  samples.forEach(({ pts_ms }, row) => ptsMs[row] = pts_ms);
  for (const [column, signal] of signals.entries()) {
    const valueIn = readerOf(signal);
    for (let row = 0; row < samples.length; row++) {
      values[row * signals.length + column] = valueIn(samples[row]!);
    }
  }
}

/** A score of its own key goes before an observation; of equal observations the first counts. */
function readerOf(wanted: Signal): (sample: TriggerSample) => number {
  const { kind } = wanted;
  if (!isSampleScore(kind)) return (sample) => observed(sample, wanted);
  return (sample) => sample[kind] ?? observed(sample, wanted);
}

function isSampleScore(kind: Signal["kind"]): kind is SampleScore {
  return (SAMPLE_SCORES as readonly string[]).includes(kind);
}

function observed({ observations }: TriggerSample, wanted: Signal): number {
  if (observations == null) return NaN;
  for (const observation of observations) {
    if (isSameSignal(observation.signal, wanted)) return observation.value;
  }
  return NaN;
}

/** Index of the first sample that is earlier than the one before it, or -1. Equal times are in order. */
export function firstOutOfOrder(samples: readonly TriggerSample[]): number {
  return samples.findIndex(({ pts_ms }, index) => index > 0 && pts_ms < samples[index - 1]!.pts_ms);
}
