/** The folded runs of a snapshot as they were at one moment, made into text in small steps while commits go
 * on.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import { MEDIA_KINDS } from "../../model/files/media_kind.ts";
import { Run } from "../../model/runs/run.ts";
import type { EventIndex } from "./event_index.ts";

/** A run as a row: the fields of Run in the order of `rowOf`, and its skip list. */
export type RunRow = readonly (string | number | boolean | readonly number[])[];

/** Rows that are made in one turn: less than a millisecond. */
const ROWS_PER_TURN = 256;

/**
 * ```
 *   new ──► encode(): 256 runs a turn ──► pieces of the text, in the order of the runs
 *             ▲ an event is about to change a run that has no row yet: keep(run) makes it first
 * ```
 */
export class SnapshotRows {
  readonly #index: EventIndex;
  readonly #encoder = new TextEncoder();
  /** Rows that were made before their turn; empty for a run that began later. */
  readonly #kept = new Map<Run, string>();
  readonly #done = new Set<Run>();

  constructor(index: EventIndex) {
    this.#index = index;
  }

  /** Makes the row of a run. Call it before an event is folded into the run. */
  keep(run: Run): void {
    if (!this.#done.has(run) && !this.#kept.has(run)) this.#kept.set(run, this.#rowOf(run));
  }

  /**
   * The rows as a JSON array: the runs that have events, each as it was when this was called, in pieces of
   * UTF-8.
   */
  async encode(runs: Iterable<Run>): Promise<readonly Uint8Array[]> {
    const pieces: Uint8Array[] = [];
    let text = "[";
    let separator = "";
    for (const run of runs) {
      const row = this.#kept.get(run) ?? this.#rowOf(run);
      this.#done.add(run);
      if (row !== "") {
        text += separator + row;
        separator = ",";
      }
      if (this.#done.size % ROWS_PER_TURN !== 0) continue;
      pieces.push(this.#encoder.encode(text));
      text = "";
      await yieldToEventLoop();
    }
    pieces.push(this.#encoder.encode(`${text}]`));
    return pieces;
  }

  #rowOf(run: Run): string {
    return run.eventCount === 0 ? "" : JSON.stringify(rowOf(run, this.#index.skipListOf(run)));
  }
}

function rowOf(run: Run, skipList: readonly number[]): RunRow {
  return [
    run.runId,
    run.principalKey,
    run.mode,
    run.model,
    run.sourceUri,
    run.state,
    run.createdMs,
    run.lastActivityMs,
    run.deleted,
    run.eventCount,
    run.firstSeq,
    run.lastSeq,
    run.source,
    run.sessionId,
    run.latestFramesDecodedSeq,
    run.isCreated,
    run.hasIngest,
    run.logBytes,
    run.onHold,
    run.removedSeq,
    MEDIA_KINDS.map((kind) => run.removedMedia[kind]),
    skipList,
    run.sourceName,
  ];
}

/** The run of a row, and its skip list. */
export function runOf(row: RunRow): { run: Run; skipList: number[] } {
  const run = new Run(row[0] as string);
  run.principalKey = row[1] as string;
  run.mode = row[2] as string;
  run.model = row[3] as string;
  run.sourceUri = row[4] as string;
  run.state = row[5] as Run["state"];
  run.createdMs = row[6] as number;
  run.lastActivityMs = row[7] as number;
  run.deleted = row[8] as boolean;
  run.eventCount = row[9] as number;
  run.firstSeq = row[10] as number;
  run.lastSeq = row[11] as number;
  run.source = row[12] as Run["source"];
  run.sessionId = row[13] as string;
  run.latestFramesDecodedSeq = row[14] as number;
  run.isCreated = row[15] as boolean;
  run.hasIngest = row[16] as boolean;
  run.logBytes = row[17] as number;
  run.onHold = row[18] as boolean;
  run.removedSeq = row[19] as number;
  const [picture, clip, sound] = row[20] as [number, number, number];
  if (picture + clip + sound > 0) run.removedMedia = { picture, clip, sound };
  run.sourceName = (row[22] ?? "") as string; // absent in snapshots of earlier versions
  return { run, skipList: row[21] as number[] };
}
