/** Damages an encoded video, by changed bytes or lost packets, and measures which of its frames come out
 * different.
 */

import type { FrameRange } from "../../scores/truth.ts";
import type { Codec } from "./codecs.ts";
import type { DamageRange, FilmTruth } from "../film.ts";
import { rangesWhere } from "./inspect.ts";
import type { Size } from "../pictures/picture.ts";
import { ffmpeg, ffprobe, FrameReader } from "./programs.ts";
import type { Random } from "../random.ts";
import { remap } from "../remap.ts";

export type DamageWay = "bytes" | "packets";

/** Containers in which the place of a packet's bytes can be told and from which one can be left out. */
export const DAMAGED_CONTAINERS: Readonly<Partial<Record<Codec, readonly string[]>>> = {
  h264: ["mp4", "ts", "mkv"],
  hevc: ["mp4", "mkv"],
  mpeg2: ["ts"],
  mpeg4: ["mp4", "avi"],
  vp8: ["webm"],
};

/** Bytes at the start of a packet that stay: headers of the container and of the picture. */
const KEPT_BYTES = 48;
const FIRST_PACKET = 12;
/** Mean difference of luma above which a frame counts as damaged, and below which it counts as whole. */
const DAMAGED_MAD = 0.5;
const WHOLE_MAD = 0.02;
/** Mean difference of luma above which a new shot may not be seen as one. */
const HIDING_MAD = 8;
const ATTEMPTS = 8;

interface Packet {
  readonly pos: number;
  readonly size: number;
}

/** Writes the damaged copy of `clean` to `path`, and returns the truth of its frames. */
export async function damageVideo(
  clean: string,
  path: string,
  way: DamageWay,
  truth: FilmTruth,
  { size, fps }: { size: Size; fps: number },
  random: Random,
): Promise<{ truth: FilmTruth; frames: number; damagedPackets: readonly FrameRange[] }> {
  const packets = await packetsOf(clean);
  let reason = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const chosen = choosePackets(packets.length, fps, random.fork(`packets${attempt}`));
    if (way === "bytes") await changeBytes(clean, path, packets, chosen, random.fork(`bytes${attempt}`));
    else await losePackets(clean, path, chosen);
    const measured = await compareDecodes(clean, path, size, fps);
    if (typeof measured === "string") reason = measured;
    else {
      const { kept, mads } = measured;
      const ranges = damagedRanges(mads, way);
      const jumps = kept.flatMap((frame, i) => i > 0 && frame > kept[i - 1]! + 1 ? [i] : []);
      if (ranges.length > 0 || jumps.length > 0) {
        const faint = rangesWhere(mads, (mad) => mad > WHOLE_MAD && mad <= DAMAGED_MAD);
        const moved = withoutHiddenCuts(remap(truth, kept), ranges, mads);
        const damaged = { ...moved, corruption: ranges, faint, jumps };
        return { truth: damaged, frames: kept.length, damagedPackets: chosen };
      }
      reason = "no frame came out different";
    }
  }
  throw new Error(`${path} could not be damaged: ${reason}`);
}

async function packetsOf(path: string): Promise<Packet[]> {
  const text = await ffprobe([
    ...["-select_streams", "v:0", "-show_packets", "-show_entries", "packet=pos,size", "-of", "json", path],
  ], path);
  const { packets } = JSON.parse(text) as { packets: { pos?: string; size: string }[] };
  return packets.map(({ pos, size }) => ({ pos: Number(pos ?? -1), size: Number(size) }));
}

/** Chooses the packets to damage: rows of 1 to 4, at least a second and a half apart. */
function choosePackets(count: number, fps: number, random: Random): FrameRange[] {
  const chosen: FrameRange[] = [];
  let next = FIRST_PACKET + random.int(0, Math.round(2 * fps));
  while (next < count - 20 && chosen.length < 6) {
    const end = next + random.int(1, 4);
    chosen.push({ start: next, end });
    next = end + Math.round(fps * random.between(1.5, 5));
  }
  return chosen;
}

async function changeBytes(
  clean: string,
  path: string,
  packets: readonly Packet[],
  chosen: readonly FrameRange[],
  random: Random,
): Promise<void> {
  const bytes = await Deno.readFile(clean);
  for (const { start, end } of chosen) {
    for (const { pos, size } of packets.slice(start, end)) {
      const room = Math.min(size, bytes.length - pos) - KEPT_BYTES;
      if (pos < 0 || room < 8) continue;
      for (let changes = random.int(1, Math.max(2, Math.round(room / 60))); changes > 0; changes--) {
        const place = pos + KEPT_BYTES + random.int(0, room - 1);
        bytes[place] = bytes[place]! ^ random.int(1, 255);
      }
    }
  }
  await Deno.writeFile(path, bytes);
}

async function losePackets(clean: string, path: string, chosen: readonly FrameRange[]): Promise<void> {
  const lost = chosen.map(({ start, end }) => `between(n,${start},${end - 1})`).join("+");
  await ffmpeg(
    ["-y", "-i", clean, "-map", "0:v:0", "-c", "copy", "-bsf:v", `noise=drop='${lost}'`, path],
    path,
  );
}

/**
 * Compares the damaged video with the whole one: for each frame that comes out of it which frame it was, and
 * how much it differs; or why that cannot be told.
 */
async function compareDecodes(
  clean: string,
  path: string,
  { width, height }: Size,
  fps: number,
): Promise<{ kept: number[]; mads: number[] } | string> {
  await using wholes = new TimedFrames(clean, width * height);
  await using damaged = new TimedFrames(path, width * height);
  const kept: number[] = [], mads: number[] = [];
  let whole = await wholes.next(), index = 0;
  for (;;) {
    const frame = await damaged.next();
    if (frame === null) break;
    while (whole !== null && whole.time < frame.time - 0.5 / fps) {
      whole = await wholes.next();
      index++;
    }
    if (whole === null || Number.isNaN(frame.time) || Math.abs(whole.time - frame.time) >= 0.5 / fps) {
      return `frame ${kept.length} comes at ${frame.time} s, where the undamaged video has none`;
    }
    if (kept.at(-1) === index) return `two frames come at ${frame.time} s`;
    kept.push(index);
    mads.push(meanDifference(frame.luma, whole.luma));
  }
  return kept.length > 0 ? { kept, mads } : "no frame came out";
}

function meanDifference(a: Uint8Array, b: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i]! - b[i]!);
  return sum / a.length;
}

/** The luma of decoded frames with their times, which ffmpeg's log tells. */
class TimedFrames implements AsyncDisposable {
  readonly #reader: FrameReader;
  readonly #times: number[] = [];
  readonly #luma: Uint8Array;
  readonly #log: Promise<void>;
  #logged: () => void = () => {};
  #logEnded = false;
  #read = 0;

  constructor(path: string, lumaBytes: number) {
    this.#luma = new Uint8Array(lumaBytes);
    this.#reader = new FrameReader([
      ...[
        "-v",
        "info",
        "-nostats",
        "-i",
        path,
        "-map",
        "0:v:0",
        "-vf",
        "showinfo=checksum=0,extractplanes=y",
      ],
      ...["-fps_mode", "passthrough"],
    ], "piped");
    this.#log = this.#readLog();
  }

  /** The next frame, which is valid until the next call. */
  async next(): Promise<{ time: number; luma: Uint8Array } | null> {
    if (!await this.#reader.read(this.#luma)) return null;
    const n = this.#read++;
    while (this.#times.length <= n && !this.#logEnded) {
      await new Promise<void>((resolve) => this.#logged = resolve);
    }
    return { time: this.#times[n] ?? NaN, luma: this.#luma };
  }

  async #readLog(): Promise<void> {
    let rest = "";
    for await (const text of this.#reader.child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const match = /showinfo.* n: *\d+ pts: *\S+ pts_time:(\S+)/.exec(line);
        if (match) this.#times.push(Number(match[1]));
      }
      this.#logged();
    }
    this.#logEnded = true;
    this.#logged();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader[Symbol.asyncDispose]();
    await this.#log;
  }
}

/**
 * The truth without hidden cuts. One that comes while the picture is badly damaged shows up then, when the
 * damage ends, or both: none of that is asked for.
 */
function withoutHiddenCuts(
  truth: FilmTruth,
  ranges: readonly DamageRange[],
  mads: readonly number[],
): FilmTruth {
  const hiding = (cut: number) =>
    ranges.find(({ start, end }) => start <= cut && cut < end && mads[cut]! > HIDING_MAD);
  const hidden = truth.cuts.filter((cut) => hiding(cut) !== undefined);
  const ends = hidden.map((cut) => hiding(cut)!.end).filter((end) => end < mads.length);
  return {
    ...truth,
    cuts: truth.cuts.filter((cut) => !hidden.includes(cut)),
    jumpcuts: [...new Set([...truth.jumpcuts, ...hidden, ...ends])].sort((a, b) => a - b),
  };
}

function damagedRanges(mads: readonly number[], way: DamageWay): DamageRange[] {
  return rangesWhere(mads, (mad) => mad > DAMAGED_MAD).map((range) => ({
    ...range,
    kind: way,
    max_mad: Math.round(100 * Math.max(...mads.slice(range.start, range.end))) / 100,
  }));
}
