/** A segment of a camera's continuous recording: its facts, and the file name that carries them all. See
 * docs/cameras.md#recording.
 */

import type { ClipSoundState } from "../live/recording/record_plan.ts";

/**
 * What a decoder has to know of each stream, as 8 hex digits: segments of the same formats fit into one file.
 */
export interface StreamFormats {
  readonly video: string;
  /** The format of the sound; null without sound. */
  readonly sound: string | null;
}

export interface RecordedSegment {
  /** When the segment begins, epoch milliseconds; segments without a gap between them touch. */
  readonly startMs: number;
  readonly endMs: number;
  /**
   * Where the segment begins in media time of the run, 90 kHz: at the first frame that is shown; below, the
   * end of the last one.
   */
  readonly startTicks: number;
  readonly endTicks: number;
  /** The run that was open when the segment began. */
  readonly runId: string;
  readonly sizeBytes: number;
  /** The codecs by RFC 6381, such as `avc1.42e01f, opus`. */
  readonly codec: string;
  readonly sound: ClipSoundState;
  readonly formats: StreamFormats;
  /** After how many hours the segment goes, as the file of sources said when it was stored. */
  readonly hours: number;
}

/**
 * ```
 *   20261124T101500123Z_10040_751c79832c20087d332e351728791aeb_5400000_903600_1893120_avc1.42e01f-9f86d081_opus-1b4f0e98_48.mp4
 *   start               ms    run                              start   length bytes   video, its format    sound         hours
 *                                                              └ 90 kHz ─┘
 * ```
 * The sound is `none` or `unsupported` where there is none. Names sort by time.
 */
const NAME =
  /^(\d{8}T\d{9}Z)_(\d{1,9})_((?:[0-9a-f]{16}){1,2})_(-?\d{1,15})_(\d{1,15})_(\d{1,12})_([A-Za-z0-9.]{1,64})-([0-9a-f]{8})_(?:(none|unsupported)|([A-Za-z0-9.]{1,32})-([0-9a-f]{8}))_(\d{1,6})\.mp4$/;

/** What a segment is called in the API: when it begins, unique within its source. */
const SEGMENT_ID = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{3})Z$/;
const ID_LENGTH = "20261124T101500123Z".length;
const SHOWN_DATE_LENGTH = 8;

export function recordedName(segment: RecordedSegment): string {
  const { startMs, endMs, startTicks, endTicks, runId, sizeBytes, codec, sound, formats, hours } = segment;
  const [video, heard] = codec.split(", ");
  const soundPart = formats.sound === null
    ? sound === "not_supported" ? "unsupported" : "none"
    : `${heard}-${formats.sound}`;
  return [
    segmentId(startMs),
    ...[endMs - startMs, runId.slice(RUN_PREFIX.length), startTicks, endTicks - startTicks, sizeBytes],
    ...[`${video}-${formats.video}`, soundPart, `${hours}.mp4`],
  ].join("_");
}

/** The segment of a file name; null for a name that no segment has. */
export function segmentOfName(name: string): RecordedSegment | null {
  const [, id, wallMs, run, start, length, bytes, video, format, silence, heard, heardFormat, hours] =
    NAME.exec(name) ?? [];
  const startMs = segmentStartMs(id ?? "");
  if (startMs === null) return null;
  const startTicks = Number(start);
  return {
    startMs,
    endMs: startMs + Number(wallMs),
    ...{ startTicks, endTicks: startTicks + Number(length) },
    runId: `${RUN_PREFIX}${run}`,
    sizeBytes: Number(bytes),
    codec: heard === undefined ? video! : `${video}, ${heard}`,
    sound: heard !== undefined ? "included" : silence === "none" ? "none" : "not_supported",
    formats: { video: format!, sound: heardFormat ?? null },
    hours: Number(hours),
  };
}

/** The id of a segment, `20261124T101500123Z`, from a time in the years 1 to 9999. */
export function segmentId(startMs: number): string {
  return new Date(startMs).toISOString().replace(/[-:.]/g, "");
}

/** The time in an id; null for a text that is no id of a segment. */
export function segmentStartMs(id: string): number | null {
  const [, year, month, day, hours, minutes, seconds, ms] = SEGMENT_ID.exec(id) ?? [];
  if (year === undefined) return null;
  const time = Date.parse(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${ms}Z`);
  return Number.isNaN(time) ? null : time;
}

/** The part of a file name that is the id. */
export function idOfName(name: string): string {
  return name.slice(0, ID_LENGTH);
}

/** The folder of a segment, `20261124`, where those lie that begin on that day (UTC). */
export function segmentDay(startMs: number): string {
  return segmentId(startMs).slice(0, SHOWN_DATE_LENGTH);
}

/** A media time in milliseconds, as events count it. */
export function ptsMsOf(ticks: number): number {
  return Math.round(ticks / TICKS_PER_MS);
}

const TICKS_PER_MS = 90;
const RUN_PREFIX = "run-";
