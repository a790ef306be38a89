/** Voice activity: properties that distinguish speech from noise, tones and music, weighed by a small fitted
 * model.
 */

import weights from "../../../weights/voice.json" with { type: "json" };
import { type Features, FRAME_MS } from "./features.ts";

export interface VoiceSegment {
  readonly startMs: number;
  readonly endMs: number;
  /** The mean probability of speech in its frames. */
  readonly confidence: number;
}

/**
 * The segments with speech, in order. A pause below 300 ms belongs to its segment; a segment shorter than 200
 * ms is dropped. A segment begins where the probability of speech is at least 0.6 and continues while it is
 * at least 0.45.
 */
export function voiceSegments(probabilities: Float32Array, durationMs: number): VoiceSegment[] {
  const segments: VoiceSegment[] = [];
  const frames = probabilities.length;
  for (let frame = 0; frame < frames; frame += 1) {
    if (probabilities[frame]! < ENTER) continue;
    let start = frame;
    while (start > 0 && frame - start < ONSET_FRAMES && probabilities[start - 1]! >= STAY) start -= 1;
    let end = frame + 1;
    for (let at = end; at < frames && at - end <= PAUSE_FRAMES; at += 1) {
      if (probabilities[at]! >= STAY) end = at + 1;
    }
    const last = segments.at(-1);
    const startMs = Math.max(last?.endMs ?? 0, start * FRAME_MS);
    const endMs = Math.min(Math.round(durationMs), end * FRAME_MS);
    if (endMs - startMs >= LEAST_MS) {
      segments.push({ startMs, endMs, confidence: mean(probabilities, start, end) });
    }
    frame = end;
  }
  return segments;
}

const ENTER = 0.6;
const STAY = 0.45;
const ONSET_FRAMES = 15;
const PAUSE_FRAMES = 30;
const LEAST_MS = 200;

/** The probability of speech in each frame. */
export function voiceProbabilities(features: Features): Float32Array<ArrayBuffer> {
  const evidence = voiceEvidence(features);
  const width = EVIDENCE.length;
  const raw = new Float32Array(features.frames);
  for (let frame = 0; frame < features.frames; frame += 1) {
    raw[frame] = probability(evidence.subarray(frame * width, (frame + 1) * width));
  }
  const running = new RunningMean(features.frames, (frame) => raw[frame]!);
  return Float32Array.from(raw, (_, frame) => running.around(frame, SMOOTHING_FRAMES));
}

const SMOOTHING_FRAMES = 3;

/** One hidden layer: a row of weights for each unit, its bias last, and a last row that weighs the units. */
function probability(evidence: Float32Array): number {
  const { rows } = weights;
  const units = rows.length - 1;
  const outer = rows[units]!;
  let sum = outer[units]!;
  for (let unit = 0; unit < units; unit += 1) {
    const own = rows[unit]!;
    let inner = own[evidence.length]!;
    for (let index = 0; index < evidence.length; index += 1) inner += own[index]! * evidence[index]!;
    sum += outer[unit]! * Math.tanh(inner);
  }
  return 1 / (1 + Math.exp(-sum));
}

/**
 * The inputs of the model, each about 0 to 1: of the frame and its neighbours, and of half a second to both
 * sides.
 */
export const EVIDENCE = [
  "signal-to-noise ratio",
  "signal-to-noise ratio, squared",
  "harmonicity",
  "harmonicity above the noise floor",
  "share of voiced frames around",
  "spread of the level around",
  "steps of the level around",
  "steadiness of lines around",
  "tonality around",
  "flatness around",
  "steps of the pitch around",
  "share of the strongest line around",
  "median frequency around",
  "spread of the median frequency around",
  "onsets around",
  "share of quiet frames around",
  "low level",
  "tonality of steady lines around",
  "signal-to-noise ratio around",
  "steadiness of lines",
  "signal-to-noise ratio relative to the loudest nearby",
  "share of the strongest line",
  "strong onsets around",
] as const;

/** One row of {@link EVIDENCE} for each frame. */
export function voiceEvidence(features: Features): Float32Array<ArrayBuffer> {
  const { frames, levelDb, snrDb, harmonicity, pitchHz, tonality, steadiness, flatness, medianHz } = features;
  const mean = (value: (frame: number) => number) => new RunningMean(frames, value);
  const isVoiced = (frame: number) => harmonicity[frame]! > 0.25 && snrDb[frame]! > 8;
  const snr = mean((frame) => Math.min(30, snrDb[frame]!) / 30);
  const pitched = mean((frame) => harmonicity[frame]!);
  const pitchedOut = mean((frame) => harmonicity[frame]! * Math.min(1, snrDb[frame]! / 15));
  const voiced = mean((frame) => isVoiced(frame) ? 1 : 0);
  const level = mean((frame) => levelDb[frame]!);
  const levelSquared = mean((frame) => levelDb[frame]! ** 2);
  const levelStep = mean((frame) =>
    Math.min(12, Math.abs(levelDb[frame]! - levelDb[Math.max(0, frame - 5)]!))
  );
  const steady = mean((frame) => steadiness[frame]!);
  const lined = mean((frame) => tonality[frame]!);
  const steadyLines = mean((frame) =>
    steadiness[frame]! * tonality[frame]! * Math.min(1, snrDb[frame]! / 10)
  );
  const flat = mean((frame) => Math.sqrt(flatness[frame]!));
  const pitchStep = mean((frame) => {
    const earlier = Math.max(0, frame - 2);
    if (!isVoiced(frame) || !isVoiced(earlier)) return 0;
    return Math.min(0.1, Math.abs(Math.log2(pitchHz[frame]! / pitchHz[earlier]!))) * 10;
  });
  const single = mean((frame) => features.peakShare[frame]!);
  const colour = (frame: number) => Math.log2(Math.max(60, medianHz[frame]!) / 60) / 6;
  const coloured = mean(colour);
  const colouredSquared = mean((frame) => colour(frame) ** 2);
  const onsets = mean((frame) => Math.min(6, features.onsetDb[frame]!) / 6);
  const quiet = mean((frame) => snrDb[frame]! < 6 ? 1 : 0);

  const bursts = mean((frame) => features.onsetDb[frame]! > 6 ? 1 : 0);
  const loudest = slidingMaximum(frames, LOUDEST_REACH, (frame) => snr.around(frame, NEAR));

  const width = EVIDENCE.length;
  const rows = new Float32Array(frames * width);
  for (let frame = 0; frame < frames; frame += 1) {
    const near = (running: RunningMean) => running.around(frame, NEAR);
    const far = (running: RunningMean) => running.around(frame, FAR);
    const spread = Math.sqrt(Math.max(0, far(levelSquared) - far(level) ** 2));
    const colourSpread = Math.sqrt(Math.max(0, far(colouredSquared) - far(coloured) ** 2));
    rows.set([
      near(snr),
      near(snr) ** 2,
      near(pitched) * 2,
      near(pitchedOut) * 2,
      far(voiced),
      Math.min(1, spread / 20),
      far(levelStep) / 12,
      far(steady),
      far(lined),
      far(flat),
      far(pitchStep),
      far(single),
      far(coloured),
      Math.min(1, colourSpread * 4),
      far(onsets) * 2,
      far(quiet),
      Math.min(1, Math.max(0, -near(level) - 20) / 50),
      far(steadyLines),
      far(snr),
      near(steady),
      near(snr) / Math.max(0.1, loudest[frame]!),
      near(single),
      far(bursts),
    ], frame * width);
  }
  return rows;
}

const NEAR = 4;
const FAR = 50;
const LOUDEST_REACH = 100;

/** The largest value within `reach` frames to both sides, to a tenth of `reach`. */
function slidingMaximum(frames: number, reach: number, value: (frame: number) => number): Float32Array {
  const block = reach / 10;
  const maxima = new Float32Array(Math.ceil(frames / block));
  for (let frame = 0; frame < frames; frame += 1) {
    const index = Math.floor(frame / block);
    maxima[index] = Math.max(maxima[index]!, value(frame));
  }
  return Float32Array.from({ length: frames }, (_, frame) => {
    const index = Math.floor(frame / block);
    return maxima.subarray(Math.max(0, index - 10), index + 11).reduce((a, b) => Math.max(a, b), 0);
  });
}

/** Means over any range of a column, from its running sum. */
class RunningMean {
  readonly #sums: Float64Array;

  constructor(frames: number, value: (frame: number) => number) {
    this.#sums = new Float64Array(frames + 1);
    for (let frame = 0; frame < frames; frame += 1) this.#sums[frame + 1] = this.#sums[frame]! + value(frame);
  }

  /** The mean over `reach` frames to both sides, or as many as there are. */
  around(frame: number, reach: number): number {
    const from = Math.max(0, frame - reach);
    const to = Math.min(this.#sums.length - 1, frame + reach + 1);
    return (this.#sums[to]! - this.#sums[from]!) / (to - from);
  }
}

function mean(column: Float32Array, from: number, to: number): number {
  let sum = 0;
  for (let frame = from; frame < to; frame += 1) sum += column[frame]!;
  return sum / (to - from);
}
