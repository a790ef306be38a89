/** Removes the records of removed events from the full segments of the log, one after the other. */

import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { RunRegister } from "../../model/runs/run_register.ts";
import { GAPS_FORMAT, raiseFormat } from "../files/data_format.ts";
import { CHUNK_EVENTS, type EventIndex } from "./event_index.ts";
import type { Segment, SegmentReader } from "./segment.ts";
import { copySegment, SegmentDamaged } from "./segment_copy.ts";

/** What was removed from the files of the log. */
export interface RemovedRecords {
  readonly events: number;
  readonly bytes: number;
  /** Segments that keep removed events, as they are damaged or could not be written again. */
  readonly failed: number;
}

export interface RecordRemovalOptions {
  readonly dataDir: string;
  /** Of the segments. */
  readonly directory: string;
  readonly index: EventIndex;
  readonly segments: SegmentReader;
  readonly register: RunRegister;
  readonly log: Log;
  /** Ends the removal; what is under way stays as it was, or is finished where that takes milliseconds. */
  readonly signal: AbortSignal;
}

/** What the name of a copy ends with until it takes the place of the segment. */
const COPY_SUFFIX = ".rewrite";
/** Entries of the index that are changed in one turn: a fraction of a millisecond. */
const MOVES_PER_TURN = 8_192;

export class RecordRemoval {
  readonly #options: RecordRemovalOptions;

  constructor(options: RecordRemovalOptions) {
    this.#options = options;
  }

  /** Nothing else may change the segments or write a snapshot meanwhile; commits go on. The last segment stays as it is. */
  async run(): Promise<RemovedRecords> {
    const { dataDir, segments, index, register, log, signal } = this.#options;
    const removed = { events: 0, bytes: 0, failed: 0 };
    for (const segment of segments.segments.slice(0, -1)) {
      if (!segment.hasRemoved || signal.aborted) continue;
      try {
        await raiseFormat(dataDir, GAPS_FORMAT);
        const { events, bytes } = await this.#rewrite(segment);
        removed.events += events;
        removed.bytes += bytes;
      } catch (error) {
        segment.hasRemoved = true;
        if (signal.aborted) break;
        removed.failed++;
        const level = error instanceof SegmentDamaged ? "warn" : "error";
        log[level]("cannot remove events from a segment", { segment: segment.name, error: String(error) });
      }
    }
    if (removed.events === 0) return removed;
    // Not that of the newest event, which is written to.
    for (let seq = 0; seq + CHUNK_EVENTS <= register.lastSeq; seq += CHUNK_EVENTS) {
      index.shrink(seq);
      await yieldToEventLoop();
    }
    return removed;
  }

  /** Readers find each record in the one file or the other at any time. */
  async #rewrite(segment: Segment): Promise<{ readonly events: number; readonly bytes: number }> {
    const { directory, index, segments, register, signal } = this.#options;
    const name = `${segment.name}${COPY_SUFFIX}`;
    segment.hasRemoved = false; // true again where a run loses its events meanwhile
    const copy = await copySegment({
      from: join(directory, segment.name),
      sizeBytes: segment.sizeBytes,
      to: join(directory, name),
      firstLeftOf: (runId) => register.find(runId)?.firstSeq ?? 0,
      signal,
    });
    if (copy === null) return { events: 0, bytes: 0 };
    const next = segments.addRewritten(segment, name, copy.sizeBytes);
    const { kept, gaps } = copy;
    for (let at = 0; at < kept.length; at += 2) {
      index.move(kept.at(at), next.base + kept.at(at + 1));
      if (at % MOVES_PER_TURN === 0) await yieldToEventLoop();
    }
    let done = 0;
    for (let at = 0; at < gaps.length; at += 2) {
      for (let from = gaps.at(at); from <= gaps.at(at + 1);) {
        const to = Math.min(gaps.at(at + 1), from + MOVES_PER_TURN - 1 - done);
        index.remove(from, to);
        done += to - from + 1;
        from = to + 1;
        if (done < MOVES_PER_TURN) continue;
        done = 0;
        await yieldToEventLoop();
      }
    }
    await segments.replaceRewritten();
    return { events: copy.removedEvents, bytes: segment.sizeBytes - copy.sizeBytes };
  }
}

/** Of a process that was killed before its copies took their places. */
export function removeCopies(directory: string): void {
  for (const { name } of Deno.readDirSync(directory)) {
    if (name.endsWith(COPY_SUFFIX)) Deno.removeSync(join(directory, name));
  }
}
