/** What a session in its Worker counts between two reports. */

import type { LiveCounts } from "./messages.ts";

/** The fields of `LiveCounts` that are sums. */
export type SessionCounter = Exclude<keyof LiveCounts, "decodeLatenciesUs" | "gateLatenciesUs">;

/** How many latencies one report may have: two seconds of the fastest camera. */
const LATENCIES_MAX = 512;

export class SessionCounts {
  #sums = zeros();
  #decodeLatenciesUs: number[] = [];
  #gateLatenciesUs: number[] = [];

  add(counter: SessionCounter, amount = 1): void {
    this.#sums[counter] += amount;
  }

  /**
   * Microseconds from a frame's last packet until its signals were computed, and the part of it that analysis
   * took.
   */
  observeFrame(decodeUs: number, gateUs: number): void {
    if (this.#decodeLatenciesUs.length === LATENCIES_MAX) return;
    this.#decodeLatenciesUs.push(Math.round(decodeUs));
    this.#gateLatenciesUs.push(Math.round(gateUs));
  }

  /** What was counted since the last call, or null when nothing was. */
  take(): LiveCounts | null {
    const sums = this.#sums;
    const [decodeLatenciesUs, gateLatenciesUs] = [this.#decodeLatenciesUs, this.#gateLatenciesUs];
    this.#sums = zeros();
    this.#decodeLatenciesUs = [];
    this.#gateLatenciesUs = [];
    if (decodeLatenciesUs.length === 0 && Object.values(sums).every((sum) => sum === 0)) return null;
    return { ...sums, decodeLatenciesUs, gateLatenciesUs };
  }
}

/** Every counter at 0. */
export function zeros(): Record<SessionCounter, number> {
  return {
    rtpFramesReceived: 0,
    framesDecoded: 0,
    framesDropped: 0,
    gateFramesAnalyzed: 0,
    gateKeyframesSelected: 0,
    keyframesLooping: 0,
    keyframesWithoutCredit: 0,
    keyframesNotEncoded: 0,
    decodePendingSanityViolations: 0,
    zoneQueueDropped: 0,
    triggerQueueDropped: 0,
    triggerMissingSignal: 0,
    audioTracks: 0,
    audioAccessUnits: 0,
    audioBytes: 0,
    audioDurationMs: 0,
    audioReceiveErrors: 0,
    audioQueueDropped: 0,
    recordingsLost: 0,
    viewFragments: 0,
    viewFragmentsLost: 0,
    segmentsLost: 0,
  };
}
