/** A fragmented MP4 out of the samples of other MP4s, which are copied as they are: its beginning, its fragments and its index. */

import { joinedBytes } from "../../base/bytes.ts";
import { box, boxesIn, boxOn, bytesOf, fullBox, uint32, uint32List, uint64 } from "./mp4_boxes.ts";
import type { Mp4Track } from "./mp4_samples.ts";

/** Samples of one track, and when they are decoded in the new file: ticks of the track. */
export interface FragmentTrack {
  readonly trackId: number;
  readonly track: Mp4Track;
  /** Indexes of the samples, in decoding order. */
  readonly samples: readonly number[];
  /** Decode time of each of the samples in the new file. */
  readonly decodeTimes: readonly number[];
  /** When the first one is shown in the new file, minus when it is in its own. */
  readonly shift: number;
}

export interface CopiedFragment {
  /** The box `moof` and the header of the box `mdat`; then comes the file from `from` to `to`. */
  readonly head: Uint8Array<ArrayBuffer>;
  readonly from: number;
  readonly to: number;
}

/** Where a fragment begins, for readers that seek. */
export interface FragmentPlace {
  /** When its first picture is shown, ticks of the video. */
  readonly time: number;
  /** Bytes before it in the new file. */
  readonly offset: number;
}

export const VIDEO_TRACK_ID = 1;
export const SOUND_TRACK_ID = 2;

const MOVIE_TIMESCALE = 1_000;
const IDENTITY_MATRIX = uint32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);

/** `ftyp` and `moov` of a file with these tracks, which is `durationMs` long. */
export function fileHead(
  { video, sound }: { readonly video: Mp4Track; readonly sound: Mp4Track | null },
  durationMs: number,
): Uint8Array<ArrayBuffer> {
  const tracks = [
    { id: VIDEO_TRACK_ID, track: video },
    ...sound ? [{ id: SOUND_TRACK_ID, track: sound }] : [],
  ];
  const brands = new TextEncoder().encode("isom\0\0\x02\0isomiso6mp41");
  const header = fullBox(
    "mvhd",
    {},
    uint32(0, 0, MOVIE_TIMESCALE, 0, 0x10000, 0x1000000, 0, 0),
    IDENTITY_MATRIX,
    uint32(0, 0, 0, 0, 0, 0, tracks.length + 1),
  );
  const extends_ = tracks.map(({ id }) => fullBox("trex", {}, uint32(id, 1, 0, 0, 0)));
  return joinedBytes(
    box("ftyp", brands),
    box(
      "moov",
      header,
      ...tracks.map(({ id, track }) => emptyTrack(id, track)),
      box("mvex", fullBox("mehd", { version: 1 }, uint64(Math.round(durationMs))), ...extends_),
    ),
  );
}

/** The track without its samples. */
function emptyTrack(trackId: number, { trak, timescale, isVideo }: Mp4Track): Uint8Array<ArrayBuffer> {
  const outer = boxOn(trak, "trak");
  const mdia = boxOn(trak, "mdia", outer);
  const minf = boxOn(trak, "minf", mdia);
  const stsd = boxOn(trak, "stbl/stsd", minf);
  // A header of version 0 ends with the matrix, width and height.
  const shown = bytesOf(trak, boxOn(trak, "tkhd", outer)).slice(-44);
  const layer = uint32(0, 0, 0, isVideo ? 0 : 0x1000000);
  const others = boxesIn(trak, minf.content, minf.end).filter(({ type }) => type !== "stbl");
  return box(
    "trak",
    fullBox("tkhd", { flags: 3 }, uint32(0, 0, trackId, 0, 0), layer, shown),
    box(
      "mdia",
      fullBox("mdhd", {}, uint32(0, 0, timescale, 0, UNDETERMINED_LANGUAGE)),
      bytesOf(trak, boxOn(trak, "hdlr", mdia)),
      box(
        "minf",
        ...others.map((each) => bytesOf(trak, each)),
        box(
          "stbl",
          bytesOf(trak, stsd),
          fullBox("stts", {}, uint32(0)),
          fullBox("stsc", {}, uint32(0)),
          fullBox("stsz", {}, uint32(0, 0)),
          fullBox("stco", {}, uint32(0)),
        ),
      ),
    ),
  );
}

/** `und`, packed, and 16 bits of 0. */
const UNDETERMINED_LANGUAGE = 0x55c40000;

const DEFAULT_BASE_IS_MOOF = 0x20000;
const DEFAULT_FLAGS_PRESENT = 0x20;
const HAS_OFFSET = 0x1;
const HAS_DURATIONS = 0x100;
const HAS_SIZES = 0x200;
const HAS_FLAGS = 0x400;
const HAS_TIME_OFFSETS = 0x800;
/** Others depend on a key picture, and it on none; the other way round. */
const KEY_FLAGS = 0x02000000;
const DELTA_FLAGS = 0x01010000;

/** One fragment with the samples of a file. What lies between them in the file is copied, too. */
export function fragment(sequence: number, tracks: readonly FragmentTrack[]): CopiedFragment {
  const runs = tracks.flatMap((each) => runsOf(each).map((run) => ({ ...each, ...run })));
  const from = runs.reduce((least, run) => Math.min(least, run.from), Infinity);
  const to = runs.reduce((most, run) => Math.max(most, run.to), 0);
  // The offsets count from the start of `moof`, whose size they do not change.
  const movie = (mediaAt: number) =>
    box(
      "moof",
      fullBox("mfhd", {}, uint32(sequence)),
      ...tracks.filter(({ samples }) => samples.length > 0).map((each) =>
        trackFragment(each, mediaAt - from)
      ),
    );
  const mediaAt = movie(0).length + MDAT_HEADER_BYTES;
  const media = joinedBytes(
    uint32(1),
    new TextEncoder().encode("mdat"),
    uint64(MDAT_HEADER_BYTES + to - from),
  );
  return { head: joinedBytes(movie(mediaAt), media), from, to };
}

const MDAT_HEADER_BYTES = 16;

function trackFragment(each: FragmentTrack, offsetShift: number): Uint8Array<ArrayBuffer> {
  const { trackId, track: { isVideo }, decodeTimes } = each;
  const flags = { flags: DEFAULT_BASE_IS_MOOF + DEFAULT_FLAGS_PRESENT };
  return box(
    "traf",
    fullBox("tfhd", flags, uint32(trackId, isVideo ? DELTA_FLAGS : KEY_FLAGS)),
    fullBox("tfdt", { version: 1 }, uint64(decodeTimes[0]!)),
    ...runsOf(each).map((run) => trackRun(each, run, offsetShift)),
  );
}

/** Samples that lie one behind the other in the file: places in the list of samples, and in the file. */
interface SampleRun {
  readonly first: number;
  readonly last: number;
  readonly from: number;
  readonly to: number;
}

function runsOf({ samples, track: { offsets, sizes } }: FragmentTrack): SampleRun[] {
  const runs: SampleRun[] = [];
  samples.forEach((sample, at) => {
    const from = offsets[sample]!;
    const to = from + sizes[sample]!;
    const before = runs.at(-1);
    if (before?.to === from) runs[runs.length - 1] = { ...before, last: at, to };
    else runs.push({ first: at, last: at, from, to });
  });
  return runs;
}

function trackRun(
  { track, samples, decodeTimes, shift }: FragmentTrack,
  { first, last, from }: SampleRun,
  offsetShift: number,
): Uint8Array<ArrayBuffer> {
  const { isVideo, durations, sizes, times, isKey } = track;
  const values: number[] = [last - first + 1, from + offsetShift];
  for (let at = first; at <= last; at++) {
    const sample = samples[at]!;
    const next = decodeTimes[at + 1];
    values.push(next === undefined ? durations[sample]! : next - decodeTimes[at]!, sizes[sample]!);
    if (!isVideo) continue;
    values.push(isKey[sample] === 1 ? KEY_FLAGS : DELTA_FLAGS, times[sample]! + shift - decodeTimes[at]!);
  }
  const flags = HAS_OFFSET + HAS_DURATIONS + HAS_SIZES + (isVideo ? HAS_FLAGS + HAS_TIME_OFFSETS : 0);
  return fullBox("trun", { version: 1, flags }, uint32List(values));
}

const INDEX_ROW_BYTES = 19;
const BOX_HEADER_BYTES = 8;
const MFRO_BYTES = 16;

/** The index at the end of the file, with which readers seek. */
export function fileIndex(places: readonly FragmentPlace[]): Uint8Array<ArrayBuffer> {
  // Numbers of the track fragment, the run and the sample in one byte each: always the first ones.
  const rows = new DataView(new ArrayBuffer(INDEX_ROW_BYTES * places.length));
  places.forEach(({ time, offset }, at) => {
    rows.setBigUint64(INDEX_ROW_BYTES * at, BigInt(time));
    rows.setBigUint64(INDEX_ROW_BYTES * at + 8, BigInt(offset));
    for (let number = 16; number < INDEX_ROW_BYTES; number++) rows.setUint8(INDEX_ROW_BYTES * at + number, 1);
  });
  const head = uint32(VIDEO_TRACK_ID, 0, places.length);
  const access = fullBox("tfra", { version: 1 }, head, new Uint8Array(rows.buffer));
  // The last box tells how long the whole index is.
  return box("mfra", access, fullBox("mfro", {}, uint32(BOX_HEADER_BYTES + access.length + MFRO_BYTES)));
}
