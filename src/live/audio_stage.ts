/** The audio of a session in its Worker: cuts the Opus packets of each track into windows and reports them
 * against credits.
 */

import { LIMITS } from "../contract/limits.ts";
import type { AudioUnit } from "../rtc/receive/audio_track.ts";
import type { SessionCounts } from "./messages/session_counts.ts";
import type { AudioWindow } from "./messages/messages.ts";
import { type CutWindow, OpusWindows } from "./opus_windows.ts";
import type { Outbox } from "./messages/outbox.ts";

export interface AudioStageOptions {
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
  /** Whether windows are reported; packets are counted in any case. */
  readonly isWanted: boolean;
}

export class AudioStage {
  readonly #options: AudioStageOptions;
  /** Windows of Opus packets by track. */
  readonly #windows = new Map<number, OpusWindows>();
  #chunkIndex = 0;

  constructor(options: AudioStageOptions) {
    this.#options = options;
  }

  push(unit: AudioUnit): void {
    const { counts, isWanted } = this.#options;
    counts.add("audioAccessUnits");
    counts.add("audioBytes", unit.data.length);
    const out: CutWindow[] = [];
    const durationMs = unit.data.length > LIMITS.live.audioUnitBytesMax
      ? null
      : this.#windowsOf(unit.trackId).push(unit, out);
    if (durationMs === null) counts.add("audioReceiveErrors");
    else counts.add("audioDurationMs", durationMs);
    if (isWanted) this.#report(unit.trackId, out);
  }

  /** Takes a window of decoded sound; a pulled source has one track. */
  takeSamples(window: CutWindow): void {
    this.#report(0, [window], "pcm");
  }

  /** To be called when no more packets come: the last windows are reported if they are long enough. */
  finish(): void {
    for (const [trackId, windows] of this.#windows) {
      const out: CutWindow[] = [];
      windows.finish(out);
      if (this.#options.isWanted) this.#report(trackId, out);
    }
    this.#windows.clear();
  }

  #windowsOf(trackId: number): OpusWindows {
    const known = this.#windows.get(trackId);
    if (known) return known;
    const windows = new OpusWindows();
    this.#windows.set(trackId, windows);
    return windows;
  }

  /** Reports windows. One without credit is dropped, which leaves a gap in the chunk numbers. */
  #report(trackId: number, cut: readonly CutWindow[], format: AudioWindow["format"] = "opus"): void {
    const { outbox, counts } = this.#options;
    for (const window of cut) {
      const chunkIndex = this.#chunkIndex++;
      if (!outbox.take("audioWindows")) {
        counts.add("audioQueueDropped", window.units.length);
        continue;
      }
      outbox.send({ kind: "audio_window", window: { trackId, chunkIndex, format, ...window } });
    }
  }
}
