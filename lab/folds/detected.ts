/** What detectors of ranges and of faults find in recordings. */

import type { ArtifactDetector } from "../../src/media/detection/faults/artifact_detector.ts";
import type { RangeDetectors } from "../../src/media/detection/range_detectors.ts";
import type { CutScores } from "../../src/media/detection/ranges/range_sink.ts";
import { CUT_SCORE_THRESHOLD } from "../../src/model/frames/signals.ts";
import { clearTransitionFaults } from "../../src/model/frames/transition_faults.ts";
import { faultyRanges } from "../scores/measure.ts";
import type { FrameRange } from "../scores/truth.ts";
import type { Recording } from "./recording.ts";

/** The ranges in each recording. */
export function* rangesIn(
  recordings: Iterable<Recording>,
  make: (cuts: CutScores) => RangeDetectors,
): Generator<FrameRange[]> {
  let recording: Recording, known = 0;
  const detectors = make({
    cutScore: (frame) => frame < known ? recording.cutScores[frame] ?? NaN : NaN,
  });
  for (recording of recordings) {
    const { frames, ptsMs, rangeMeasures, cutLookahead } = recording;
    const columns = Object.entries(rangeMeasures);
    const widths = columns.map(([, values]) => values.length / frames);
    const newest: Record<string, unknown> = {};
    detectors.reset();
    for (let frame = 0; frame < frames; frame++) {
      columns.forEach(([name, values], at) => {
        newest[name] = values.subarray(frame * widths[at]!, (frame + 1) * widths[at]!);
      });
      known = frame + 1 - cutLookahead;
      detectors.push(newest as never, ptsMs[frame]!);
    }
    known = frames;
    yield detectors.finish().map(({ startFrame, endFrame }) => ({ start: startFrame, end: endFrame + 1 }));
  }
}

/**
 * The faulty frames of each recording, joined to ranges, without those that begin in its gradual transitions.
 */
export function* faultsIn(
  recordings: Iterable<Recording>,
  transitions: readonly (readonly FrameRange[])[],
  detector: ArtifactDetector,
): Generator<FrameRange[]> {
  let at = 0;
  for (const recording of recordings) {
    const { frames, ptsMs, artifactMeasures, rangeMeasures, reports, cutScores, cutLookahead } = recording;
    const width = artifactMeasures.length / frames;
    const cellSums = rangeMeasures.cellSums as Uint16Array, cellWidth = cellSums.length / frames;
    const artifactScore = new Float32Array(frames), artifactKind = new Uint8Array(frames);
    detector.reset();
    const decide = (frame: number) => {
      detector.decide(cutScores[frame]! >= CUT_SCORE_THRESHOLD);
      artifactScore[frame] = detector.score;
      artifactKind[frame] = detector.kind;
    };
    for (let frame = 0; frame < frames; frame++) {
      const measures = artifactMeasures.subarray(frame * width, (frame + 1) * width);
      const cells = cellSums.subarray(frame * cellWidth, (frame + 1) * cellWidth);
      detector.report(reports[frame] ?? 0);
      detector.push(measures, cells, ptsMs[frame]!);
      if (frame >= cutLookahead) decide(frame - cutLookahead);
    }
    for (let frame = Math.max(0, frames - cutLookahead); frame < frames; frame++) decide(frame);
    const ranges = transitions[at++]!.map(({ start, end }) => ({
      ...{ type: "gradual_transition" as const, startPtsMs: ptsMs[start]!, endPtsMs: ptsMs[end - 1]! },
    }));
    clearTransitionFaults({ count: frames, ptsMs, artifactScore, artifactKind }, ranges);
    yield faultyRanges({ artifactScore, artifactKind })!;
  }
}
