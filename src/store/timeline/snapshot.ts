/** The snapshot file: the folded runs and the event index, so that a start reads only the end of the log. */

import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Log } from "../../base/log.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { RunRegister } from "../../model/runs/run_register.ts";
import type { AcceptedLosses } from "./accepted_losses.ts";
import { CHUNK_EVENTS, EventIndex, newChunk } from "./event_index.ts";
import { ParsedRecord } from "./record.ts";
import { type FoundSegment, type Segment, SegmentReader } from "./segment.ts";
import { runOf, type RunRow, type SnapshotRows } from "./snapshot_rows.ts";

/*
 *   offset    0   8  "timeline" in ASCII
 *             8   4  format version
 *            12   4  length of the header, h
 *            16   h  header: JSON in UTF-8, see SnapshotHeader
 *          16+h      for each entry of header.chunks: n positions of 8 bytes, n next numbers of 4, n kind ids of 2,
 *                    as they are in IndexChunk; n is 65,536, or less in the chunk of lastSeq
 *        last 4      CRC-32 of everything before
 *
 * All numbers are little-endian. The snapshot covers the log up to `sizeBytes` of the last segment in the
 * header. It may be deleted at any time: the next start then reads the whole log. See
 * docs/protocols.md#snapshot.
 */
const MAGIC = "timeline";
const FORMAT_VERSION = 5;
const START_BYTES = 16;

interface SnapshotHeader {
  readonly segments: readonly Readonly<Segment>[];
  /**
   * The highest sequence number that was given to an event; above `lastSeq` where damage destroyed the last
   * events.
   */
  readonly seenSeq: number;
  readonly lastSeq: number;
  readonly events: number;
  readonly damagedRecords: number;
  readonly kinds: readonly string[];
  readonly chunks: readonly number[];
  readonly runs: readonly RunRow[];
}

/** The content of the snapshot, or that of an empty log when there is no usable snapshot. */
export interface LoadedSnapshot {
  readonly register: RunRegister;
  readonly index: EventIndex;
  /** The segments that the snapshot covers, the last one with the size that is covered. */
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

/**
 * Reads the snapshot. One that is damaged, does not match the segments or may count `accepted` events as lost
 * is not used, with a warning in the log.
 */
export function loadSnapshot(
  directory: string,
  found: readonly FoundSegment[],
  { accepted, names, log }: {
    readonly accepted: AcceptedLosses;
    /** Says how the owners of the runs are called. */
    readonly names: PrincipalNames;
    readonly log: Log;
  },
): LoadedSnapshot {
  const path = join(directory, "snapshot");
  let seenSeq = 0;
  try {
    using file = Deno.openSync(path, { read: true });
    const { header, index } = readFile(file);
    seenSeq = header.seenSeq;
    if (header.damagedRecords > 0 && accepted.events.length > 0) {
      throw new Error("it counts lost events, and a repair has accepted some");
    }
    const segments = new SegmentReader(directory);
    try {
      matchSegments(header, found, segments);
      matchLastRecord(header, index, segments);
      return {
        register: restoreRuns(header, index, names),
        index,
        segments,
        damagedRecords: header.damagedRecords,
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
  return { register: new RunRegister(names), index: new EventIndex(), segments, damagedRecords: 0, seenSeq };
}

/**
 * Writes the state at the time of the call; commits may continue meanwhile, where `rows.keep` is told of each
 * run before it changes. `syncLog` is awaited first, because a snapshot must not cover events that the disk
 * does not have.
 */
export async function writeSnapshot(
  directory: string,
  state: SnapshotState,
  rows: SnapshotRows,
  syncLog: () => Promise<void>,
): Promise<void> {
  const { index, register } = state;
  const lastSeq = register.lastSeq;
  const start = headerOf(state);
  const header = encodeHeader(start, await rows.encode(register.all()));
  await syncLog();
  const temporary = join(directory, "snapshot.new");
  try {
    await writeFile(temporary, header, index, lastSeq);
    await Deno.rename(temporary, join(directory, "snapshot"));
  } catch (error) {
    // On a full disk, an incomplete snapshot would take the space that events need.
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

async function writeFile(
  path: string,
  header: readonly Uint8Array[],
  index: EventIndex,
  lastSeq: number,
): Promise<void> {
  using file = await Deno.open(path, { create: true, write: true, truncate: true, mode: 0o600 });
  let checksum = 0;
  const write = async (bytes: Uint8Array) => {
    checksum = crc32(bytes, checksum);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  };
  await write(startOf(header.reduce((sum, { length }) => sum + length, 0)));
  for (const piece of header) await write(piece);
  for (const number of chunkNumbers(index, lastSeq)) {
    const chunk = index.chunk(number)!;
    const count = entriesOf(number, lastSeq);
    await write(bytesOf(chunk.positions, count));
    // A copy, because a commit during the write sets the `next` entry of a run's last event. The copy may
    // have such an entry. It is never followed: in the snapshot, the list of a run ends at the last event
    // that the header has.
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

function headerOf(
  { register, index, segments, damagedRecords, nextSeq }: SnapshotState,
): Omit<SnapshotHeader, "runs"> {
  return {
    segments: segments.segments.map((segment) => ({ ...segment })),
    seenSeq: nextSeq - 1,
    lastSeq: register.lastSeq,
    events: index.eventCount,
    damagedRecords,
    kinds: [...index.kindNames],
    chunks: chunkNumbers(index, register.lastSeq),
  };
}

/** The header in pieces: its own fields, then the runs, which are many and come encoded. */
function encodeHeader(
  header: Omit<SnapshotHeader, "runs">,
  runs: readonly Uint8Array[],
): readonly Uint8Array[] {
  const encoder = new TextEncoder();
  const start = JSON.stringify(header).slice(0, -1);
  return [encoder.encode(`${start},"runs":`), ...runs, encoder.encode("}")];
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

function startOf(headerBytes: number): Uint8Array {
  const start = new Uint8Array(START_BYTES);
  new TextEncoder().encodeInto(MAGIC, start);
  const view = new DataView(start.buffer);
  view.setUint32(8, FORMAT_VERSION, true);
  view.setUint32(12, headerBytes, true);
  return start;
}

function bytesOf(column: Float64Array | Uint32Array | Uint16Array, count: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(column.buffer as ArrayBuffer, column.byteOffset, count * column.BYTES_PER_ELEMENT);
}

/**
 * The highest sequence number that the snapshot knows of; null without one. Errors: it is damaged, or of
 * another version.
 */
export function seqOfSnapshot(directory: string): number | null {
  try {
    using file = Deno.openSync(join(directory, "snapshot"), { read: true });
    return readFile(file).header.seenSeq;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function readFile(file: Deno.FsFile): { header: SnapshotHeader; index: EventIndex } {
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
  const headerBytes = view.getUint32(12, true);
  if (headerBytes > file.statSync().size) throw new Error("it ends too early");
  const headerText = new TextDecoder().decode(read(new Uint8Array(headerBytes)));
  const header = parseHeader(headerText);
  const index = new EventIndex();
  for (const number of header.chunks) {
    const chunk = newChunk();
    const count = entriesOf(number, header.lastSeq);
    read(bytesOf(chunk.positions, count));
    read(bytesOf(chunk.next, count));
    read(bytesOf(chunk.kinds, count));
    index.setChunk(number, chunk);
  }
  const expected = checksum;
  const trailer = read(new Uint8Array(4));
  if (new DataView(trailer.buffer).getUint32(0, true) !== expected) throw new Error("its checksum is wrong");
  for (const kind of header.kinds) index.kindId(kind);
  index.eventCount = header.events;
  return { header, index };
}

/**
 * Reads the header. It is used before the checksum of the whole file is checked, so its numbers are checked
 * here.
 */
function parseHeader(text: string): SnapshotHeader {
  const header = JSON.parse(text) as SnapshotHeader;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  if (!isCount(header.lastSeq) || !isCount(header.seenSeq) || !Array.isArray(header.chunks)) {
    throw new Error("bad header");
  }
  if (header.chunks.length > header.lastSeq / CHUNK_EVENTS + 1) throw new Error("bad header");
  if (!header.chunks.every((number) => isCount(number) && number <= header.lastSeq / CHUNK_EVENTS)) {
    throw new Error("bad header");
  }
  return header;
}

/** Throws where a covered segment does not have exactly the size that it had; the last one may have grown. */
function matchSegments(
  header: SnapshotHeader,
  found: readonly FoundSegment[],
  segments: SegmentReader,
): void {
  const last = header.segments.length - 1;
  header.segments.forEach(({ name, sizeBytes, base, hasRemoved }, number) => {
    const file = found[number];
    const fits = file?.name === name && file.unreadable === "" &&
      (number === last ? file.sizeBytes >= sizeBytes : file.sizeBytes === sizeBytes);
    if (!fits) throw new Error(`segment ${name} has changed`);
    segments.add(name, sizeBytes, base).hasRemoved = hasRemoved;
  });
}

/**
 * Throws where the last record is not where the index says: another log could have files of the same names
 * and sizes.
 */
function matchLastRecord(header: SnapshotHeader, index: EventIndex, segments: SegmentReader): void {
  const position = index.positionOf(header.lastSeq);
  if (header.lastSeq === 0) return;
  const segment = segments.at(position);
  const bytes = new Uint8Array(segment.base + segment.sizeBytes - position);
  const record = new ParsedRecord();
  const filled = segments.read(segment, position - segment.base, bytes);
  if (!record.parse(bytes, 0, filled) || record.seq !== header.lastSeq) {
    throw new Error(`event ${header.lastSeq} is not where it was`);
  }
}

function restoreRuns(header: SnapshotHeader, index: EventIndex, names: PrincipalNames): RunRegister {
  const register = new RunRegister(names);
  for (const row of header.runs) {
    const { run, skipList } = runOf(row);
    register.adopt(run);
    index.setSkipList(run, skipList);
  }
  register.lastSeq = header.lastSeq;
  return register;
}
