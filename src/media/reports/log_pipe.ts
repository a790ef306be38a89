/** A named pipe through which a program's log comes in large pieces, when somebody waits for what is in it. */

import { hasEndedWithin } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Fifo } from "../fifo.ts";
import { DecoderLog } from "./decoder_log.ts";
import { ReportWriter } from "./frame_reports.ts";

/** The capacity of a pipe: about 45 frames' worth of ffmpeg's log. */
const PIECE_BYTES = 64 << 10;
/** The log is read after this time even if nobody waits for a report, as a full pipe stops ffmpeg. */
const PAUSE_MS = 10;
/** Longest wait for the rest of the log when the program has ended: it is in the pipe. */
const REST_MS = 5_000;

/**
 * ```
 *   ffmpeg ──a line at a time──→ pipe ──all that is there──→ DecoderLog ──→ reports (shared memory) ──→ Worker
 *                                  ↑ every 10 ms, or when the Worker waits for a report
 * ```
 *
 * Error output wakes the isolate that started the program for each piece of a line, some twenty times a frame, however seldom it is read.
 * This pipe is read by a thread that sleeps until somebody wants more.
 */
export class LogPipe implements AsyncDisposable {
  readonly #fifo: Fifo;
  readonly #reading: Promise<void>;
  readonly #world: World;
  readonly #onClosed: () => void;

  /** Takes over the pipe, whose guard is open. `onClosed` is called when nothing of it is left. */
  constructor(fifo: Fifo, reports: SharedArrayBuffer, world: World, onClosed: () => void = () => {}) {
    this.#fifo = fifo;
    this.#onClosed = onClosed;
    this.#world = world;
    this.#reading = readAll(Deno.openSync(fifo.path, { read: true }), new ReportWriter(reports));
    this.#reading.catch(() => {/* the reports have ended with it */});
  }

  get path(): string {
    return this.#fifo.path;
  }

  /** To be called when the program has ended: its last reports are written, and the pipe is removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fifo.closeGuard();
    await hasEndedWithin(this.#world, REST_MS, this.#reading);
    await this.#fifo[Symbol.asyncDispose]();
    this.#reading.finally(this.#onClosed).catch(() => {/* see the constructor */});
  }
}

async function readAll(pipe: Deno.FsFile, reports: ReportWriter): Promise<void> {
  using _pipe = pipe;
  const log = new DecoderLog(reports, { keepsInfo: false });
  const piece = new Uint8Array(PIECE_BYTES);
  try {
    for (let got = await pipe.read(piece); got !== null; got = await pipe.read(piece)) {
      log.read(piece.subarray(0, got));
      await reports.wait(PAUSE_MS);
    }
  } finally {
    log.end();
  }
}
