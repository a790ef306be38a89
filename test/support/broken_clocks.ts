/** Films whose clocks are broken, made by ffmpeg and by changing the times in their bytes; each picture shows
 * its number.
 */

import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import { boxOn, fullBox, uint32List } from "../../src/media/containers/mp4_boxes.ts";
import { make, type TempFolder } from "./media.ts";
import { makeNumbered } from "./recorded_media.ts";

/** Frames of each film, 40 ms apart. */
export const BROKEN_FRAMES = 96;
export const FRAME_MS = 40;
/** Milliseconds at which clocks begin, so that a clock that is set back has times above 0. */
const START_MS = 10_000;

/** The time of frame `k`, whose right time is `t`, both in milliseconds. */
type Clock = (k: number, t: number) => number;

const timeOf = (k: number) => k * FRAME_MS;

/** What recorders, cut tools and drivers do to times. */
export const CLOCKS: Readonly<Record<string, Clock>> = {
  "one time is 100 s late": (k, t) => k === 49 ? t + 100_000 : t,
  "two frames share a wild time": (k, t) => k === 40 || k === 41 ? 900_000 : t,
  "one time is 2 s late": (k, t) => k === 30 ? t + 2_000 : t,
  "one time is 1.5 s early": (k, t) => k === 50 ? t - 1_500 : t,
  "each twentieth time is an hour away": (k, t) => k % 20 === 7 ? t + 3_600_000 : t,
  "each 25th frame has the time of the next": (k, t) =>
    k % 25 === 24 && k < BROKEN_FRAMES - 1 ? timeOf(k + 1) : t,
  "each tenth frame has the time of the one before": (k, t) => k % 10 === 9 ? timeOf(k - 1) : t,
  "the clock is set back by 3 s": (k, t) => k >= 60 ? t - 3_000 : t,
  "each time comes twice": (k, t) => k >= 48 ? timeOf(k - 48) : t,
  "the clock begins anew": (k, t) => k >= 48 ? timeOf(k - 48) - 9_000 : t,
  "the clock begins anew again and again": (k) => timeOf(k % 30) - (k >= 30 ? 5_000 : 0),
  "all times are one": () => 0,
  "times are nearly one": (k) => k / 50,
};

/**
 * What is made: `clock` has the times on the container's clock, and frames are coded in another order where
 * `isReordered`.
 */
interface Film {
  readonly folder: TempFolder;
  readonly path: string;
  readonly clock: Clock;
  readonly isReordered: boolean;
}

/** How a film with these times is made, by the end of its name. */
const MAKERS: Readonly<Record<string, (film: Film) => void>> = {
  mkv: (film) => copied(film, { format: "mkv", ticksPerMs: 1 }),
  // The muxer makes 51,200 ticks a second of 25 frames.
  nut: (film) => copied(film, { format: "nut", ticksPerMs: 51.2 }),
  mp4: (film) => copied(film, { format: "mp4", ticksPerMs: 12.8 }),
  ts: (film) => packetized(film, "mpegts"),
  mpg: (film) => packetized(film, "vob"),
  flv: flash,
};

/** Makes the film in the folder. */
export function makeBroken(
  folder: TempFolder,
  container: string,
  clock: Clock,
  { isReordered = false, startMs = START_MS }: {
    readonly isReordered?: boolean;
    /** Milliseconds at which the film begins on its clock. */
    readonly startMs?: number;
  } = {},
): string {
  const path = join(folder.path, `broken.${container}`);
  MAKERS[container]!({ folder, path, clock: (k, t) => startMs + clock(k, t), isReordered });
  return path;
}

function timesOf(clock: Clock): number[] {
  return Array.from({ length: BROKEN_FRAMES }, (_, k) => clock(k, timeOf(k)));
}

/**
 * Copies a film into a container whose muxer asks for rising times of decoding only, which readers do not
 * have.
 */
function copied(
  { folder, path, clock, isReordered }: Film,
  { format, ticksPerMs }: { readonly format: string; readonly ticksPerMs: number },
): void {
  const film = makeNumbered(join(folder.path, `sound.${format}`), BROKEN_FRAMES, [
    ...["-c:v", "mpeg4", "-q:v", "2", ...(isReordered ? ["-bf", "2"] : [])],
  ]);
  // A tree of comparisons: a film has too many frames for one row of terms.
  const tree = (from: number, to: number, times: readonly number[]): string => {
    if (to - from === 1) return String(times[from]);
    const middle = (from + to) >> 1;
    return `if(lt(ld(0),${middle}),${tree(from, middle, times)},${tree(middle, to, times)})`;
  };
  const times = tree(0, BROKEN_FRAMES, timesOf(clock).map((ms) => ms * ticksPerMs));
  make(
    path,
    "-i",
    film,
    "-c",
    "copy",
    "-bsf:v",
    `setts=pts='st(0,round((PTS-STARTPTS)/${FRAME_MS * ticksPerMs}));${times}':dts=N*${
      FRAME_MS * ticksPerMs
    }`,
    "-avoid_negative_ts",
    "disabled",
  );
}

/**
 * The tables of an MP4 of even steps, which are written again: steps, and offsets of frames that are shown in
 * another order.
 */
interface TimeTables {
  /** Rows of a number of samples and the ticks to the next one. */
  readonly steps?: (tick: number) => readonly (readonly [number, number])[];
  readonly offsets?: readonly (readonly [number, number])[];
}

/** What writers do to these tables. */
export const TABLES: Readonly<Record<string, TimeTables>> = {
  "steps are 0": { steps: () => [[BROKEN_FRAMES, 0]] },
  "steps are a tick": { steps: () => [[BROKEN_FRAMES, 1]] },
  "a step is 100 s longer, and the next one goes back": {
    steps: (tick) => [[49, tick], [1, 2_501 * tick], [1, -2_499 * tick], [BROKEN_FRAMES - 51, tick]],
  },
  "a step goes back by 2 s": { steps: (tick) => [[69, tick], [1, -49 * tick], [BROKEN_FRAMES - 70, tick]] },
  "offsets are 0": { offsets: [[BROKEN_FRAMES, 0]] },
};

/** Makes an MP4 with these tables in the folder. */
export function makeWithTables(
  folder: TempFolder,
  { steps, offsets }: TimeTables,
  { isReordered }: { readonly isReordered: boolean },
): string {
  const film = makeNumbered(join(folder.path, "even.mp4"), BROKEN_FRAMES, [
    ...["-c:v", "mpeg4", "-q:v", "2", ...(isReordered ? ["-bf", "2"] : [])],
  ]);
  let bytes = Deno.readFileSync(film);
  if (steps) bytes = withTable(bytes, "stts", steps(FRAME_MS * 12.8));
  if (offsets && isReordered) bytes = withTable(bytes, "ctts", offsets);
  return folder.file("tables.mp4", bytes);
}

/** The table has other rows; what has the table is longer or shorter, and comes behind the pictures. */
function withTable(
  film: Uint8Array<ArrayBuffer>,
  type: string,
  rows: readonly (readonly [number, number])[],
): Uint8Array<ArrayBuffer> {
  const path = ["moov", "moov/trak", "moov/trak/mdia", "moov/trak/mdia/minf", "moov/trak/mdia/minf/stbl"];
  const old = boxOn(film, `${path.at(-1)}/${type}`);
  const table = fullBox(type, {}, uint32List([rows.length, ...rows.flat()]));
  const bytes = joinedBytes(film.subarray(0, old.start), table, film.subarray(old.end));
  const view = new DataView(bytes.buffer);
  for (const { start, end } of path.map((outer) => boxOn(film, outer))) {
    view.setUint32(start, end - start + table.length - (old.end - old.start));
  }
  return bytes;
}

/** Packets of MPEG have their times in five bytes behind a header; now and then a picture has none. */
function packetized({ folder, path, clock, isReordered }: Film, format: string): void {
  const film = makeNumbered(join(folder.path, `sound.${format}`), BROKEN_FRAMES, [
    ...[
      "-c:v",
      "mpeg2video",
      "-q:v",
      "2",
      ...(isReordered ? ["-g", "12", "-bf", "2"] : ["-g", "1", "-bf", "0"]),
    ],
    ...["-f", format],
    // Pictures that are smaller than a packet would share one, and so its time.
    ...(format === "vob" ? ["-packetsize", "1024"] : []),
  ], { size: format === "vob" ? "320x240" : "64x48" });
  const bytes = Deno.readFileSync(film);
  const times = timesOf(clock);
  let first: number | null = null;
  for (let at = 0; at + 19 < bytes.length; at++) {
    const isPacket = bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === 1 && bytes[at + 3] === 0xe0;
    if (!isPacket || (bytes[at + 6]! & 0xc0) !== 0x80 || (bytes[at + 7]! & 0x80) === 0) continue;
    first ??= readTicks(bytes, at + 9);
    const before = readTicks(bytes, at + 9);
    const ticks = times[Math.round((before - first) / (FRAME_MS * 90))]! * 90;
    if ((bytes[at + 7]! & 0x40) !== 0) {
      writeTicks(bytes, at + 14, ticks - (isReordered ? before - readTicks(bytes, at + 14) : 0));
    }
    writeTicks(bytes, at + 9, ticks);
  }
  Deno.writeFileSync(path, bytes);
}

function readTicks(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! >> 1 & 7) * 2 ** 30;
  return high + (bytes[at + 1]! << 22) + (bytes[at + 2]! >> 1 << 15) + (bytes[at + 3]! << 7) +
    (bytes[at + 4]! >> 1);
}

/** Writes a time of 33 bits, of which each 15 are followed by a one. */
function writeTicks(bytes: Uint8Array, at: number, time: number): void {
  const ticks = time % 2 ** 33;
  bytes[at] = (bytes[at]! & 0xf1) | (Math.floor(ticks / 2 ** 30) & 7) << 1;
  bytes[at + 1] = ticks >> 22 & 0xff;
  bytes[at + 2] = (ticks >> 14 & 0xfe) | 1;
  bytes[at + 3] = ticks >> 7 & 0xff;
  bytes[at + 4] = (ticks << 1 & 0xfe) | 1;
}

/** Tags follow each other, each with its time and its length. */
function flash({ folder, path, clock }: Film): void {
  const film = makeNumbered(join(folder.path, "sound.flv"), BROKEN_FRAMES, ["-c:v", "flv1", "-q:v", "2"]);
  const bytes = Deno.readFileSync(film);
  const view = new DataView(bytes.buffer);
  const times = timesOf(clock);
  let frame = 0;
  for (let at = 13; at + 11 < bytes.length;) {
    const length = view.getUint32(at) & 0xffffff;
    if (bytes[at] === 9) {
      const time = times[frame++]!;
      view.setUint32(at + 4, (time & 0xffffff) << 8 | time >>> 24);
    }
    at += 11 + length + 4;
  }
  if (frame !== BROKEN_FRAMES) throw new Error(`${frame} pictures`);
  Deno.writeFileSync(path, bytes);
}
