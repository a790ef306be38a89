/** Cuts one track's Opus packets into windows of four seconds. Contract 12.4. */

import { LIMITS } from "../model/limits.ts";

/** One Opus packet as its track sent it. */
export interface OpusUnit {
  readonly data: Uint8Array<ArrayBuffer>;
  /** Samples at 48 kHz, unwrapped: it does not jump where 32 bits end. */
  readonly rtpTimestamp: number;
  /** Packets before this one were lost. */
  readonly hasGap: boolean;
}

/** Consecutive packets; times in milliseconds from the track's first packet. */
export interface CutWindow {
  readonly units: readonly Uint8Array<ArrayBuffer>[];
  readonly startPtsMs: number;
  /** Where the last packet's sound ends. */
  readonly endPtsMs: number;
}

/**
 * ```
 *   packets   0 ─ 20 ─ … ─ 3980 ─ 4000 │ 4020 ─ … ─ 5000     6200 ─ …
 *             └──── first window ──────┘ └── second ──┘ gap  └ third
 *                  last − first ≥ 4 s     more than one packet
 * ```
 * A gap in the sequence, a time that goes back and one that leaps end the window under way: its packets follow each other
 * without a hole, so that the sound of it has the length that its times say.
 */
export class OpusWindows {
  readonly #units: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  /** RTP time of the track's first packet; NaN before it came. */
  #origin = NaN;
  #firstTime = 0;
  #lastTime = 0;
  /** Samples of the last packet. */
  #lastSamples = 0;

  /**
   * Takes the next packet in; the window that it ends goes to `out`. Returns the milliseconds of sound in it, or null
   * where it is no Opus packet; such a one is as if it had not come.
   */
  push(unit: OpusUnit, out: CutWindow[]): number | null {
    const samples = opusSamples(unit.data);
    if (samples === null) return null;
    if (this.#units.length > 0 && !this.#follows(unit)) this.#flush(out, 2);
    if (Number.isNaN(this.#origin)) this.#origin = unit.rtpTimestamp;
    // Before the track's first packet there is no time: a late one starts it anew.
    if (unit.rtpTimestamp < this.#origin) this.#origin = unit.rtpTimestamp;
    if (this.#units.length === 0) this.#firstTime = unit.rtpTimestamp;
    this.#units.push(unit.data);
    this.#bytes += unit.data.length;
    this.#lastTime = unit.rtpTimestamp;
    this.#lastSamples = samples;
    if (this.#lastTime - this.#firstTime >= WINDOW_SAMPLES) this.#flush(out, 1);
    else if (this.#units.length >= UNITS_MAX || this.#bytes >= BYTES_MAX) this.#flush(out, 1);
    return samples / SAMPLES_PER_MS;
  }

  /** No more packets: what is left becomes a window if it is long enough. */
  finish(out: CutWindow[]): void {
    const samples = this.#lastTime + this.#lastSamples - this.#firstTime;
    if (this.#units.length > 0 && samples >= LIMITS.localAudio.liveRemainderMsMin * SAMPLES_PER_MS) {
      this.#flush(out, 1);
    }
    this.#clear();
  }

  #follows({ hasGap, rtpTimestamp }: OpusUnit): boolean {
    const step = rtpTimestamp - this.#lastTime;
    return !hasGap && step > 0 && step <= LEAP_SAMPLES;
  }

  #flush(out: CutWindow[], unitsMin: number): void {
    if (this.#units.length >= unitsMin) {
      out.push({
        units: [...this.#units],
        startPtsMs: Math.round((this.#firstTime - this.#origin) / SAMPLES_PER_MS),
        endPtsMs: Math.round((this.#lastTime + this.#lastSamples - this.#origin) / SAMPLES_PER_MS),
      });
    }
    this.#clear();
  }

  #clear(): void {
    this.#units.length = 0;
    this.#bytes = 0;
  }
}

/** RTP counts Opus at 48 kHz, whatever rate it was recorded at (RFC 7587). */
const SAMPLES_PER_MS = 48;
const WINDOW_SAMPLES = LIMITS.localAudio.liveWindowMs * SAMPLES_PER_MS;
/** A publisher that sends nothing while it is silent still sends a packet every 400 ms. */
const LEAP_SAMPLES = 1_000 * SAMPLES_PER_MS;
/** Packets of 2.5 ms, the shortest there are, fill four seconds with 1600. */
const UNITS_MAX = 2_048;
/** Twice what Opus can need for four seconds, 510 kbit/s. */
const BYTES_MAX = 2 ** 19;
/** RFC 6716, 3.2.5: a packet holds 120 ms at most. */
const PACKET_SAMPLES_MAX = 120 * SAMPLES_PER_MS;

/** Samples at 48 kHz in a packet, by its first two bytes (RFC 6716, 3.1); null where they are no such thing. */
function opusSamples(packet: Uint8Array): number | null {
  if (packet.length === 0 || packet.length > LIMITS.live.audioUnitBytesMax) return null;
  const head = packet[0]!;
  const code = head & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : packet.length < 2 ? 0 : packet[1]! & 0x3f;
  const samples = frames * frameSamples(head >> 3);
  return samples === 0 || samples > PACKET_SAMPLES_MAX ? null : samples;
}

/** By configuration: SILK 10 to 60 ms, hybrid 10 and 20 ms, CELT 2.5 to 20 ms. */
function frameSamples(configuration: number): number {
  if (configuration < 12) return [480, 960, 1920, 2880][configuration % 4]!;
  if (configuration < 16) return [480, 960][configuration % 2]!;
  return [120, 240, 480, 960][configuration % 4]!;
}
