/** Joins the decoded sound of a pulled source to windows of 4 seconds. See docs/live/events.md#live-audio. */

import { BLOCK_MS } from "../media/live/pulled_sound.ts";
import { LIMITS } from "../contract/limits.ts";
import type { CutWindow } from "./opus_windows.ts";

/** Joins blocks to windows. Times count from the first block: blocks follow each other without gaps. */
export class PcmWindows {
  #blocks: Uint8Array<ArrayBuffer>[] = [];
  #startPtsMs = 0;

  /** Takes the next block; gives the window that ends with it, null where it goes on. */
  push(block: Uint8Array<ArrayBuffer>): CutWindow | null {
    this.#blocks.push(block);
    return this.#blocks.length * BLOCK_MS >= LIMITS.localAudio.liveWindowMs ? this.#cut() : null;
  }

  /** To be called when no more blocks come: the rest is a window if it is long enough. */
  finish(): CutWindow | null {
    return this.#blocks.length * BLOCK_MS >= LIMITS.localAudio.liveRemainderMsMin ? this.#cut() : null;
  }

  #cut(): CutWindow {
    const units = this.#blocks;
    const startPtsMs = this.#startPtsMs;
    const endPtsMs = startPtsMs + units.length * BLOCK_MS;
    this.#blocks = [];
    this.#startPtsMs = endPtsMs;
    return { units, startPtsMs, endPtsMs };
  }
}
