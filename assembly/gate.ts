/** The gate and the context pass: one decision and one confidence for each frame, in blocks of frames. */

/*
 * The caller fills the input columns with up to BLOCK_ROWS rows, calls `run` and reads the output columns.
 * See docs/frames.md#gate and docs/frames.md#context-pass.
 *
 *   in   FRAME_INDEX f64 | HASH u64 | LUMA_MEAN f32 | FLICKER f32 | GHOSTING f32 | NOISE f32 | CUT_SCORE f32
 *       ARTIFACT_SCORE f32
 *   out  REASON u8 | GATE_CONFIDENCE f64 | NOVELTY f64 | STABILITY f64 | MOTION f64 | CONFIDENCE f64
 *
 * The state between blocks is the reference (the last kept frame) and the window, the last `windowSize`
 * frames in a ring buffer:
 *
 *   WINDOW_HASH 256 x u64 | WINDOW_LUMA 256 x f64
 *
 * Signals and thresholds are compared as f32, so that a signal written as 0.55 reaches the threshold 0.55.
 * Averages are f64, summed in the order of the ring's slots, with separate sums for even and odd slots.
 */

export const BLOCK_ROWS: i32 = 8192;
export const FRAME_INDEX: usize = memory.data(8192 * 8, 16);
export const HASH: usize = memory.data(8192 * 8, 16);
export const LUMA_MEAN: usize = memory.data(8192 * 4, 16);
export const FLICKER: usize = memory.data(8192 * 4, 16);
export const GHOSTING: usize = memory.data(8192 * 4, 16);
export const NOISE: usize = memory.data(8192 * 4, 16);
export const CUT_SCORE: usize = memory.data(8192 * 4, 16);
export const ARTIFACT_SCORE: usize = memory.data(8192 * 4, 16);
export const REASON: usize = memory.data(8192, 16);
export const GATE_CONFIDENCE: usize = memory.data(8192 * 8, 16);
export const NOVELTY: usize = memory.data(8192 * 8, 16);
export const STABILITY: usize = memory.data(8192 * 8, 16);
export const MOTION: usize = memory.data(8192 * 8, 16);
export const CONFIDENCE: usize = memory.data(8192 * 8, 16);

const WINDOW_HASH: usize = memory.data(256 * 8, 16);
const WINDOW_LUMA: usize = memory.data(256 * 8, 16);

/** Indices into GATE_REASONS of src/model/frames/signals.ts. */
const INITIAL_FRAME: u8 = 0;
const SCENE_CUT: u8 = 1;
const TEMPORAL_FAULT: u8 = 2;
const PERIODIC_KEEPALIVE: u8 = 3;
const EXPOSURE_SHIFT: u8 = 4;
const FLICKER_SUSPECTED: u8 = 5;
const GHOSTING_SUSPECTED: u8 = 6;
const NOISE_VARIANCE_SPIKE: u8 = 7;
const NO_TRIGGER: u8 = 8;

let keepaliveEveryFrames: f64 = 0;
let sceneCutHamming: f64 = 0;
let lumaShift: f32 = 0;
let flickerLimit: f32 = 0;
let ghostingLimit: f32 = 0;
let noiseLimit: f32 = 0;
let cutScoreLimit: f32 = 0;
let artifactScoreLimit: f32 = 0;
let keepsAtOnce: bool = true;

let hasReference: bool = false;
let referenceIndex: f64 = 0;
let referenceHash: u64 = 0;
let referenceLuma: f32 = 0;

let windowSize: i32 = 0;
let windowCount: i32 = 0;
let windowNext: i32 = 0;
let previousHash: u64 = 0;

/** The confidence of the current row's decision; `decide` sets it and returns the reason. */
let gateConfidence: f64 = 0;

/** Removes all frames; from now on the window has `size` frames, 2 to 256. */
export function reset(size: i32): void {
  hasReference = false;
  windowSize = size;
  windowCount = 0;
  windowNext = 0;
}

/** With `atOnce` a kept frame becomes the reference at once, else only when the caller calls `keep`. */
export function configure(
  keepalive: f64,
  hamming: f64,
  luma: f32,
  flicker: f32,
  ghosting: f32,
  noise: f32,
  cutScore: f32,
  artifactScore: f32,
  atOnce: bool,
): void {
  keepaliveEveryFrames = keepalive;
  sceneCutHamming = hamming;
  lumaShift = luma;
  flickerLimit = flicker;
  ghostingLimit = ghosting;
  noiseLimit = noise;
  cutScoreLimit = cutScore;
  artifactScoreLimit = artifactScore;
  keepsAtOnce = atOnce;
}

/** Makes a frame the reference. */
export function keep(frameIndex: f64, hash: u64, luma: f32): void {
  hasReference = true;
  referenceIndex = frameIndex;
  referenceHash = hash;
  referenceLuma = luma;
}

/** Takes the reference away, so that the next frame is judged as the first one. The window stays. */
export function forget(): void {
  hasReference = false;
}

/** Processes the first `rows` rows of the block. */
export function run(rows: i32): void {
  for (let row: usize = 0; row < <usize> rows; row++) {
    const frameIndex = load<f64>(FRAME_INDEX + (row << 3));
    const hash = load<u64>(HASH + (row << 3));
    const luma = load<f32>(LUMA_MEAN + (row << 2));
    const reason = decide(row, frameIndex, hash, luma);
    store<u8>(REASON + row, reason);
    store<f64>(GATE_CONFIDENCE + (row << 3), gateConfidence);
    if (keepsAtOnce && isKept(reason)) keep(frameIndex, hash, luma);
    observe(row, hash, luma);
  }
}

function isKept(reason: u8): bool {
  return reason <= PERIODIC_KEEPALIVE && reason != TEMPORAL_FAULT;
}

/**
 * Returns the reason and sets `gateConfidence`. The first condition that holds decides. See
 * docs/frames.md#gate.
 */
function decide(row: usize, frameIndex: f64, hash: u64, luma: f32): u8 {
  if (!hasReference) return because(INITIAL_FRAME, 1);
  const hamming = <f64> popcnt<u64>(hash ^ referenceHash);
  const cutScore = load<f32>(CUT_SCORE + (row << 2));
  const isScored = cutScore == cutScore;
  if (isScored && cutScore >= cutScoreLimit) return because(SCENE_CUT, cutScore);
  if (!isScored && hamming >= sceneCutHamming) return because(SCENE_CUT, hamming / 64);
  const artifactScore = load<f32>(ARTIFACT_SCORE + (row << 2));
  if (artifactScore >= artifactScoreLimit) return because(TEMPORAL_FAULT, artifactScore);
  if (frameIndex - referenceIndex >= keepaliveEveryFrames) return because(PERIODIC_KEEPALIVE, 1);
  // Whether a decoded frame is at fault was judged from its pictures, so the signals below say nothing more.
  if (artifactScore == artifactScore) return because(NO_TRIGGER, 0);
  const shift = abs<f32>(luma - referenceLuma);
  if (shift >= lumaShift) return because(EXPOSURE_SHIFT, shift);
  const flicker = load<f32>(FLICKER + (row << 2));
  if (flicker >= flickerLimit) return because(FLICKER_SUSPECTED, flicker);
  const ghosting = load<f32>(GHOSTING + (row << 2));
  if (ghosting >= ghostingLimit) return because(GHOSTING_SUSPECTED, ghosting);
  const noise = load<f32>(NOISE + (row << 2));
  if (noise >= noiseLimit) return because(NOISE_VARIANCE_SPIKE, noise);
  return because(NO_TRIGGER, 0);
}

function because(reason: u8, confidence: f64): u8 {
  gateConfidence = confidence;
  return reason;
}

/**
 * Compares the frame with the window, writes its row and adds it to the window. See
 * docs/frames.md#context-pass.
 */
function observe(row: usize, hash: u64, luma: f32): void {
  let novelty: f64 = 1;
  let stability: f64 = 1;
  let motion: f64 = 0;
  if (windowCount > 0) {
    novelty = <f64> windowHamming(hash) / <f64> (64 * windowCount);
    stability = clampUnit(1 - windowLumaDistance(luma) / <f64> windowCount);
    motion = <f64> popcnt<u64>(hash ^ previousHash) / 64;
  }
  const confidence = clampUnit(0.45 * novelty + 0.35 * (1 - stability) + 0.20 * motion);
  store<f64>(NOVELTY + (row << 3), novelty);
  store<f64>(STABILITY + (row << 3), stability);
  store<f64>(MOTION + (row << 3), motion);
  store<f64>(CONFIDENCE + (row << 3), confidence);

  store<u64>(WINDOW_HASH + (windowNext << 3), hash);
  store<f64>(WINDOW_LUMA + (windowNext << 3), luma);
  previousHash = hash;
  windowNext = windowNext + 1 == windowSize ? 0 : windowNext + 1;
  if (windowCount < windowSize) windowCount++;
}

function windowHamming(hash: u64): i32 {
  let total: i32 = 0;
  for (let slot: i32 = 0; slot < windowCount; slot++) {
    total += <i32> popcnt<u64>(hash ^ load<u64>(WINDOW_HASH + (slot << 3)));
  }
  return total;
}

function windowLumaDistance(luma: f64): f64 {
  const lumas = f64x2.splat(luma);
  let sums = f64x2.splat(0);
  const pairs = windowCount & ~1;
  for (let slot: i32 = 0; slot < pairs; slot += 2) {
    sums = f64x2.add(sums, f64x2.abs(f64x2.sub(lumas, v128.load(WINDOW_LUMA + (slot << 3)))));
  }
  let even = f64x2.extract_lane(sums, 0);
  if (pairs < windowCount) even += abs<f64>(luma - load<f64>(WINDOW_LUMA + (pairs << 3)));
  return even + f64x2.extract_lane(sums, 1);
}

function clampUnit(value: f64): f64 {
  return min<f64>(max<f64>(value, 0), 1);
}
