/** A fragmented MP4: its beginning, its fragments, also out of the samples of other MP4s as they are, and its
 * index.
 */

import { joinedBytes } from "../../base/bytes.ts";
import { box, boxesIn, boxOn, bytesOf, fullBox, uint32, uint32List, uint64 } from "./mp4_boxes.ts";
import type { Mp4Track } from "./mp4_samples.ts";

/** Samples of one track, and when they are decoded in the new file: ticks of the track. */
export interface CopiedTrack {
  readonly trackId: number;
  readonly track: Mp4Track;
  /** Indexes of the samples, in decoding order. */
  readonly samples: readonly number[];
  /** Decode time of each of the samples in the new file. */
  readonly decodeTimes: readonly number[];
  /** When the first sample is shown in the new file, minus when it is in its own, in ticks. */
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
  /** When the first picture of the fragment is shown, ticks of the video. */
  readonly time: number;
  /** Bytes before it in the new file. */
  readonly offset: number;
}

/** Number of the video track in every file that this service makes. */
export const VIDEO_TRACK_ID = 1;
export const SOUND_TRACK_ID = 2;

const MOVIE_TIMESCALE = 1_000;
const IDENTITY_MATRIX = uint32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);

/** The boxes `ftyp` and `moov` of a file with these tracks, which is `durationMs` long. */
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

/** The language `und`, packed, and 16 bits of 0. */
const UNDETERMINED_LANGUAGE = 0x55c40000;

/** A sample as a fragment lists it; ticks are those of its track. */
export interface ListedSample {
  readonly duration: number;
  readonly sizeBytes: number;
  /** Ticks from when the sample is decoded until it is shown. */
  readonly offset: number;
  readonly isKey: boolean;
}

/** Samples that lie one behind the other in the box `mdat`. */
export interface SampleRun {
  /** Bytes of media before the first one. */
  readonly at: number;
  readonly samples: readonly ListedSample[];
}

/** What a fragment has of one track. */
export interface TrackFragment {
  readonly trackId: number;
  /** When the first sample is decoded, ticks of the track. */
  readonly decodeTime: number;
  readonly runs: readonly SampleRun[];
}

/** Flag by which places of data count from the beginning of `moof`. */
const BASE_IS_MOOF = 0x20000;
/** Flags by which `trun` has the place of the data, and of each sample duration, size, flags and offset. */
const ALL_FIELDS = 0xf01;
const DEPENDS_ON_NOTHING = 0x02000000;
const DEPENDS_ON_OTHERS = 0x01010000;

/**
 * The box `moof` before a box `mdat` whose header has so many bytes:
 *
 *     moof ── mfhd  sequence
 *          └─ traf ─┬─ tfhd  track
 *                   ├─ tfdt  decode time of the first sample
 *                   └─ trun  place of the data; for each sample: duration, size, flags, offset
 */
export function movieFragment(
  sequence: number,
  tracks: readonly TrackFragment[],
  mdatHeaderBytes: number,
): Uint8Array<ArrayBuffer> {
  const moof = (mediaAt: number) =>
    box(
      "moof",
      fullBox("mfhd", {}, uint32(sequence)),
      ...tracks.map((track) => trackFragment(track, mediaAt)),
    );
  // Its size does not depend on where the media are.
  return moof(moof(0).length + mdatHeaderBytes);
}

function trackFragment(
  { trackId, decodeTime, runs }: TrackFragment,
  mediaAt: number,
): Uint8Array<ArrayBuffer> {
  return box(
    "traf",
    fullBox("tfhd", { flags: BASE_IS_MOOF }, uint32(trackId)),
    fullBox("tfdt", { version: 1 }, uint64(decodeTime)),
    ...runs.map(({ at, samples }) => {
      const rows = samples.flatMap(({ duration, sizeBytes, offset, isKey }) => [
        ...[duration, sizeBytes, isKey ? DEPENDS_ON_NOTHING : DEPENDS_ON_OTHERS, offset],
      ]);
      // Version 1: offsets may be negative.
      return fullBox(
        "trun",
        { version: 1, flags: ALL_FIELDS },
        uint32List([samples.length, mediaAt + at, ...rows]),
      );
    }),
  );
}

/** One fragment with the samples of a file. What lies between them in the file is copied, too. */
export function copiedFragment(sequence: number, tracks: readonly CopiedTrack[]): CopiedFragment {
  const copied = tracks.filter(({ samples }) => samples.length > 0).map((track) => ({
    track,
    stretches: stretchesOf(track),
  }));
  const all = copied.flatMap(({ stretches }) => stretches);
  const from = all.reduce((least, stretch) => Math.min(least, stretch.from), Infinity);
  const to = all.reduce((most, stretch) => Math.max(most, stretch.to), 0);
  const listed = copied.map(({ track, stretches }) => ({
    trackId: track.trackId,
    decodeTime: track.decodeTimes[0]!,
    runs: stretches.map((stretch) => ({ at: stretch.from - from, samples: samplesOf(track, stretch) })),
  }));
  const mdat = joinedBytes(
    uint32(1),
    new TextEncoder().encode("mdat"),
    uint64(MDAT_HEADER_BYTES + to - from),
  );
  return { head: joinedBytes(movieFragment(sequence, listed, MDAT_HEADER_BYTES), mdat), from, to };
}

/** Bytes of the header of an `mdat` whose size has 64 bits. */
const MDAT_HEADER_BYTES = 16;

/** Samples that lie one behind the other in the file: places in the list of samples, and in the file. */
interface CopiedStretch {
  readonly first: number;
  readonly last: number;
  readonly from: number;
  readonly to: number;
}

function stretchesOf({ samples, track: { offsets, sizes } }: CopiedTrack): CopiedStretch[] {
  const stretches: CopiedStretch[] = [];
  samples.forEach((sample, at) => {
    const from = offsets[sample]!;
    const to = from + sizes[sample]!;
    const before = stretches.at(-1);
    if (before?.to === from) stretches[stretches.length - 1] = { ...before, last: at, to };
    else stretches.push({ first: at, last: at, from, to });
  });
  return stretches;
}

function samplesOf(
  { track, samples, decodeTimes, shift }: CopiedTrack,
  { first, last }: CopiedStretch,
): ListedSample[] {
  return samples.slice(first, last + 1).map((sample, index) => {
    const [time, next] = [decodeTimes[first + index]!, decodeTimes[first + index + 1]];
    return {
      duration: next === undefined ? track.durations[sample]! : next - time,
      sizeBytes: track.sizes[sample]!,
      offset: track.times[sample]! + shift - time,
      isKey: track.isKey[sample] === 1,
    };
  });
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
