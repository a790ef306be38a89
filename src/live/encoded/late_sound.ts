/** How long a file that is over waits for sound that belongs into it and comes behind the pictures. */

import type { CopiedUnit } from "../../media/live/copied_packets.ts";

/** A part of an HLS stream may have all of its pictures before all of its sound. */
export const SOUND_LATE_MS = 8_000;
/** For sound of which nothing has come since the file began. */
const MISSING_MS = 1_000;

/** Follows how far pictures and sound of one stream have come. */
export class LateSound {
  #firstVideoMs: number | null = null;
  #newestVideoMs = -Infinity;
  #newestSoundMs: number | null = null;

  push({ isVideo, ptsMs }: CopiedUnit): void {
    if (isVideo) {
      this.#firstVideoMs ??= ptsMs;
      this.#newestVideoMs = Math.max(this.#newestVideoMs, ptsMs);
    } else this.#newestSoundMs = Math.max(this.#newestSoundMs ?? -Infinity, ptsMs);
  }

  /** Another stream follows. */
  clear(): void {
    this.#firstVideoMs = null;
    this.#newestVideoMs = -Infinity;
    this.#newestSoundMs = null;
  }

  /** Whether sound of the file from `startMs` to `endMs` is still to be waited for. Call it for a stream with sound. */
  isAwaited(startMs: number, endMs: number): boolean {
    const newest = this.#newestSoundMs ?? -Infinity;
    const isYoung = this.#newestVideoMs - (this.#firstVideoMs ?? 0) < SOUND_LATE_MS;
    const isComing = this.#newestSoundMs === null ? isYoung : newest >= startMs;
    return newest < endMs && this.#newestVideoMs - endMs < (isComing ? SOUND_LATE_MS : MISSING_MS);
  }
}
