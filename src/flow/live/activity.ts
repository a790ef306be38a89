/** What a live session has done lately, for those who watch it: frames, signals and its last picture. */

import type { LiveCounts, SignalSample } from "../../live/messages.ts";
import { LIMITS } from "../../contract/limits.ts";

/** A stored picture, and the event that names it. */
export interface NamedPicture {
  readonly seq: number;
  readonly sha256: string;
}

export class SessionActivity {
  #frames = { received: 0, decoded: 0, dropped: 0, kept: 0 };
  /** When a report last had decoded frames, epoch milliseconds. */
  #lastFrameMs: number | null = null;
  #samples: readonly SignalSample[] = [];
  #picture: NamedPicture | null = null;

  get frames(): { received: number; decoded: number; dropped: number; kept: number } {
    return this.#frames;
  }

  get lastFrameMs(): number | null {
    return this.#lastFrameMs;
  }

  /** The newest one; null before the first. */
  get picture(): NamedPicture | null {
    return this.#picture;
  }

  /** The samples of the last minute behind a media time. */
  samplesAfter(ptsMs: number): readonly SignalSample[] {
    return this.#samples.filter((sample) => sample.ptsMs > ptsMs);
  }

  onCounts(counts: LiveCounts, nowMs: number): void {
    const { received, decoded, dropped, kept } = this.#frames;
    this.#frames = {
      received: received + counts.rtpFramesReceived,
      decoded: decoded + counts.framesDecoded,
      dropped: dropped + counts.framesDropped,
      kept: kept + counts.gateKeyframesSelected,
    };
    if (counts.framesDecoded > 0) this.#lastFrameMs = nowMs;
  }

  onSamples(samples: readonly SignalSample[]): void {
    this.#samples = [...this.#samples, ...samples].slice(-LIMITS.live.signalSamples);
  }

  /** The pictures so far belong to a run that has ended. */
  forgetPicture(): void {
    this.#picture = null;
  }

  /** The event names a stored picture. */
  onPicture(picture: NamedPicture): void {
    this.#picture = picture;
  }
}
