/** The clips of a folder: which stretches of each are one unbroken take, and copies of them in which seeking
 * is cheap.
 */

import { basename, join } from "node:path";
import type { FrameRange, Truth } from "../../scores/truth.ts";
import excluded from "./excluded.json" with { type: "json" };
import { type ClipTag, originOf } from "./origins.ts";
import type { Size } from "../pictures/picture.ts";
import { ffmpeg, ffprobe } from "./programs.ts";

/** Frames next to a labelled event are not used either, because labels may be off by a few. */
const MARGIN_FRAMES = 3;
const SHORTEST_TAKE_FRAMES = 12;
/** Longest side of a copy, pixels. */
const LONGEST_SIDE = 1280;

export interface Clip extends Size {
  readonly file: string;
  readonly origin: string;
  readonly tags: readonly ClipTag[];
  /** Frames a second of the copy; in it frame n lies at n / fps. */
  readonly fps: number;
  readonly frames: number;
  /** Frames in which nothing is cut, flashes or breaks. */
  readonly takes: readonly FrameRange[];
  /** Path of the copy. */
  readonly reel: string;
}

/**
 * Reads the usable clips of `folders`, sorted by name. Their copies are made in `workFolder` and used again
 * when they are there.
 */
export async function readClips(folders: readonly string[], workFolder: string): Promise<Clip[]> {
  const clips: Clip[] = [];
  for (const folder of folders) {
    const names: string[] = [];
    for await (const entry of Deno.readDir(folder)) if (entry.isFile) names.push(entry.name);
    for (const name of names.sort()) {
      if (name.startsWith("bad_") || name.endsWith(".json") || clips.some(({ file }) => file === name)) {
        continue;
      }
      const clip = await readClip(folder, name, workFolder);
      if (clip && clip.takes.length > 0) clips.push(clip);
    }
  }
  return clips.sort((a, b) => (a.file < b.file ? -1 : 1));
}

async function readClip(folder: string, file: string, workFolder: string): Promise<Clip | null> {
  const path = join(folder, file);
  const shape = await probe(path);
  if (!shape) return null;
  const { fps } = shape;
  const scale = Math.min(1, LONGEST_SIDE / Math.max(shape.width, shape.height));
  const width = 2 * Math.round(shape.width * scale / 2), height = 2 * Math.round(shape.height * scale / 2);
  const reel = join(workFolder, `${file}.reel.mp4`);
  if (!await isFile(reel)) await makeReel(path, reel, shape, { width, height });
  const packets = await ffprobe([
    ...["-select_streams", "v:0", "-count_packets", "-show_entries", "stream=nb_read_packets"],
    ...["-of", "csv=p=0", reel],
  ], file);
  const frames = Number.parseInt(packets);
  const { origin, tags } = originOf(file);
  return {
    file,
    origin,
    tags,
    width,
    height,
    fps,
    frames,
    reel,
    takes: await takesOf(folder, file, frames, fps),
  };
}

/** A copy without B-frames and with many keyframes, whose frames are evenly spaced in time. */
async function makeReel(
  path: string,
  reel: string,
  { fps, timeBase }: Shape,
  { width, height }: Size,
): Promise<void> {
  await Deno.mkdir(join(reel, ".."), { recursive: true });
  const unfinished = `${reel}.part`;
  await ffmpeg([
    ...["-y", "-i", path, "-map", "0:v:0", "-fps_mode", "passthrough"],
    ...["-vf", `setpts=N/(${fps}*TB),scale=${width}:${height}:flags=bicubic:out_range=tv,setsar=1`],
    ...[
      "-pix_fmt",
      "yuv420p",
      "-c:v",
      "libx264",
      "-preset",
      "ultrafast",
      "-crf",
      "8",
      "-g",
      "12",
      "-bf",
      "0",
    ],
    ...[
      "-threads",
      "1",
      "-enc_time_base",
      timeBase,
      "-video_track_timescale",
      "90000",
      "-f",
      "mp4",
      unfinished,
    ],
  ], path);
  await Deno.rename(unfinished, reel);
}

interface Shape extends Size {
  readonly fps: number;
  /** Unit of its times, in seconds. */
  readonly timeBase: string;
}

async function probe(path: string): Promise<Shape | null> {
  const entries = "stream=width,height,r_frame_rate,time_base:stream_tags=rotate:stream_side_data=rotation";
  const text = await ffprobe(["-select_streams", "v:0", "-show_entries", entries, "-of", "json", path], path)
    .catch(() => "{}");
  const stream = JSON.parse(text).streams?.[0];
  if (!stream?.width) return null;
  const [over, under] = String(stream.r_frame_rate).split("/").map(Number) as [number, number];
  const turned = Math.abs(stream.side_data_list?.[0]?.rotation ?? 0) === 90;
  const rate = over / under;
  return {
    width: turned ? stream.height : stream.width,
    height: turned ? stream.width : stream.height,
    // The rate of a video with a variable one says nothing; its frames are then taken as a film's.
    fps: rate >= 5 && rate <= 61 ? Math.round(1000 * rate) / 1000 : 24,
    timeBase: stream.time_base,
  };
}

/** Cuts the clip at everything that its truth file or the list beside this script says of it. */
async function takesOf(folder: string, file: string, frames: number, fps: number): Promise<FrameRange[]> {
  const events = [
    ...eventsOf(await truthOf(folder, file)),
    ...listed(file).map(([from, to]) => ({ start: Math.floor(from * fps), end: Math.ceil(to * fps) })),
  ].sort((a, b) => a.start - b.start);
  const takes: FrameRange[] = [];
  let start = 1;
  for (const event of [...events, { start: frames + MARGIN_FRAMES, end: frames + MARGIN_FRAMES }]) {
    const end = Math.min(event.start - MARGIN_FRAMES, frames);
    if (end - start >= SHORTEST_TAKE_FRAMES) takes.push({ start, end });
    start = Math.max(start, event.end + MARGIN_FRAMES);
  }
  return takes;
}

function listed(file: string): readonly (readonly [number, number])[] {
  const rows: Readonly<Record<string, { seconds: number[][] }>> = excluded;
  return (rows[file]?.seconds ?? []) as [number, number][];
}

function eventsOf(truth: Truth | null): FrameRange[] {
  if (!truth) return [];
  const { gradual, flashes, freezes, black, loops, artifacts, corruption } = truth;
  const ranges = [gradual, flashes, freezes, black, loops, artifacts, corruption].flatMap((list) =>
    list ?? []
  );
  const points = [...truth.cuts, ...truth.jumpcuts ?? [], ...truth.jumps ?? [], ...truth.lightsteps ?? []];
  return [...ranges, ...points.map((frame) => ({ start: frame, end: frame }))];
}

/** The truth file is `N_<name>.truth.json`, beside the clips or in the folder `truth` next to theirs. */
async function truthOf(folder: string, file: string): Promise<Truth | null> {
  const stem = file.replace(/\.[^.]*$/, "");
  // A stream taken out of another clip has the same frames.
  const stems = stem === "nasa_13013" ? ["nasa_v0"] : [stem];
  for (const name of stems) {
    for (const place of [folder, join(folder, "..", "truth")]) {
      const path = join(place, `N_${name}.truth.json`);
      if (!await isFile(path)) continue;
      const truth = JSON.parse(await Deno.readTextFile(path)) as Truth;
      if (basename(truth.video).replace(/\.[^.]*$/, "") === name) return truth;
    }
  }
  return null;
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
