/** Which media of which runs go before the events that name them: by age and by size, kind by kind. Decides,
 * removes nothing.
 */

import { join } from "node:path";
import { FairRemoval, type StoredPart } from "../../sharing/fair_removal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { blobNumber, mayNameBlobs, namedBlobs } from "../../model/events/blob_references.ts";
import type { MediaRemovalReason } from "../../model/events/run_payloads.ts";
import { MEDIA_KINDS, type MediaKind, mediaKindOf } from "../../model/files/media_kind.ts";
import type { RunView } from "../../model/runs/run.ts";
import { seekTime } from "../events_by_time.ts";
import { blobPath } from "../../store/media/blobs.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";

/** The limits of one kind of media; undefined for what has no limit. */
export interface MediaLimit {
  readonly hours: number | undefined;
  /** How many bytes all media of the kind together may have. */
  readonly bytes: number | undefined;
}

export type MediaLimits = Readonly<Record<MediaKind, MediaLimit>>;

/** Hours of each kind, where they are given. */
export type MediaHours = Readonly<Partial<Record<MediaKind, number>>>;

/** What of one run goes. */
export interface MediaChoice {
  readonly runId: string;
  readonly principalKey: string;
  readonly media: MediaKind;
  readonly reason: MediaRemovalReason;
  /** What events up to this one name. */
  readonly throughSeq: number;
  readonly blobs: number;
  readonly bytes: number;
}

export interface MediaRemovalOptions {
  readonly timeline: Pick<Timeline, "view" | "read" | "readAll">;
  readonly limits: MediaLimits;
  /** By the URI of a named source. */
  readonly sourceHours: () => ReadonlyMap<string, MediaHours>;
  readonly dataDir: string;
  readonly world: Pick<World, "now">;
}

/**
 * ```
 *   a kind:  its hours ──► the last event that is too old ──────────┐
 *            its bytes ──► of each principal the last event beyond ─┴─► of each run that is not on hold:
 *                                                                       what it names up to there
 * ```
 *
 * Events are written in the order of their time, so that one number says what is too old, and a run needs to
 * be told only once.
 */
export class MediaRemoval {
  readonly #options: MediaRemovalOptions;
  /**
   * Up to which event nothing of a kind was found in a run: each event is read once, and again after a
   * restart.
   */
  readonly #looked = new WeakMap<RunView, Map<MediaKind, number>>();

  constructor(options: MediaRemovalOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    const { limits, sourceHours } = this.#options;
    return MEDIA_KINDS.some((media) =>
      limits[media].hours !== undefined || limits[media].bytes !== undefined
    ) ||
      sourceHours().size > 0;
  }

  /** In steps, with turns for others in between. */
  async *choices(): AsyncGenerator<MediaChoice, void> {
    const { timeline, limits } = this.#options;
    const sourceHours = this.#options.sourceHours();
    const ages = new Map<number, number>();
    const ofSources = [...sourceHours.values()];
    for (const media of MEDIA_KINDS) {
      const { hours, bytes } = limits[media];
      const isLimited = hours !== undefined || bytes !== undefined ||
        ofSources.some((each) => each[media] !== undefined);
      if (!isLimited) continue; // nothing of the kind goes, so no run needs to be looked at
      const beyond = bytes === undefined ? NOTHING : await this.#lastBeyond(media, bytes);
      let looked = 0;
      for (const run of timeline.view.everyRun()) {
        if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
        if (run.onHold || run.removedSeq > 0) continue;
        const runHours = sourceHours.get(run.sourceUri)?.[media] ?? hours;
        const old = runHours === undefined ? 0 : await this.#lastOlder(runHours, ages);
        const choice = await this.#choose(run, media, { old, beyond: beyond.get(run.principalKey) ?? 0 });
        if (choice !== null) yield choice;
      }
    }
  }

  async #choose(
    run: RunView,
    media: MediaKind,
    { old, beyond }: { readonly old: number; readonly beyond: number },
  ): Promise<MediaChoice | null> {
    const looked = this.#looked.get(run) ?? new Map<MediaKind, number>();
    this.#looked.set(run, looked);
    const fromSeq = Math.max(run.removedMedia[media], looked.get(media) ?? 0) + 1;
    const throughSeq = Math.min(run.lastSeq, Math.max(old, beyond));
    if (throughSeq < Math.max(fromSeq, run.firstSeq)) return null;
    const { blobs, bytes } = await this.#named(run, media, fromSeq, throughSeq);
    const reason = old >= beyond ? "age" : "bytes";
    const { runId, principalKey } = run;
    if (blobs > 0) return { runId, principalKey, media, reason, throughSeq, blobs, bytes };
    looked.set(media, throughSeq);
    return null;
  }

  /** How many blobs of the kind the events name, and their size. */
  async #named(run: RunView, media: MediaKind, fromSeq: number, toSeq: number) {
    const seen = new Set<string>();
    let bytes = 0;
    for (const batch of this.#options.timeline.read(run.runId, { fromSeq, toSeq, kinds: mayNameBlobs })) {
      for (const { sha256, mediaType } of batch.flatMap((event) => mediaIn(event, media))) {
        if (seen.has(sha256)) continue;
        seen.add(sha256);
        bytes += await this.#sizeOf(mediaType, sha256) ?? 0;
      }
      await yieldToEventLoop();
    }
    return { blobs: seen.size, bytes };
  }

  /** The last event that is older; the same for all runs with these hours. */
  async #lastOlder(hours: number, known: Map<number, number>): Promise<number> {
    const found = known.get(hours);
    if (found !== undefined) return found;
    const { timeline, world } = this.#options;
    const search = seekTime({
      first: (fromSeq, toSeq) => [...timeline.readAll({ fromSeq, toSeq, limit: 1 })][0]?.[0],
      fromSeq: 1,
      toSeq: timeline.view.lastSeq + 1,
      sinceMs: world.now() - hours * 3_600_000,
    });
    let step = search.next();
    for (; !step.done; step = search.next()) await yieldToEventLoop();
    const last = step.value - 1;
    known.set(hours, last);
    return last;
  }

  /**
   * Finds, for each principal that loses some, the last event that must lose its media of the kind so that
   * the rest fits.
   */
  async #lastBeyond(media: MediaKind, bytesMax: number): Promise<ReadonlyMap<string, number>> {
    const { timeline } = this.#options;
    /** In the order of the events that name them last. */
    const blobs = new Map<number, OwnedBlob>();
    const held = new Set<number>();
    for (let fromSeq = 1; fromSeq <= timeline.view.lastSeq; fromSeq += EVENTS_PER_TURN) {
      const query = { fromSeq, toSeq: fromSeq + EVENTS_PER_TURN - 1, kinds: mayNameBlobs };
      for (const batch of timeline.readAll(query)) {
        for (const event of batch) {
          const run = timeline.view.run(event.runId);
          if (run === undefined || event.seq <= run.removedMedia[media]) continue;
          for (const { sha256, mediaType } of mediaIn(event, media)) {
            const number = blobNumber(sha256);
            if (run.onHold) held.add(number);
            const known = blobs.get(number);
            if (known !== undefined && known.owner !== run.principalKey) continue;
            const bytes = known?.bytes ?? await this.#sizeOf(mediaType, sha256);
            if (bytes === null) continue;
            blobs.delete(number);
            blobs.set(number, { owner: run.principalKey, seq: event.seq, bytes });
          }
        }
        await yieldToEventLoop();
      }
      await yieldToEventLoop();
    }
    return await this.#beyond(blobs, held, bytesMax);
  }

  async #beyond(
    blobs: ReadonlyMap<number, OwnedBlob>,
    held: ReadonlySet<number>,
    bytesMax: number,
  ): Promise<ReadonlyMap<string, number>> {
    let done = 0;
    const stores = new Map<string, BlobStore>();
    for (const [number, blob] of blobs) {
      const store = stores.get(blob.owner) ?? { bytes: 0, going: [], next: 0 };
      stores.set(blob.owner, store);
      store.bytes += blob.bytes;
      if (!held.has(number)) store.going.push(blob);
      if (++done % BLOBS_PER_TURN === 0) await yieldToEventLoop();
    }
    const through = new Map<string, number>();
    const removal = new FairRemoval(stores.values(), bytesMax);
    for (let store = removal.next(); store !== null; store = removal.next()) {
      const blob = store.going[store.next++];
      removal.took(blob?.bytes ?? null);
      if (blob !== undefined) through.set(blob.owner, blob.seq);
      if (++done % BLOBS_PER_TURN === 0) await yieldToEventLoop();
    }
    return through;
  }

  /** Null where it is not there. */
  async #sizeOf(mediaType: string, sha256: string): Promise<number | null> {
    try {
      return (await Deno.lstat(join(this.#options.dataDir, blobPath(mediaType, sha256)!))).size;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }
}

/** The blobs of the kind that an event names. */
function mediaIn({ kind, payload }: StoredEvent, media: MediaKind) {
  return namedBlobs(kind, JSON.parse(payload)).filter(({ mediaType }) => mediaKindOf(mediaType) === media);
}

/** A blob of the kind counts for the principal that named it first. */
interface OwnedBlob {
  readonly owner: string;
  /** The number of the owner's last event that names it. */
  readonly seq: number;
  readonly bytes: number;
}

/** What of a principal's blobs may go, in the order in which it named them last. */
interface BlobStore extends StoredPart {
  readonly going: OwnedBlob[];
  next: number;
}

const NOTHING: ReadonlyMap<string, number> = new Map();
const RUNS_PER_TURN = 512;
const EVENTS_PER_TURN = 65_536;
const BLOBS_PER_TURN = 16_384;
