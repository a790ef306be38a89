/** Packets of one stream back in the order of their sequence: waits for gaps, names what is missing, gives up. */

/** Packets that may wait at once. A power of two that divides the range of sequence numbers. */
const WINDOW = 512;
const MASK = WINDOW - 1;

export interface ReorderOptions {
  /** How long the oldest missing packet is waited for. */
  readonly gapWaitMs: number;
  /** How long the very first packets are held, as nothing says that the first to arrive is the first that was sent. */
  readonly startHoldMs: number;
  /** Null: nobody is asked to send again. */
  readonly nack: { readonly firstMs: number; readonly retryMinMs: number; readonly triesMax: number } | null;
}

/** What `take` gives instead of a packet. */
export type Taken<Packet> = Packet | "gap" | null;

/**
 * ```
 *        next                        highest
 *  ───────┬─────┬─────┬─────┬─────┬─────┐
 *   taken │  7  │  ·  │  9  │ 10  │ 11  │      · is missing since a time, and was asked for so many times
 *  ───────┴─────┴─────┴─────┴─────┴─────┘
 * ```
 *
 * A sequence number far outside the window counts only if the next packet continues it: then the sender has started
 * anew, or was away for long, and the window begins there.
 */
export class ReorderWindow<Packet extends object> {
  duplicates = 0;
  late = 0;
  /** Packets that were waited for in vain. */
  lost = 0;

  readonly #options: ReorderOptions;
  readonly #packets: (Packet | null)[] = new Array(WINDOW).fill(null);
  readonly #missingSinceMs = new Float64Array(WINDOW);
  readonly #askAtMs = new Float64Array(WINDOW);
  readonly #tries = new Uint8Array(WINDOW);
  /** The next to be taken, and one more than the highest seen: sequence numbers that do not wrap. */
  #next = 0;
  #end = 0;
  #waiting = 0;
  #firstMs = NaN;
  #isStarted = false;
  /** Where a sender that jumped would go on, and the packet that jumped. */
  #jumpedTo = -1;
  #jumped: Packet | null = null;
  #hasGap = false;

  constructor(options: ReorderOptions) {
    this.#options = options;
  }

  /** Whether something may be due soon: a gap, or the first packets. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** `sequence` has 16 bits. */
  push(sequence: number, packet: Packet, nowMs: number): void {
    if (Number.isNaN(this.#firstMs)) return this.#begin(sequence, packet, nowMs);
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
      // The stream has not begun yet: this one was sent before what was taken for its first.
      this.#miss(place + 1, this.#next, nowMs);
      this.#next = place;
    }
    this.#miss(this.#end, place, nowMs);
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

  /** Gives up what is missing before the first waiting packet that `matches`; false when none does. */
  skipTo(matches: (packet: Packet) => boolean): boolean {
    for (let place = this.#next; place < this.#end; place++) {
      const packet = this.#packets[place & MASK];
      if (!packet || !matches(packet)) continue;
      while (this.#next < place) this.#giveUpFirst();
      return true;
    }
    return false;
  }

  /** Adds the sequence numbers that are to be asked for now. `roundTripMs` spaces repeated asking. */
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

  #begin(sequence: number, packet: Packet, nowMs: number): void {
    // Room below, so that numbers before the first are not negative.
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
    this.#begin((sequence - 1) & 0xffff, first, nowMs);
    this.push(sequence, packet, nowMs);
  }

  #miss(from: number, to: number, nowMs: number): void {
    for (let place = from; place < to; place++) {
      const slot = place & MASK;
      this.#packets[slot] = null;
      this.#missingSinceMs[slot] = nowMs;
      this.#askAtMs[slot] = nowMs + (this.#options.nack?.firstMs ?? 0);
      this.#tries[slot] = 0;
    }
  }

  /** Moves on by one place, whether its packet is there or not. */
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
