/** RTP packets of a video in, whole access units out: never one whose reference was lost. */

import { LIMITS } from "../../model/limits.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import { Av1Depacketizer } from "../depacketize/av1.ts";
import type { Depacketizer } from "../depacketize/depacketizer.ts";
import { NalDepacketizer } from "../depacketize/h26x.ts";
import { ReorderWindow } from "./reorder.ts";
import { UnitBuffer } from "../depacketize/unit_buffer.ts";
import { Unwrapper } from "./unwrap.ts";
import { Vp8Depacketizer } from "../depacketize/vp8.ts";
import { Vp9Depacketizer } from "../depacketize/vp9.ts";

/** One packet of the stream, retransmissions already undone. */
export interface VideoPacket {
  readonly sequence: number;
  readonly timestamp: number;
  readonly isMarked: boolean;
  /** Without padding; empty in a packet of padding alone. */
  readonly payload: Uint8Array;
  /** When it arrived, on the clock of `push`. */
  readonly arrivedMs: number;
}

export interface VideoUnit {
  /** Annex B of H.264 and H.265, a frame of VP8 or VP9, a temporal unit of AV1. */
  readonly data: Uint8Array<ArrayBuffer>;
  readonly codec: VideoCodec;
  /** In 90 kHz, starting as the publisher's own and not wrapping. */
  readonly rtpTimestamp: number;
  readonly isKeyframe: boolean;
  /** Of a keyframe that tells its size. */
  readonly width: number | null;
  readonly height: number | null;
  readonly firstPacketMs: number;
  readonly lastPacketMs: number;
}

/** What became due; the caller owns it, empties it and gives it again. */
export interface AssemblerActions {
  readonly units: VideoUnit[];
  /** Sequence numbers to ask for again. */
  readonly nacks: number[];
  wantsKeyframe: boolean;
}

/** Units that were not handed on, by the cause. */
export interface AssemblerCounts {
  units: number;
  /** Broken by loss, or waiting for a keyframe after one. */
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
 * packets ─▶ ReorderWindow ─in order─▶ unit under way ─marker, or a new timestamp─▶ unit
 *                   └─gap─▶ drop to the next keyframe, ask for one
 * ```
 *
 * The stream starts with its first keyframe. Knows no clock: `push` and `poll` are told the time, and `poll` is due
 * every few milliseconds while `isWaiting`.
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
  /** Whether the next packet surely begins a unit: nothing is missing between it and the end of the last. */
  #isBoundary = false;
  /** Timestamp of the unit under way; -1 without one. */
  #timestamp = -1;
  /** Timestamp of the last packet in order, whatever became of its unit. */
  #lastTimestamp = -1;
  #isSpoiled = false;
  #firstPacketMs = 0;
  #lastPacketMs = 0;

  /** `parameterSets` came in the offer and go before keyframes that have none. */
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

  /** Packets that came twice, too late, and never. */
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
      // While nothing but a keyframe can be used, one that has arrived need not wait for what is missing before it.
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
    this.#isSpoiled ||= !this.#depacketizer.add(packet.payload, this.#unit);
    if (packet.isMarked) {
      this.#end(into);
      this.#isBoundary = true;
    }
  }

  /** Whether a unit is under way now. The rest of one whose beginning was lost is passed over. */
  #begins(packet: VideoPacket): boolean {
    if (!this.#isBoundary && !this.#depacketizer.startsUnit(packet.payload)) return false;
    this.#isBoundary = false;
    this.#timestamp = packet.timestamp;
    this.#firstPacketMs = packet.arrivedMs;
    this.#lastPacketMs = packet.arrivedMs;
    this.#depacketizer.begin();
    return true;
  }

  #end(into: AssemblerActions): void {
    const isOver = this.#unit.isOver;
    const facts = isOver || this.#isSpoiled ? null : this.#depacketizer.finish(this.#unit);
    const isBroken = facts === null || this.#unit.isOver;
    if (isBroken) {
      if (this.#unit.isOver) this.counts.oversize++;
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
    this.#isSpoiled = false;
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
