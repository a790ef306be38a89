/** Faults that are none, because the picture only becomes another one step by step:
 * docs/detection/faults.md#faults-in-transitions.
 */

import type { DetectedRange } from "./detected_range.ts";
import { ARTIFACT_SCORE_THRESHOLD, GATE_REASONS, type SignalColumns } from "./signals.ts";

/** The score in its first row from which a fault is certain, such as one that the decoder reports. */
const CERTAIN = 0.8;

/**
 * How long before a transition a fault may begin: a frame of a film of 24 a second. At a higher rate the
 * first frames of a transition are more, and may lie before its range.
 */
const LEAD_MS = 45;

const FAULT = GATE_REASONS.indexOf("temporal_fault");
const NO_TRIGGER = GATE_REASONS.indexOf("no_trigger");

type Transition = Pick<DetectedRange, "type" | "startPtsMs" | "endPtsMs">;

interface Scores {
  readonly count: number;
  readonly ptsMs: ArrayLike<number>;
  readonly artifactScore: ArrayLike<number>;
}

/**
 * Makes faults that begin inside of a gradual transition, or just before it, no faults; `ranges` may have
 * others. Certain faults stay.
 */
export function clearTransitionFaults(
  rows: Scores & Required<Pick<SignalColumns, "artifactScore" | "artifactKind">>,
  ranges: readonly Transition[],
): void {
  for (const [start, end] of faultsInTransitions(rows, ranges)) {
    rows.artifactScore.fill(0, start, end);
    rows.artifactKind.fill(0, start, end);
  }
}

/** Like `clearTransitionFaults` where the gate has decided already: `reasons` are those of the rows. */
export function clearTransitionReasons(
  reasons: Uint8Array,
  rows: Scores,
  ranges: readonly Transition[],
): void {
  for (const [start, end] of faultsInTransitions(rows, ranges)) {
    for (let row = start; row < end; row++) if (reasons[row] === FAULT) reasons[row] = NO_TRIGGER;
  }
}

/** The faults in transitions: of each the first row, and the row behind the last one. */
function faultsInTransitions(
  { count, ptsMs, artifactScore }: Scores,
  ranges: readonly Transition[],
): [number, number][] {
  const transitions = ranges.filter(({ type }) => type === "gradual_transition")
    .toSorted((left, right) => left.startPtsMs - right.startPtsMs);
  const found: [number, number][] = [];
  let next = 0;
  for (let row = 0; row < count && next < transitions.length; row++) {
    if (!(artifactScore[row]! >= ARTIFACT_SCORE_THRESHOLD)) continue;
    const start = row;
    while (row + 1 < count && artifactScore[row + 1]! >= ARTIFACT_SCORE_THRESHOLD) row++;
    const startMs = Math.round(ptsMs[start]!);
    while (next < transitions.length && Math.round(transitions[next]!.endPtsMs) < startMs) next++;
    const isInside = next < transitions.length &&
      Math.round(transitions[next]!.startPtsMs) - LEAD_MS <= startMs;
    if (isInside && artifactScore[start]! < CERTAIN) found.push([start, row + 1]);
  }
  return found;
}
