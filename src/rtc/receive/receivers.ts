/** The receiving side of one media section: its current RTP stream, its reception statistics, and the units
 * that it gives.
 */

import type { RtpPacket } from "werift";
import type { OfferedSection } from "../../model/live/offer.ts";
import type { Assembler, AssemblerActions, AssemblerCounts } from "./assembler.ts";
import { AudioTrack, type AudioUnit } from "./audio_track.ts";
import { Reception } from "./reception.ts";

/** The video section. It has one stream at a time; a later stream replaces it. */
export class VideoReceiver {
  readonly section: OfferedSection;
  readonly served: NonNullable<OfferedSection["served"]>;
  readonly canNack: boolean;
  /** The SSRC of the current stream; null before the first one. */
  ssrc: number | null = null;
  lastReceivedMs = -Infinity;
  reception: Reception | null = null;
  wantsKeyframe = false;
  readonly #newAssembler: () => Assembler;
  #assembler: Assembler;
  /** The sums of all streams before the current one. */
  readonly #countsBefore = {
    units: 0,
    incomplete: 0,
    oversize: 0,
    malformed: 0,
    duplicates: 0,
    late: 0,
    lost: 0,
  };

  constructor(section: OfferedSection, newAssembler: () => Assembler) {
    this.section = section;
    this.served = section.served!;
    this.canNack = this.served.feedback.includes("nack");
    this.#newAssembler = newAssembler;
    this.#assembler = newAssembler();
  }

  get isWaiting(): boolean {
    return this.#assembler.isWaiting;
  }

  get counts(): AssemblerCounts & { duplicates: number; late: number; lost: number } {
    const sum = { ...this.#countsBefore };
    const current = { ...this.#assembler.counts, ...this.#assembler.packetCounts };
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += current[name];
    return sum;
  }

  startStream(ssrc: number): void {
    if (this.ssrc !== null) {
      Object.assign(this.#countsBefore, this.counts);
      this.#assembler = this.#newAssembler();
    }
    this.ssrc = ssrc;
    this.reception = new Reception(this.served.clockRate);
  }

  receive(header: RtpPacket["header"], payload: Uint8Array, nowMs: number, into: AssemblerActions): void {
    this.lastReceivedMs = nowMs;
    this.reception?.receive(header.sequenceNumber, header.timestamp, nowMs);
    this.repair(header.sequenceNumber, header, payload, nowMs, into);
  }

  /**
   * Takes a retransmitted packet: `header` is that of the retransmission, `sequence` the number of the
   * original packet.
   */
  repair(
    sequence: number,
    header: RtpPacket["header"],
    payload: Uint8Array,
    nowMs: number,
    into: AssemblerActions,
  ): void {
    if (this.ssrc === null) return;
    const { timestamp, marker } = header;
    this.#assembler.push({ sequence, timestamp, isMarked: marker, payload, arrivedMs: nowMs }, nowMs, into);
  }

  poll(nowMs: number, roundTripMs: number, into: AssemblerActions): void {
    this.#assembler.poll(nowMs, roundTripMs, into);
  }
}

/** One audio section. It has one stream at a time; a later stream replaces it. */
export class AudioReceiver {
  readonly section: OfferedSection;
  readonly served: NonNullable<OfferedSection["served"]>;
  /** The SSRC of the current stream; null before the first one. */
  ssrc: number | null = null;
  lastReceivedMs = -Infinity;
  reception: Reception | null = null;
  readonly #trackId: number;
  #track: AudioTrack;

  constructor(section: OfferedSection, trackId: number) {
    this.section = section;
    this.served = section.served!;
    this.#trackId = trackId;
    this.#track = new AudioTrack(trackId);
  }

  get isWaiting(): boolean {
    return this.#track.isWaiting;
  }

  startStream(ssrc: number): void {
    if (this.ssrc !== null) this.#track = new AudioTrack(this.#trackId);
    this.ssrc = ssrc;
    this.reception = new Reception(this.served.clockRate);
  }

  receive(sequence: number, timestamp: number, payload: Uint8Array, nowMs: number, into: AudioUnit[]): void {
    this.lastReceivedMs = nowMs;
    this.reception?.receive(sequence, timestamp, nowMs);
    this.#track.push({ sequence, timestamp, payload }, nowMs, into);
  }

  poll(nowMs: number, into: AudioUnit[]): void {
    this.#track.poll(nowMs, into);
  }
}
