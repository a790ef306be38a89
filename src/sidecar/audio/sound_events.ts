/** Sounds that can be told apart by loudness and tonality alone; others would need a trained model and are
 * not named.
 */

import { type Features, FRAME_MS } from "./features.ts";

export const SOUNDS = [
  "silence",
  "noise",
  "hum",
  "tone",
  "beep",
  "alarm",
  "music",
  "impact",
  "click",
] as const;
export type Sound = typeof SOUNDS[number];

export interface SoundEvent {
  readonly sound: Sound;
  readonly startMs: number;
  readonly endMs: number;
  /** 0.5 where the rule just holds, 1 where it holds by a wide margin. */
  readonly confidence: number;
}

/** A range of frames; `end` is the first frame after it. */
interface FrameRange {
  readonly start: number;
  readonly end: number;
}

/**
 * All sounds of a window, in order of their start. `voice` is the probability of speech in each frame; where
 * an alarm sounds it is set to 0, because a siren rises and falls much like a voice.
 */
export function soundEvents(features: Features, voice: Float32Array): SoundEvent[] {
  const alarms = alarmEvents(features);
  const isTaken = new Uint8Array(features.frames);
  for (const { startMs, endMs } of alarms) {
    isTaken.fill(1, startMs / FRAME_MS, endMs / FRAME_MS);
    voice.fill(0, startMs / FRAME_MS, endMs / FRAME_MS);
  }
  const lines = [...alarms, ...lineEvents(features, voice, isTaken)];
  for (const { startMs, endMs } of lines) isTaken.fill(1, startMs / FRAME_MS, endMs / FRAME_MS);
  const steady = steadyEvents(features, voice, isTaken);
  return [...lines, ...steady, ...strikes(features, voice, isTaken)]
    .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs);
}

/** Quieter sounds are not named. */
const AUDIBLE_DB = -55;
const SILENT_DB = -60;

/** Sounds that last: silence, noise, hum, music. */
function steadyEvents(features: Features, voice: Float32Array, isTaken: Uint8Array): SoundEvent[] {
  const { frames, levelDb, flatness, tonality, steadiness, medianHz, onsetDb, peakHz } = features;
  const flat = smoothed(frames, 25, (frame) => flatness[frame]!);
  const lined = smoothed(frames, 100, (frame) => tonality[frame]!);
  const held = smoothed(frames, 100, (frame) => tonality[frame]! * steadiness[frame]!);
  const low = smoothed(frames, 50, (frame) => medianHz[frame]!);
  const even = smoothed(frames, 50, (frame) => Math.min(8, onsetDb[frame]!));
  const level = smoothed(frames, 25, (frame) => levelDb[frame]!);
  const isQuiet = (frame: number) => level[frame]! < AUDIBLE_DB;
  const isFree = (frame: number) => !isQuiet(frame) && isTaken[frame] === 0 && voice[frame]! < 0.4;
  const isHum = (frame: number) =>
    isFree(frame) && low[frame]! < HUM_HZ && held[frame]! > 0.55 && even[frame]! < 2.5;
  const isMusic = (frame: number) =>
    isFree(frame) && held[frame]! > MUSIC_HELD && lined[frame]! > 0.55 && !isHum(frame);

  const silence = rangesWhere(frames, 1000, 0, (frame) => levelDb[frame]! < SILENT_DB);
  const noise = rangesWhere(frames, 1000, 200, (frame) => isFree(frame) && flat[frame]! > NOISE_FLAT);
  const hum = rangesWhere(frames, 2000, 300, isHum);
  const music = rangesWhere(frames, 2500, 1500, isMusic)
    .filter((range) => distinctPitches(peakHz, range) >= 4);
  return [
    ...named("silence", silence, (range) => (SILENT_DB - mean(levelDb, range)) / 20),
    ...named("noise", noise, (range) => (mean(flat, range) - NOISE_FLAT) / 0.3),
    ...named("hum", hum, (range) => (mean(held, range) - 0.55) / 0.35),
    ...named("music", music, (range) => (mean(held, range) - MUSIC_HELD) / 0.35),
  ];
}

const HUM_HZ = 260;
const MUSIC_HELD = 0.33;
const NOISE_FLAT = 0.2;

/** One line that repeats a pattern: it comes and goes, changes between two pitches, or sweeps. */
function alarmEvents({ frames, levelDb, peakShare, peakHz }: Features): SoundEvent[] {
  const isLine = (frame: number) =>
    levelDb[frame]! > AUDIBLE_DB && peakShare[frame]! > ALARM_SHARE && peakHz[frame]! > ALARM_HZ;
  return rangesWhere(frames, ALARM_MS, ALARM_GAP_MS, isLine).flatMap((group) => {
    const repetition = repetitionOf(peakHz, isLine, group);
    const margin = (repetition - ALARM_REPETITION) / (1 - ALARM_REPETITION);
    return margin > 0 ? named("alarm", [group], () => margin) : [];
  });
}

/** Sounds of a single line with a constant pitch: a tone is long, a beep is short. */
function lineEvents(features: Features, voice: Float32Array, isTaken: Uint8Array): SoundEvent[] {
  const { frames, levelDb, peakShare, peakHz } = features;
  const isLine = (frame: number) =>
    levelDb[frame]! > AUDIBLE_DB && peakShare[frame]! > LINE_SHARE && peakHz[frame]! > LINE_HZ &&
    voice[frame]! < 0.6 && isTaken[frame] === 0;
  const groups = rangesWhere(frames, 60, ALARM_GAP_MS, isLine);
  return groups.flatMap((group): SoundEvent[] => {
    const share = (range: FrameRange) => (mean(peakShare, range) - LINE_SHARE) / (1 - LINE_SHARE);
    const held = rangesWhere(
      frames,
      60,
      20,
      (frame) =>
        frame >= group.start && frame < group.end && isLine(frame) &&
        Math.abs(Math.log2(peakHz[frame]! / peakHz[Math.max(group.start, frame - 1)]!)) < SEMITONE / 2,
    );
    if (distinctPitches(peakHz, group) >= 3 && held.length >= 3) return [];
    return [
      ...named("tone", held.filter((range) => lengthMs(range) >= TONE_MS), share),
      ...named(
        "beep",
        held.filter((range) => lengthMs(range) < TONE_MS && isAlone(levelDb, range)),
        share,
      ),
    ];
  });
}

const LINE_SHARE = 0.7;
const LINE_HZ = 180;
const SEMITONE = 1 / 12;
const TONE_MS = 1500;
const ALARM_MS = 1800;
const ALARM_GAP_MS = 700;
const ALARM_REPETITION = 0.8;
const ALARM_SHARE = 0.4;
const ALARM_HZ = 400;

/** A beep is louder than what is before and after it, and does not fade like the sound of a strike. */
function isAlone(levelDb: Float32Array, { start, end }: FrameRange): boolean {
  const third = Math.max(1, Math.floor((end - start) / 3));
  const fall = mean(levelDb, { start, end: start + third }) - mean(levelDb, { start: end - third, end });
  if (fall > 8) return false;
  const around = [levelDb[Math.max(0, start - 8)]!, levelDb[Math.min(levelDb.length - 1, end + 8)]!];
  return mean(levelDb, { start, end }) - Math.max(...around) > 8;
}

/**
 * How well a range of lines and gaps repeats itself after 0.2 to 2 s, 0 to 1. A line with a constant pitch
 * repeats itself after any time and counts as 0.
 */
function repetitionOf(
  peakHz: Float32Array,
  isLine: (frame: number) => boolean,
  { start, end }: FrameRange,
): number {
  const length = end - start;
  const track = Float64Array.from(
    { length },
    (_, n) => isLine(start + n) ? Math.log2(peakHz[start + n]!) : 0,
  );
  const lined = track.filter((pitch) => pitch > 0);
  const centre = lined.reduce((sum, pitch) => sum + pitch, 0) / lined.length;
  // A gap counts as far away from every line, so that a beep that comes and goes has a shape as well.
  const shape = track.map((pitch) => pitch > 0 ? (pitch - centre) * 3 : -3);
  const average = shape.reduce((sum, x) => sum + x, 0) / length;
  let energy = 0;
  for (let n = 0; n < length; n += 1) {
    shape[n] = shape[n]! - average;
    energy += shape[n]! ** 2;
  }
  if (energy / length < 0.05) return 0;
  let best = 0;
  let hasFallen = false;
  for (let lag = 10; lag <= Math.min(200, length / 2); lag += 1) {
    let [product, left, right] = [0, 0, 0];
    for (let n = lag; n < length; n += 1) {
      product += shape[n]! * shape[n - lag]!;
      left += shape[n]! ** 2;
      right += shape[n - lag]! ** 2;
    }
    const likeness = product / (Math.sqrt(left * right) || 1);
    if (likeness < 0.3) hasFallen = true;
    if (hasFallen) best = Math.max(best, likeness);
  }
  return best;
}

/** Sounds with a sudden rise: a click ends suddenly too, an impact fades. */
function strikes(features: Features, voice: Float32Array, isTaken: Uint8Array): SoundEvent[] {
  const { frames, levelDb, onsetDb } = features;
  const events: SoundEvent[] = [];
  for (let frame = 2; frame < frames; frame += 1) {
    const before = mean(levelDb, { start: Math.max(0, frame - 12), end: frame - 1 });
    if (onsetDb[frame]! < STRIKE_ONSET_DB || levelDb[frame]! - before < STRIKE_DB) continue;
    if (isTaken[frame] || voice[frame]! > 0.5) continue;
    let peak = frame;
    while (peak + 1 < frames && peak - frame < 4 && levelDb[peak + 1]! > levelDb[peak]!) peak += 1;
    let end = peak + 1;
    while (end < frames && end - peak < STRIKE_FRAMES_MAX && levelDb[end]! > levelDb[peak]! - 12) end += 1;
    const rise = levelDb[peak]! - before;
    if (end - peak < STRIKE_FRAMES_MAX && levelDb[peak]! > AUDIBLE_DB + 10 && fallsOnly(levelDb, peak, end)) {
      const startMs = (frame - 1) * FRAME_MS;
      const confidence = confidenceOf((rise - STRIKE_DB) / 20);
      const sound = end - peak <= CLICK_FRAMES ? "click" : "impact";
      events.push({ sound, startMs, endMs: Math.max(startMs + 20, end * FRAME_MS), confidence });
    }
    frame = end + STRIKE_PAUSE;
  }
  return events;
}

const STRIKE_ONSET_DB = 6;
const STRIKE_DB = 15;
const STRIKE_FRAMES_MAX = 60;
const STRIKE_PAUSE = 3;
const CLICK_FRAMES = 3;

/** The sound of a strike only gets quieter; that of a voice or an engine does not. */
function fallsOnly(levelDb: Float32Array, peak: number, end: number): boolean {
  for (let frame = peak + 2; frame < end; frame += 1) {
    if (levelDb[frame]! > levelDb[frame - 2]! + 3) return false;
  }
  return true;
}

/** Semitones that are the strongest line at least 5 % of the time. */
function distinctPitches(peakHz: Float32Array, { start, end }: FrameRange): number {
  const counts = new Map<number, number>();
  for (let frame = start; frame < end; frame += 1) {
    const semitone = Math.round(12 * Math.log2(Math.max(20, peakHz[frame]!) / 440));
    counts.set(semitone, (counts.get(semitone) ?? 0) + 1);
  }
  return [...counts.values()].filter((count) => count >= (end - start) * 0.05).length;
}

/** The ranges of at least `leastMs` in which `holds` is true, with gaps of up to `gapMs`. */
function rangesWhere(
  frames: number,
  leastMs: number,
  gapMs: number,
  holds: (frame: number) => boolean,
): FrameRange[] {
  const found: FrameRange[] = [];
  for (let frame = 0; frame < frames; frame += 1) {
    if (!holds(frame)) continue;
    const start = frame;
    let end = frame + 1;
    for (frame += 1; frame < frames && (frame - end) * FRAME_MS <= gapMs; frame += 1) {
      if (holds(frame)) end = frame + 1;
    }
    if ((end - start) * FRAME_MS >= leastMs) found.push({ start, end });
    frame = end;
  }
  return found;
}

function named(
  sound: Sound,
  found: readonly FrameRange[],
  marginOf: (range: FrameRange) => number,
): SoundEvent[] {
  return found.map((range) => ({
    sound,
    startMs: range.start * FRAME_MS,
    endMs: range.end * FRAME_MS,
    confidence: confidenceOf(marginOf(range)),
  }));
}

function confidenceOf(margin: number): number {
  return 0.5 + 0.5 * Math.min(1, Math.max(0, margin));
}

function lengthMs({ start, end }: FrameRange): number {
  return (end - start) * FRAME_MS;
}

function mean(column: Float32Array, { start, end }: FrameRange): number {
  let sum = 0;
  for (let frame = start; frame < end; frame += 1) sum += column[frame]!;
  return sum / Math.max(1, end - start);
}

/** Means over `reach` frames to both sides. */
function smoothed(frames: number, reach: number, value: (frame: number) => number): Float32Array {
  const sums = new Float64Array(frames + 1);
  for (let frame = 0; frame < frames; frame += 1) sums[frame + 1] = sums[frame]! + value(frame);
  return Float32Array.from({ length: frames }, (_, frame) => {
    const [from, to] = [Math.max(0, frame - reach), Math.min(frames, frame + reach + 1)];
    return (sums[to]! - sums[from]!) / (to - from);
  });
}
