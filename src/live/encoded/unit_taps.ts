/** Gives each encoded unit of a session to all that take them. */

import type { CopiedUnit } from "../../media/containers/copied_packets.ts";
import { FormatFollower } from "./format_follower.ts";
import type { EncodedStreams, FormatTap, UnitTap } from "./unit_tap.ts";

export class UnitTaps implements UnitTap {
  readonly #taps: readonly FormatTap[];
  readonly #format = new FormatFollower();

  constructor(taps: readonly FormatTap[]) {
    this.#taps = taps;
  }

  get isUrgent(): boolean {
    return this.#taps.some(({ isUrgent }) => isUrgent);
  }

  begin(streams: EncodedStreams): void {
    this.#format.begin(streams);
    for (const tap of this.#taps) tap.begin(streams);
  }

  setOffset(offsetMs: number): void {
    for (const tap of this.#taps) tap.setOffset(offsetMs);
  }

  push(given: CopiedUnit): void {
    const { unit, isOther } = this.#format.follow(given);
    for (const tap of this.#taps) {
      if (isOther) tap.changeFormat(unit.ptsMs);
      tap.push(unit);
    }
  }

  miss(): void {
    for (const tap of this.#taps) tap.miss();
  }

  interrupt(): void {
    for (const tap of this.#taps) tap.interrupt();
  }

  end(): void {
    for (const tap of this.#taps) tap.end();
  }
}
