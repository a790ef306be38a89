/** Clip mode: which frames of a live stream form a clip, and when. See docs/live/events.md#clip-mode. */

import { LIMITS } from "../../contract/limits.ts";

/** The field `clip_mode` of an attach configuration. */
export interface ClipSettings {
  /** The frames a second of a clip. */
  readonly targetFps: number;
  /** The media time of a clip. */
  readonly clipSeconds: number;
  /** The least time from the end of one clip to the end of the next one. */
  readonly delaySeconds: number;
}

/** How much too early a frame may seem: media times are rounded to milliseconds. */
const EARLY_MS = 1;
/** What is added before rounding down: 0.7 * 10 = 6.999999999999999 must not lose a frame. */
const ROUNDING = 1e-9;

/**
 * The frames of the last `clipSeconds`, thinned to `targetFps`, or further so that a clip has at most 64
 * frames. With 30 frames a second, clips of 0.5 s, 6 fps and a delay of 0.5 s:
 *
 * ```
 *   pts   0   33   67  100  133  167 …  333   367 … 500 … 667 … 833  867
 *   taken 0                      1      2           3     4     5
 *                                       ▲ clip 0-2              ▲ clip 3-5
 * ```
 * With a delay shorter than a clip, clips overlap; with a longer one, the frames between them are in none. A
 * caller that is too busy to `take` a clip gets a later one, as old frames are dropped.
 */
export class ClipWindow<Frame> {
  readonly #clipMs: number;
  readonly #delayMs: number;
  readonly #framesMax: number;
  readonly #intervalMs: number;
  readonly #frames: { readonly ptsMs: number; readonly frame: Frame }[] = [];
  /** The media time of the next frame to take; undefined before the first one. */
  #nextMs: number | undefined;
  #firstMs = 0;
  /** The media time from which the next clip is due. */
  #dueMs = -Infinity;
  #hasNew = false;

  constructor({ targetFps, clipSeconds, delaySeconds }: ClipSettings) {
    this.#clipMs = clipSeconds * 1_000;
    this.#delayMs = delaySeconds * 1_000;
    this.#framesMax = Math.max(1, Math.min(LIMITS.live.clipFramesMax, framesOf(targetFps, clipSeconds)));
    this.#intervalMs = Math.max(1_000 / targetFps, this.#clipMs / LIMITS.live.clipFramesMax);
  }

  /** Whether the frame at `ptsMs` is to be pushed; other frames need not be encoded. */
  wants(ptsMs: number): boolean {
    return this.#nextMs === undefined || this.#wentBack(ptsMs) || ptsMs >= this.#nextMs - EARLY_MS;
  }

  /** Adds a wanted frame. When the time goes back, the window starts again. */
  push(ptsMs: number, frame: Frame): void {
    if (this.#wentBack(ptsMs)) this.clear();
    if (this.#nextMs === undefined) this.#firstMs = ptsMs;
    const due = this.#nextMs ?? ptsMs;
    // Stays on the grid as long as frames arrive in time, so that 30 fps are thinned to 6 fps and not to 5.
    this.#nextMs = (ptsMs - due < this.#intervalMs ? due : ptsMs) + this.#intervalMs;
    this.#frames.push({ ptsMs, frame });
    const startMs = ptsMs - this.#clipMs + EARLY_MS;
    while (this.#frames.length > this.#framesMax || this.#frames[0]!.ptsMs < startMs) this.#frames.shift();
    this.#hasNew = true;
  }

  /** The frames of the clip that is due with the frame pushed last, oldest first; null when none is. */
  take(): Frame[] | null {
    const last = this.#frames.at(-1);
    if (!last || !this.#hasNew || last.ptsMs < this.#dueMs - EARLY_MS) return null;
    // A stream of few frames a second never fills the window, but its clips are as long.
    const isFull = this.#frames.length === this.#framesMax || last.ptsMs >= this.#firstMs + this.#clipMs;
    if (!isFull) return null;
    this.#hasNew = false;
    this.#dueMs = last.ptsMs + this.#delayMs;
    return this.#frames.map(({ frame }) => frame);
  }

  /** Drops all frames, as after an interruption of the stream. */
  clear(): void {
    this.#frames.length = 0;
    this.#nextMs = undefined;
    this.#dueMs = -Infinity;
    this.#hasNew = false;
  }

  #wentBack(ptsMs: number): boolean {
    const last = this.#frames.at(-1);
    return last !== undefined && ptsMs < last.ptsMs;
  }
}

/** The number of frames of a clip. */
export function framesOf(targetFps: number, clipSeconds: number): number {
  return Math.floor(targetFps * clipSeconds + ROUNDING);
}
