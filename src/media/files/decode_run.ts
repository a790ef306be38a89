/** One ffmpeg that decodes rows of signals and JPEGs on demand: its full pipe stops it while no more rows are
 * granted.
 */

import { hasEndedWithin, timer } from "../../base/wait.ts";
import type { Region } from "../../model/frames/coordinates.ts";
import type { World } from "../../base/world.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import { Fifo } from "../jobs/fifo.ts";
import { newReports } from "../frame_reports.ts";
import { readJpegs, type TimedJpeg } from "../containers/jpeg_stream.ts";
import type { Outcome, RunningTool } from "../process.ts";
import type { JobOf } from "../jobs/jobs.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { DECODE_ERROR_BYTES } from "./decode_bounds.ts";
import type { DecodedLength } from "./decode_worker.ts";
import type { SourceClock } from "../jobs/parts/source_times.ts";
import { CONTROL, type RowBatch } from "./stream_order.ts";
import type { DecodeWorkerPool, Reading } from "./worker_pool.ts";

/** What all decodes of a `Decoder` share. */
export interface DecodeHost {
  readonly runner: ToolRunner;
  readonly tempDir: string;
  readonly world: World;
  readonly pool: DecodeWorkerPool;
}

export interface DecodeRunOptions {
  /** The job whose planes go into the pipe at `pipe`. */
  readonly job: (pipe: string) => JobOf<"decode">;
  /** Chooses the frames that become rows; null is every frame, and then the job ends by itself. */
  readonly sampling: SamplingPlan | null;
  readonly clock: SourceClock;
  /** What the planes are reduced from. */
  readonly region: Region;
  /** Whether the decoder says something of each frame: only where all frames go into the pipe. */
  readonly hasReports: boolean;
  /** Whether damage of which the decoder tells ends the run: see `isDamaged`. */
  readonly stopsAtDamage: boolean;
  /** Whether it matters if there would be more rows than `maxRows`. */
  readonly looksAhead: boolean;
  /** Rows come in batches of this size. */
  readonly batchRows: number;
  readonly maxRows: number;
  /** Longest run, including the time in which the consumer asks for nothing; null is no such limit. */
  readonly deadlineMs: number | null;
  /** Longest time without any output while the consumer waits. */
  readonly stallMs: number;
  readonly signal: AbortSignal;
}

/**
 * ```
 *             ┌─planes─→ named pipe ─readSync→ Worker: FrameAnalyser ─batches of rows─→ rows
 *   ffmpeg ───┤                                  ↑ granted rows (shared memory)
 *             └─JPEGs──→ stdout ───────────────────────────────────────────────────────→ jpegs
 * ```
 *
 * Only the planes apply back pressure: the Worker reads no further than `grant` allows, so the pipe fills up
 * and ffmpeg blocks. JPEGs are always read, because otherwise the two outputs of one process could block each
 * other. There are never more of them than belong to the granted rows and to the few frames in the pipe and
 * in ffmpeg's queues.
 */
export class DecodeRun implements AsyncDisposable {
  /** What has come, in order; the consumer removes what it takes. */
  readonly rows: RowBatch[] = [];
  readonly jpegs: TimedJpeg[] = [];
  /** How ffmpeg ended; null until everything that it wrote is in `rows` and `jpegs`. */
  outcome: Omit<Outcome, "stdout"> | null = null;
  /**
   * Whether the run has ended, or is about to, as the decoder told of damage; no row that has come is
   * affected.
   */
  isDamaged = false;
  /** Whether a frame came after `maxRows`; known with `outcome`. */
  hasMore = false;
  /** What the detectors found, sorted by start; known with `outcome`. */
  ranges: readonly DetectedRange[] = [];
  /** The times of all cuts, rising; known with `outcome`. */
  cutsMs: readonly number[] = [];
  /** How much was decoded; known with `outcome`. */
  length: DecodedLength = { endMs: 0, longestMs: 0 };

  readonly #host: DecodeHost;
  readonly #control: Int32Array;
  readonly #owned: AsyncDisposableStack;
  readonly #tool: RunningTool;
  readonly #finished: Promise<void>;
  readonly #stallMs: number;
  #disposed: Promise<void> | null = null;
  #change = Promise.withResolvers<void>();
  /** An error in the reading: a bug, and no fault of the medium; null for none. */
  #failure: { readonly error: unknown } | null = null;

  private constructor(
    host: DecodeHost,
    parts: {
      control: Int32Array;
      owned: AsyncDisposableStack;
      tool: RunningTool;
      fifo: Fifo;
      reading: Reading;
    },
    { signal, deadlineMs, stallMs }: DecodeRunOptions,
  ) {
    this.#host = host;
    this.#control = parts.control;
    this.#owned = parts.owned;
    this.#stallMs = stallMs;
    this.#tool = parts.tool;
    this.#finished = this.#finish(parts.fifo, parts.reading);
    const onAbort = () => this.stop("killed");
    signal.addEventListener("abort", onAbort, { once: true });
    const deadline = deadlineMs === null
      ? null
      : timer(host.world, deadlineMs, () => this.stop("out_of_time"));
    this.#finished.then(() => {
      signal.removeEventListener("abort", onAbort);
      deadline?.[Symbol.dispose]();
    });
  }

  static async start(host: DecodeHost, options: DecodeRunOptions): Promise<DecodeRun> {
    const { runner, tempDir, world, pool } = host;
    const { signal, batchRows, maxRows, sampling, clock, region, looksAhead, stopsAtDamage } = options;
    const reports = options.hasReports ? newReports() : null;
    const control = new SharedArrayBuffer(CONTROL.bytes);
    let run: DecodeRun | null = null;
    await using owned = new AsyncDisposableStack();
    const worker = await pool.take();
    owned.defer(() => pool.giveBack(worker));
    const fifo = owned.use(await Fifo.make({ runner, directory: tempDir, world, signal }));
    const reading = worker.read(
      {
        fifoPath: fifo.path,
        sampling,
        fps: sampling?.sourceFps ?? null,
        clock,
        region,
        maxRows,
        looksAhead,
        reports,
        stopsAtDamage,
        stream: { control, batchRows, maxRows },
      },
      (batch) => run!.#onRows(batch),
    );
    // If the guard were closed before the worker has opened the pipe, the worker would wait for a writer for
    // ever.
    await reading.opened;
    owned.defer(async () => {
      fifo.closeGuard();
      await reading.finished.catch(() => {/* `wait` throws it */});
    });
    const tool = runner.start(options.job(fifo.path), {
      signal,
      maxStderrBytes: DECODE_ERROR_BYTES,
      ...(reports && { reports }),
    });
    const parts = { control: new Int32Array(control), owned: owned.move(), tool, fifo, reading };
    run = new DecodeRun(host, parts, options);
    return run;
  }

  /** Lets the worker read up to `rows` rows in all. A smaller number than before changes nothing. */
  grant(rows: number): void {
    const granted = Atomics.load(this.#control, CONTROL.granted);
    if (granted === CONTROL.stop || granted >= rows) return;
    Atomics.store(this.#control, CONTROL.granted, rows);
    Atomics.notify(this.#control, CONTROL.granted);
  }

  /**
   * Returns when something has come or all has ended. An ffmpeg that writes nothing at all for `stallMs` of
   * this waiting is killed: `outcome` is then `out_of_time`. Throws when the reading failed.
   */
  async wait(): Promise<void> {
    const change = this.#change.promise;
    let isChanged = false;
    while (!isChanged && !this.outcome && this.rows.length + this.jpegs.length === 0) {
      const reads = this.#reads();
      isChanged = await hasEndedWithin(this.#host.world, this.#stallMs, change);
      if (!isChanged && this.#reads() === reads) this.stop("out_of_time");
    }
    if (this.#failure) throw this.#failure.error;
  }

  /** Ends ffmpeg and the reading at any point; `outcome` follows. */
  stop(why: "killed" | "out_of_time"): void {
    this.#tool.kill(why);
    Atomics.store(this.#control, CONTROL.granted, CONTROL.stop);
    Atomics.notify(this.#control, CONTROL.granted);
  }

  /** Ends the run and waits for its end. May be called several times; all calls wait for the same end. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#disposed ??= this.#dispose();
  }

  async #dispose(): Promise<void> {
    this.stop("killed");
    await this.#finished;
    await this.#owned[Symbol.asyncDispose]();
  }

  async #finish(fifo: Fifo, reading: Reading): Promise<void> {
    const fail = (error: unknown) => {
      this.#failure ??= { error };
      this.stop("killed");
    };
    reading.finished.then((read) => {
      this.isDamaged = read === null;
      if (read) {
        this.hasMore = read.hasMore;
        this.length = read.length;
        this.ranges = read.ranges;
        this.cutsMs = read.cutsMs;
      }
      // It ends before the tool only where it needs no more frames.
      this.#tool.kill("killed");
    }, fail);
    const jpegs = this.#tool.stdout
      ? readJpegs(this.#tool.stdout, {
        bytes: () => Atomics.add(this.#control, CONTROL.reads, 1),
        jpeg: (jpeg) => {
          this.jpegs.push(jpeg);
          this.#notify();
        },
      }).catch(fail)
      : null;
    const outcome = await this.#tool.ended;
    fifo.closeGuard();
    await Promise.allSettled([reading.finished, jpegs]);
    this.outcome = outcome;
    this.#notify();
  }

  #onRows(batch: RowBatch): void {
    this.rows.push(batch);
    this.#notify();
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  #reads(): number {
    return Atomics.load(this.#control, CONTROL.reads);
  }
}
