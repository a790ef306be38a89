/** The measurements of every 10 ms of a window: level, noise floor, pitch, and how steady its tones are. */

import { RealFourier } from "./fourier.ts";

/** Every window has this rate. */
export const SAMPLE_RATE_HZ = 16_000;
/** One frame every 10 ms. */
export const FRAME_MS = 10;
const HOP = SAMPLE_RATE_HZ * FRAME_MS / 1000;
/**
 * 64 ms under a Hann window: long enough to separate the harmonics of a deep voice, short enough not to mix
 * syllables.
 */
const WINDOW = 1024;
const BIN_HZ = SAMPLE_RATE_HZ / WINDOW;
/** Up to 4 kHz; higher frequencies count for the level only. */
const BINS = 256;
const SILENCE_DB = -100;
const SILENT_POWER = 1e-10;

/** Each column has one number for each frame; frame `t` is centred at `t * FRAME_MS`. */
export interface Features {
  readonly frames: number;
  /** Root mean square of 20 ms, dB of full scale, at least -100. */
  readonly levelDb: Float32Array;
  /** How far the power from 150 Hz to 3.8 kHz is above its own noise floor, dB. */
  readonly snrDb: Float32Array;
  /** 0 to 1: how well the frame without its noise floor repeats itself at one pitch between 70 and 400 Hz. */
  readonly harmonicity: Float32Array;
  /** The pitch of the voice, Hz. */
  readonly pitchHz: Float32Array;
  /** 0 to 1: how much of the power up to 4 kHz lies in narrow lines. */
  readonly tonality: Float32Array;
  /** 0 to 1: how well these lines match those of 80 ms before. */
  readonly steadiness: Float32Array;
  /** Frequency of the strongest line, Hz, and its share of the power up to 4 kHz. */
  readonly peakHz: Float32Array;
  readonly peakShare: Float32Array;
  /** 0 to 1: 1 for white noise, near 0 for lines. Of 100 Hz to 4 kHz. */
  readonly flatness: Float32Array;
  /** The frequency below which half of the power up to 4 kHz lies, Hz. */
  readonly medianHz: Float32Array;
  /** Mean rise of 20 bands over 20 ms, dB: high where a sound begins. */
  readonly onsetDb: Float32Array;
}

/** Measures all frames. Takes about 40 us a frame. */
export function measure(samples: Int16Array): Features {
  const frames = Math.max(1, Math.ceil(samples.length / HOP));
  const features = emptyFeatures(frames);
  const { power, powerDb } = spectra(samples, frames, features);
  const floor = noiseFloor(powerDb, frames);
  const lines = new Float32Array(frames * BINS);
  const autocorrelation = { fourier: new RealFourier(WINDOW), mirrored: new Float64Array(WINDOW) };
  for (let frame = 0; frame < frames; frame += 1) {
    const at = frame * BINS;
    const frameFloor = floor.subarray(at, at + BINS);
    measureShape(features, frame, power.subarray(at, at + BINS), powerDb.subarray(at, at + BINS), frameFloor);
    measurePitch(features, frame, power.subarray(at, at + BINS), frameFloor, autocorrelation);
    measureLines(features, frame, power, powerDb, lines);
    measureOnset(features, frame, powerDb);
  }
  return features;
}

function emptyFeatures(frames: number): Features {
  const column = () => new Float32Array(frames);
  return {
    frames,
    levelDb: column(),
    snrDb: column(),
    harmonicity: column(),
    pitchHz: column(),
    tonality: column(),
    steadiness: column(),
    peakHz: column(),
    peakShare: column(),
    flatness: column(),
    medianHz: column(),
    onsetDb: column(),
  };
}

interface Spectra {
  /** Power of each bin, frame by frame; a full-scale sine gives 1. */
  readonly power: Float32Array;
  /** A power in dB, at least -100. */
  readonly powerDb: Float32Array;
}

/** The spectra of all frames. Fills `levelDb` as well. */
function spectra(samples: Int16Array, frames: number, { levelDb }: Features): Spectra {
  const fourier = new RealFourier(WINDOW);
  const hann = Float64Array.from(
    { length: WINDOW },
    (_, n) => (0.5 - 0.5 * Math.cos(2 * Math.PI * (n + 0.5) / WINDOW)) / 32768,
  );
  const windowed = new Float64Array(WINDOW);
  const power = new Float32Array(frames * BINS);
  const powerDb = new Float32Array(frames * BINS);
  for (let frame = 0; frame < frames; frame += 1) {
    const centre = frame * HOP;
    let energy = 0;
    for (let n = 0; n < WINDOW; n += 1) {
      const sample = samples[centre - WINDOW / 2 + n] ?? 0;
      windowed[n] = sample * hann[n]!;
      if (n >= WINDOW / 2 - HOP && n < WINDOW / 2 + HOP) energy += sample * sample;
    }
    levelDb[frame] = decibels(energy / (2 * HOP) / 32768 ** 2);
    fourier.transform(windowed);
    for (let k = 0; k < BINS; k += 1) {
      const value = (fourier.real[k]! ** 2 + fourier.imaginary[k]! ** 2) * POWER_SCALE;
      power[frame * BINS + k] = Math.max(SILENT_POWER, value);
      powerDb[frame * BINS + k] = decibels(value);
    }
  }
  return { power, powerDb };
}

/** A full-scale sine gives 0 dB in its bin. */
const POWER_SCALE = 16 / WINDOW ** 2;

function decibels(power: number): number {
  return power > SILENT_POWER ? 10 * Math.log10(power) : SILENCE_DB;
}

/**
 * For each bin the minimum of its smoothed power within a second before and after: the power of what sounds
 * all the time, such as noise, a hum or a held note. Speech does not raise it, because of the gaps between
 * and within words.
 */
function noiseFloor(powerDb: Float32Array, frames: number): Float32Array {
  const blocks = Math.ceil(frames / FLOOR_BLOCK);
  const minima = new Float32Array(blocks * BINS).fill(Infinity);
  const smoothed = new Float32Array(BINS);
  for (let k = 0; k < BINS; k += 1) smoothed[k] = powerDb[k]!;
  for (let frame = 0; frame < frames; frame += 1) {
    const block = Math.floor(frame / FLOOR_BLOCK) * BINS;
    for (let k = 0; k < BINS; k += 1) {
      const value = smoothed[k]! + (powerDb[frame * BINS + k]! - smoothed[k]!) * FLOOR_SMOOTHING;
      smoothed[k] = value;
      if (value < minima[block + k]!) minima[block + k] = value;
    }
  }
  const floor = new Float32Array(frames * BINS);
  for (let block = 0; block < blocks; block += 1) {
    const first = Math.max(0, block - FLOOR_BLOCKS_AROUND);
    const last = Math.min(blocks - 1, block + FLOOR_BLOCKS_AROUND);
    const end = Math.min(frames, (block + 1) * FLOOR_BLOCK);
    for (let k = 0; k < BINS; k += 1) {
      let lowest = Infinity;
      for (let near = first; near <= last; near += 1) lowest = Math.min(lowest, minima[near * BINS + k]!);
      const value = linear(Math.max(SILENCE_DB, lowest + FLOOR_BIAS_DB));
      for (let frame = block * FLOOR_BLOCK; frame < end; frame += 1) floor[frame * BINS + k] = value;
    }
  }
  return floor;
}

const FLOOR_BLOCK = 20;
const FLOOR_BLOCKS_AROUND = 5;
const FLOOR_SMOOTHING = 0.2;
/** The minimum of a fluctuating power lies below its mean. */
const FLOOR_BIAS_DB = 4;

function measureShape(
  features: Features,
  frame: number,
  power: Float32Array,
  powerDb: Float32Array,
  floor: Float32Array,
): void {
  let whole = 0;
  let speechPower = 0;
  let speechFloor = 0;
  let logSum = 0;
  let flatPower = 0;
  let peak = 1;
  for (let k = 1; k < BINS; k += 1) {
    const value = power[k]!;
    whole += value;
    if (k >= SPEECH_FROM && k < SPEECH_TO) {
      speechPower += value;
      speechFloor += floor[k]!;
    }
    if (k >= FLAT_FROM) {
      logSum += powerDb[k]!;
      flatPower += value;
    }
    if (value > power[peak]!) peak = k;
  }
  features.snrDb[frame] = Math.max(0, 10 * Math.log10(speechPower / speechFloor));
  features.flatness[frame] = linear(logSum / (BINS - FLAT_FROM)) / (flatPower / (BINS - FLAT_FROM));
  features.peakHz[frame] = interpolatedPeak(powerDb, peak) * BIN_HZ;
  let peakPower = 0;
  for (let k = Math.max(1, peak - 2); k <= Math.min(BINS - 1, peak + 2); k += 1) peakPower += power[k]!;
  features.peakShare[frame] = peakPower / whole;
  let below = 0;
  let median = 1;
  while (median < BINS - 1 && below + power[median]! < whole / 2) below += power[median++]!;
  features.medianHz[frame] = median * BIN_HZ;
}

const SPEECH_FROM = Math.round(150 / BIN_HZ);
const SPEECH_TO = Math.round(3_800 / BIN_HZ);
const FLAT_FROM = Math.round(100 / BIN_HZ);

function linear(db: number): number {
  return 10 ** (db / 10);
}

function interpolatedPeak(spectrum: Float32Array, k: number): number {
  if (k <= 0 || k >= BINS - 1) return k;
  const [left, middle, right] = [spectrum[k - 1]!, spectrum[k]!, spectrum[k + 1]!];
  const bend = left - 2 * middle + right;
  return bend < 0 ? k + (left - right) / (2 * bend) : k;
}

/**
 * The autocorrelation of the power above the floor, compressed so that one strong formant does not hide the
 * others.
 */
function measurePitch(
  features: Features,
  frame: number,
  power: Float32Array,
  floor: Float32Array,
  { fourier, mirrored }: { readonly fourier: RealFourier; readonly mirrored: Float64Array },
): void {
  mirrored.fill(0);
  for (let k = PITCH_FROM; k < PITCH_TO; k += 1) {
    const above = power[k]! - 2 * floor[k]!;
    if (above <= 0) continue;
    const compressed = above ** COMPRESSION;
    mirrored[k] = compressed;
    mirrored[WINDOW - k] = compressed;
  }
  fourier.transform(mirrored);
  const atZero = fourier.real[0]!;
  if (atZero <= 0) return;
  let best = 0;
  let bestLag = 0;
  for (let lag = LAG_MIN; lag <= LAG_MAX; lag += 1) {
    const value = fourier.real[lag]!;
    if (value <= fourier.real[lag - 1]! || value < fourier.real[lag + 1]!) continue;
    // A multiple of the right lag fits as well as the lag itself, so a longer lag must fit better to be
    // chosen.
    const weighted = value / atZero * (1 - LAG_PENALTY * lag / LAG_MAX);
    if (weighted > best) [best, bestLag] = [weighted, lag];
  }
  if (bestLag === 0) return;
  const [left, middle, right] = [
    fourier.real[bestLag - 1]!,
    fourier.real[bestLag]!,
    fourier.real[bestLag + 1]!,
  ];
  const bend = left - 2 * middle + right;
  const lag = bend < 0 ? bestLag + (left - right) / (2 * bend) : bestLag;
  features.harmonicity[frame] = Math.min(1, Math.max(0, middle / atZero));
  features.pitchHz[frame] = SAMPLE_RATE_HZ / lag;
}

const PITCH_FROM = Math.round(80 / BIN_HZ);
const PITCH_TO = Math.round(3_000 / BIN_HZ);
const COMPRESSION = 0.35;
const LAG_MIN = Math.floor(SAMPLE_RATE_HZ / 400);
const LAG_MAX = Math.ceil(SAMPLE_RATE_HZ / 70);
const LAG_PENALTY = 0.15;

/** A line is a bin that is above the mean of its neighbours by more than noise would be. */
function measureLines(
  features: Features,
  frame: number,
  power: Float32Array,
  powerDb: Float32Array,
  lines: Float32Array,
): void {
  const at = frame * BINS;
  let sum = 0;
  for (let k = 0; k < LINE_REACH * 2 + 1; k += 1) sum += powerDb[at + k]!;
  let linePower = 0;
  let whole = 0;
  for (let k = LINE_REACH; k < BINS - LINE_REACH; k += 1) {
    const value = powerDb[at + k]!;
    const above = value - sum / (LINE_REACH * 2 + 1) - LINE_DB;
    const strength = power[at + k]!;
    whole += strength;
    if (above > 0) {
      lines[at + k] = Math.min(LINE_DB_MAX, above);
      linePower += strength;
    }
    sum += powerDb[at + k + LINE_REACH + 1]! - powerDb[at + k - LINE_REACH]!;
  }
  features.tonality[frame] = linePower / whole;

  const earlier = Math.max(0, frame - LINE_LAG) * BINS;
  let [product, ours, theirs] = [0, 0, 0];
  for (let k = LINE_REACH; k < BINS - LINE_REACH; k += 1) {
    const now = lines[at + k]!;
    const then = lines[earlier + k]!;
    product += now * then;
    ours += now * now;
    theirs += then * then;
  }
  features.steadiness[frame] = ours > 0 && theirs > 0 ? product / Math.sqrt(ours * theirs) : 0;
}

const LINE_REACH = 8;
const LINE_DB = 6;
const LINE_DB_MAX = 24;
const LINE_LAG = 8;

function measureOnset(features: Features, frame: number, powerDb: Float32Array): void {
  const earlier = Math.max(0, frame - 2) * BINS;
  let rise = 0;
  for (let band = 0; band < ONSET_BANDS; band += 1) {
    const from = 1 + Math.floor(band ** 1.4 * 3.7);
    const to = 1 + Math.floor((band + 1) ** 1.4 * 3.7);
    let [now, then] = [0, 0];
    for (let k = from; k < Math.min(to, BINS); k += 1) {
      now += powerDb[frame * BINS + k]!;
      then += powerDb[earlier + k]!;
    }
    rise += Math.max(0, (now - then) / (to - from));
  }
  features.onsetDb[frame] = rise / ONSET_BANDS;
}

const ONSET_BANDS = 20;
