/** The marks of one run: loaded piece by piece, then followed by the event stream. */

import { batch, type ReadonlySignal, signal } from "@preact/signals";
import type { TimelineEvent } from "../../client/mod.ts";
import { client } from "../service/session.ts";
import { MARK_LOOKS } from "../text/event_types.ts";
import { ALL_MARKS, type Mark, type MarkFilter, markOf } from "./mark.ts";
import { MarkStore } from "./mark_store.ts";
import { ShownMarks } from "./shown_marks.ts";
import { SortedMarks } from "./sorted_marks.ts";

/** Holds megabytes of signals, which no mark needs. */
const WITHOUT = "frames_decoded";
/** While events are loaded, the page takes input after so long at the latest. */
const SLICE_MS = 12;
/**
 * So often it shows what has come: at once at first, then seldom, as drawing all of it takes the time of
 * reading more.
 */
const SHOWN_EVERY_MS = 150;
/** Events that come in a row are shown together. */
const GATHER_MS = 50;

/** Opens the marks of a run; `close` ends it. Events of the kinds that are `kept` are there whole, too. */
export function openRunMarks(
  runId: string,
  kept: readonly string[] = [],
): RunMarks {
  return new RunMarks(runId, kept);
}

export class RunMarks {
  readonly store: MarkStore = new MarkStore();
  readonly #runId: string;
  /** All marks, and those that the filter of the page lets pass. */
  readonly #all: ShownMarks;
  readonly #shown: ShownMarks;
  /** Those with a stored picture. */
  readonly #pictures: SortedMarks;
  #picturesTaken = 0;
  readonly #ending = new AbortController();
  readonly #listeners = new Set<(event: TimelineEvent) => void>();
  readonly #count = signal(0);
  readonly #isComplete = signal(false);
  readonly #failure = signal<unknown>(undefined);
  readonly #startMs = signal(0);
  readonly #durationMs = signal(0);
  readonly #fps = signal<number | null>(null);
  readonly #lanes = signal<readonly string[]>([]);
  readonly #decodes = signal(0);
  readonly #present = new Set<string>();
  readonly #keptKinds: ReadonlySet<string>;
  readonly #keptEvents: TimelineEvent[] = [];
  readonly #kept = signal<readonly TimelineEvent[]>([]);
  #isLive = false;
  #bounds = { startMs: Infinity, endMs: 0 };
  #cursor = 0;

  constructor(runId: string, kept: readonly string[]) {
    this.#runId = runId;
    this.#keptKinds = new Set(kept);
    this.#all = new ShownMarks(this.store);
    this.#shown = new ShownMarks(this.store);
    this.#pictures = new SortedMarks(this.store);
    this.#run().catch((failure) => {
      if (!this.#ending.signal.aborted) this.#failure.value = failure;
    });
  }

  /** Marks so far; it grows, so it is also the version of what there is to draw. */
  get count(): ReadonlySignal<number> {
    return this.#count;
  }

  /** Whether everything that was there is loaded; from then on it follows. */
  get isComplete(): ReadonlySignal<boolean> {
    return this.#isComplete;
  }

  /** Why the marks could not be loaded. */
  get failure(): ReadonlySignal<unknown> {
    return this.#failure;
  }

  /**
   * Media time where the timeline begins: 0, or the first mark of a live session, whose clock begins
   * anywhere.
   */
  get startMs(): ReadonlySignal<number> {
    return this.#startMs;
  }

  /** Media time of the last thing that is known: a frame or a mark. */
  get durationMs(): ReadonlySignal<number> {
    return this.#durationMs;
  }

  /** Frames a second of the last decode; null without one. */
  get fps(): ReadonlySignal<number | null> {
    return this.#fps;
  }

  /** Lanes that have marks, in the order of `MARK_LOOKS`. */
  get lanes(): ReadonlySignal<readonly string[]> {
    return this.#lanes;
  }

  /** The events of the kept kinds, in the order of `seq`. */
  get kept(): ReadonlySignal<readonly TimelineEvent[]> {
    return this.#kept;
  }

  /** Changes with each decode that was made while the run is followed. */
  get decodes(): ReadonlySignal<number> {
    return this.#decodes;
  }

  at(index: number): Mark {
    return this.store.at(index);
  }

  bySeq(seq: number): Mark | null {
    const index = this.store.indexOfSeq(seq);
    return index < 0 ? null : this.store.at(index);
  }

  /** The mark that starts after (1) or before (-1) a media time, and passes the filter. */
  near(ms: number, direction: 1 | -1, filter: MarkFilter): Mark | null {
    this.#all.update(ALL_MARKS);
    const { all } = this.#all;
    const text = filter.text.toLowerCase();
    for (
      let position = startOf(all, ms, direction);
      position >= 0 && position < all.count;
      position += direction
    ) {
      const index = all.at(position);
      if (this.store.passes(index, filter, text)) return this.store.at(index);
    }
    return null;
  }

  /** The marks that pass the filter, those that came last among them. */
  shown(filter: MarkFilter): ShownMarks {
    this.#shown.update(filter);
    return this.#shown;
  }

  /** The marks with a stored picture. */
  pictures(): SortedMarks {
    const added: number[] = [];
    for (; this.#picturesTaken < this.store.count; this.#picturesTaken++) {
      if (this.store.sha256At(this.#picturesTaken) !== null) {
        added.push(this.#picturesTaken);
      }
    }
    this.#pictures.add(Uint32Array.from(added));
    return this.#pictures;
  }

  /** The whole event, asked of the service. */
  async event(seq: number, signal?: AbortSignal): Promise<TimelineEvent> {
    const found = client.peek().streamEvents(this.#runId, {
      from_seq: seq,
      without_kind: WITHOUT,
    }, {
      signal: signal ? AbortSignal.any([signal, this.#ending.signal]) : this.#ending.signal,
    });
    for await (const event of found) {
      if (event.seq === seq) return event;
      break;
    }
    throw new Error(`The run has no event ${seq}`);
  }

  /** Calls `listener` with each event that comes after those that were loaded. Returns the end of it. */
  onEvent = (listener: (event: TimelineEvent) => void): () => void => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  close(): void {
    this.#ending.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    await Promise.all([this.#load(signal), this.#loadDecode(signal)]);
    this.#isComplete.value = true;
    await this.#follow(signal);
  }

  async #load(signal: AbortSignal): Promise<void> {
    let sliceStart: number | undefined;
    let shownMs = -Infinity;
    const events = client.peek().streamEvents(this.#runId, {
      without_kind: WITHOUT,
    }, { signal });
    for await (const event of events) {
      sliceStart ??= performance.now(); // with the first event: a short run is shown whole
      this.#take(event);
      if (performance.now() - sliceStart < SLICE_MS) continue;
      if (sliceStart - shownMs > SHOWN_EVERY_MS) {
        shownMs = sliceStart;
        this.#publish();
      }
      await nextTask();
      sliceStart = performance.now();
    }
    this.#publish();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wishes = { after: this.#cursor, withoutKind: WITHOUT, signal };
    try {
      for await (
        const event of client.peek().subscribeEvents(this.#runId, wishes)
      ) {
        this.#take(event);
        for (const listener of this.#listeners) listener(event);
        if (event.kind === "analysis_generated") {
          void this.#loadDecode(signal).then(
            () => this.#decodes.value++,
            () => {},
          );
        }
        timer ??= setTimeout(() => {
          timer = undefined;
          this.#publish();
        }, GATHER_MS);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Length and rate of the last decode. */
  async #loadDecode(signal: AbortSignal): Promise<void> {
    const { sample_fps, last_pts_ms } = await client.peek().getSignals(
      this.#runId,
      { points: 1 },
      { signal },
    );
    this.#bounds.endMs = Math.max(this.#bounds.endMs, last_pts_ms ?? 0);
    this.#fps.value = sample_fps;
    this.#publish();
  }

  #take(event: TimelineEvent): void {
    this.#cursor = event.seq;
    if (this.#keptKinds.has(event.kind)) this.#keptEvents.push(event);
    const mark = markOf(event);
    if (!mark) return;
    this.store.add(mark);
    this.#isLive ||= "session_id" in event.payload;
    this.#present.add(mark.lane);
    this.#bounds.startMs = Math.min(this.#bounds.startMs, mark.startMs);
    this.#bounds.endMs = Math.max(this.#bounds.endMs, mark.endMs);
  }

  #publish(): void {
    batch(() => {
      this.#startMs.value = this.#isLive && this.#bounds.startMs < Infinity ? this.#bounds.startMs : 0;
      this.#durationMs.value = this.#bounds.endMs;
      if (this.#present.size !== this.#lanes.peek().length) {
        this.#lanes.value = Object.keys(MARK_LOOKS).filter((lane) => this.#present.has(lane));
      }
      if (this.#kept.peek().length !== this.#keptEvents.length) {
        this.#kept.value = [...this.#keptEvents];
      }
      this.#count.value = this.store.count;
    });
  }
}

function startOf(marks: SortedMarks, ms: number, direction: 1 | -1): number {
  return direction === 1 ? marks.positionAt(ms, "behind") : marks.positionAt(ms) - 1;
}

/** Lets the browser draw and take input. A timer would wait for 4 ms each time. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
