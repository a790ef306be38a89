/** What is wrong with the times of an MP4: whether they fall or say nothing, and whether its edit list was
 * made of wrong ones. Reads the tables of a track, wherever they are in the file.
 */

import { RATE_MAX } from "../../model/frames/frame_rate.ts";
import { FileBytes } from "./file_bytes.ts";
import { boxesIn, boxOn, type Mp4Box, Mp4Error } from "./mp4_boxes.ts";
import type { Mp4ClockFault } from "../media_info.ts";

/**
 * Largest `moov` that is looked at, more than a film of ten hours has; a file with more is taken as it is.
 */
const MOOV_BYTES_MAX = 64 * 2 ** 20;
const BOXES_MAX = 1000;
/** Most places that a frame comes before its turn: no decoder has more. */
const REORDERED_MAX = 16;

export interface Mp4Faults {
  /**
   * Whether the edit list hides frames that are to be shown. A film with wrong times has an edit list that
   * was made of them: frames whose times lie outside are not shown, and after a key frame at its end ffmpeg
   * reads no more. An edit list that cuts off a beginning and an end hides the first and the last frames in
   * the order of decoding, and a few between them where frames are reordered. Where others are hidden, the
   * times are wrong.
   */
  readonly hidesByMistake: boolean;
  readonly clock: Mp4ClockFault | null;
}

export async function mp4Faults(path: string, streamIndex: number): Promise<Mp4Faults> {
  const found = await ofTrack(path, streamIndex, (track): Mp4Faults => ({
    hidesByMistake: isMistaken(track),
    clock: clockFault(track),
  }));
  return found ?? { hidesByMistake: false, clock: null };
}

/** Whether frames come behind others that are shown much later: more than reordering explains. */
export async function timesFallIn(path: string, streamIndex: number): Promise<boolean> {
  const falls = await ofTrack(path, streamIndex, ({ samples: { times, interval } }) => {
    let latest = -Infinity;
    return times.some((time) => {
      latest = Math.max(latest, time);
      return latest - time > REORDERED_MAX * interval;
    });
  });
  return falls ?? false;
}

interface Track {
  readonly moov: Uint8Array;
  readonly trak: Mp4Box;
  /** Finds a table by its type. */
  readonly find: (type: string) => DataView | null;
  readonly samples: SampleTimes;
  /** Ticks a second, and how long the track says it is, in ticks. */
  readonly timescale: number;
  readonly duration: number;
}

/** What `judge` says of a track; null where the file has no such track, or tables that cannot be read. */
async function ofTrack<Verdict>(
  path: string,
  streamIndex: number,
  judge: (track: Track) => Verdict,
): Promise<Verdict | null> {
  try {
    const moov = await readMoov(path);
    const trak = moov && boxesIn(moov, 8).filter(({ type }) => type === "trak")[streamIndex];
    if (!trak) return null;
    const find = tablesOf(moov, trak);
    const stts = find("stts");
    if (!stts) return null;
    const samples = sampleTimes(stts, find("ctts"));
    const header = table(moov, boxOn(moov, "mdia/mdhd", trak));
    const duration = header.getUint8(0) === 1 ? Number(header.getBigUint64(24)) : header.getUint32(16);
    return judge({ moov, trak, find, samples, timescale: timescale(header), duration });
  } catch (error) {
    if (error instanceof Mp4Error || error instanceof RangeError) return null;
    throw error;
  }
}

function clockFault(
  { samples: { times, interval, longest, hasNegative, isEven, isUnordered }, timescale, duration }: Track,
) {
  // A step that is longer than the film says it is.
  if (hasNegative && duration < NEGATIVE) return "steps_back";
  if (times.length > 1 && longest <= 1 && interval * RATE_MAX < timescale) return "silent";
  return isEven && isUnordered ? "unordered" : null;
}

/** The least number of 32 bits that stands for one below 0. */
const NEGATIVE = 2 ** 31;

/** Finds the tables of a track by their types. */
function tablesOf(moov: Uint8Array, trak: Mp4Box): (type: string) => DataView | null {
  const stbl = boxOn(moov, "mdia/minf/stbl", trak);
  const tables = boxesIn(moov, stbl.content, stbl.end);
  return (type) => {
    const found = tables.find((box) => box.type === type);
    return found ? table(moov, found) : null;
  };
}

/** The whole box `moov`; null where there is none, or a very large one. */
async function readMoov(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
  using file = await Deno.open(path, { read: true });
  const { size } = await file.stat();
  const bytes = new FileBytes(file);
  for (let at = 0, count = 0; at + 8 <= size && count < BOXES_MAX; count++) {
    const view = await bytes.at(at, 16);
    if (view.byteLength < 8) return null;
    const short = view.getUint32(0);
    const length = short === 1 ? Number(view.getBigUint64(8)) : short;
    if (view.getUint32(4) === MOOV) {
      if (short === 1 || length > MOOV_BYTES_MAX || at + length > size) return null;
      const { buffer, byteLength } = await bytes.at(at, length);
      return byteLength < length ? null : new Uint8Array(buffer);
    }
    if (length < 8) return null;
    at += length;
  }
  return null;
}

const MOOV = 0x6d6f6f76;

function isMistaken({ moov, trak, find, samples, timescale: mediaPerSecond }: Track): boolean {
  const inside = boxesIn(moov, trak.content, trak.end);
  const edts = inside.find(({ type }) => type === "edts");
  if (!edts) return false;
  const moovBox = boxesIn(moov)[0]!;
  const edit = onlyEdit(table(moov, boxOn(moov, "elst", edts)), {
    perSecond: timescale(table(moov, boxOn(moov, "mvhd", moovBox))),
    mediaPerSecond,
  });
  return edit !== null && (hidesInside(edit, samples, find("stss")) || hidesDelay(edit, samples));
}

/**
 * Whether an edit hides frames that are only delayed. Where frames are reordered, the first one is shown some
 * frames after time 0, and the edit list begins with it. Where the offsets that say so are all 0, it hides
 * frames that are to be shown.
 */
function hidesDelay({ start }: Edit, { times, isUnordered }: SampleTimes): boolean {
  const first = times.findIndex((time) => time >= start);
  return isUnordered && first > 0 && first <= REORDERED_MAX;
}

/** The part of a track that is shown, in ticks of the track. */
interface Edit {
  readonly start: number;
  readonly end: number;
}

/**
 * The only edit of a track; null where there are several, which an editor made. Edits without media only
 * delay what is shown, and do not count.
 */
function onlyEdit(
  elst: DataView,
  { perSecond, mediaPerSecond }: { readonly perSecond: number; readonly mediaPerSecond: number },
): Edit | null {
  const isLong = elst.getUint8(0) === 1;
  const edits: Edit[] = [];
  for (let entry = 0; entry < elst.getUint32(4); entry++) {
    const at = 8 + entry * (isLong ? 20 : 12);
    const length = isLong ? Number(elst.getBigUint64(at)) : elst.getUint32(at);
    const start = isLong ? Number(elst.getBigInt64(at + 8)) : elst.getInt32(at + 4);
    // One tick of the film more, as lengths are rounded.
    const shown = length === 0 ? 0 : (length + 1) / perSecond * mediaPerSecond;
    if (start >= 0) edits.push({ start, end: start + shown });
  }
  return edits.length === 1 ? edits[0]! : null;
}

interface SampleTimes {
  /** When the samples are shown, in the order of decoding. */
  readonly times: readonly number[];
  /** Time from one sample to the next, in ticks: the mean, and below it the most. */
  readonly interval: number;
  readonly longest: number;
  /** Whether some steps are below 0, if they may be. */
  readonly hasNegative: boolean;
  /** Whether all steps are the same, but that behind the last sample. */
  readonly isEven: boolean;
  /** Whether there are offsets for another order, and all are 0. */
  readonly isUnordered: boolean;
}

function sampleTimes(stts: DataView, ctts: DataView | null): SampleTimes {
  const times: number[] = [];
  let [decodeTime, longest, least] = [0, 0, 0];
  for (let entry = 0; entry < stts.getUint32(4); entry++) {
    // Some writers have steps below 0, and no film has steps of so many ticks.
    const delta = stts.getInt32(12 + 8 * entry);
    longest = Math.max(longest, delta);
    least = Math.min(least, delta);
    for (let left = stts.getUint32(8 + 8 * entry); left > 0; left--) {
      times.push(decodeTime);
      decodeTime += delta;
      if (times.length > SAMPLES_MAX) throw new Mp4Error("more samples than a film has");
    }
  }
  let sample = 0;
  let isUnordered = ctts !== null;
  for (let entry = 0; ctts && entry < ctts.getUint32(4); entry++) {
    const offset = ctts.getInt32(12 + 8 * entry);
    isUnordered &&= offset === 0;
    const until = Math.min(times.length, sample + ctts.getUint32(8 + 8 * entry));
    for (; sample < until; sample++) times[sample]! += offset;
  }
  const interval = decodeTime / Math.max(1, times.length);
  const entries = stts.getUint32(4);
  const isEven = entries === 1 || (entries === 2 && stts.getUint32(16) === 1);
  return { times, interval, longest, hasNegative: least < 0, isEven, isUnordered };
}

/** Most samples that are looked at: ten hours at 120 frames a second. */
const SAMPLES_MAX = 4_320_000;

function hidesInside({ start, end }: Edit, { times, interval }: SampleTimes, stss: DataView | null): boolean {
  const isIn = (time: number) => time >= start && time < end;
  const first = times.findIndex(isIn);
  if (first === -1) return times.length > 0;
  const last = times.findLastIndex(isIn);
  // Key frames alone need no other order.
  const reordered = stss === null ? 0 : REORDERED_MAX;
  const isNear = (ticks: number) => ticks <= reordered * interval;
  const keys = stss === null ? null : keysOf(stss);
  return times.some((time, at) => {
    if (time < start) return at > first + reordered || (at > first && !isNear(start - time));
    if (time >= end) return at < last - reordered || (at < last && !isNear(time - end));
    // Behind it ffmpeg would stop.
    const isKey = keys === null || keys.has(at + 1);
    return isKey && at < last - reordered && time + 2 * interval >= end;
  });
}

/** The numbers of key frames, from 1 on. */
function keysOf(stss: DataView): Set<number> {
  const keys = new Set<number>();
  for (let entry = 0; entry < stss.getUint32(4); entry++) keys.add(stss.getUint32(8 + 4 * entry));
  return keys;
}

/** Ticks a second, from the header of a film or of a track. */
function timescale(header: DataView): number {
  return header.getUint32(header.getUint8(0) === 1 ? 20 : 12);
}

/** The content of a table from its version on. */
function table(bytes: Uint8Array, { content, end }: Mp4Box): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + content, end - content);
}
