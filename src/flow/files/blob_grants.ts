/** Where a run's timeline names a blob. It remembers places and no answers: what it finds is read from the log again. */

import { yieldToEventLoop } from "../../base/wait.ts";
import { findEvent, type GrantedBlob, grantedBlobs } from "../../model/events/event_table.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { StoredEvent } from "../../store/log/event_reader.ts";

type BlobRoute = GrantedBlob["route"];

/** What was read of one run for one route. */
interface Scanned {
  /** Everything before it was read. */
  nextSeq: number;
  /** First 52 bits of a hash that was seen, as a number, to the seq where it was first. */
  readonly places: Map<number, number>;
}

/** Batches of events that are read before other requests get their turn: a few milliseconds. */
const BATCHES_PER_TURN = 4;

/**
 * A gallery asks for each of a run's pictures once, so every event is read once, and not once a picture: a search goes
 * on where the last one stopped, and stops where it finds. The runs that were asked for longest ago are forgotten.
 */
export class BlobGrants {
  readonly #timeline: Pick<Timeline, "read" | "readOne">;
  readonly #placesMax: number;
  /** In the order of their last use. */
  readonly #scanned = new Map<string, Scanned>();

  constructor(
    timeline: Pick<Timeline, "read" | "readOne">,
    placesMax: number = LIMITS.blob.referencesRemembered,
  ) {
    this.#timeline = timeline;
    this.#placesMax = placesMax;
  }

  /** The run's grant of the blob, or undefined; `sha256` is lower case. */
  async find(runId: string, route: BlobRoute, sha256: string): Promise<GrantedBlob | undefined> {
    const key = `${route} ${runId}`;
    const scanned = this.#scanned.get(key) ?? { nextSeq: 1, places: new Map() };
    this.#scanned.delete(key);
    this.#scanned.set(key, scanned);
    try {
      const place = scanned.places.get(fingerprint(sha256));
      if (place === undefined) return await this.#search(scanned, runId, route, sha256);
      const stored = this.#timeline.readOne(place);
      // The first event that has the hash need not be one that grants it.
      return stored && grantIn(stored, route, sha256) ||
        await this.#search({ nextSeq: place, places: new Map() }, runId, route, sha256);
    } finally {
      this.#forget();
    }
  }

  /** Goes on from where `scanned` ends; two searches at once read the same twice, and neither leaves a gap. */
  async #search(scanned: Scanned, runId: string, route: BlobRoute, sha256: string) {
    const kinds = (kind: string) => findEvent(kind)?.blobs.some((blob) => blob.route === route) ?? false;
    let batches = 0;
    for (const batch of this.#timeline.read(runId, { fromSeq: scanned.nextSeq, kinds })) {
      let found: GrantedBlob | undefined;
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

  /** The run of this request is the last to go, and goes too when it alone has more places than all may have. */
  #forget(): void {
    let places = this.#scanned.values().reduce((sum, scanned) => sum + scanned.places.size, 0);
    for (const [key, scanned] of this.#scanned) {
      if (places <= this.#placesMax && this.#scanned.size <= RUNS_MAX) return;
      this.#scanned.delete(key);
      places -= scanned.places.size;
    }
  }
}

function remember({ places }: Scanned, { payload, seq }: StoredEvent): void {
  for (const match of payload.matchAll(HASH)) {
    const number = fingerprint(match[1]!);
    if (!places.has(number)) places.set(number, seq);
  }
}

/** Runs of which nothing was found cost a little as well. */
const RUNS_MAX = 1024;

const HASH = /_sha256":\s*"([0-9a-f]{64})"/g;

/** Thirteen of the digits: as many as a double holds exactly. */
function fingerprint(sha256: string): number {
  return parseInt(sha256.slice(0, 13), 16);
}

/** Payloads without the hash are not parsed. */
function grantIn({ kind, payload }: StoredEvent, route: BlobRoute, sha256: string): GrantedBlob | undefined {
  if (!payload.includes(sha256)) return undefined;
  return grantedBlobs(kind, JSON.parse(payload))
    .find((granted) => granted.route === route && granted.sha256 === sha256);
}
