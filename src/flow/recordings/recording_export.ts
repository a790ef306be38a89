/** One file out of many segments of a recording: copies their samples as they are into the fragments of an
 * MP4, segment by segment.
 */

import { VIDEO_CLOCK_HZ, VIDEO_TICKS_PER_MS } from "../../media/containers/clock.ts";
import { boxAt, Mp4Error } from "../../media/containers/mp4_boxes.ts";
import {
  type CopiedFragment,
  copiedFragment,
  type CopiedTrack,
  fileHead,
  fileIndex,
  type FragmentPlace,
  SOUND_TRACK_ID,
  VIDEO_TRACK_ID,
} from "../../media/containers/mp4_fragments.ts";
import { type Mp4Track, readTracks } from "../../media/containers/mp4_samples.ts";
import { neededPictures } from "../../media/containers/needed_pictures.ts";
import type { RecordedSegment } from "../../model/sources/recorded_segment.ts";
import type { RecordedRange } from "../../store/recordings/recordings.ts";

/** A segment and the tables of its file. */
interface ReadSegment {
  readonly segment: RecordedSegment;
  readonly video: Mp4Track;
  readonly sound: Mp4Track | null;
}

export interface ExportPlan extends RecordedRange {
  readonly first: RecordedSegment;
  readonly last: RecordedSegment;
  /** The first one with sound; null where none has any. */
  readonly firstHeard: RecordedSegment | null;
}

export interface ExportSource {
  /** The segments of the range, oldest first. */
  readonly segments: () => AsyncIterable<RecordedSegment>;
  /** The caller closes the file. Rejects where the segment is gone. */
  readonly open: (segment: RecordedSegment) => Promise<Deno.FsFile>;
}

/** Where a segment lies in the new file: 90 kHz from its start. */
interface ExportPlace {
  readonly segment: RecordedSegment;
  readonly ticks: number;
}

const CHUNK_BYTES = 256 * 1024;
/** A segment of hours has no larger tables. */
const MOOV_BYTES_MAX = 32 * 2 ** 20;

/**
 * ```
 *   segment files   [ftyp moov mdat] [ftyp moov mdat]   gap   [ftyp moov mdat]
 *   new file        ftyp moov  moof mdat  moof mdat           moof mdat   mfra
 * ```
 * Holds the tables of one segment and one chunk at a time, and two numbers for each segment.
 */
export class RecordingExport {
  /**
   * The wall time at 0 of the file, epoch milliseconds: its first key frame is shown then, or `leadTicks`
   * later.
   */
  readonly startMs: number;
  /**
   * How much later pictures are shown than they are decoded, 90 kHz: readers differ in what they do where one
   * is shown earlier.
   */
  readonly #leadTicks: number;
  readonly #source: ExportSource;
  readonly #plan: ExportPlan;
  readonly #first: ReadSegment;
  /** The track whose description the file has; null without sound. */
  readonly #heard: Mp4Track | null;
  #begin: ExportPlace | null = null;
  #before: ExportPlace | null = null;
  /** The last piece of sound in the file, ticks of the sound. */
  #soundTicks = -1;

  private constructor(source: ExportSource, plan: ExportPlan, first: ReadSegment, heard: Mp4Track | null) {
    this.#source = source;
    this.#plan = plan;
    this.#first = first;
    this.#heard = heard;
    const { segment: { startMs, endMs, startTicks, endTicks }, video } = first;
    const pictures = this.#pictures(first, false);
    this.#leadTicks = pictures.reduce(
      (lead, at) => Math.max(lead, video.decodeTimes[at]! - video.times[at]!),
      0,
    );
    const within = beginOf(video, pictures) - this.#leadTicks;
    this.startMs = Math.round(startMs + within * (endMs - startMs) / (endTicks - startTicks));
  }

  /** Reads where the file begins. Rejects where a segment is gone or damaged. */
  static async open(source: ExportSource, plan: ExportPlan): Promise<RecordingExport> {
    const first = await readSegment(source, plan.first);
    const heard = first.sound ?? (plan.firstHeard && (await readSegment(source, plan.firstHeard)).sound);
    return new RecordingExport(source, plan, first, heard);
  }

  /** Rejects where a segment is gone or damaged: what was sent until then is not the whole. */
  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
    const { last, toMs } = this.#plan;
    const durationMs = Math.max(0, Math.min(last.endMs, toMs) - this.startMs);
    const head = fileHead({ video: this.#first.video, sound: this.#heard }, durationMs);
    const places: FragmentPlace[] = [];
    let sentBytes = head.length;
    yield head;
    for await (const segment of this.#source.segments()) {
      using file = await this.#source.open(segment);
      const tracks = this.#tracksOf(await tablesOf(file, segment));
      if (tracks === null) continue;
      const made = copiedFragment(places.length + 1, tracks);
      places.push({
        time: tracks[0].track.times[tracks[0].samples[0]!]! + tracks[0].shift,
        offset: sentBytes,
      });
      sentBytes += made.head.length + made.to - made.from;
      yield made.head;
      yield* stretch(file, made);
    }
    yield fileIndex(places);
  }

  /** What the file has of a segment; null for nothing. */
  #tracksOf(read: ReadSegment): [CopiedTrack, ...CopiedTrack[]] | null {
    const { segment, video, sound } = read;
    const isJoined = this.#before !== null && isTouching(this.#before.segment, segment);
    const pictures = this.#pictures(read, isJoined);
    const key = pictures[0];
    if (key === undefined) return null;
    const place = this.#place(segment, beginOf(video, pictures));
    const decodeShift = place.ticks - this.#leadTicks;
    const decodeTimes = pictures.map((at) => video.decodeTimes[at]! + decodeShift);
    if (!isJoined) decodeTimes[0] = beginOf(video, pictures) + decodeShift;
    const shown = {
      trackId: VIDEO_TRACK_ID,
      track: video,
      samples: pictures,
      decodeTimes,
      shift: place.ticks,
    };
    const heard = sound && this.#sound(read, sound, place, isJoined ? -Infinity : video.times[key]!);
    return heard ? [shown, heard] : [shown];
  }

  /** The pictures that are needed up to the end. */
  #pictures(read: ReadSegment, isJoined: boolean): number[] {
    const { segment, video } = read;
    const first = this.#before === null ? this.#firstPicture(read) : 0;
    const { last } = neededPictures(video.times, first, ticksAt(segment, this.#plan.toMs));
    const indexes = Array.from({ length: Math.max(0, last + 1 - first) }, (_, at) => first + at);
    // What is shown before the first key frame can be decoded only behind another segment.
    return isJoined ? indexes : indexes.filter((at) => video.times[at]! >= video.times[first]!);
  }

  /** The last key frame at or before the begin of the range, or the first one. */
  #firstPicture({ segment, video }: ReadSegment): number {
    const begin = ticksAt(segment, this.#plan.fromMs);
    return Math.max(0, video.isKey.findLastIndex((isKey, at) => isKey === 1 && video.times[at]! <= begin));
  }

  /**
   * Null where nothing is heard. `leastTicks` is the begin of the pictures, where sound of before is left
   * out.
   */
  #sound(
    { segment }: ReadSegment,
    track: Mp4Track,
    place: ExportPlace,
    leastTicks: number,
  ): CopiedTrack | null {
    const scale = track.timescale / VIDEO_CLOCK_HZ;
    const shift = Math.round(place.ticks * scale);
    const end = ticksAt(segment, this.#plan.toMs) * scale;
    const samples: number[] = [];
    for (const [at, time] of track.times.entries()) {
      // Rounding must not put a piece before the one that it follows.
      if (time < leastTicks * scale || time >= end || time + shift <= this.#soundTicks) continue;
      samples.push(at);
    }
    if (samples.length === 0 || this.#heard === null) return null;
    const decodeTimes = samples.map((at) => track.decodeTimes[at]! + shift);
    this.#soundTicks = decodeTimes.at(-1)!;
    return { trackId: SOUND_TRACK_ID, track, samples, decodeTimes, shift };
  }

  /**
   * Without a gap the media times count, and across one the clock of the machine. `firstTicks` is where its
   * first picture begins.
   */
  #place(segment: RecordedSegment, firstTicks: number): ExportPlace {
    const [begin, before] = [this.#begin, this.#before];
    let ticks = this.#leadTicks - firstTicks;
    if (before && isTouching(before.segment, segment)) {
      ticks = before.ticks + segment.startTicks - before.segment.startTicks;
    } else if (begin && before) {
      const end = before.ticks + before.segment.endTicks - before.segment.startTicks;
      ticks = Math.max(end, begin.ticks + (segment.startMs - begin.segment.startMs) * VIDEO_TICKS_PER_MS);
    }
    const place = { segment, ticks };
    this.#begin ??= place;
    this.#before = place;
    return place;
  }
}

/** When the first of these pictures is shown: it need not be decoded earlier, unless another one is. */
function beginOf({ times, decodeTimes }: Mp4Track, pictures: readonly number[]): number {
  const [first, second] = pictures;
  if (first === undefined) return 0;
  return second === undefined ? times[first]! : Math.min(times[first]!, decodeTimes[second]! - 1);
}

/** Whether a segment follows another one without a gap. */
function isTouching(before: RecordedSegment, next: RecordedSegment): boolean {
  return before.endMs === next.startMs && before.endTicks === next.startTicks;
}

/** Where a wall time lies in a segment, ticks from its begin. */
function ticksAt({ startMs, endMs, startTicks, endTicks }: RecordedSegment, wallMs: number): number {
  return (wallMs - startMs) * (endTicks - startTicks) / (endMs - startMs);
}

async function readSegment(source: ExportSource, segment: RecordedSegment): Promise<ReadSegment> {
  using file = await source.open(segment);
  return await tablesOf(file, segment);
}

async function tablesOf(file: Deno.FsFile, segment: RecordedSegment): Promise<ReadSegment> {
  const tracks = readTracks(await readMoov(file));
  const video = tracks.find(({ isVideo }) => isVideo);
  if (video?.timescale !== VIDEO_CLOCK_HZ) throw new Mp4Error("no video track of this service");
  return { segment, video, sound: tracks.find(({ isVideo }) => !isVideo) ?? null };
}

/** The first boxes of a segment are `ftyp` and `moov`. */
async function readMoov(file: Deno.FsFile): Promise<Uint8Array> {
  const start = await readAll(file, 0, FIRST_BYTES);
  const moov = boxAt(start, boxAt(start, 0).end);
  if (moov.type !== "moov" || moov.end - moov.start > MOOV_BYTES_MAX) {
    throw new Mp4Error("no tables at the start");
  }
  return moov.end <= start.length
    ? start.subarray(moov.start, moov.end)
    : await readAll(file, moov.start, moov.end - moov.start);
}

/** Most tables are smaller. */
const FIRST_BYTES = 16 * 1024;

/** Fewer bytes at the end of the file. */
async function readAll(file: Deno.FsFile, from: number, count: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(count);
  await file.seek(from, Deno.SeekMode.Start);
  let filled = 0;
  while (filled < count) {
    const read = await file.read(bytes.subarray(filled));
    if (read === null) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}

async function* stretch(
  file: Deno.FsFile,
  { from, to }: CopiedFragment,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  for (let at = from; at < to; at += CHUNK_BYTES) {
    const wanted = Math.min(CHUNK_BYTES, to - at);
    const bytes = await readAll(file, at, wanted);
    if (bytes.length < wanted) throw new Mp4Error("a segment that is shorter than its tables say");
    yield bytes;
  }
}
