/** Reads the events of one run from the log without opening it, beside a service that appends to it, too. */

import { join } from "node:path";
import type { LoggedEvent } from "../../model/events/cloudevent.ts";
import { EVENTS_REMOVED } from "../../model/runs/run.ts";
import { columnText, type ParsedRecord } from "../timeline/record.ts";
import { findSegments } from "../timeline/segment.ts";
import { scanSegment } from "../timeline/segment_scan.ts";
import { gapEnd } from "../timeline/gap_record.ts";

/** Where the events of a run are. */
export interface FoundRun {
  readonly runId: string;
  readonly segments: readonly {
    readonly name: string;
    readonly sizeBytes: number;
    readonly afterSeq: number;
  }[];
  /** The last event of a whole commit. */
  readonly lastSeq: number;
  /** How many events the run has up to `lastSeq`. */
  readonly events: number;
  /** Numbers that no record of the log has: whose events they were is not known. */
  readonly lost: readonly (readonly [from: number, to: number])[];
}

/** Finds a run in the log. Errors: the log has no such run, or it was deleted. */
export function findRun(dataDir: string, runId: string): FoundRun {
  const directory = join(dataDir, "timeline");
  const isOfRun = runMatcher(runId);
  const segments: FoundRun["segments"][number][] = [];
  const lost: [number, number][] = [];
  let [committedSeq, seenSeq, isDeleted, isRemoved] = [0, 0, false, false];
  let [events, uncommitted] = [0, 0];
  for (const { name, sizeBytes, unreadable } of findSegments(directory)) {
    if (unreadable !== "") throw new Error(`timeline/${name} cannot be read: ${unreadable}`);
    const afterSeq = seenSeq;
    let hasRun = false;
    scan(join(directory, name), sizeBytes, afterSeq, (bytes, record) => {
      if (record.seq > seenSeq + 1) lost.push([seenSeq + 1, record.seq - 1]);
      const removedEnd = gapEnd(bytes, record);
      seenSeq = Math.max(record.seq, removedEnd);
      if (removedEnd > 0) return;
      const isOwn = isOfRun(bytes, record);
      if (isOwn) uncommitted += 1;
      if (record.left === 0) {
        committedSeq = record.seq;
        events += uncommitted;
        uncommitted = 0;
      }
      if (!isOwn) return;
      hasRun = true;
      const kind = kindOf(bytes, record);
      isDeleted ||= kind === "run_deleted";
      isRemoved ||= kind === EVENTS_REMOVED;
    });
    if (hasRun) segments.push({ name, sizeBytes, afterSeq });
  }
  if (segments.length === 0) throw new Error(`there is no run ${runId}`);
  if (isDeleted) throw new Error(`run ${runId} was deleted`);
  if (isRemoved) throw new Error(`the events of run ${runId} were removed by retention`);
  return { runId, segments, lastSeq: committedSeq, events, lost };
}

/**
 * Calls `each` for every event of the run, in order. Errors: some of them have left the log since the run was
 * found.
 */
export function readRun(
  dataDir: string,
  { runId, segments, lastSeq, events }: FoundRun,
  each: (event: LoggedEvent) => void,
): void {
  const isOfRun = runMatcher(runId);
  let left = events;
  for (const { name, sizeBytes, afterSeq } of segments) {
    scan(join(dataDir, "timeline", name), sizeBytes, afterSeq, (bytes, record) => {
      if (record.seq > lastSeq || gapEnd(bytes, record) > 0 || !isOfRun(bytes, record)) return;
      left -= 1;
      each({
        ...{ seq: record.seq, runId, ptsMs: record.ptsMs, kind: kindOf(bytes, record) },
        streamId: columnText(DECODER, bytes, record.streamStart, record.streamEnd),
        payload: DECODER.decode(bytes.subarray(record.payloadStart, record.payloadEnd)),
      });
    });
  }
  if (left > 0) throw new Error(`events of run ${runId} were removed while it was read; try again`);
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

type EachRecord = (bytes: Uint8Array, record: ParsedRecord) => void;

function scan(path: string, sizeBytes: number, afterSeq: number, record: EachRecord): void {
  using file = Deno.openSync(path, { read: true });
  // Retention may have put a smaller copy in its place meanwhile.
  const size = Math.min(sizeBytes, file.statSync().size);
  scanSegment(file, size, 0, afterSeq, { record, damage: () => {} });
}

function kindOf(bytes: Uint8Array, { kindStart, kindEnd }: ParsedRecord): string {
  return columnText(DECODER, bytes, kindStart, kindEnd);
}

function runMatcher(runId: string): (bytes: Uint8Array, record: ParsedRecord) => boolean {
  const wanted = new TextEncoder().encode(runId);
  return (bytes, { runStart, runEnd }) => {
    if (runEnd - runStart !== wanted.length) return false;
    for (let at = 0; at < wanted.length; at++) if (bytes[runStart + at] !== wanted[at]) return false;
    return true;
  };
}
