/** Which frames of a live stream are shown in which clip. Contract 11.2 and 11.4. */

import { LIMITS } from "../limits.ts";

/** `clip_mode` of an attach configuration. */
export interface ClipSettings {
  /** Frames a second that a clip shows. */
  readonly targetFps: number;
  /** How much of the stream a clip shows. */
  readonly clipSeconds: number;
  /** Least time from one clip's end to the next one's. */
  readonly delaySeconds: number;
}

/** Media times are whole milliseconds, so a frame on the grid may seem a little early. */
const EARLY_MS = 1;
/** 0.7 * 10 is 6.999999999999999. */
const ROUNDING = 1e-9;

/**
 * The frames of the last `clipSeconds`, thinned to `targetFps` or to what 64 frames allow, whichever is less. With
 * 30 frames a second, and 0.5 s, 6 fps and a delay of 0.5 s:
 *
 * ```
 *   pts   0   33   67  100  133  167 …  333   367 … 500 … 667 … 833  867
 *   taken 0                      1      2           3     4     5
 *                                       ▲ clip 0-2              ▲ clip 3-5
 * ```
 * With a delay shorter than a clip, clips overlap; with a longer one, what lies between them is in none. Whoever is too
 * busy to `take` a clip finds a later one: the frames move on.
 */
export class ClipWindow<Frame> {
  readonly #clipMs: number;
  readonly #delayMs: number;
  readonly #framesMax: number;
  readonly #intervalMs: number;
  readonly #frames: { readonly ptsMs: number; readonly frame: Frame }[] = [];
  /** When the next frame is taken; undefined before the first. */
  #nextMs: number | undefined;
  #firstMs = 0;
  /** From when on a clip is due. */
  #dueMs = -Infinity;
  #hasNew = false;

  constructor({ targetFps, clipSeconds, delaySeconds }: ClipSettings) {
    this.#clipMs = clipSeconds * 1_000;
    this.#delayMs = delaySeconds * 1_000;
    this.#framesMax = Math.max(1, Math.min(LIMITS.live.clipFramesMax, framesOf(targetFps, clipSeconds)));
    this.#intervalMs = Math.max(1_000 / targetFps, this.#clipMs / LIMITS.live.clipFramesMax);
  }

  /** Whether the frame at `ptsMs` is to be pushed, so that no other one is made into a picture. */
  wants(ptsMs: number): boolean {
    return this.#nextMs === undefined || this.#wentBack(ptsMs) || ptsMs >= this.#nextMs - EARLY_MS;
  }

  /** Takes in a frame that is wanted. After a time that goes back everything begins anew. */
  push(ptsMs: number, frame: Frame): void {
    if (this.#wentBack(ptsMs)) this.clear();
    if (this.#nextMs === undefined) this.#firstMs = ptsMs;
    const due = this.#nextMs ?? ptsMs;
    // On the grid as long as the stream keeps up with it, so that 30 fps give 6 fps and not 5.
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
    // A stream of few frames a second never has as many, but its clips are as long.
    const isFull = this.#frames.length === this.#framesMax || last.ptsMs >= this.#firstMs + this.#clipMs;
    if (!isFull) return null;
    this.#hasNew = false;
    this.#dueMs = last.ptsMs + this.#delayMs;
    return this.#frames.map(({ frame }) => frame);
  }

  /** Forgets every frame, as where a stream was interrupted. */
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

/** Contract 11.2: how many frames of `targetFps` a clip has; at least 3 are asked for. */
export function framesOf(targetFps: number, clipSeconds: number): number {
  return Math.floor(targetFps * clipSeconds + ROUNDING);
}
