/** How long a file that is over waits for sound that belongs into it and comes behind the pictures. */

import type { CopiedUnit } from "../../media/containers/copied_packets.ts";

/**
 * Longest time that sound may come late, milliseconds: a part of an HLS stream may have all of its pictures
 * before all of its sound.
 */
export const SOUND_LATE_MS = 8_000;
/** Longest wait for sound that is further behind, and may never come, milliseconds. */
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

  /** To be called when another stream follows. */
  clear(): void {
    this.#firstVideoMs = null;
    this.#newestVideoMs = -Infinity;
    this.#newestSoundMs = null;
  }

  /**
   * Whether sound from before `endMs`, when a file is over, is still to be waited for. Call it for a stream
   * with sound.
   */
  isAwaited(endMs: number): boolean {
    const newestMs = this.#newestSoundMs ?? this.#firstVideoMs ?? 0;
    const isComing = this.#newestVideoMs - newestMs < SOUND_LATE_MS;
    const hasCome = this.#newestSoundMs !== null && this.#newestSoundMs >= endMs;
    return !hasCome && this.#newestVideoMs - endMs < (isComing ? SOUND_LATE_MS : MISSING_MS);
  }
}
