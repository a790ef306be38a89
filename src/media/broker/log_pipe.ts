/** A named pipe through which a program's log comes in large pieces, when somebody waits for what is in it.
 */

import { hasEndedWithin } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Fifo } from "../jobs/fifo.ts";
import { DecoderLog } from "../jobs/decoder_log.ts";
import { ReportWriter } from "../frame_reports.ts";

/** Bytes that the pipe holds: about 45 frames' worth of ffmpeg's log. */
const PIECE_BYTES = 64 << 10;
/**
 * Milliseconds after which the log is read even if nobody waits for a report, as a full pipe stops ffmpeg.
 * Where there is little in it, the pause becomes longer.
 */
const PAUSE_MS = 10;
const PAUSE_MAX_MS = 40;
/** Bytes of less than two frames' log, which nobody waits for yet, and of more than three. */
const LITTLE_BYTES = 2 << 10, MUCH_BYTES = 4 << 10;
/** Longest wait for the rest of the log when the program has ended: it is in the pipe. */
const REST_MS = 5_000;

/**
 * ```
 *   ffmpeg ──a line at a time──→ pipe ──all that is there──→ DecoderLog ──→ reports (shared memory) ──→ Worker
 *                                  ↑ every 10 to 40 ms, or when the Worker waits for a report
 * ```
 *
 * Error output wakes the isolate that started the program for each piece of a line, some twenty times a
 * frame, however seldom it is read. This pipe is read by a thread that sleeps until somebody wants more.
 */
export class LogPipe implements AsyncDisposable {
  readonly #fifo: Fifo;
  readonly #reports: ReportWriter;
  readonly #reading: Promise<void>;
  readonly #world: World;
  readonly #onClosed: () => void;

  /** Takes over the pipe, whose guard is open. `onClosed` is called when nothing of it is left. */
  constructor(fifo: Fifo, reports: SharedArrayBuffer, world: World, onClosed: () => void = () => {}) {
    this.#fifo = fifo;
    this.#onClosed = onClosed;
    this.#world = world;
    this.#reports = new ReportWriter(reports);
    this.#reading = readAll(Deno.openSync(fifo.path, { read: true }), this.#reports);
    this.#reading.catch(() => {/* the reports have ended with it */});
  }

  get path(): string {
    return this.#fifo.path;
  }

  /** To be called when the program has ended: its last reports are written, and the pipe is removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fifo.closeGuard();
    this.#reports.stopWaiting();
    await hasEndedWithin(this.#world, REST_MS, this.#reading);
    await this.#fifo[Symbol.asyncDispose]();
    this.#reading.finally(this.#onClosed).catch(() => {/* see the constructor */});
  }
}

async function readAll(pipe: Deno.FsFile, reports: ReportWriter): Promise<void> {
  using _pipe = pipe;
  const log = new DecoderLog(reports, { keepsInfo: false });
  const piece = new Uint8Array(PIECE_BYTES);
  let pauseMs = PAUSE_MS;
  try {
    for (let got = await pipe.read(piece); got !== null; got = await pipe.read(piece)) {
      log.read(piece.subarray(0, got));
      pauseMs = nextPause(pauseMs, got);
      await reports.wait(pauseMs);
    }
  } finally {
    log.end();
  }
}

/**
 * How long the next pause is after one in which `gotBytes` were logged. A decoder of a busy machine or of a
 * camera logs little, and each reading costs more than what is read.
 */
export function nextPause(pauseMs: number, gotBytes: number): number {
  if (gotBytes > MUCH_BYTES) return PAUSE_MS;
  return gotBytes < LITTLE_BYTES ? Math.min(2 * pauseMs, PAUSE_MAX_MS) : pauseMs;
}
