/** What callers read of the recordings of a named source: the list, one segment, one file of a range. See
 * docs/cameras.md#recording.
 */

import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RecordedSegmentLook } from "../../model/api/recordings.ts";
import {
  ptsMsOf,
  type RecordedSegment,
  segmentId,
  segmentStartMs,
} from "../../model/sources/recorded_segment.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Recordings } from "../../store/recordings/recordings.ts";
import type { Caller } from "../caller.ts";
import { describeOpenFile, type OpenFile } from "../files/open_file.ts";
import { firstPageOr, foreignCursor, type PageQuery } from "../list_page.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import { type ExportPlan, RecordingExport } from "./recording_export.ts";

export interface RecordingReadsOptions {
  readonly named: Pick<NamedSources, "find">;
  readonly recordings: Recordings;
  readonly timeline: Pick<Timeline, "view">;
}

/** Query values as they came. */
export interface RecordingQuery extends PageQuery {
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export interface ListedRecordings {
  readonly segments: readonly RecordedSegmentLook[];
  /** Reads on behind the last segment; null where it is the last one of the range. */
  readonly next_cursor: string | null;
}

export interface ExportedFile {
  readonly fileName: string;
  readonly startMs: number;
  readonly bytes: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

export class RecordingReads {
  readonly #options: RecordingReadsOptions;

  constructor(options: RecordingReadsOptions) {
    this.#options = options;
  }

  /** Errors: 404 for a source that the caller may not use, 422 on a query value. */
  async list(caller: Caller, name: string, query: RecordingQuery): Promise<ListedRecordings> {
    this.#checkSource(caller, name);
    const { recordings } = this.#options;
    const { cursor, limit } = firstPageOr(query);
    if (cursor !== null && segmentStartMs(cursor) === null) throw foreignCursor();
    const range = rangeOf(query);
    const segments: RecordedSegment[] = [];
    let isMore = false;
    for await (const segment of recordings.segments(name, range, cursor)) {
      isMore = segments.length === limit;
      if (isMore) break;
      segments.push(segment);
    }
    return {
      segments: segments.map((segment) => this.#lookOf(segment, caller)),
      next_cursor: isMore ? segmentId(segments.at(-1)!.startMs) : null,
    };
  }

  /** Errors: 404 for a source that the caller may not use, and for a segment that is not there. */
  async open(caller: Caller, name: string, id: string): Promise<OpenFile> {
    this.#checkSource(caller, name);
    const { recordings } = this.#options;
    const segment = await recordings.find(name, id);
    const file = segment && await recordings.open(name, segment);
    const terms = { mediaType: "video/mp4", cacheControl: "private, max-age=31536000, immutable" };
    const described = file && await describeOpenFile(file, terms);
    if (!described) throw refuse.notFound("Segment", "segment");
    return described;
  }

  /**
   * One MP4 of the range. Errors: 404 for a source that the caller may not use, and for a range without a
   * recording; 422 for a range that is no range or too long, and where the video or the sound in it has
   * another format from some time on.
   */
  async export(caller: Caller, name: string, query: RecordingQuery): Promise<ExportedFile> {
    this.#checkSource(caller, name);
    const { recordings } = this.#options;
    for (const field of ["from", "to"] as const) {
      if (query[field] === undefined) throw refuse.invalid(field, "is required");
    }
    const range = rangeOf(query);
    if (range.toMs - range.fromMs > LIMITS.recording.exportMsMax) {
      throw refuse.invalid("to", `must be at most ${LIMITS.recording.exportMsMax / DAY_MS} days after from`);
    }
    const source = {
      segments: () => recordings.segments(name, range),
      open: async (segment: RecordedSegment) => {
        const file = await recordings.open(name, segment);
        if (!file) throw refuse.notFound("Segment", "from");
        return file;
      },
    };
    const plan = await planOf(source.segments());
    if (!plan) throw refuse.notFound("Recording of this time", "from");
    const opened = await RecordingExport.open(source, { ...plan, ...range });
    return {
      fileName: `${name}-${segmentId(opened.startMs)}.mp4`,
      startMs: opened.startMs,
      bytes: opened.bytes(),
    };
  }

  #checkSource({ principalKey }: Caller, name: string): void {
    if (!this.#options.named.find(name, principalKey)) throw refuse.notFound("Source", "name");
  }

  #lookOf(segment: RecordedSegment, { principalKey }: Caller): RecordedSegmentLook {
    const { startMs, endMs, startTicks, endTicks, runId, sizeBytes, codec, sound, formats } = segment;
    const isOwn = this.#options.timeline.view.run(runId)?.principalKey === principalKey;
    return {
      segment_id: segmentId(startMs),
      start_at_ms: startMs,
      end_at_ms: endMs,
      run_id: isOwn ? runId : null,
      start_pts_ms: ptsMsOf(startTicks),
      end_pts_ms: ptsMsOf(endTicks),
      bytes: sizeBytes,
      codec,
      sound,
      video_format: formats.video,
      sound_format: formats.sound,
    };
  }
}

const DAY_MS = 86_400_000;

/** Null without a segment. Errors: 422 where one file cannot hold them. */
async function planOf(
  segments: AsyncIterable<RecordedSegment>,
): Promise<Pick<ExportPlan, "first" | "last" | "firstHeard"> | null> {
  let first: RecordedSegment | null = null;
  let last: RecordedSegment | null = null;
  let firstHeard: RecordedSegment | null = null;
  for await (const segment of segments) {
    first ??= segment;
    last = segment;
    checkFormat("video", segment, first.formats.video);
    if (segment.formats.sound === null) continue;
    firstHeard ??= segment;
    checkFormat("sound", segment, firstHeard.formats.sound);
  }
  return first && last && { first, last, firstHeard };
}

function checkFormat(
  stream: "video" | "sound",
  { formats, startMs }: RecordedSegment,
  format: string | null,
): void {
  if (formats[stream] === format) return;
  throw refuse.invalid(
    "to",
    `must not be after ${
      new Date(startMs).toISOString()
    }, where the ${stream} has another ${stream}_format: one file has one ` +
      "format of each stream, so export the parts alone",
  );
}

function rangeOf({ from, to }: RecordingQuery): { readonly fromMs: number; readonly toMs: number } {
  const range = { fromMs: timeOf("from", from) ?? 0, toMs: timeOf("to", to) ?? Infinity };
  if (range.toMs <= range.fromMs) throw refuse.invalid("to", "must lie behind from, and does not");
  return range;
}

/**
 * Epoch milliseconds, or a time as in RFC 3339: a query that does not encode the `+` of a time zone has a
 * space there.
 */
function timeOf(field: string, given: string | undefined): number | undefined {
  const text = given?.replace(/ (\d\d:\d\d)$/, "+$1");
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const isTime = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/.test(text);
  const ms = isTime && isDay(text.slice(0, DATE_CHARACTERS))
    ? Date.parse(text.toUpperCase().replace(" ", "T"))
    : NaN;
  if (Number.isNaN(ms)) {
    throw refuse.invalid(field, "must be a time such as 2026-11-24T10:15:00Z, or epoch milliseconds");
  }
  return ms;
}

const DATE_CHARACTERS = "2026-11-24".length;

/** Whether the month has that day: JavaScript reads February 30 as March 2. */
function isDay(date: string): boolean {
  const ms = Date.parse(date);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date);
}
