/** In memory, 14 bytes an event: where each event is in the log, its kind, and the next event of its run. */

import type { Run } from "../../model/runs/run.ts";

export const CHUNK_EVENTS = 65_536;
const SKIP_EVENTS = 256;
/** The kind id of all kinds without an id of their own: only the record says which kind it is. */
export const UNNUMBERED_KIND = 65_535;
/** Sequence numbers are stored in 32 bits. */
export const MAX_SEQ = 0xffff_ffff;

/** Columns for `CHUNK_EVENTS` consecutive sequence numbers. */
export interface IndexChunk {
  /** Position in the log plus one; 0 where the log has no such event. */
  readonly positions: Float64Array<ArrayBuffer>;
  /** Sequence number of the next event of the same run; undefined content at the run's last event. */
  readonly next: Uint32Array<ArrayBuffer>;
  readonly kinds: Uint16Array<ArrayBuffer>;
}

/*
 * The events of a run are a linked list, with a skip list that has an entry for every 256 events:
 *
 *   run.firstSeq (1st) → next → … → skip[0] (257th) → … → skip[1] (513th) → … → run.lastSeq
 *
 * So a reading from a cursor starts at most 255 steps before the cursor, and never looks at other runs.
 */
export class EventIndex {
  readonly #chunks: (IndexChunk | undefined)[] = [];
  readonly #skipLists = new Map<Run, number[]>();
  readonly #kindIds = new Map<string, number>();
  readonly kindNames: string[] = [];
  /** Events that the log has. */
  eventCount = 0;

  /** Call it before the event is folded into `run`: `run.lastSeq` must still be the event before it. */
  add(run: Run, seq: number, position: number, kindId: number): void {
    const chunk = this.#chunks[seq >>> 16] ?? this.#makeChunk(seq >>> 16);
    const at = seq & (CHUNK_EVENTS - 1);
    chunk.positions[at] = position + 1;
    chunk.kinds[at] = kindId;
    this.eventCount++;
    if (run.eventCount === 0) return;
    const last = this.#chunks[run.lastSeq >>> 16];
    if (last !== undefined) last.next[run.lastSeq & (CHUNK_EVENTS - 1)] = seq;
    if (run.eventCount % SKIP_EVENTS === 0) this.#addSkipEntry(run, seq);
  }

  /** The run's first event is another one now, and no event has followed it yet. */
  restart(run: Run): void {
    this.#skipLists.delete(run);
  }

  /** The record of the event is at another position now. */
  move(seq: number, position: number): void {
    this.#chunks[seq >>> 16]!.positions[seq & (CHUNK_EVENTS - 1)] = position + 1;
  }

  /** The log does not have these events any more, both ends included. */
  remove(fromSeq: number, toSeq: number): void {
    for (let seq = fromSeq; seq <= toSeq; seq++) {
      const chunk = this.#chunks[seq >>> 16];
      if (chunk === undefined) continue;
      const at = seq & (CHUNK_EVENTS - 1);
      if (chunk.positions[at] !== 0) this.eventCount--;
      chunk.positions[at] = 0;
    }
  }

  /** Gives back the memory of 65,536 events, this one among them, if the log has none of them any more. */
  shrink(seq: number): void {
    const chunk = this.#chunks[seq >>> 16];
    if (chunk !== undefined && isAllZero(chunk.positions)) this.#chunks[seq >>> 16] = undefined;
  }

  kindId(kind: string): number {
    return this.#kindIds.get(kind) ?? this.#numberKind(kind);
  }

  /** Position in the log, or -1 when the log has no such event. */
  positionOf(seq: number): number {
    const chunk = this.#chunks[seq >>> 16];
    return chunk === undefined || seq > MAX_SEQ ? -1 : chunk.positions[seq & (CHUNK_EVENTS - 1)]! - 1;
  }

  kindIdOf(seq: number): number {
    return this.#chunks[seq >>> 16]!.kinds[seq & (CHUNK_EVENTS - 1)]!;
  }

  /** The first event of the run from `fromSeq` on, or 0 when there is none. */
  firstFrom(run: Run, fromSeq: number): number {
    if (run.eventCount === 0 || fromSeq > run.lastSeq) return 0;
    const skipList = this.#skipLists.get(run) ?? [];
    let low = 0;
    let high = skipList.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (skipList[middle]! <= fromSeq) low = middle + 1;
      else high = middle;
    }
    let seq = low === 0 ? run.firstSeq : skipList[low - 1]!;
    while (seq < fromSeq) seq = this.nextOf(seq);
    return seq;
  }

  /** The next event of the run that `seq` belongs to. `seq` must not be the run's last event. */
  nextOf(seq: number): number {
    return this.#chunks[seq >>> 16]!.next[seq & (CHUNK_EVENTS - 1)]!;
  }

  /** The sequence number of the first event from `fromSeq` to `toSeq` whose kind id is wanted, or 0. */
  firstOfKinds(wanted: Uint8Array, fromSeq: number, toSeq: number): number {
    for (let seq = fromSeq; seq <= toSeq;) {
      const chunk = this.#chunks[seq >>> 16];
      const chunkEnd = (Math.floor(seq / CHUNK_EVENTS) + 1) * CHUNK_EVENTS;
      const end = Math.min(chunkEnd, toSeq + 1);
      if (chunk === undefined) {
        seq = end;
        continue;
      }
      for (; seq < end; seq++) {
        const at = seq & (CHUNK_EVENTS - 1);
        if (wanted[chunk.kinds[at]!] === 1 && chunk.positions[at] !== 0) return seq;
      }
    }
    return 0;
  }

  // The following methods are for the snapshot.

  chunk(number: number): IndexChunk | undefined {
    return this.#chunks[number];
  }

  setChunk(number: number, chunk: IndexChunk): void {
    this.#chunks[number] = chunk;
  }

  skipListOf(run: Run): readonly number[] {
    return this.#skipLists.get(run) ?? [];
  }

  setSkipList(run: Run, skipList: number[]): void {
    if (skipList.length > 0) this.#skipLists.set(run, skipList);
  }

  #addSkipEntry(run: Run, seq: number): void {
    const skipList = this.#skipLists.get(run);
    if (skipList === undefined) this.#skipLists.set(run, [seq]);
    else skipList.push(seq);
  }

  #numberKind(kind: string): number {
    // Trigger programs name their own kinds, so the number of kinds has no bound.
    if (this.kindNames.length >= UNNUMBERED_KIND) return UNNUMBERED_KIND;
    const id = this.kindNames.push(kind) - 1;
    this.#kindIds.set(kind, id);
    return id;
  }

  #makeChunk(number: number): IndexChunk {
    return this.#chunks[number] = newChunk();
  }
}

function isAllZero(numbers: Float64Array): boolean {
  for (let at = 0; at < numbers.length; at++) if (numbers[at] !== 0) return false;
  return true;
}

export function newChunk(): IndexChunk {
  return {
    positions: new Float64Array(CHUNK_EVENTS),
    next: new Uint32Array(CHUNK_EVENTS),
    kinds: new Uint16Array(CHUNK_EVENTS),
  };
}
