/** The folded runs and the index as one file, so that a start reads only the end of the log; may be deleted any time. */

import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Log } from "../../base/log.ts";
import { Run } from "../../model/runs/run.ts";
import { RunRegister } from "../../model/runs/run_register.ts";
import { CHUNK_EVENTS, EventIndex, newChunk } from "./event_index.ts";
import { ParsedRecord } from "./record.ts";
import { type FoundSegment, SegmentReader } from "./segment.ts";

/*
 *   offset    0   8  "timeline" in ASCII
 *             8   4  format version
 *            12   4  length of the head, h
 *            16   h  head: JSON in UTF-8, see Head
 *          16+h      for each entry of head.chunks: n positions of 8 bytes, n next numbers of 4, n kind ids of 2,
 *                    as they are in IndexChunk; n is 65,536, or as many as there are in the last one
 *        last 4      CRC-32 of everything before
 *
 * All numbers little-endian. It covers the log up to `sizeBytes` of the last segment that the head names.
 */
const MAGIC = "timeline";
const FORMAT_VERSION = 1;
const START_BYTES = 16;

interface Head {
  readonly segments: readonly { readonly name: string; readonly sizeBytes: number }[];
  /** The highest number that was given out; the log may end before it where damage cost the last ones. */
  readonly seenSeq: number;
  readonly lastSeq: number;
  readonly events: number;
  readonly damagedRecords: number;
  readonly kinds: readonly string[];
  readonly chunks: readonly number[];
  readonly runs: readonly RunRow[];
}

/** The fields of Run in the order of `rowOf`, and the stepping stones of its chain. */
type RunRow = readonly (string | number | boolean | readonly number[])[];

/** What a snapshot holds, or an empty log when there is none to go by. */
export interface Restored {
  readonly register: RunRegister;
  readonly index: EventIndex;
  /** The segments that are covered, the last one with the size that is. */
  readonly segments: SegmentReader;
  readonly damagedRecords: number;
  readonly seenSeq: number;
}

export interface SnapshotState {
  readonly register: RunRegister;
  readonly index: EventIndex;
  readonly segments: SegmentReader;
  readonly damagedRecords: number;
  readonly nextSeq: number;
}

/** Reads the snapshot if it is whole and belongs to the segments that were found; says in the log when it does not. */
export function loadSnapshot(directory: string, found: readonly FoundSegment[], log: Log): Restored {
  const path = join(directory, "snapshot");
  let seenSeq = 0;
  try {
    using file = Deno.openSync(path, { read: true });
    const { head, index } = readFile(file);
    seenSeq = head.seenSeq;
    const segments = new SegmentReader(directory);
    try {
      matchSegments(head, found, segments);
      matchLastRecord(head, index, segments);
      return {
        register: restoreRuns(head, index),
        index,
        segments,
        damagedRecords: head.damagedRecords,
        seenSeq,
      };
    } catch (error) {
      segments[Symbol.dispose]();
      throw error;
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      log.warn("the timeline snapshot is not usable, reading the whole log", { path, reason: String(error) });
    }
  }
  const segments = new SegmentReader(directory);
  return { register: new RunRegister(), index: new EventIndex(), segments, damagedRecords: 0, seenSeq };
}

/**
 * Writes the state as it is at the call; commits may go on meanwhile. `syncLog` is awaited first: a snapshot must
 * not know more than the disk has of the log.
 */
export async function writeSnapshot(
  directory: string,
  state: SnapshotState,
  syncLog: () => Promise<void>,
): Promise<void> {
  const { index, register } = state;
  const lastSeq = register.lastSeq;
  const head = new TextEncoder().encode(JSON.stringify(headOf(state)));
  await syncLog();
  const temporary = join(directory, "snapshot.new");
  try {
    await writeFile(temporary, head, index, lastSeq);
    await Deno.rename(temporary, join(directory, "snapshot"));
  } catch (error) {
    // On a full disk what was written of it stands in the way of events.
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

async function writeFile(path: string, head: Uint8Array, index: EventIndex, lastSeq: number): Promise<void> {
  using file = await Deno.open(path, { create: true, write: true, truncate: true, mode: 0o600 });
  let checksum = 0;
  const write = async (bytes: Uint8Array) => {
    checksum = crc32(bytes, checksum);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  };
  await write(startOf(head.length));
  await write(head);
  for (const number of chunkNumbers(index, lastSeq)) {
    const chunk = index.chunk(number)!;
    const count = entriesOf(number, lastSeq);
    await write(bytesOf(chunk.positions, count));
    // A copy: the entry of a run's last event changes with the run's next one. What such a late change puts in
    // is never followed, because the chain ends at the run's last event that the head knows.
    await write(bytesOf(chunk.next.slice(0, count), count));
    await write(bytesOf(chunk.kinds, count));
  }
  const trailer = new Uint8Array(4);
  new DataView(trailer.buffer).setUint32(0, checksum, true);
  await write(trailer);
  await file.sync();
}

/** About how many bytes a snapshot of the state takes. */
export function snapshotBytesOf(index: EventIndex, runCount: number): number {
  return index.eventCount * 14 + runCount * 300;
}

function headOf({ register, index, segments, damagedRecords, nextSeq }: SnapshotState): Head {
  const runs: RunRow[] = [];
  for (const run of register.all()) if (run.eventCount > 0) runs.push(rowOf(run, index.stonesOf(run)));
  return {
    segments: segments.segments.map(({ name, sizeBytes }) => ({ name, sizeBytes })),
    seenSeq: nextSeq - 1,
    lastSeq: register.lastSeq,
    events: index.eventCount,
    damagedRecords,
    kinds: index.kindNames,
    chunks: chunkNumbers(index, register.lastSeq),
    runs,
  };
}

function chunkNumbers(index: EventIndex, lastSeq: number): number[] {
  const numbers: number[] = [];
  const last = Math.floor(lastSeq / CHUNK_EVENTS);
  for (let number = 0; number <= last; number++) if (index.chunk(number) !== undefined) numbers.push(number);
  return numbers;
}

function entriesOf(chunkNumber: number, lastSeq: number): number {
  return Math.min(CHUNK_EVENTS, lastSeq + 1 - chunkNumber * CHUNK_EVENTS);
}

function startOf(headBytes: number): Uint8Array {
  const start = new Uint8Array(START_BYTES);
  new TextEncoder().encodeInto(MAGIC, start);
  const view = new DataView(start.buffer);
  view.setUint32(8, FORMAT_VERSION, true);
  view.setUint32(12, headBytes, true);
  return start;
}

function bytesOf(column: Float64Array | Uint32Array | Uint16Array, count: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(column.buffer as ArrayBuffer, column.byteOffset, count * column.BYTES_PER_ELEMENT);
}

function readFile(file: Deno.FsFile): { head: Head; index: EventIndex } {
  let checksum = 0;
  const read = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length;) {
      const count = file.readSync(bytes.subarray(at));
      if (!count) throw new Error("it ends too early");
      at += count;
    }
    checksum = crc32(bytes, checksum);
    return bytes;
  };
  const start = read(new Uint8Array(START_BYTES));
  const view = new DataView(start.buffer);
  if (new TextDecoder().decode(start.subarray(0, 8)) !== MAGIC) throw new Error("it is not a snapshot");
  if (view.getUint32(8, true) !== FORMAT_VERSION) throw new Error(`its format is ${view.getUint32(8, true)}`);
  const headBytes = view.getUint32(12, true);
  if (headBytes > file.statSync().size) throw new Error("it ends too early");
  const headText = new TextDecoder().decode(read(new Uint8Array(headBytes)));
  const head = parseHead(headText);
  const index = new EventIndex();
  for (const number of head.chunks) {
    const chunk = newChunk();
    const count = entriesOf(number, head.lastSeq);
    read(bytesOf(chunk.positions, count));
    read(bytesOf(chunk.next, count));
    read(bytesOf(chunk.kinds, count));
    index.setChunk(number, chunk);
  }
  const expected = checksum;
  const trailer = read(new Uint8Array(4));
  if (new DataView(trailer.buffer).getUint32(0, true) !== expected) throw new Error("its checksum is wrong");
  for (const kind of head.kinds) index.kindId(kind);
  index.eventCount = head.events;
  return { head, index };
}

/** The head is used before the checksum of the whole file is known, so its numbers are looked at first. */
function parseHead(text: string): Head {
  const head = JSON.parse(text) as Head;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  if (!isCount(head.lastSeq) || !isCount(head.seenSeq) || !Array.isArray(head.chunks)) {
    throw new Error("bad head");
  }
  if (head.chunks.length > head.lastSeq / CHUNK_EVENTS + 1) throw new Error("bad head");
  if (!head.chunks.every((number) => isCount(number) && number <= head.lastSeq / CHUNK_EVENTS)) {
    throw new Error("bad head");
  }
  return head;
}

/** The covered segments must be there, whole ones with exactly the size they had. */
function matchSegments(head: Head, found: readonly FoundSegment[], segments: SegmentReader): void {
  const last = head.segments.length - 1;
  head.segments.forEach(({ name, sizeBytes }, number) => {
    const file = found[number];
    const fits = file?.name === name && file.unreadable === "" &&
      (number === last ? file.sizeBytes >= sizeBytes : file.sizeBytes === sizeBytes);
    if (!fits) throw new Error(`segment ${name} is not as it was`);
    segments.add(name, sizeBytes);
  });
}

/** The last record must be where the index says: another log under the same names would pass the size check. */
function matchLastRecord(head: Head, index: EventIndex, segments: SegmentReader): void {
  const position = index.positionOf(head.lastSeq);
  if (head.lastSeq === 0) return;
  const segment = segments.at(position);
  const bytes = new Uint8Array(segment.base + segment.sizeBytes - position);
  const record = new ParsedRecord();
  const filled = segments.read(segment, position - segment.base, bytes);
  if (!record.parse(bytes, 0, filled) || record.seq !== head.lastSeq) {
    throw new Error(`event ${head.lastSeq} is not where it was`);
  }
}

function restoreRuns(head: Head, index: EventIndex): RunRegister {
  const register = new RunRegister();
  for (const row of head.runs) {
    const { run, stones } = runOf(row);
    register.adopt(run);
    index.setStones(run, stones);
  }
  register.lastSeq = head.lastSeq;
  return register;
}

function rowOf(run: Run, stones: readonly number[]): RunRow {
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
    stones,
  ];
}

function runOf(row: RunRow): { run: Run; stones: number[] } {
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
  return { run, stones: row[17] as number[] };
}
