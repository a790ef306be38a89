/** Finds the event of a run that grants a blob. Caches where hashes occur, never the grants themselves. */

import { yieldToEventLoop } from "../../base/wait.ts";
import { blobNumber } from "../../model/events/blob_references.ts";
import { findEvent, type GrantedBlob, grantedBlobs } from "../../model/events/event_table.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";

type BlobRoute = GrantedBlob["route"];

export interface FoundGrant extends GrantedBlob {
  /** The number of the event. */
  readonly seq: number;
}

/** What was read of one run for one route so far. */
interface ScanProgress {
  /** Every event before this one was read. */
  nextSeq: number;
  /**
   * The first 52 bits of each hash, as a number, and the event that has it first, of those that were read.
   */
  readonly seqs: Map<number, number>;
}

/** Batches of events that are read before other requests get a turn: a few milliseconds. */
const BATCHES_PER_TURN = 4;

/**
 * A gallery fetches each picture of a run once. So that the events are not read again for each picture, a
 * search continues where the last one stopped, and stops at the first match. The least recently used runs are
 * dropped from the cache.
 */
export class BlobGrants {
  readonly #timeline: Pick<Timeline, "read" | "readOne">;
  readonly #hashesMax: number;
  /** In the order of their last use. */
  readonly #scanned = new Map<string, ScanProgress>();

  constructor(
    timeline: Pick<Timeline, "read" | "readOne">,
    hashesMax: number = LIMITS.blob.referencesRemembered,
  ) {
    this.#timeline = timeline;
    this.#hashesMax = hashesMax;
  }

  /**
   * The first grant of the blob by an event of the run from `fromSeq` on, or undefined; `sha256` is lower
   * case.
   */
  async find(runId: string, route: BlobRoute, sha256: string, fromSeq = 1): Promise<FoundGrant | undefined> {
    const key = `${route} ${runId} ${fromSeq}`;
    const scanned = this.#scanned.get(key) ?? { nextSeq: fromSeq, seqs: new Map() };
    this.#scanned.delete(key);
    this.#scanned.set(key, scanned);
    try {
      const seq = scanned.seqs.get(blobNumber(sha256));
      if (seq === undefined) return await this.#search(scanned, runId, route, sha256);
      const stored = this.#timeline.readOne(seq);
      // The first event that contains the hash may not grant it; a later one may.
      return stored && grantIn(stored, route, sha256) ||
        await this.#search({ nextSeq: seq, seqs: new Map() }, runId, route, sha256);
    } finally {
      this.#evict();
    }
  }

  /**
   * Continues where `scanned` ends. Two searches at the same time may both read the same events. That is
   * safe.
   */
  async #search(scanned: ScanProgress, runId: string, route: BlobRoute, sha256: string) {
    const kinds = (kind: string) => findEvent(kind)?.blobs.some((blob) => blob.route === route) ?? false;
    let batches = 0;
    for (const batch of this.#timeline.read(runId, { fromSeq: scanned.nextSeq, kinds })) {
      let found: FoundGrant | undefined;
      for (const stored of batch) {
        remember(scanned, stored);
        found ??= grantIn(stored, route, sha256);
      }
      scanned.nextSeq = Math.max(scanned.nextSeq, batch.at(-1)!.seq + 1);
      if (found) return found;
      if (++batches % BATCHES_PER_TURN === 0) await yieldToEventLoop();
    }
    return undefined;
  }

  /** The run just asked about is removed last. */
  #evict(): void {
    let count = this.#scanned.values().reduce((sum, scanned) => sum + scanned.seqs.size, 0);
    for (const [key, scanned] of this.#scanned) {
      if (count <= this.#hashesMax && this.#scanned.size <= RUNS_MAX) return;
      this.#scanned.delete(key);
      count -= scanned.seqs.size;
    }
  }
}

function remember({ seqs }: ScanProgress, { payload, seq }: StoredEvent): void {
  for (const match of payload.matchAll(HASH)) {
    const number = blobNumber(match[1]!);
    if (!seqs.has(number)) seqs.set(number, seq);
  }
}

/** Runs in the cache: one without any hash takes memory too. */
const RUNS_MAX = 1024;

const HASH = /sha256":\s*"([0-9a-f]{64})"/g;

/** Parses only payloads that contain the hash. */
function grantIn(
  { seq, kind, payload }: StoredEvent,
  route: BlobRoute,
  sha256: string,
): FoundGrant | undefined {
  if (!payload.includes(sha256)) return undefined;
  const found = grantedBlobs(kind, JSON.parse(payload))
    .find((granted) => granted.route === route && granted.sha256 === sha256);
  return found && { ...found, seq };
}
