/** Whether the clock of a file falls, so that two of its moments have one time, and a seek may end in the
 * wrong one. Reads samples of the file.
 */

import { FileBytes } from "./file_bytes.ts";
import { timesFallIn } from "./mp4_times.ts";
import { NutError, NutReader } from "./nut.ts";

/** Parts that are read, evenly spread: a file of up to 32 MB is read as a whole. */
const PARTS = 512;
const PART_BYTES = 64 * 1024;
/**
 * Seconds by which times may fall: a reader of times goes back so far anyway, and frames that are reordered
 * make them fall a little.
 */
const FALL_S = 5;

/**
 * Whether the times of a file fall. `formatName` is ffprobe's. Containers that are not looked into count as
 * good.
 */
export async function clockFalls(path: string, formatName: string, streamIndex: number): Promise<boolean> {
  if (/^mov\b/.test(formatName)) return await timesFallIn(path, streamIndex);
  const read = READERS.find(([format]) => format.test(formatName))?.[1];
  return read ? await samplesFall(path, read(streamIndex)) : false;
}

/**
 * Gives the times in a part of a file, in seconds and in their order. The first part is the start of the
 * file.
 */
type TimesIn = (part: DataView<ArrayBuffer>) => number[];

async function samplesFall(path: string, timesIn: TimesIn): Promise<boolean> {
  using file = await Deno.open(path, { read: true });
  const { size } = await file.stat();
  const step = Math.max(PART_BYTES, size / PARTS);
  const bytes = new FileBytes(file);
  let latest = -Infinity;
  for (let at = 0; at < size; at += step) {
    for (const timeS of timesIn(await bytes.at(Math.floor(at), PART_BYTES))) {
      if (latest - timeS > FALL_S) return true;
      latest = Math.max(latest, timeS);
    }
  }
  return false;
}

/** What reads one file of each format. */
const READERS: readonly (readonly [RegExp, (streamIndex: number) => TimesIn])[] = [
  [/^(mpegts|mpeg)$/, () => packetTimes],
  [/^matroska\b/, () => clusterTimes],
  [/^flv$/, () => tagTimes],
  [/^nut$/, nutTimes],
];

const PACKET_BYTES = 14;
const VIDEO = 0xe0;

/**
 * Times of MPEG's packets of video, which have four bytes of a start code, two of the length, flags, and five
 * of a time of 33 bits.
 */
function packetTimes(part: DataView): number[] {
  const times: number[] = [];
  const at = (place: number) => part.getUint8(place);
  for (let place = 0; place + PACKET_BYTES <= part.byteLength; place++) {
    if (part.getUint32(place) >>> 4 !== (0x100 | VIDEO) >>> 4) continue;
    const hasTime = at(place + 6) >> 6 === 2 && at(place + 7) >= 0x80 && at(place + 9) >> 5 === 1;
    const isTime = hasTime && (at(place + 9) & at(place + 11) & at(place + 13) & 1) === 1;
    if (!isTime) continue;
    const high = (at(place + 9) >> 1 & 7) * 2 ** 30;
    times.push(
      (high + (part.getUint16(place + 10) >> 1) * 2 ** 15 + (part.getUint16(place + 12) >> 1)) / 90_000,
    );
  }
  return times;
}

const CLUSTER = 0x1f43b675;
const TIMESTAMP = 0xe7;
const CHECKSUM = 0xbf;
const CHECKSUM_BYTES = 6;
/** Bytes of the head of a cluster: an id, a size of up to nine bytes, a checksum, and then the time. */
const CLUSTER_BYTES = 29;

/**
 * Times of Matroska's clusters. The time is the first element, unless a checksum is, and in milliseconds in
 * nearly all files.
 */
function clusterTimes(part: DataView): number[] {
  const times: number[] = [];
  for (let place = 0; place + CLUSTER_BYTES <= part.byteLength; place++) {
    if (part.getUint32(place) !== CLUSTER) continue;
    const content = place + 4 + Math.clz32(part.getUint8(place + 4)) - 23;
    const at = part.getUint8(content) === CHECKSUM ? content + CHECKSUM_BYTES : content;
    const bytes = part.getUint8(at + 1) & 0x7f;
    if (part.getUint8(at) !== TIMESTAMP || bytes > 8) continue;
    let time = 0;
    for (let i = 0; i < bytes; i++) time = time * 256 + part.getUint8(at + 2 + i);
    times.push(time / 1000);
  }
  return times;
}

/**
 * Type of FLV's tag of video. Then come its length, its time in milliseconds with the highest byte last, a
 * stream that is 0, data, and its length again.
 */
const VIDEO_TAG = 9;
const TAG_BYTES = 11;

/** Times of FLV's tags of video. A tag begins at a place behind whose data the length stands again. */
function tagTimes(part: DataView): number[] {
  const times: number[] = [];
  for (let place = 0; place + TAG_BYTES + 4 <= part.byteLength; place++) {
    if (part.getUint8(place) !== VIDEO_TAG || part.getUint32(place + 7) << 8 !== 0) continue;
    const length = TAG_BYTES + (part.getUint32(place) & 0xffffff);
    if (place + length + 4 > part.byteLength || part.getUint32(place + length) !== length) continue;
    times.push(((part.getUint32(place + 4) >>> 8) + part.getUint8(place + 7) * 2 ** 24) / 1000);
    place += length + 3;
  }
  return times;
}

/** Most streams of a NUT file that is looked into: more than any file has that is played. */
const NUT_STREAMS_MAX = 32;
const NUT_SYNCPOINT = 0x4e4be4adeeca4569n;

/**
 * Times of NUT's frames, in each part from its first syncpoint on. The times of the syncpoints themselves are
 * those of decoding, which never fall. The headers are in the first part.
 */
function nutTimes(streamIndex: number): TimesIn {
  const reader = new NutReader({ streamsMax: NUT_STREAMS_MAX, frameBytesMax: 0 });
  let isFirst = true;
  return (part) => {
    const times: number[] = [];
    const bytes = new Uint8Array(part.buffer, 0, part.byteLength);
    let at = isFirst ? 0 : syncpointIn(part);
    isFirst = false;
    try {
      while (at !== -1 && at < bytes.length) {
        at = reader.read(bytes, at, bytes.length);
        if (at === -1 || !(reader.hasFrame || reader.isTooLong) || reader.frameStream !== streamIndex) {
          continue;
        }
        const { numerator, denominator } = reader.streams[streamIndex]!;
        times.push(reader.framePts * numerator / denominator);
      }
    } catch (error) {
      // What is damaged, or has streams of another kind, tells what was read until there.
      if (!(error instanceof NutError)) throw error;
    }
    return times;
  };
}

/** Where the first syncpoint is; -1 for none. */
function syncpointIn(part: DataView): number {
  for (let place = 0; place + 8 <= part.byteLength; place++) {
    if (part.getUint8(place) === 0x4e && part.getBigUint64(place) === NUT_SYNCPOINT) return place;
  }
  return -1;
}
