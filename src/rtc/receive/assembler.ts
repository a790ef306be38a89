/** Assembles the RTP packets of a video into complete access units; drops units that refer to lost ones. */

import { LIMITS } from "../../contract/limits.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import { Av1Depacketizer } from "../depacketize/av1.ts";
import type { Depacketizer } from "../depacketize/depacketizer.ts";
import { NalDepacketizer } from "../depacketize/h26x.ts";
import { ReorderWindow } from "../../model/sources/reorder_window.ts";
import { UnitBuffer } from "../depacketize/unit_buffer.ts";
import { Unwrapper } from "./unwrap.ts";
import { Vp8Depacketizer } from "../depacketize/vp8.ts";
import { Vp9Depacketizer } from "../depacketize/vp9.ts";

/** One packet of the stream; a retransmission has been turned back into the original packet. */
export interface VideoPacket {
  readonly sequence: number;
  readonly timestamp: number;
  readonly isMarked: boolean;
  /** The payload without padding; empty in a packet that has only padding. */
  readonly payload: Uint8Array;
  /** When the packet arrived, on the same clock as the `nowMs` of `push`. */
  readonly arrivedMs: number;
}

export interface VideoUnit {
  /** The bytes of the unit: Annex B of H.264 and H.265, a frame of VP8 or VP9, a temporal unit of AV1. */
  readonly data: Uint8Array<ArrayBuffer>;
  readonly codec: VideoCodec;
  /** The unit's RTP time in 90 kHz; begins with the publisher's value and does not wrap. */
  readonly rtpTimestamp: number;
  readonly isKeyframe: boolean;
  /** The width of a keyframe whose header has the size; else null. */
  readonly width: number | null;
  readonly height: number | null;
  readonly firstPacketMs: number;
  readonly lastPacketMs: number;
}

/** What is to be done next. The caller owns the object, empties it and passes it again. */
export interface AssemblerActions {
  readonly units: VideoUnit[];
  /** Sequence numbers to ask for again. */
  readonly nacks: number[];
  wantsKeyframe: boolean;
}

/** Units that were passed on, and units that were dropped by cause. */
export interface AssemblerCounts {
  units: number;
  /** Units of which packets were lost, or that came before the keyframe that is needed after a loss. */
  incomplete: number;
  oversize: number;
  malformed: number;
}

const REORDERING = {
  gapWaitMs: 250,
  startHoldMs: 20,
  nack: { firstMs: 5, retryMinMs: 20, triesMax: 8 },
};

/**
 * ```
 * packets ─▶ ReorderWindow ─in order─▶ current unit ─marker, or a new timestamp─▶ unit
 *                   └─gap─▶ drop to the next keyframe, ask for one
 * ```
 *
 * The stream starts with its first keyframe. Has no clock: `push` and `poll` get the time, and `poll` must be
 * called every few milliseconds while `isWaiting`.
 */
export class Assembler {
  readonly counts: AssemblerCounts = { units: 0, incomplete: 0, oversize: 0, malformed: 0 };
  readonly #codec: VideoCodec;
  readonly #window: ReorderWindow<VideoPacket>;
  readonly #depacketizer: Depacketizer;
  readonly #unit = new UnitBuffer(LIMITS.live.videoUnitBytesMax);
  readonly #clock = new Unwrapper(32);
  readonly #startsKeyframe: (packet: VideoPacket) => boolean;
  #needsKeyframe = true;
  /**
   * Whether the next packet certainly begins a unit: no packet is missing between it and the end of the last
   * unit.
   */
  #isBoundary = false;
  /** Timestamp of the current unit; -1 without one. */
  #timestamp = -1;
  /** Timestamp of the last packet in order, also if its unit was dropped. */
  #lastTimestamp = -1;
  /** Whether a payload of the current unit was malformed. */
  #isMalformed = false;
  #firstPacketMs = 0;
  #lastPacketMs = 0;

  /** `parameterSets` are those of the offer; they are put before keyframes that have none. */
  constructor(codec: VideoCodec, parameterSets: readonly Uint8Array[] = []) {
    this.#codec = codec;
    this.#window = new ReorderWindow(REORDERING);
    const depacketizer = depacketizerOf(codec, parameterSets);
    this.#depacketizer = depacketizer;
    this.#startsKeyframe = ({ payload }) => payload.length > 0 && depacketizer.startsKeyframe(payload);
  }

  get isWaiting(): boolean {
    return this.#window.isWaiting;
  }

  /** The packets that came twice, too late, and not at all. */
  get packetCounts(): { duplicates: number; late: number; lost: number } {
    const { duplicates, late, lost } = this.#window;
    return { duplicates, late, lost };
  }

  push(packet: VideoPacket, nowMs: number, into: AssemblerActions): void {
    this.#window.push(packet.sequence, packet, nowMs);
    this.#drain(nowMs, into);
  }

  poll(nowMs: number, roundTripMs: number, into: AssemblerActions): void {
    this.#drain(nowMs, into);
    this.#window.collectMissing(nowMs, roundTripMs, into.nacks);
  }

  #drain(nowMs: number, into: AssemblerActions): void {
    for (;;) {
      let taken = this.#window.take(nowMs);
      // While only a keyframe can be used, one that has arrived need not wait for missing packets before it.
      if (taken === null && this.#needsKeyframe && this.#window.isWaiting) {
        taken = this.#window.skipTo(this.#startsKeyframe) ? this.#window.take(nowMs) : null;
      }
      if (taken === null) break;
      if (taken === "gap") this.#lose(into);
      else this.#add(taken, into);
    }
    if (this.#needsKeyframe && this.#timestamp < 0 && this.#lastTimestamp >= 0) into.wantsKeyframe = true;
  }

  #lose(into: AssemblerActions): void {
    if (this.#timestamp >= 0) this.counts.incomplete++;
    this.#reset();
    this.#isBoundary = false;
    this.#lastTimestamp = -1;
    this.#needsKeyframe = true;
    into.wantsKeyframe = true;
  }

  #add(packet: VideoPacket, into: AssemblerActions): void {
    if (packet.payload.length === 0) return;
    if (packet.timestamp !== this.#lastTimestamp) {
      if (this.#timestamp >= 0) this.#end(into);
      if (this.#lastTimestamp >= 0) this.#isBoundary = true;
      this.#lastTimestamp = packet.timestamp;
    }
    if (this.#timestamp < 0 && !this.#begins(packet)) return;
    this.#lastPacketMs = Math.max(this.#lastPacketMs, packet.arrivedMs);
    this.#isMalformed ||= !this.#depacketizer.add(packet.payload, this.#unit);
    if (packet.isMarked) {
      this.#end(into);
      this.#isBoundary = true;
    }
  }

  /**
   * Whether this packet starts a unit. False for the rest of a unit whose beginning was lost, which is
   * dropped.
   */
  #begins(packet: VideoPacket): boolean {
    if (!this.#isBoundary && !this.#depacketizer.startsUnit(packet.payload)) return false;
    this.#isBoundary = false;
    this.#timestamp = packet.timestamp;
    this.#firstPacketMs = packet.arrivedMs;
    this.#lastPacketMs = packet.arrivedMs;
    this.#depacketizer.reset();
    return true;
  }

  #end(into: AssemblerActions): void {
    const isUnusable = this.#unit.hasOverflowed || this.#isMalformed;
    const facts = isUnusable ? null : this.#depacketizer.finish(this.#unit);
    if (facts === null || this.#unit.hasOverflowed) {
      if (this.#unit.hasOverflowed) this.counts.oversize++;
      else this.counts.malformed++;
      this.#needsKeyframe = true;
      into.wantsKeyframe = true;
    } else if (this.#needsKeyframe && !facts.isKeyframe) {
      this.counts.incomplete++;
      into.wantsKeyframe = true;
    } else {
      this.#needsKeyframe = false;
      this.counts.units++;
      into.units.push({
        data: this.#unit.copy(),
        codec: this.#codec,
        rtpTimestamp: this.#clock.follow(this.#timestamp),
        ...facts,
        firstPacketMs: this.#firstPacketMs,
        lastPacketMs: this.#lastPacketMs,
      });
    }
    this.#reset();
  }

  #reset(): void {
    this.#unit.clear();
    this.#timestamp = -1;
    this.#isMalformed = false;
  }
}

function depacketizerOf(codec: VideoCodec, parameterSets: readonly Uint8Array[]): Depacketizer {
  switch (codec) {
    case "vp8":
      return new Vp8Depacketizer();
    case "vp9":
      return new Vp9Depacketizer();
    case "h264":
    case "h265":
      return new NalDepacketizer(codec, parameterSets);
    case "av1":
      return new Av1Depacketizer(LIMITS.live.videoUnitBytesMax);
  }
}
