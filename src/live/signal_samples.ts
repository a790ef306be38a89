/** Motion and novelty of a session's frames, thinned out for those who watch it while it comes. */

import { LIMITS } from "../contract/limits.ts";
import type { SignalSample } from "./messages/messages.ts";

/** Milliseconds of media time between two samples: a plot of a minute has 600 points. */
const SAMPLE_MS = 100;

/**
 * Thins out the signals. Each sample has the largest values of the frames within `SAMPLE_MS`, so that no
 * short movement is lost.
 */
export class SignalSamples {
  #samples: SignalSample[] = [];
  /** The sample that is still being made. */
  #open: SignalSample | null = null;

  observe({ ptsMs, motion, novelty }: SignalSample): void {
    const open = this.#open;
    if (open && ptsMs >= open.ptsMs && ptsMs < open.ptsMs + SAMPLE_MS) {
      this.#open = {
        ptsMs: open.ptsMs,
        motion: Math.max(open.motion, motion),
        novelty: Math.max(open.novelty, novelty),
      };
      return;
    }
    this.#close();
    this.#open = { ptsMs, motion, novelty };
  }

  /** The samples since the last call, those beyond the limit left out. */
  take(): readonly SignalSample[] {
    this.#close();
    const taken = this.#samples;
    this.#samples = [];
    return taken;
  }

  #close(): void {
    if (this.#open && this.#samples.length < LIMITS.live.signalSamples) this.#samples.push(this.#open);
    this.#open = null;
  }
}
