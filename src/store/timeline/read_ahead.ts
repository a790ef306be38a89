/** Reads scattered records into the file cache, many at a time, before they are read one by one. */

import { join } from "node:path";
import type { Segment, SegmentReader } from "./segment.ts";

/** Bytes of one segment that will be read. */
export interface SegmentRange {
  readonly segment: Segment;
  readonly from: number;
  readonly to: number;
}

/** The least number of ranges that are read ahead: fewer are read as fast one by one. */
const RANGES_MIN = 32;
/** How many reads are timed to find out whether the ranges are cached; the middle one of them decides. */
const PROBES = 5;
/** The longest read from the file cache, which takes 2 µs as a rule; one from a fast disk 50 µs or more. */
const CACHED_MS_MAX = 0.04;
/** Reads under way at once: what a disk handles in parallel, and what the runtime's threads can wait for. */
const LANES = 16;
/** The bytes of a page: one read brings the whole page into the file cache. */
const PAGE_BYTES = 4096;

/**
 * Brings the records of a reading into the file cache. A run whose events are scattered over a large log
 * takes one read for each event, and the reader reads synchronously. That is fast from the file cache, but
 * from a disk each read is a seek that blocks the whole service.
 */
export class ReadAhead {
  readonly #directory: string;
  readonly #segments: SegmentReader;
  readonly #nowMs: () => number;

  constructor(directory: string, segments: SegmentReader, nowMs: () => number) {
    this.#directory = directory;
    this.#segments = segments;
    this.#nowMs = nowMs;
  }

  /**
   * Returns when the bytes are likely to be cached. Ignores read errors: the reader finds and reports them.
   */
  async warm(ranges: readonly SegmentRange[]): Promise<void> {
    if (ranges.length < RANGES_MIN || this.#isCached(ranges)) return;
    const share = Math.ceil(ranges.length / LANES);
    const lanes = Array.from({ length: LANES }, (_, lane) => ranges.slice(lane * share, (lane + 1) * share));
    await Promise.allSettled(lanes.map((lane) => this.#readPages(lane)));
  }

  /**
   * Whether the ranges are in the file cache, by the time of a few reads, spread evenly over them. One read
   * before each is not timed: it opens the segment, and the first ones of a process take longer than a disk
   * does, as their code is not compiled yet.
   */
  #isCached(ranges: readonly SegmentRange[]): boolean {
    const scratch = new Uint8Array(64);
    const tookMs: number[] = [];
    const read = ({ segment, from }: SegmentRange) => this.#segments.read(segment, from, scratch);
    try {
      for (let probe = 0; probe < PROBES; probe++) {
        const at = Math.floor(probe * ranges.length / PROBES);
        read(ranges[at]!);
        const startedMs = this.#nowMs();
        read(ranges[at + 1]!);
        tookMs.push(this.#nowMs() - startedMs);
      }
    } catch {
      return true; // the reader reports the error
    }
    return tookMs.toSorted((a, b) => a - b)[Math.floor(PROBES / 2)]! <= CACHED_MS_MAX;
  }

  async #readPages(ranges: readonly SegmentRange[]): Promise<void> {
    const scratch = new Uint8Array(PAGE_BYTES);
    let file: Deno.FsFile | undefined;
    let open: Segment | undefined;
    try {
      for (const { segment, from, to } of ranges) {
        if (segment !== open) {
          file?.close();
          file = undefined;
          file = await Deno.open(join(this.#directory, segment.name), { read: true });
          open = segment;
        }
        for (let at = from; at < to; at += PAGE_BYTES) {
          file!.seekSync(at, Deno.SeekMode.Start);
          await file!.read(scratch.subarray(0, Math.min(PAGE_BYTES, to - at)));
        }
      }
    } finally {
      file?.close();
    }
  }
}
