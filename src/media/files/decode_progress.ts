/** How far a decode is, in memory that the Worker writes while it blocks and the main thread reads. */

export interface DecodeProgress {
  /** Frames that were decoded. */
  readonly frames: number;
  /** Time of the last frame in the media, whole milliseconds from the first frame. */
  readonly ptsMs: number;
}

const FRAMES = 0;
const PTS_MS = 1;
const BYTES = 8;
const INT32_MAX = 2 ** 31 - 1;

export function newProgress(): SharedArrayBuffer {
  return new SharedArrayBuffer(BYTES);
}

export function readProgress(progress: SharedArrayBuffer): DecodeProgress {
  const numbers = new Int32Array(progress);
  return { frames: Atomics.load(numbers, FRAMES), ptsMs: Atomics.load(numbers, PTS_MS) };
}

export function writeProgress(numbers: Int32Array, frames: number, ptsMs: number): void {
  Atomics.store(numbers, FRAMES, frames);
  Atomics.store(numbers, PTS_MS, Math.min(INT32_MAX, ptsMs));
}
