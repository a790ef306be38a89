/** Jitter buffer: puts the packets of one stream in order, waits for missing ones, asks for them again, and
 * gives up.
 */

/** Packets that may wait at the same time. A power of two that divides the range of sequence numbers. */
const WINDOW = 512;
const MASK = WINDOW - 1;

export interface ReorderOptions {
  /** How long to wait for the oldest missing packet. */
  readonly gapWaitMs: number;
  /**
   * How long the first packets wait, because the first one to arrive may not be the first one that was sent.
   */
  readonly startHoldMs: number;
  /** When missing packets are asked for; null is never. */
  readonly nack: { readonly firstMs: number; readonly retryMinMs: number; readonly triesMax: number } | null;
}

/** The result of `take`: a packet, "gap" where packets were given up, or null for no packet yet. */
export type Taken<Packet> = Packet | "gap" | null;

/**
 * ```
 *        next                        highest
 *  ───────┬─────┬─────┬─────┬─────┬─────┐
 *   taken │  7  │  ·  │  9  │ 10  │ 11  │      · is missing: since when, and how often asked for
 *  ───────┴─────┴─────┴─────┴─────┴─────┘
 * ```
 *
 * A packet whose sequence number is far outside the window is used only if the next packet follows it: then
 * the sender has restarted, or was disconnected for long, and the window begins there.
 */
export class ReorderWindow<Packet extends object> {
  duplicates = 0;
  late = 0;
  /** Missing packets that were given up. */
  lost = 0;

  readonly #options: ReorderOptions;
  readonly #packets: (Packet | null)[] = new Array(WINDOW).fill(null);
  readonly #missingSinceMs = new Float64Array(WINDOW);
  readonly #askAtMs = new Float64Array(WINDOW);
  readonly #tries = new Uint8Array(WINDOW);
  /** The next packet to take, and one more than the highest one: sequence numbers that do not wrap. */
  #next = 0;
  #end = 0;
  #waiting = 0;
  #firstMs = NaN;
  #isStarted = false;
  /** A packet far outside the window, and the sequence number that must follow it. */
  #jumpedTo = -1;
  #jumped: Packet | null = null;
  #hasGap = false;

  constructor(options: ReorderOptions) {
    this.#options = options;
  }

  /** Whether packets wait, for a missing one or for the start. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Takes a packet; `sequence` has 16 bits. */
  push(sequence: number, packet: Packet, nowMs: number): void {
    if (Number.isNaN(this.#firstMs)) return this.#start(sequence, packet, nowMs);
    const place = this.#end + (((sequence - this.#end + 0x8000) & 0xffff) - 0x8000);
    const earliest = this.#isStarted ? this.#next : this.#end - WINDOW;
    if (place < this.#next - WINDOW || place >= this.#end + WINDOW) {
      return this.#jump(sequence, packet, nowMs);
    }
    if (place < earliest) {
      this.late++;
      return;
    }
    if (place >= this.#next && this.#packets[place & MASK] && place < this.#end) {
      this.duplicates++;
      return;
    }
    this.#jumpedTo = -1;
    this.#jumped = null;
    while (place - this.#next >= WINDOW) this.#giveUpFirst();
    if (place < this.#next) {
      // The stream has not started yet, and this packet was sent before the first one that arrived.
      this.#markMissing(place + 1, this.#next, nowMs);
      this.#next = place;
    }
    this.#markMissing(this.#end, place, nowMs);
    this.#packets[place & MASK] = packet;
    this.#waiting++;
    this.#end = Math.max(this.#end, place + 1);
  }

  /** The next packet in order; "gap" once where packets were given up; null when there is none yet. */
  take(nowMs: number): Taken<Packet> {
    if (this.#waiting === 0 && !this.#hasGap) return null;
    if (!this.#isStarted) {
      if (nowMs - this.#firstMs < this.#options.startHoldMs) return null;
      this.#isStarted = true;
    }
    if (!this.#packets[this.#next & MASK] && !this.#hasGap) {
      if (nowMs - this.#missingSinceMs[this.#next & MASK]! < this.#options.gapWaitMs) return null;
      while (!this.#packets[this.#next & MASK]) this.#giveUpFirst();
    }
    if (this.#hasGap) {
      this.#hasGap = false;
      return "gap";
    }
    const slot = this.#next & MASK;
    const packet = this.#packets[slot]!;
    this.#packets[slot] = null;
    this.#waiting--;
    this.#next++;
    return packet;
  }

  /** Gives up all packets before the first waiting one that `matches`; false when none does. */
  skipTo(matches: (packet: Packet) => boolean): boolean {
    for (let place = this.#next; place < this.#end; place++) {
      const packet = this.#packets[place & MASK];
      if (!packet || !matches(packet)) continue;
      while (this.#next < place) this.#giveUpFirst();
      return true;
    }
    return false;
  }

  /** Adds the sequence numbers to ask for now. Repeated requests are at least `roundTripMs` apart. */
  collectMissing(nowMs: number, roundTripMs: number, into: number[]): void {
    const nack = this.#options.nack;
    if (!nack || this.#end - this.#next === this.#waiting) return;
    for (let place = this.#next; place < this.#end; place++) {
      const slot = place & MASK;
      if (this.#packets[slot] || this.#tries[slot]! >= nack.triesMax || nowMs < this.#askAtMs[slot]!) {
        continue;
      }
      this.#tries[slot]!++;
      this.#askAtMs[slot] = nowMs + Math.max(nack.retryMinMs, roundTripMs * 1.25);
      into.push(place & 0xffff);
    }
  }

  #start(sequence: number, packet: Packet, nowMs: number): void {
    // An offset, so that numbers before the first are not negative.
    this.#next = sequence + 0x10000;
    this.#end = this.#next + 1;
    this.#packets[this.#next & MASK] = packet;
    this.#waiting = 1;
    this.#firstMs = nowMs;
  }

  #jump(sequence: number, packet: Packet, nowMs: number): void {
    const first = this.#jumped;
    if (sequence !== this.#jumpedTo || !first) {
      if (first) this.late++;
      this.#jumpedTo = (sequence + 1) & 0xffff;
      this.#jumped = packet;
      return;
    }
    this.lost += this.#end - this.#next - this.#waiting;
    this.#packets.fill(null);
    this.#isStarted = true;
    this.#hasGap = true;
    this.#start((sequence - 1) & 0xffff, first, nowMs);
    this.push(sequence, packet, nowMs);
  }

  #markMissing(from: number, to: number, nowMs: number): void {
    for (let place = from; place < to; place++) {
      const slot = place & MASK;
      this.#packets[slot] = null;
      this.#missingSinceMs[slot] = nowMs;
      this.#askAtMs[slot] = nowMs + (this.#options.nack?.firstMs ?? 0);
      this.#tries[slot] = 0;
    }
  }

  /** Moves on by one place and drops its packet, if it has one. */
  #giveUpFirst(): void {
    const slot = this.#next & MASK;
    if (this.#packets[slot]) this.#waiting--;
    else this.lost++;
    this.#packets[slot] = null;
    this.#next++;
    this.#hasGap = true;
    this.#isStarted = true;
  }
}
