/** The decode Worker: reads reduced frames from a named pipe into the frame filter's memory. Blocks while it
 * reads.
 */

import "../../base/worker_globals.ts";
import { errorText, quietLog } from "../../base/log.ts";
import { realWorld } from "../../base/world.ts";
import type { Region } from "../../model/frames/coordinates.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { clearTransitionFaults } from "../../model/frames/transition_faults.ts";
import { FrameClock } from "../../model/frames/frame_clock.ts";
import { REPORT, ReportReader } from "../frame_reports.ts";
import { FrameAnalyser } from "../detection/frame_analyser.ts";
import { STACKED_FRAME_BYTES, unstack } from "../kernels/picture_lines.ts";
import type { CollectedRows } from "../detection/row_collector.ts";
import { RangeDetectors } from "../detection/range_detectors.ts";
import { NutReader } from "../containers/nut.ts";
import { HeldFrames } from "./held_frames.ts";
import { type SourceClock, SourceTimes } from "../jobs/parts/source_times.ts";
import { SteadyRate } from "../jobs/parts/steady_rate.ts";
import { writeProgress } from "./decode_progress.ts";
import { CONTROL, type RowBatch, type StreamOrder } from "./stream_order.ts";

/** An order to the worker: read the NUT stream in this pipe. */
export interface DecodeOrder {
  readonly fifoPath: string;
  /** Chooses the frames that become rows; null is every frame, and then the stream is read to its end. */
  readonly sampling: SamplingPlan | null;
  /** The frames of a second of the source, as far as it is known. */
  readonly fps: number | null;
  readonly clock: SourceClock;
  /** What the frames are reduced from. */
  readonly region: Region;
  /** Longest number of rows. Nothing more is judged; see `looksAhead`. */
  readonly maxRows: number;
  /** Whether the reading goes on after the last row, to see whether another would come. */
  readonly looksAhead: boolean;
  /** What the decoder says of each frame in the pipe; null where it says nothing. See `frame_reports.ts`. */
  readonly reports: SharedArrayBuffer | null;
  /**
   * Whether damage that the decoder tells of ends the reading: several threads decode, and one has to do it
   * anew.
   */
  readonly stopsAtDamage: boolean;
  /** Memory in which it is told how far the reading is; see `decode_progress.ts`. */
  readonly progress?: SharedArrayBuffer | undefined;
  /** How rows are sent in batches, as far as they are granted; without it, all are sent at the end. */
  readonly stream?: StreamOrder;
}

/**
 * What the worker reports: `ready` once, then for each order `opened` when the pipe is open, `rows` if it is
 * a stream, and at last `done`, `damaged` (see `stopsAtDamage`) or `failed`. The `signals` of `done` are
 * empty for a stream, whose rows were sent before, with the faults in transitions that were not known then;
 * its `ranges` and `cutsMs` are whole. With `sampling`, `done` may come before the writer has ended.
 * `failed`: the bytes were not what was asked for; the worker itself continues.
 */
export type DecodeReport =
  | { readonly kind: "ready" }
  | { readonly kind: "opened" }
  | { readonly kind: "rows"; readonly batch: RowBatch }
  | {
    readonly kind: "done";
    readonly signals: SignalColumns;
    readonly ranges: readonly DetectedRange[];
    readonly cutsMs: readonly number[];
    readonly hasMore: boolean;
    readonly length: DecodedLength;
  }
  | { readonly kind: "damaged" }
  | { readonly kind: "failed"; readonly message: string };

/** How much was decoded. */
export interface DecodedLength {
  /**
   * When the last frame ends, as far as the distance of frames tells, milliseconds from the first frame; 0
   * for no frame.
   */
  readonly endMs: number;
  /** The longest distance of two frames. */
  readonly longestMs: number;
}

/**
 * How the staging area is used. Reads are put one behind the other until they are a batch, whose frames are
 * judged together, as what judges them is in the processor's caches then. Bytes that are left over are moved
 * to just before the place of the next batch, so that a frame is always contiguous. A frame that waited until
 * its time was decided is put at the end.
 *
 * ```
 *   0                    CARRY_BYTES                                       + BATCH_BYTES        LATE_AT
 *   | ..... left over ...|#### read ####|#### read ####|#### read ####|.........|   | a late frame |
 * ```
 */
const CARRY_BYTES = 128 * 1024;
/** Bytes of a batch: seven frames. One read more has room behind them. */
const BATCH_BYTES = 720 * 1024;
/** Most bytes of one read, whatever the pipe holds. */
const READ_BYTES = 64 * 1024;
/** Milliseconds from which on a read is slow: then the source is, and its frames are judged as they come. */
const SLOW_READ_MS = 20;

/**
 * Frames that are read before the report of a frame is asked for, as ffmpeg's log is read in larger pieces, a
 * little later than the frames. It is less than the frames that a decision waits for, because a decision
 * looks at reports behind its frame too.
 */
const REPORT_DELAY = 3;

/** The part of the Worker's global scope that is used here. */
interface DecodeWorkerScope {
  postMessage(report: DecodeReport, moved?: readonly Transferable[]): void;
  onmessage: ((event: MessageEvent<DecodeOrder>) => void) | null;
}

const scope = globalThis as typeof globalThis & DecodeWorkerScope;
const filter = await FrameAnalyser.load();
const ranges = new RangeDetectors(filter);
const reader = new NutReader();
const clock = new FrameClock();
const held = new HeldFrames();
/** Where a frame that waited is judged. */
const LATE_AT = filter.staging.length - STACKED_FRAME_BYTES;
const world = realWorld(quietLog());

scope.onmessage = ({ data: order }) => {
  try {
    using fifo = Deno.openSync(order.fifoPath, { read: true });
    scope.postMessage({ kind: "opened" });
    filter.reset();
    filter.setRegion(order.region);
    ranges.reset();
    reader.reset();
    const reports = order.reports && new Reports(order.reports, order.stopsAtDamage);
    const stream = order.stream ? new RowStream(order.stream, reports) : null;
    const intake = new Intake(order, stream, reports);
    readFrames(fifo, order, stream, intake);
    finish(reports);
    stream?.post();
    const signals = stream ? filter.takeFinalRows() : filter.columns();
    const found = ranges.finish();
    clearTransitionFaults(signals, found);
    const { hasMore, length } = intake;
    const { cutsMs } = filter;
    scope.postMessage({ kind: "done", signals, ranges: found, cutsMs, hasMore, length }, buffersOf(signals));
  } catch (error) {
    if (error instanceof DamageTold) scope.postMessage({ kind: "damaged" });
    else scope.postMessage({ kind: "failed", message: errorText(error) });
  }
};
scope.postMessage({ kind: "ready" });

/**
 * The hot loop: allocates nothing but a view for each read. A frame that is cut off by the end of the stream
 * is dropped: the decoder was stopped.
 */
function readFrames(fifo: Deno.FsFile, order: DecodeOrder, stream: RowStream | null, intake: Intake): void {
  const staging = filter.staging;
  const progress = order.progress && new Int32Array(order.progress);
  /** The unparsed bytes are `[at, end)`. `at` may be after them, while a skipped element is not complete. */
  let at = CARRY_BYTES, end = CARRY_BYTES;
  for (let isOpen = true; isOpen;) {
    const startMs = world.monotonicMs();
    const got = fifo.readSync(staging.subarray(end, end + READ_BYTES));
    if (got === null) isOpen = false;
    else {
      stream?.noteRead();
      end += got;
    }
    const isSlow = world.monotonicMs() - startMs > SLOW_READ_MS;
    if (isOpen && !isSlow && end < CARRY_BYTES + BATCH_BYTES) continue;
    for (let next = reader.read(staging, at, end); next !== -1; next = reader.read(staging, at, end)) {
      at = next;
      if (!reader.hasFrame) continue;
      if (reader.frameBytes !== STACKED_FRAME_BYTES) throw new Error(`a frame of ${reader.frameBytes} bytes`);
      if (!intake.take()) return;
    }
    if (progress) writeProgress(progress, filter.count, intake.lastMs);
    if (end - at > CARRY_BYTES) throw new Error("an element that does not fit the staging area");
    if (at < end) staging.copyWithin(CARRY_BYTES - (end - at), at, end);
    at = CARRY_BYTES - (end - at);
    end = CARRY_BYTES;
  }
  intake.finish();
}

/**
 * What comes between the pipe and the filter: a frame whose time is in doubt waits for those behind it, and
 * the time decides whether it is a row.
 */
class Intake {
  /** Whether a row would have come after the last one. */
  hasMore = false;
  /** The time of the newest judged frame. */
  lastMs = 0;

  readonly #order: DecodeOrder;
  readonly #stream: RowStream | null;
  readonly #reports: Reports | null;
  readonly #rate: SteadyRate | null;
  readonly #times: SourceTimes;
  #firstTicks = NaN;
  #longestMs = 0;
  /** Frames that have come; `#timed` counts those whose time was taken out of the clock. */
  #come = 0;
  #timed = 0;

  constructor(order: DecodeOrder, stream: RowStream | null, reports: Reports | null) {
    this.#order = order;
    this.#stream = stream;
    this.#reports = reports;
    this.#rate = order.sampling && SteadyRate.of(order.sampling);
    this.#times = new SourceTimes(order.clock);
    const { fps, clock: { gapMaxS } } = order;
    clock.reset({ ticksPerSecond: this.#times.denominator / this.#times.numerator, fps, gapMaxS });
    held.clear();
  }

  get length(): DecodedLength {
    if (this.#timed === 0) return { endMs: 0, longestMs: 0 };
    return { endMs: this.lastMs + this.#ms(clock.interval), longestMs: this.#longestMs };
  }

  /** Takes the frame that was read last. False when the reading has to end. */
  take(): boolean {
    const times = this.#times;
    times.read(reader.framePts, reader.timeBaseNumerator, reader.timeBaseDenominator);
    if (times.isFirst) this.#stream?.noteBeginning(this.#come);
    const waits = held.count > 0;
    clock.push(times.ticks);
    const time = waits ? NaN : clock.take();
    if (Number.isNaN(time)) held.add(filter.staging, reader.frameOffset, times.ticks);
    this.#come++;
    return Number.isNaN(time) ? this.#judgeHeld() : this.#judge(reader.frameOffset, time, times.ticks);
  }

  /** To be called when no more frames come. */
  finish(): void {
    clock.finish();
    this.#judgeHeld();
  }

  #judgeHeld(): boolean {
    for (let time = clock.take(); !Number.isNaN(time); time = clock.take()) {
      const ticks = held.take(filter.staging, LATE_AT);
      if (!this.#judge(LATE_AT, time, ticks)) return false;
    }
    return true;
  }

  /** Judges a frame, whose time and own time are in ticks. False when the reading has to end. */
  #judge(offset: number, time: number, sourceTicks: number): boolean {
    const { maxRows, looksAhead } = this.#order;
    const { numerator, denominator } = this.#times;
    const rate = this.#rate;
    const stream = this.#stream;
    const number = this.#timed++;
    const isRow = rate === null || rate.takes(time, numerator, denominator);
    if (filter.rows >= maxRows) {
      this.hasMore ||= isRow;
      return !(rate && this.hasMore);
    }
    if (Number.isNaN(this.#firstTicks)) this.#firstTicks = time;
    const ms = this.#ms(time - this.#firstTicks);
    if (ms - this.lastMs > this.#longestMs) this.#longestMs = ms - this.lastMs;
    if (ms > this.lastMs) this.lastMs = ms;
    if (filter.count >= REPORT_DELAY) this.#reports?.take(stream);
    if (!clock.isSteady) stream?.noteUnsteady();
    if (isRow) stream?.noteRow(number, sourceTicks * numerator / denominator);
    filter.push(unstack(filter.staging, offset), this.lastMs, isRow, true);
    ranges.push(filter.rangeMeasures, this.lastMs);
    if (stream?.isDue && !stream.goesOn()) return false;
    return !(rate && !looksAhead && filter.rows >= maxRows);
  }

  #ms(ticks: number): number {
    return ticks * 1000 * this.#times.numerator / this.#times.denominator;
  }
}

/** Thrown to end the reading at damage that the decoder told of. */
class DamageTold extends Error {}

class Reports {
  readonly #reader: ReportReader;
  readonly #stopsAtDamage: boolean;

  constructor(reports: SharedArrayBuffer, stopsAtDamage: boolean) {
    this.#reader = new ReportReader(reports);
    this.#stopsAtDamage = stopsAtDamage;
  }

  /** Takes the report of the next frame that has none. */
  take(stream: RowStream | null): void {
    const report = this.#reader.take();
    if (this.#stopsAtDamage && (report & (REPORT.isCorrupt | REPORT.isAfterError)) !== 0) {
      throw new DamageTold();
    }
    if ((report & REPORT.isJump) !== 0) stream?.noteUnsteady();
    filter.report(report);
  }

  /** Takes the reports of the newest frames. */
  takeRest(): void {
    while (this.#reader.taken < filter.count) this.take(null);
  }
}

/** Ends the stream of frames; not again where it has ended. */
function finish(reports: Reports | null): void {
  reports?.takeRest();
  filter.finish();
}

/** Sends final rows while a stream is read. Stops the reading, and so ffmpeg, until more rows are granted. */
class RowStream {
  readonly #order: StreamOrder;
  readonly #reports: Reports | null;
  readonly #control: Int32Array;
  /** Rows that may be read before the Worker looks again how many are granted. */
  #readable: number;
  /** Frame numbers of the rows that were not sent yet, and below what else `RowSources` tells of them. */
  readonly #frames: number[] = [];
  readonly #timesS: number[] = [];
  readonly #beginnings: number[] = [];
  #isSteady = true;

  constructor(order: StreamOrder, reports: Reports | null) {
    this.#order = order;
    this.#reports = reports;
    // A first batch needs no grant.
    this.#readable = Math.min(order.batchRows + filter.cutLookahead, order.maxRows);
    this.#control = new Int32Array(order.control);
  }

  noteRead(): void {
    Atomics.add(this.#control, CONTROL.reads, 1);
  }

  /** Notes that ffmpeg has begun its filters with a frame. */
  noteBeginning(frame: number): void {
    if (this.#beginnings.length < BEGINNINGS_MAX) this.#beginnings.push(frame);
  }

  /** Notes the next row. */
  noteRow(frame: number, sourceS: number): void {
    this.#frames.push(frame);
    this.#timesS.push(sourceS);
  }

  /** Notes that from here on times are not those of the source. */
  noteUnsteady(): void {
    this.#isSteady = false;
  }

  /** Whether a batch is final, or all readable rows have been read. */
  get isDue(): boolean {
    return filter.finalRows >= this.#order.batchRows || filter.rows >= this.#readable;
  }

  /**
   * Sends the final rows if they are a batch, and waits until more are granted. False when the reading has to
   * end.
   */
  goesOn(): boolean {
    const { batchRows, maxRows } = this.#order;
    const isLast = filter.rows >= maxRows;
    if (isLast) finish(this.#reports);
    if (isLast || filter.finalRows >= batchRows) this.post();
    for (;;) {
      const granted = Atomics.load(this.#control, CONTROL.granted);
      if (granted === CONTROL.stop) return false;
      if (isLast || granted > filter.rows) {
        this.#readable = isLast ? Infinity : Math.min(granted, maxRows);
        return true;
      }
      this.post();
      Atomics.wait(this.#control, CONTROL.granted, granted);
    }
  }

  /** Moves the final rows to the main thread. */
  post(): void {
    if (filter.finalRows === 0) return;
    const rows = filter.takeFinalRows();
    const source = {
      frames: this.#frames.splice(0, rows.count),
      timesS: this.#timesS.splice(0, rows.count),
      beginnings: this.#beginnings,
      isSteady: this.#isSteady,
    };
    scope.postMessage({ kind: "rows", batch: { ...rows, source } }, buffersOf(rows));
  }
}

/** The memory of rows, to be moved to the main thread instead of copied. */
function buffersOf(rows: CollectedRows & { readonly count: number }): ArrayBuffer[] {
  return Object.values(rows).flatMap((column) => typeof column === "number" ? [] : [column.buffer]);
}

/**
 * Most changes of a picture's format that are known by their frames: a film has few, and each batch would
 * tell all of them again.
 */
const BEGINNINGS_MAX = 256;
