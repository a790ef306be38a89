/** Reads a run's events, markers and queries from the timeline. See docs/api/reading.md#reading-events. */

import { bareName } from "../../model/files/file_name.ts";
import { utf8Length } from "../../base/bytes.ts";
import { CursorExpired, refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { QueryBody } from "../../model/api/reads.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Marker } from "../../model/frames/marker.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { cursorNumbers, foreignCursor, PageEntries, pageOf, type PageQuery } from "../list_page.ts";
import { ownedRun } from "../runs/ownership.ts";
import { MarkerOrder } from "./marker_order.ts";

export interface MarkerFilter extends PageQuery {
  readonly status?: string | undefined;
  readonly eventType?: string | undefined;
  /** Markers whose end_frame is at or after it. */
  readonly fromFrame?: number | undefined;
  /** Markers whose start_frame is at or before it. */
  readonly toFrame?: number | undefined;
}

export interface EventFilter extends PageQuery {
  /** Only events whose payload has exactly this `index_name`. */
  readonly index?: string | undefined;
  /** Included. */
  readonly fromSeq?: number | undefined;
  /** A kind that is left out, such as `frames_decoded`, whose signals are most of a run. */
  readonly withoutKind?: string | undefined;
}

/** One event as it is read; the payload is the JSON text exactly as it was written. */
export interface TimelineEntry {
  readonly seq: number;
  readonly ptsMs: number;
  readonly kind: string;
  readonly payload: string;
}

/** One that is too long to be read at once: its payload comes in pieces of text. */
export interface LongEntry extends Omit<TimelineEntry, "payload"> {
  /** May be read more than once. */
  readonly pieces: AsyncIterable<string>;
}

const MARKERS_PER_BATCH = 1024;
/** Markers whose order is kept, 8 bytes each; that of a longer list is found again for each page. */
const KEPT_ORDER_MAX = 2 ** 20;
const MARKER_KINDS: ReadonlySet<string> = new Set(["marker_emitted"]);
/** The kinds that say how many frames a second their source has. */
const RATE_KINDS: ReadonlySet<string> = new Set(["frames_decoded", "analysis_generated"]);
/** The kinds that say when the pictures of their source begin. */
const SOURCE_KINDS: ReadonlySet<string> = new Set(["ingest_received"]);

export class EventReads {
  readonly #timeline: Timeline;
  /** Orders of markers that are being found now, at most one for each request under way. */
  readonly #orders = new Map<string, Promise<Float64Array>>();
  /** The order that was found last, for whoever reads the next page of it. */
  #lastOrder: { readonly key: string; readonly seqs: Float64Array } | null = null;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /**
   * Batches of the run's events in seq order, bookkeeping kinds included: of all, or of one page. Errors:
   * 404, 410, 422 on `limit`, `cursor`.
   */
  events(
    caller: Caller,
    runId: string,
    { index, fromSeq = 0, withoutKind, ...query }: EventFilter = {},
  ): AsyncIterable<readonly (TimelineEntry | LongEntry)[]> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    const page = pageOf(query);
    const [afterSeq] = cursorNumbers(page, 1) ?? [];
    requireCursor(run, fromSeq);
    if (afterSeq !== undefined) requireCursor(run, afterSeq + 1, "cursor");
    const batches = this.#timeline.readInPieces(run.runId, {
      fromSeq: Math.max(fromSeq, (afterSeq ?? -1) + 1),
      ...(withoutKind !== undefined && { kinds: (kind) => kind !== withoutKind }),
    });
    const wanted = index === undefined ? batches : ofIndex(batches, index);
    return page === null ? wanted : new PageEntries(wanted, page, ({ seq }) => String(seq));
  }

  /**
   * The frame rate of the run's sources, as ingest and reason found it; null where one of them shows none,
   * where they have several, and without any.
   */
  async sourceFps(caller: Caller, runId: string): Promise<number | null> {
    return await this.#common(caller, runId, RATE_KINDS, rateIn) ?? null;
  }

  /**
   * When players show the first frame of the run's film, milliseconds; 0 where it has several films that
   * differ in it.
   */
  async videoStartMs(caller: Caller, runId: string): Promise<number> {
    return await this.#common(caller, runId, SOURCE_KINDS, videoStartIn) ?? 0;
  }

  /**
   * What all events of these kinds say that say it; undefined where none does, or they differ. `read` gets
   * the head of a long payload.
   */
  async #common<Fact>(
    caller: Caller,
    runId: string,
    kinds: ReadonlySet<string>,
    read: (payload: string) => Fact | undefined,
  ): Promise<Fact | undefined> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    const facts = new Set<Fact>();
    for await (const batch of this.#timeline.readInPieces(run.runId, { kinds })) {
      for (const stored of batch) {
        const fact = read("pieces" in stored ? await headOf(stored.pieces) : stored.payload);
        if (fact !== undefined) facts.add(fact);
      }
    }
    return facts.size === 1 ? [...facts][0] : undefined;
  }

  /**
   * The name of the run's film: of a file its own name, of an upload that which the caller gave; the run's id
   * where it has no source.
   */
  filmName(caller: Caller, runId: string): string {
    const { sourceUri, sourceName, runId: id } = ownedRun(this.#timeline.view, caller, runId);
    if (sourceName !== "") return sourceName;
    const name = sourceUri.replace(/[?#].*$/s, "").replace(/\/+$/, "").replace(/^.*\//s, "");
    return bareName(name) || id;
  }

  /** Batches of the run's events of one kind (or all) from a seq on. */
  query(caller: Caller, body: QueryBody): AsyncIterable<readonly (TimelineEntry | LongEntry)[]> {
    const run = ownedRun(this.#timeline.view, caller, body.run_id);
    const { maximum } = LIMITS.sse.kindBytes;
    if (body.kind != null && utf8Length(body.kind) > maximum) {
      throw refuse.invalid("kind", `must be at most ${maximum} bytes`);
    }
    requireCursor(run, body.from_seq ?? 0);
    return this.#timeline.readInPieces(run.runId, {
      fromSeq: body.from_seq ?? 0,
      ...(body.kind != null && { kinds: new Set([body.kind]) }),
    });
  }

  /**
   * Batches of every marker of the run, across passes, sorted by start_frame, end_frame and marker_id. They
   * are read twice, first for their order: memory holds 32 bytes of each, and not all of them. Errors: 404,
   * 410, 422 on `limit`, `cursor`.
   */
  markers(caller: Caller, runId: string, filter: MarkerFilter): AsyncIterable<readonly TimelineEntry[]> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    const page = pageOf(filter);
    const [afterSeq] = cursorNumbers(page, 1) ?? [];
    if (afterSeq !== undefined) requireCursor(run, afterSeq + 1, "cursor");
    const batches = this.#markersOf(run.runId, filter, afterSeq);
    return page === null ? batches : new PageEntries(batches, page, ({ seq }) => String(seq));
  }

  async *#markersOf(
    runId: string,
    filter: MarkerFilter,
    afterSeq: number | undefined,
  ): AsyncIterable<readonly TimelineEntry[]> {
    const { view } = this.#timeline;
    const removedSeq = view.run(runId)?.removedSeq;
    const ordered = await this.#orderOf(runId, filter);
    const place = afterSeq === undefined ? -1 : ordered.indexOf(afterSeq);
    if (afterSeq !== undefined && place < 0) throw foreignCursor();
    const seqs = ordered.subarray(place + 1);
    for (let start = 0; start < seqs.length; start += MARKERS_PER_BATCH) {
      if (view.run(runId)?.removedSeq !== removedSeq) {
        throw new Error("the markers were removed while they were read");
      }
      const wanted = seqs.subarray(start, start + MARKERS_PER_BATCH);
      const found = new Map<number, TimelineEntry>();
      for (const batch of this.#timeline.readNumbers(runId, wanted.toSorted())) {
        for (const stored of batch) found.set(stored.seq, stored);
      }
      // damaged since
      yield Array.from(wanted, (seq) => found.get(seq)).filter((stored) => stored !== undefined);
      await yieldToEventLoop();
    }
  }

  /** Whoever reads the same list at the same time, as in another format, shares the look for its order. */
  async #orderOf(runId: string, filter: MarkerFilter): Promise<Float64Array> {
    const { status, eventType, fromFrame, toFrame } = filter;
    const lastSeq = this.#timeline.view.run(runId)?.lastSeq;
    const key = JSON.stringify([runId, lastSeq, status, eventType, fromFrame, toFrame]);
    if (this.#lastOrder?.key === key) return this.#lastOrder.seqs;
    let order = this.#orders.get(key);
    if (!order) {
      order = this.#findOrder(runId, filter).finally(() => this.#orders.delete(key));
      this.#orders.set(key, order);
    }
    const seqs = await order;
    if (seqs.length <= KEPT_ORDER_MAX) this.#lastOrder = { key, seqs };
    return seqs;
  }

  /** The sequence numbers of the markers in the order of the list. */
  async #findOrder(runId: string, filter: MarkerFilter): Promise<Float64Array> {
    const order = new MarkerOrder();
    let sinceTurn = 0;
    for await (const batch of this.#timeline.readAhead(runId, { kinds: MARKER_KINDS })) {
      for (const { seq, payload } of batch) {
        const marker = JSON.parse(payload) as Marker;
        if (matches(marker, filter)) order.add(marker, seq);
      }
      sinceTurn += batch.length;
      if (sinceTurn < MARKERS_PER_BATCH) continue;
      sinceTurn = 0;
      await yieldToEventLoop();
    }
    return await order.seqs();
  }
}

/**
 * A reader who goes on from an event that was removed must know. One who begins with the first gets what is
 * left.
 */
function requireCursor({ removedSeq, firstSeq }: RunView, fromSeq: number, field?: "cursor"): void {
  if (fromSeq > 1 && fromSeq <= removedSeq) throw new CursorExpired(firstSeq, field);
}

async function* ofIndex(
  batches: AsyncIterable<readonly (TimelineEntry | LongEntry)[]>,
  index: string,
): AsyncIterable<readonly (TimelineEntry | LongEntry)[]> {
  for await (const batch of batches) {
    const kept = [];
    for (const stored of batch) {
      const payload = "pieces" in stored ? await withIndexName(stored.pieces) : stored.payload;
      if (indexNameOf(payload) === index) kept.push(stored);
    }
    yield kept;
  }
}

/**
 * A long payload as one text if it may name an index; the rows of a decode do not, and are not put together.
 */
async function withIndexName(pieces: AsyncIterable<string>): Promise<string> {
  let end = "";
  for await (const piece of pieces) {
    end += piece;
    if (end.includes(INDEX_NAME)) return (await Array.fromAsync(pieces)).join("");
    end = end.slice(-INDEX_NAME.length);
  }
  return "";
}

const INDEX_NAME = '"index_name"';

/** The payload's index_name; most payloads have none, and those are not parsed. */
function indexNameOf(payload: string): unknown {
  if (!payload.includes(INDEX_NAME)) return undefined;
  return (JSON.parse(payload) as { index_name?: unknown }).index_name;
}

/** The first piece, in which the fields of a decode are that come before its rows. */
async function headOf(pieces: AsyncIterable<string>): Promise<string> {
  for await (const piece of pieces) return piece;
  return "";
}

/**
 * The payload's source_fps, without parsing the rows behind it; undefined without one, as of a caller's
 * frames.
 */
function rateIn(payload: string): number | null | undefined {
  // in a text its quotes would have backslashes
  const found = /"source_fps":\s*(null|[\d.eE+-]+)/.exec(payload);
  return found ? JSON.parse(found[1]!) as number | null : undefined;
}

/** The payload's video_start_ms, which is absent for 0. */
function videoStartIn(payload: string): number {
  return Number(/"video_start_ms":\s*(\d+)/.exec(payload)?.[1] ?? 0);
}

function matches(marker: Marker, filter: MarkerFilter): boolean {
  return (filter.status === undefined || marker.status === filter.status) &&
    isOfTypes(marker, filter.eventType) &&
    (filter.fromFrame === undefined || marker.end_frame >= filter.fromFrame) &&
    (filter.toFrame === undefined || marker.start_frame <= filter.toFrame);
}

/**
 * Whether a marker has the type that is asked for, or one of a list with commas between; with its origin
 * before it or without.
 */
function isOfTypes({ event_type, origin }: Marker, asked: string | undefined): boolean {
  if (asked === undefined || asked === event_type) return true;
  const types = asked.split(",");
  return types.includes(event_type) || types.includes(`${origin ?? "measured"}:${event_type}`);
}
