/** Relates the times of a publisher's sound to those of its video, which count from different starts. */

import type { ClockMark } from "./reception.ts";

/** RTP ticks a millisecond. */
const VIDEO_TICKS = 90;
const SOUND_TICKS = 48;
/** The least change of the relation that is followed: sound stays continuous over smaller ones. */
const STEP_MS = 40;

/**
 * Relates the two by the publisher's clock once both tracks have a sender report. Until then it goes by the
 * arrival of the packets that took the least time.
 */
export class SoundClock {
  #videoDelayMs = Infinity;
  #soundDelayMs = Infinity;
  #lastVideo: number | null = null;
  #offsetMs = NaN;

  /**
   * Takes a packet of the video. RTP times here do not wrap, and have the publisher's value in their lower 32
   * bits.
   */
  onVideo(rtpTimestamp: number, arrivedMs: number): void {
    this.#lastVideo = rtpTimestamp;
    this.#videoDelayMs = Math.min(this.#videoDelayMs, arrivedMs - rtpTimestamp / VIDEO_TICKS);
  }

  /** The time of a sound packet on the clock of the video, milliseconds; null before the first video. */
  onSound(
    rtpTimestamp: number,
    arrivedMs: number,
    marks: { readonly video: ClockMark | null; readonly sound: ClockMark | null },
  ): number | null {
    const soundMs = rtpTimestamp / SOUND_TICKS;
    this.#soundDelayMs = Math.min(this.#soundDelayMs, arrivedMs - soundMs);
    if (this.#lastVideo === null) return null;
    const { video, sound } = marks;
    const offsetMs = video && sound
      ? this.#lastVideo / VIDEO_TICKS - soundMs +
        sentMs(rtpTimestamp, sound, SOUND_TICKS) - sentMs(this.#lastVideo, video, VIDEO_TICKS)
      : this.#soundDelayMs - this.#videoDelayMs;
    if (!(Math.abs(offsetMs - this.#offsetMs) < STEP_MS)) this.#offsetMs = offsetMs;
    return soundMs + this.#offsetMs;
  }
}

/** When a packet was sent, by the publisher's clock. */
function sentMs(rtpTimestamp: number, mark: ClockMark, ticks: number): number {
  const difference = ((rtpTimestamp - mark.rtpTimestamp) % 2 ** 32 + 2 ** 32) % 2 ** 32;
  return mark.ntpMs + (difference >= 2 ** 31 ? difference - 2 ** 32 : difference) / ticks;
}
