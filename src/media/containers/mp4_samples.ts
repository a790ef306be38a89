/** The sample tables of an MP4 that this service made: where each picture and each piece of sound lies in the
 * file, and when it is shown.
 */

import { boxesIn, boxOn, bytesOf, type Mp4Box, Mp4Error } from "./mp4_boxes.ts";

/** One track. The arrays have a value for each sample, in decoding order. */
export interface Mp4Track {
  readonly isVideo: boolean;
  /** Ticks a second of the times. */
  readonly timescale: number;
  /** The box of the track, whose tables are here. */
  readonly trak: Uint8Array;
  /** Places in the file. */
  readonly offsets: Float64Array;
  readonly sizes: Uint32Array;
  /** When each sample is decoded, in ticks; `times` is when it is shown or heard. */
  readonly decodeTimes: Float64Array;
  readonly times: Float64Array;
  readonly durations: Uint32Array;
  /** Whether decoding can start here. */
  readonly isKey: Uint8Array;
}

/** The tracks in `moov`, which is the whole box. Errors: `Mp4Error`. */
export function readTracks(moov: Uint8Array): Mp4Track[] {
  const outer = boxesIn(moov)[0];
  if (outer?.type !== "moov") throw new Mp4Error("no box moov");
  return boxesIn(moov, outer.content, outer.end).filter(({ type }) => type === "trak").map((trak) =>
    readTrack(bytesOf(moov, trak))
  );
}

function readTrack(trak: Uint8Array): Mp4Track {
  const mdia = boxOn(trak, "trak/mdia");
  const hdlr = table(trak, boxOn(trak, "hdlr", mdia));
  const mdhd = table(trak, boxOn(trak, "mdhd", mdia));
  const stbl = boxOn(trak, "minf/stbl", mdia);
  const inside = boxesIn(trak, stbl.content, stbl.end);
  const find = (type: string) => {
    const found = inside.find((box) => box.type === type);
    return found ? table(trak, found) : null;
  };
  const need = (type: string) => {
    const found = find(type);
    if (!found) throw new Mp4Error(`no box ${type}`);
    return found;
  };
  const sizes = readSizes(need("stsz"));
  const durations = readDurations(need("stts"), sizes.length);
  const decodeTimes = new Float64Array(sizes.length);
  for (let at = 1; at < sizes.length; at++) decodeTimes[at] = decodeTimes[at - 1]! + durations[at - 1]!;
  return {
    isVideo: hdlr.getUint32(8) === VIDEO_HANDLER,
    timescale: mdhd.getUint8(0) === 1 ? mdhd.getUint32(20) : mdhd.getUint32(12),
    trak,
    offsets: readOffsets({ stco: find("stco"), co64: find("co64"), stsc: need("stsc") }, sizes),
    sizes,
    decodeTimes,
    times: readTimes(find("ctts"), decodeTimes),
    durations,
    isKey: readKeys(find("stss"), sizes.length),
  };
}

/** `vide`. */
const VIDEO_HANDLER = 0x76696465;

/** The content of a table from its version on. */
function table(bytes: Uint8Array, { content, end }: Mp4Box): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + content, end - content);
}

function readSizes(stsz: DataView): Uint32Array {
  const [size, count] = [stsz.getUint32(4), stsz.getUint32(8)];
  if (size !== 0) return new Uint32Array(bounded(count)).fill(size);
  return Uint32Array.from({ length: bounded(count) }, (_, at) => stsz.getUint32(12 + 4 * at));
}

function readDurations(stts: DataView, count: number): Uint32Array {
  const durations = new Uint32Array(count);
  let sample = 0;
  for (let entry = 0; entry < stts.getUint32(4); entry++) {
    const until = Math.min(count, sample + stts.getUint32(8 + 8 * entry));
    durations.fill(stts.getUint32(12 + 8 * entry), sample, until);
    sample = until;
  }
  return durations;
}

function readTimes(ctts: DataView | null, decodeTimes: Float64Array): Float64Array {
  const times = Float64Array.from(decodeTimes);
  let sample = 0;
  for (let entry = 0; ctts && entry < ctts.getUint32(4); entry++) {
    const until = Math.min(times.length, sample + ctts.getUint32(8 + 8 * entry));
    // Version 0 has no offsets below 0, and this service writes none that are too large for the other.
    const offset = ctts.getInt32(12 + 8 * entry);
    for (; sample < until; sample++) times[sample]! += offset;
  }
  return times;
}

function readKeys(stss: DataView | null, count: number): Uint8Array {
  if (!stss) return new Uint8Array(count).fill(1);
  const keys = new Uint8Array(count);
  for (let entry = 0; entry < stss.getUint32(4); entry++) keys[stss.getUint32(8 + 4 * entry) - 1] = 1;
  return keys;
}

/**
 * Places of the samples. These lie in chunks one behind the other; each row of `stsc` says how many samples
 * the chunks from there on have.
 */
function readOffsets(
  { stco, co64, stsc }: {
    readonly stco: DataView | null;
    readonly co64: DataView | null;
    readonly stsc: DataView;
  },
  sizes: Uint32Array,
): Float64Array {
  const places = stco ?? co64;
  if (!places) throw new Mp4Error("no box stco");
  const offsets = new Float64Array(sizes.length);
  const rows = stsc.getUint32(4);
  let [sample, row] = [0, 0];
  for (let chunk = 0; chunk < places.getUint32(4); chunk++) {
    while (row + 1 < rows && stsc.getUint32(8 + 12 * (row + 1)) <= chunk + 1) row++;
    let at = stco ? stco.getUint32(8 + 4 * chunk) : Number(co64!.getBigUint64(8 + 8 * chunk));
    const until = Math.min(sizes.length, sample + stsc.getUint32(12 + 12 * row));
    for (; sample < until; sample++) {
      offsets[sample] = at;
      at += sizes[sample]!;
    }
  }
  return offsets;
}

/** Most samples of a track. A segment never has this many: a damaged file must not ask for memory. */
const SAMPLES_MAX = 2 ** 20;

function bounded(count: number): number {
  if (count > SAMPLES_MAX) throw new Mp4Error("more samples than a segment has");
  return count;
}
