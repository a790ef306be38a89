/** Which frames of H.264 had to be concealed in parts, where several threads decode: by the log, as ffmpeg's flag may be set too late. */

/** Packets and concealed frames that are remembered: more than there are frames between a decoder's input and its output. */
const KEPT = 64;
/** More threads than ffmpeg uses by itself. */
const THREADS_MAX = 32;

/**
 * A picture that is shown later than it is decoded may be handed on by another thread before its own thread sets the flag. The
 * lines in the log are complete by then. Each thread has an address in them. The threads take packets in turn, and each begins when the
 * one before has read the headers of its own:
 *
 * ```
 *   packet 7 comes        demuxer+ffmpeg -> ... pkt_pts:700
 *   thread a takes it     [h264 @ a] nal_unit_type: 1          a new address: the next packet
 *   packet 8 comes        demuxer+ffmpeg -> ... pkt_pts:800    read ahead of thread b, but never by more than this one
 *   thread a errs         [h264 @ a] concealing ...            frame 700
 *   thread b takes it     [h264 @ b] nal_unit_type: 1
 * ```
 *
 * From version 6.1 on a thread of its own reads packets, far ahead: then only their order counts.
 */
export class ConcealedFrames {
  readonly #packetPts = new Float64Array(KEPT);
  #packets = 0;
  #isFarAhead = false;
  /** The number of the packet that was taken last, and by whom. */
  #taken = -1;
  #taker = NaN;
  readonly #threads = new Float64Array(THREADS_MAX);
  readonly #threadPts = new Float64Array(THREADS_MAX);
  #threadCount = 0;
  readonly #concealed = new Float64Array(KEPT).fill(NaN);
  #concealedCount = 0;

  /** A packet comes; NaN where it has no time. `isFarAhead`: the decoder may get it much later. */
  packet(pts: number, isFarAhead: boolean): void {
    this.#isFarAhead = isFarAhead;
    this.#packetPts[this.#packets % KEPT] = pts;
    this.#packets++;
  }

  get hasPackets(): boolean {
    return this.#packets > 0;
  }

  /** A thread reads the headers of a packet, or finds none. */
  header(thread: number): void {
    if (!this.hasPackets) return;
    const newest = this.#packets - 1;
    const isAlone = this.#threadCount <= 1 && !this.#isFarAhead;
    if (thread === this.#taker && !(isAlone && this.#taken < newest)) return;
    const latest = this.#isFarAhead ? this.#taken + 1 : Math.max(this.#taken + 1, newest - 1);
    this.#taken = isAlone ? newest : Math.min(newest, latest);
    this.#taker = thread;
    this.#threadPts[this.#placeOf(thread)] = this.#packetPts[this.#taken % KEPT]!;
  }

  /**
   * Whether all concealed frames are known here, since several threads decode packets with times. With one thread ffmpeg's flag is
   * right; with several it may be too late, or come with a frame that another thread hands on meanwhile.
   */
  get isDecisive(): boolean {
    return this.#threadCount > 1 && !Number.isNaN(this.#packetPts[this.#taken % KEPT]!);
  }

  /** A thread conceals parts of the frame that it decodes. */
  conceal(thread: number): void {
    for (let i = 0; i < this.#threadCount; i++) {
      if (this.#threads[i] === thread) this.#concealed[this.#concealedCount++ % KEPT] = this.#threadPts[i]!;
    }
  }

  /** Whether the frame of this time was concealed; all that has to be known of it has come. */
  take(pts: number): boolean {
    const at = this.#concealed.indexOf(pts);
    if (at === -1) return false;
    this.#concealed[at] = NaN;
    return true;
  }

  #placeOf(thread: number): number {
    for (let i = 0; i < this.#threadCount; i++) if (this.#threads[i] === thread) return i;
    const place = Math.min(this.#threadCount, THREADS_MAX - 1);
    this.#threads[place] = thread;
    this.#threadCount = place + 1;
    return place;
  }
}
