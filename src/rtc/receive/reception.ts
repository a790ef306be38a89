/** Statistics of one RTP stream for receiver reports, and the clock from the sender's reports. */

import type { ReportBlock } from "./rtcp.ts";
import { Unwrapper } from "./unwrap.ts";

/** An RTP time of a track and the same moment on the publisher's clock: two of them relate audio to video. */
export interface ClockMark {
  /** As it was sent, of 32 bits. */
  readonly rtpTimestamp: number;
  /** Milliseconds since 1900 by the publisher's clock. */
  readonly ntpMs: number;
}

/** RFC 3550, A.3 and A.8. Must not get retransmissions that come in a stream of their own. */
export class Reception {
  readonly #sequence = new Unwrapper(16);
  readonly #clockRate: number;
  #first = NaN;
  #highest = -1;
  #received = 0;
  #expectedBefore = 0;
  #receivedBefore = 0;
  #jitter = 0;
  #transit = NaN;
  #report: { ntp: bigint; rtpTimestamp: number; atMs: number } | null = null;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  receive(sequence: number, timestamp: number, nowMs: number): void {
    const place = this.#sequence.near(sequence);
    if (place > this.#highest || Number.isNaN(this.#first)) {
      this.#sequence.follow(sequence);
      this.#highest = place;
    }
    if (Number.isNaN(this.#first)) this.#first = place;
    this.#received++;
    const transit = (nowMs * this.#clockRate) / 1000 - timestamp;
    const change = Math.abs(transit - this.#transit);
    // Such a large step is a wrapped timestamp or a new clock, not jitter.
    if (change < this.#clockRate * 10) this.#jitter += (change - this.#jitter) / 16;
    this.#transit = transit;
  }

  receiveReport(ntp: bigint, rtpTimestamp: number, nowMs: number): void {
    this.#report = { ntp, rtpTimestamp, atMs: nowMs };
  }

  /** From the last sender report; null before the first. */
  get clockMark(): ClockMark | null {
    if (!this.#report) return null;
    const { ntp, rtpTimestamp } = this.#report;
    return { rtpTimestamp, ntpMs: Number(ntp >> 32n) * 1000 + Number(ntp & 0xffff_ffffn) * 1000 / 2 ** 32 };
  }

  /** The statistics since the last call; null before the first packet. */
  takeBlock(ssrc: number, nowMs: number): ReportBlock | null {
    if (Number.isNaN(this.#first)) return null;
    const expected = this.#highest - this.#first + 1;
    const due = expected - this.#expectedBefore;
    const missing = due - (this.#received - this.#receivedBefore);
    this.#expectedBefore = expected;
    this.#receivedBefore = this.#received;
    return {
      ssrc,
      fractionLost: due > 0 && missing > 0 ? Math.min(255, Math.floor((missing * 256) / due)) : 0,
      cumulativeLost: expected - this.#received,
      highestSequence: this.#highest % 2 ** 32,
      jitter: Math.round(this.#jitter),
      lastSenderReport: this.#report ? Number((this.#report.ntp >> 16n) & 0xffff_ffffn) : 0,
      delaySinceSenderReport: this.#report ? Math.round((nowMs - this.#report.atMs) * 65.536) : 0,
    };
  }
}
