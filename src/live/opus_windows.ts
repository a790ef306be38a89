/** Cuts the Opus packets of one track into windows of four seconds. See docs/live/events.md#live-audio. */

import { OPUS_SAMPLES_PER_MS, opusSamples } from "../media/containers/opus_packet.ts";
import { LIMITS } from "../contract/limits.ts";

/** One Opus packet of a track. */
export interface OpusUnit {
  readonly data: Uint8Array<ArrayBuffer>;
  /** Time of the packet in samples at 48 kHz, not wrapping at 32 bits. */
  readonly rtpTimestamp: number;
  /** Whether packets before this one were lost. */
  readonly hasGap: boolean;
}

/** Consecutive packets; times in milliseconds from the track's first packet. */
export interface CutWindow {
  readonly units: readonly Uint8Array<ArrayBuffer>[];
  readonly startPtsMs: number;
  /** When the sound of the last packet ends. */
  readonly endPtsMs: number;
}

/**
 * ```
 *   packets   0 ─ 20 ─ … ─ 3980 ─ 4000 │ 4020 ─ … ─ 5000     6200 ─ …
 *             └──── first window ──────┘ └── second ──┘ gap  └ third
 *                  last − first ≥ 4 s     more than one packet
 * ```
 * A gap in the sequence, a time that goes back and a time that jumps forward end the current window: the
 * packets of a window are consecutive, so that its sound is as long as its times say.
 */
export class OpusWindows {
  readonly #units: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  /** RTP time of the track's first packet; NaN before it came. */
  #origin = NaN;
  #firstTime = 0;
  #lastTime = 0;
  /** Length of the last packet in samples. */
  #lastSamples = 0;

  /**
   * Takes the next packet; if it ends a window, that is added to `out`. Returns the milliseconds of sound in
   * the packet, or null where it is no Opus packet; such a packet is ignored.
   */
  push(unit: OpusUnit, out: CutWindow[]): number | null {
    const samples = unit.data.length > LIMITS.live.audioUnitBytesMax ? 0 : opusSamples(unit.data);
    if (samples === 0) return null;
    if (this.#units.length > 0 && !this.#follows(unit)) this.#flush(out, 2);
    if (Number.isNaN(this.#origin)) this.#origin = unit.rtpTimestamp;
    // No time may be below 0, so a packet from before the track's first one becomes the new origin.
    if (unit.rtpTimestamp < this.#origin) this.#origin = unit.rtpTimestamp;
    if (this.#units.length === 0) this.#firstTime = unit.rtpTimestamp;
    this.#units.push(unit.data);
    this.#bytes += unit.data.length;
    this.#lastTime = unit.rtpTimestamp;
    this.#lastSamples = samples;
    if (this.#lastTime - this.#firstTime >= WINDOW_SAMPLES) this.#flush(out, 1);
    else if (this.#units.length >= UNITS_MAX || this.#bytes >= BYTES_MAX) this.#flush(out, 1);
    return samples / OPUS_SAMPLES_PER_MS;
  }

  /** To be called when no more packets come: the rest becomes a window if it is long enough. */
  finish(out: CutWindow[]): void {
    const samples = this.#lastTime + this.#lastSamples - this.#firstTime;
    if (this.#units.length > 0 && samples >= LIMITS.localAudio.liveRemainderMsMin * OPUS_SAMPLES_PER_MS) {
      this.#flush(out, 1);
    }
    this.#clear();
  }

  #follows({ hasGap, rtpTimestamp }: OpusUnit): boolean {
    const step = rtpTimestamp - this.#lastTime;
    return !hasGap && step > 0 && step <= STEP_SAMPLES_MAX;
  }

  #flush(out: CutWindow[], unitsMin: number): void {
    if (this.#units.length >= unitsMin) {
      out.push({
        units: [...this.#units],
        startPtsMs: Math.round((this.#firstTime - this.#origin) / OPUS_SAMPLES_PER_MS),
        endPtsMs: Math.round((this.#lastTime + this.#lastSamples - this.#origin) / OPUS_SAMPLES_PER_MS),
      });
    }
    this.#clear();
  }

  #clear(): void {
    this.#units.length = 0;
    this.#bytes = 0;
  }
}

/** Length of a window in samples: RTP counts Opus at 48 kHz (RFC 7587), as the packets do. */
const WINDOW_SAMPLES = LIMITS.localAudio.liveWindowMs * OPUS_SAMPLES_PER_MS;
/**
 * Longest step from packet to packet, in samples, that is no jump. With discontinuous transmission, a
 * publisher in silence sends a packet every 400 ms only.
 */
const STEP_SAMPLES_MAX = 1_000 * OPUS_SAMPLES_PER_MS;
/** Most packets of a window: the shortest ones, of 2.5 ms, fill four seconds with 1600. */
const UNITS_MAX = 2_048;
/** Most bytes of a window: twice what Opus can need for four seconds, at 510 kbit/s. */
const BYTES_MAX = 2 ** 19;
