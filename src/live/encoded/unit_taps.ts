/** Gives each encoded unit of a session to all that take them. */

import type { CopiedUnit } from "../../media/live/copied_packets.ts";
import type { EncodedStreams, UnitTap } from "./unit_tap.ts";

export class UnitTaps implements UnitTap {
  readonly #taps: readonly UnitTap[];

  constructor(taps: readonly UnitTap[]) {
    this.#taps = taps;
  }

  get isUrgent(): boolean {
    return this.#taps.some(({ isUrgent }) => isUrgent);
  }

  begin(streams: EncodedStreams): void {
    for (const tap of this.#taps) tap.begin(streams);
  }

  setOffset(offsetMs: number): void {
    for (const tap of this.#taps) tap.setOffset(offsetMs);
  }

  push(unit: CopiedUnit): void {
    for (const tap of this.#taps) tap.push(unit);
  }

  interrupt(): void {
    for (const tap of this.#taps) tap.interrupt();
  }

  end(): void {
    for (const tap of this.#taps) tap.end();
  }
}
