/** What ffmpeg's decoder says of each frame, in shared memory: whoever reads its log writes, whoever reads
 * its frames reads.
 */

import { unlessChanged } from "../base/wait.ts";

/** Bits of a report. A frame of which nothing is known has none of them. */
export const REPORT = {
  isReported: 1,
  /** Parts of the frame could not be decoded and were invented. */
  isCorrupt: 2,
  /** The frame refers to no other frame. */
  isKey: 4,
  /** The frame was made of a frame before it and one behind it. */
  isBidirectional: 8,
  /** Since the frame before it was given, the decoder has missed a frame that another one refers to. */
  isReferenceLost: 16,
  /**
   * All of the frame is coded without other frames. Unless it is a key frame, later ones may refer to what
   * was before it.
   */
  isIntra: 32,
  /** The decoder of the frame says when it misses a frame that another one refers to. */
  tellsLosses: 64,
  /** The encoder of the frame takes care that a new shot refers to little of what was before it. */
  isCareful: 128,
  /**
   * Something was said about the stream before the frame, such as that a renewal of the picture begins, bit
   * by bit.
   */
  isAnnounced: 256,
  /** The decoder of the frame takes changed bytes for what was sent, and says nothing. */
  isSilent: 512,
  /** The clock of the container has jumped before the frame, and ffmpeg has closed the jump. */
  isJump: 1024,
  /**
   * An error was told since the frame before: it is of this frame, or of a later one where several threads
   * decode.
   */
  isAfterError: 2048,
} as const;

/** Frames whose reports are kept: far more than fit the pipe and ffmpeg's queues. */
const SLOTS = 4096;
/** Places of the numbers before the slots. */
const STATE = 0, WANTED = 1, FILTERED = 2, SCALED = 3;
const NUMBERS = 4;
const STATE_BYTES = 4 * NUMBERS;
export const REPORT_BYTES = STATE_BYTES + 2 * SLOTS;
/**
 * Bit of the state that is set when no more reports will come; the bits below it are the number of reports.
 */
const ENDED = 1 << 30;
/** Longest wait for a report of a frame that has come: a busy machine may read the log late. */
const WAIT_MS = 10_000;

/**
 * ```
 *   | state, Int32: reports so far, and ENDED | wanted, Int32 | filtered, Int32 | scaled, Int32 | slot of frame 0, Uint16 | 1 | ... | 4095 |    frame n is in slot n % 4096
 * ```
 *
 * `wanted` is the number of reports that a blocked reader waits for.
 */
export function newReports(): SharedArrayBuffer {
  return new SharedArrayBuffer(REPORT_BYTES);
}

/**
 * The writing side. It believes nothing that the other side could have changed: a wrong number of wanted
 * reports costs time only.
 */
export class ReportWriter {
  readonly #state: Int32Array<SharedArrayBuffer>;
  readonly #slots: Uint16Array;
  #count = 0;
  #waits = true;

  constructor(reports: SharedArrayBuffer) {
    this.#state = new Int32Array(reports, 0, NUMBERS);
    this.#slots = new Uint16Array(reports, STATE_BYTES, SLOTS);
  }

  /** Ends a `wait`; later ones end at once. */
  stopWaiting(): void {
    this.#waits = false;
    Atomics.notify(this.#state, WANTED);
  }

  /** Returns when the reader waits for a report that is not there, and after `ms` at the latest. */
  async wait(ms: number): Promise<void> {
    const wanted = Atomics.load(this.#state, WANTED);
    if (this.#waits && wanted <= this.#count) await unlessChanged(this.#state, WANTED, wanted, ms);
  }

  /** Takes the report of the next frame, bits of `REPORT`. */
  add(report: number): void {
    if (this.#count >= ENDED - 1) return;
    this.#slots[this.#count % SLOTS] = report;
    this.#tell(++this.#count);
  }

  /** Notes that a frame has left the filters. */
  noteFiltered(): void {
    Atomics.add(this.#state, FILTERED, 1);
  }

  /** Notes that the log tells of the size of the pictures from the next frame on. */
  noteScaled(): void {
    Atomics.add(this.#state, SCALED, 1);
  }

  /** To be called when no more reports follow. */
  end(): void {
    this.#tell(this.#count | ENDED);
  }

  #tell(state: number): void {
    Atomics.store(this.#state, STATE, state);
    Atomics.notify(this.#state, STATE);
  }
}

/** The reading side, frame by frame. */
export class ReportReader {
  readonly #state: Int32Array<SharedArrayBuffer>;
  readonly #slots: Uint16Array;
  #next = 0;
  /** Whether a report did not come in time: from then on nobody waits, and no frame has one. */
  #isLost = false;

  constructor(reports: SharedArrayBuffer) {
    this.#state = new Int32Array(reports, 0, NUMBERS);
    this.#slots = new Uint16Array(reports, STATE_BYTES, SLOTS);
  }

  /** The report of the next frame, which has come. Blocks until it is there; 0 if there is none. */
  take(): number {
    for (;;) {
      const state = Atomics.load(this.#state, STATE);
      if (this.#isLost || !this.#isAwaited(state)) return this.#takeFrom(state);
      Atomics.store(this.#state, WANTED, this.#next + 1);
      Atomics.notify(this.#state, WANTED);
      if (Atomics.wait(this.#state, STATE, state, WAIT_MS) === "timed-out") this.#isLost = true;
    }
  }

  /** The report of the next frame, as far as it is there already. */
  takeNow(): number {
    return this.#takeFrom(Atomics.load(this.#state, STATE));
  }

  /**
   * Frames that have left the filters, as far as the log was read: it tells of each before its bytes come.
   */
  get filtered(): number {
    return Atomics.load(this.#state, FILTERED);
  }

  /** How often the log, as far as it was read, has told of a size of the pictures. */
  get scaled(): number {
    return Atomics.load(this.#state, SCALED);
  }

  /** Reports that were taken. */
  get taken(): number {
    return this.#next;
  }

  /** Whether the report of the next frame is still to come; for readers that may not block. */
  get isAwaited(): boolean {
    return this.#isAwaited(Atomics.load(this.#state, STATE));
  }

  #isAwaited(state: number): boolean {
    return (state & ENDED) === 0 && state <= this.#next;
  }

  #takeFrom(state: number): number {
    const frame = this.#next++;
    const count = state & ~ENDED;
    const isKept = frame < count && count - frame <= SLOTS;
    return isKept && !this.#isLost ? this.#slots[frame % SLOTS]! : 0;
  }
}
