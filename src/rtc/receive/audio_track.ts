/** Puts the Opus packets of one track in order; waits only briefly for late or lost packets. */

import { ReorderWindow } from "../../model/sources/reorder_window.ts";
import { Unwrapper } from "./unwrap.ts";

export interface AudioPacket {
  readonly sequence: number;
  readonly timestamp: number;
  readonly payload: Uint8Array;
}

export interface AudioUnit {
  /** The index of its section among the served audio sections, from 0. */
  readonly trackId: number;
  /** One Opus packet. */
  readonly data: Uint8Array<ArrayBuffer>;
  /** The packet's RTP time in 48 kHz; begins with the publisher's value and does not wrap. */
  readonly rtpTimestamp: number;
  /** Whether packets before this one were lost. */
  readonly hasGap: boolean;
}

const REORDERING = { gapWaitMs: 60, startHoldMs: 20, nack: null };

export class AudioTrack {
  readonly #trackId: number;
  readonly #window = new ReorderWindow<AudioPacket>(REORDERING);
  readonly #clock = new Unwrapper(32);
  #hasGap = false;

  constructor(trackId: number) {
    this.#trackId = trackId;
  }

  get isWaiting(): boolean {
    return this.#window.isWaiting;
  }

  push(packet: AudioPacket, nowMs: number, into: AudioUnit[]): void {
    this.#window.push(packet.sequence, packet, nowMs);
    this.poll(nowMs, into);
  }

  poll(nowMs: number, into: AudioUnit[]): void {
    for (let taken = this.#window.take(nowMs); taken !== null; taken = this.#window.take(nowMs)) {
      if (taken === "gap") {
        this.#hasGap = true;
        continue;
      }
      if (taken.payload.length === 0) continue;
      into.push({
        trackId: this.#trackId,
        data: new Uint8Array(taken.payload),
        rtpTimestamp: this.#clock.follow(taken.timestamp),
        hasGap: this.#hasGap,
      });
      this.#hasGap = false;
    }
  }
}
