/** Which segments of recordings go: by age and size of their source, and where the disk lacks room those of
 * whoever has most.
 */

import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { FairRemoval, type StoredPart } from "../../sharing/fair_removal.ts";
import type { World } from "../../base/world.ts";
import type { RecordingPlan } from "../../model/sources/recording_plan.ts";
import type { RecordedSegment } from "../../model/sources/recorded_segment.ts";
import type { Recordings } from "../../store/recordings/recordings.ts";
import type { NamedSources } from "../sources/named_sources.ts";

export interface RecordingRemovalOptions {
  readonly recordings: Recordings;
  readonly named: Pick<NamedSources, "all">;
  readonly metrics: Metrics;
  readonly world: Pick<World, "now">;
  readonly log: Log;
}

export interface RemovedSegments {
  readonly segments: number;
  readonly bytes: number;
}

const EVER = { fromMs: 0, toMs: Infinity };
const HOUR_MS = 3_600_000;

export class RecordingRemoval {
  readonly #options: RecordingRemovalOptions;

  constructor(options: RecordingRemovalOptions) {
    this.#options = options;
  }

  /** Whether something is recorded, or was. */
  get isOn(): boolean {
    const { named, recordings } = this.#options;
    return named.all.some(({ watch }) => watch?.recording) || recordings.sources().length > 0;
  }

  /** What is too old or too much for its source. */
  async byLimits(signal: AbortSignal): Promise<RemovedSegments> {
    const { recordings } = this.#options;
    const removed = new Sum();
    for (const source of recordings.sources()) {
      const plan = this.#planOf(source);
      const bytesMax = plan?.bytes ?? Infinity;
      let bytes = bytesMax < Infinity ? await recordings.bytesOf(source) : 0;
      for await (const segment of recordings.segments(source, EVER)) {
        signal.throwIfAborted();
        if (!this.#isOld(segment, plan) && bytes <= bytesMax) break;
        if (!await this.#remove(source, segment, removed)) break;
        bytes -= segment.sizeBytes;
      }
      await recordings.removeEmptyFolders(source);
    }
    return removed;
  }

  /**
   * The oldest of those principals whose sources have most on the disk of the data directory, until so many
   * bytes are given back or none is left that is above its share.
   */
  async makeRoom(bytesToFree: number, signal: AbortSignal): Promise<RemovedSegments> {
    const { recordings } = this.#options;
    const removed = new Sum();
    const stores = new Map<string, SourceStore>();
    let bytes = 0;
    for (const source of recordings.sourcesOnDisk()) {
      const owners = this.#ownersOf(source);
      const store = stores.get(owners) ?? { bytes: 0, queues: [] };
      stores.set(owners, store);
      const segments = recordings.segments(source, EVER);
      store.queues.push({ source, segments, next: await segments.next() });
      const ofSource = await recordings.bytesOf(source);
      store.bytes += ofSource;
      bytes += ofSource;
    }
    const removal = new FairRemoval(stores.values(), bytes - bytesToFree);
    for (let store = removal.next(); store !== null; store = removal.next()) {
      signal.throwIfAborted();
      const oldest = store.queues.reduce((first, queue) => startOf(queue) < startOf(first) ? queue : first);
      if (oldest.next.done) {
        removal.took(null);
        continue;
      }
      const { source, segments, next: { value: segment } } = oldest;
      if (!await this.#remove(source, segment, removed)) break;
      removal.took(segment.sizeBytes);
      oldest.next = await segments.next();
    }
    return removed;
  }

  /**
   * The principals that may use the source, as one text: the same for all sources that are everybody's, or
   * that no file names any more.
   */
  #ownersOf(source: string): string {
    const found = this.#options.named.all.find(({ name }) => name === source);
    return found?.principals?.toSorted().join(" ") ?? "*";
  }

  /**
   * Null for a source that is not recorded any more: its segments stay as long as was said when they were
   * stored.
   */
  #planOf(source: string): RecordingPlan | null {
    return this.#options.named.all.find(({ name }) => name === source)?.watch?.recording ?? null;
  }

  #isOld({ endMs, hours }: RecordedSegment, plan: RecordingPlan | null): boolean {
    return this.#options.world.now() - endMs > (plan?.hours ?? hours) * HOUR_MS;
  }

  /** False where the disk refuses it. */
  async #remove(source: string, segment: RecordedSegment, removed: Sum): Promise<boolean> {
    const { recordings, metrics, log } = this.#options;
    try {
      if (!await recordings.remove(source, segment)) return true;
    } catch (error) {
      metrics.add("service_retention_failures_total");
      log.error("cannot remove a segment of a recording", { source, error: String(error) });
      return false;
    }
    metrics.add("service_retention_removed_total", { what: "recordings" });
    metrics.add("service_retention_removed_bytes_total", { what: "recordings" }, segment.sizeBytes);
    removed.segments++;
    removed.bytes += segment.sizeBytes;
    return true;
  }
}

/** The recordings of sources that the same principals may use. */
interface SourceStore extends StoredPart {
  readonly queues: SegmentQueue[];
}

interface SegmentQueue {
  readonly source: string;
  readonly segments: AsyncGenerator<RecordedSegment, void>;
  next: IteratorResult<RecordedSegment, void>;
}

class Sum implements RemovedSegments {
  segments = 0;
  bytes = 0;
}

function startOf({ next }: SegmentQueue): number {
  return next.done ? Infinity : next.value.startMs;
}
