/** The samples on which a program is evaluated, and the values of its signals in them. See
 * docs/triggers-policies.md#trigger-semantics.
 */

import * as z from "zod";
import { boundedList } from "../schemas/bounded_list.ts";
import { isSameSignal, type ScalarKind, type Signal, signal } from "./program.ts";

const value = z.number().nullish();

/** A sample. A score that is null or absent is missing; `observations` holds the other measurements. */
export const triggerSample = z.strictObject({
  pts_ms: z.int().nonnegative(),
  motion_score: value,
  novelty_score: value,
  confidence: value,
  model_uncertainty: value,
  teacher_disagreement: value,
  observations: boundedList(z.strictObject({ signal, value: z.number() })).nullish(),
});

export type TriggerSample = z.infer<typeof triggerSample>;

/** The scores that have a key of their own in a sample. */
const SAMPLE_SCORES = [
  "motion_score",
  "novelty_score",
  "confidence",
  "model_uncertainty",
  "teacher_disagreement",
] as const satisfies readonly (keyof TriggerSample & ScalarKind)[];

type SampleScore = typeof SAMPLE_SCORES[number];

/**
 * Writes the time of each sample and a row with the values of `signals`, NaN for a missing one. Both arrays
 * are large enough.
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

/**
 * Reads a signal of samples. A score under its own key has precedence over an observation; of several
 * observations the first one counts.
 */
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

/** The index of the first sample that is earlier than the one before it, or -1. Equal times are in order. */
export function firstOutOfOrder(samples: readonly TriggerSample[]): number {
  return samples.findIndex(({ pts_ms }, index) => index > 0 && pts_ms < samples[index - 1]!.pts_ms);
}
