/** Plays the film of a run: its speed in both directions, single frames, and the playhead that follows the
 * picture.
 */

import { type Signal, signal } from "@preact/signals";

/** Speeds of J and L, pressed again and again. */
const SPEEDS = [1, 2, 4, 8];
/** Media times are rounded to a millisecond: a little later surely lies within the frame. */
const INSIDE_MS = 1;

export class Playback {
  readonly isPlaying: Signal<boolean> = signal(false);
  /** Negative plays backwards. */
  readonly speed: Signal<number> = signal(1);
  readonly #playheadMs: Signal<number>;
  readonly #lengthMs: () => number;
  #video: HTMLVideoElement | null = null;
  /** Where the element has the first frame, from which media time counts; null until it was shown. */
  #firstMs: number | null = null;
  #ticking: number | null = null;

  /** `lengthMs` is how far the playhead may go where there is no film. */
  constructor(playheadMs: Signal<number>, lengthMs: () => number) {
    this.#playheadMs = playheadMs;
    this.#lengthMs = lengthMs;
  }

  /**
   * Takes an element whose film can be played, or gives it up. Returns what is to be called before the next
   * one.
   */
  attach(video: HTMLVideoElement | null): () => void {
    const ending = new AbortController();
    this.#video = video;
    this.#firstMs = null;
    if (video) this.#follow(video, ending.signal);
    return () => {
      ending.abort();
      this.pause();
      this.#video = null;
    };
  }

  /** Shows the frame at a media time. */
  seek(ms: number): void {
    const wanted = Math.max(0, Math.min(ms, this.#endMs()));
    this.#playheadMs.value = wanted;
    if (this.#video && this.#firstMs !== null) {
      this.#video.currentTime = (wanted + this.#firstMs + INSIDE_MS) / 1000;
    }
  }

  /** By a time or, at `fps` frames a second, by frames; stops playing. */
  step(ms: number): void {
    this.pause();
    this.seek(this.#playheadMs.peek() + ms);
  }

  toggle(): void {
    if (this.isPlaying.peek()) this.pause();
    else this.play(1);
  }

  /** Each call in the same direction plays twice as fast, up to 8 times. */
  shuttle(direction: 1 | -1): void {
    const present = this.isPlaying.peek() ? this.speed.peek() * direction : 0;
    const faster = SPEEDS.find((speed) => speed > present) ?? SPEEDS.at(-1)!;
    this.play((present > 0 ? faster : 1) * direction);
  }

  /** Does nothing where there is no film. */
  play(speed: number): void {
    const video = this.#video;
    if (!video) return;
    this.#stopTicking();
    this.speed.value = speed;
    this.isPlaying.value = true;
    if (speed < 0) {
      video.pause();
      this.#playBackwards(-speed);
      return;
    }
    if (this.#playheadMs.peek() >= this.#endMs() - INSIDE_MS) this.seek(0);
    video.playbackRate = speed;
    video.play().catch(() => this.pause()); // the browser refuses, or the film was taken away
  }

  pause(): void {
    this.#stopTicking();
    this.#video?.pause();
    this.isPlaying.value = false;
    this.speed.value = 1;
  }

  #endMs(): number {
    const ms = (this.#video?.duration ?? NaN) * 1000 - (this.#firstMs ?? 0);
    return Number.isFinite(ms) ? ms : this.#lengthMs();
  }

  /**
   * The playhead has the time of the frame that is shown. While a seek is under way, that is the frame
   * before.
   */
  #follow(video: HTMLVideoElement, signal: AbortSignal): void {
    const shown = (shownMs: number) => {
      if (this.#firstMs === null) {
        this.#firstMs = shownMs;
        const wanted = this.#playheadMs.peek();
        if (wanted > 0) this.seek(wanted);
      } else if (!video.seeking) {
        this.#playheadMs.value = Math.max(
          0,
          Math.round(shownMs - this.#firstMs),
        );
      }
    };
    if ("requestVideoFrameCallback" in video) {
      const next = () =>
        video.requestVideoFrameCallback((_now, { mediaTime }) => {
          if (signal.aborted) return;
          shown(mediaTime * 1000);
          next();
        });
      next();
    } else {
      const element = video as HTMLVideoElement;
      for (const name of ["loadeddata", "timeupdate", "seeked"]) {
        element.addEventListener(
          name,
          () => shown(element.currentTime * 1000),
          { signal },
        );
      }
    }
    video.addEventListener("ended", () => this.pause(), { signal });
  }

  /** No browser does it by itself: one frame after the other is sought, as fast as that goes. */
  #playBackwards(speed: number): void {
    const startMs = this.#playheadMs.peek();
    const start = performance.now();
    const tick = (now: number) => {
      const ms = startMs - (now - start) * speed;
      if (ms <= 0) {
        this.pause();
        this.seek(0);
        return;
      }
      if (!this.#video?.seeking) this.seek(ms);
      this.#ticking = requestAnimationFrame(tick);
    };
    this.#ticking = requestAnimationFrame(tick);
  }

  #stopTicking(): void {
    if (this.#ticking !== null) cancelAnimationFrame(this.#ticking);
    this.#ticking = null;
  }
}
