/** The second film of the demo: parts of the clips put together by ffmpeg so that everything happens in it
 * that is marked.
 */

import { join } from "node:path";

const CLIPS = join(import.meta.dirname!, "..", "fixtures", "clips");
const FILM = join(CLIPS, "bbb480.mp4");
const BOTTLES = join(CLIPS, "intel_bottle.mp4");
const WIDTH = 854;
const HEIGHT = 480;
const FPS = 24;

/** What was done to the film, in its own frames; first and last frame, both inside. */
export interface Alteration {
  readonly type: string;
  readonly startFrame: number;
  readonly endFrame: number;
}

/** Frames of a clip, the last one not inside. */
interface Part {
  readonly clip: string;
  readonly from: number;
  readonly to: number;
  /** A filter for all of it. */
  readonly filter?: string;
  /** How many more times its last frame is shown. */
  readonly heldFrames?: number;
  /** What happens inside, in frames of the part. */
  readonly alterations?: readonly Alteration[];
  /** How it follows the part before; a hard cut by default. */
  readonly after?: { readonly transition: "fade" | "wipeleft"; readonly frames: number } | "no cut";
}

const inside = (type: string, startFrame: number, endFrame: number): Alteration => ({
  type,
  startFrame,
  endFrame,
});

const PARTS: readonly (Part | { readonly blackFrames: number })[] = [
  { clip: FILM, from: 150, to: 246 },
  { clip: FILM, from: 285, to: 377, after: { transition: "fade", frames: 24 } },
  {
    clip: FILM,
    from: 100,
    to: 134,
    heldFrames: 36,
    alterations: [inside("freeze", 34, 69)],
  },
  {
    clip: FILM,
    from: 134,
    to: 200,
    filter: "lutyuv=y='val*0.25+180':enable='between(n,40,41)'",
    alterations: [inside("flash", 40, 41)],
    after: "no cut",
  },
  { blackFrames: 24 },
  {
    clip: FILM,
    from: 560,
    to: 608,
    filter: "noise=c0s=90:c0f=t:enable='between(n,22,24)'",
    alterations: [inside("artifact_suspected", 22, 24)],
  },
  { clip: BOTTLES, from: 140, to: 212 },
  { clip: FILM, from: 190, to: 262, after: { transition: "wipeleft", frames: 18 } },
  // A second and a half, three times.
  { clip: FILM, from: 316, to: 352, alterations: [inside("repeat", 0, 107)] },
  { clip: FILM, from: 316, to: 352, after: "no cut" },
  { clip: FILM, from: 316, to: 352, after: "no cut" },
];

/**
 * Makes the film at `path`, and returns what was done to it. The same picture on every machine that has the
 * same ffmpeg.
 */
export async function makeAlteredFilm(ffmpeg: string, path: string): Promise<readonly Alteration[]> {
  const inputs: string[] = [];
  const graph: string[] = [];
  const done: Alteration[] = [];
  let frames = 0;
  PARTS.forEach((part, index) => {
    const length = lengthOf(part);
    if ("blackFrames" in part) {
      graph.push(
        `color=black:s=${WIDTH}x${HEIGHT}:r=${FPS},format=yuv420p,settb=1/${FPS},trim=end_frame=${length}[p${index}]`,
      );
    } else {
      graph.push(`[${inputs.length / 2}:v]${partFilter(part)}[p${index}]`);
      inputs.push("-i", part.clip);
    }
    const joint = "after" in part ? part.after : undefined;
    const overlap = typeof joint === "object" ? joint.frames : 0;
    const start = frames - overlap;
    if (index > 0) graph.push(jointFilter(index, { start, end: start + length }, joint));
    if (overlap > 0) done.push(inside("gradual_transition", start, frames - 1));
    else if (index > 0 && joint !== "no cut") done.push(inside("scene_cut", start, start));
    if ("blackFrames" in part) done.push(inside("black", start, start + length - 1));
    for (
      const { type, startFrame, endFrame } of ("alterations" in part ? part.alterations : undefined) ?? []
    ) {
      done.push(inside(type, start + startFrame, start + endFrame));
    }
    frames = start + length;
  });
  const last = `[j${PARTS.length - 1}]`;
  const { success, stderr } = await new Deno.Command(ffmpeg, {
    args: [
      ...["-v", "error", "-nostdin", "-y", ...inputs, "-filter_complex", graph.join(";"), "-map", last],
      ...["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-an", path],
    ],
    stdout: "null",
  }).output();
  if (!success) throw new Error(`ffmpeg could not make the second film: ${new TextDecoder().decode(stderr)}`);
  return done;
}

function lengthOf(part: typeof PARTS[number]): number {
  return "blackFrames" in part ? part.blackFrames : part.to - part.from + (part.heldFrames ?? 0);
}

function partFilter({ from, to, filter, heldFrames = 0 }: Part): string {
  return [
    `fps=${FPS},trim=start_frame=${from}:end_frame=${to},settb=1/${FPS},setpts=N,fps=${FPS}`,
    `scale=${WIDTH}:${HEIGHT},setsar=1,format=yuv420p`,
    ...(filter ? [filter] : []),
    ...(heldFrames > 0 ? [`tpad=stop_mode=clone:stop=${heldFrames}`] : []),
  ].join(",");
}

/** Joins part `index`, which is shown from frame `start` to before frame `end`, to the film so far. */
function jointFilter(
  index: number,
  { start, end }: { start: number; end: number },
  joint: Part["after"],
): string {
  const both = `[${index === 1 ? "p0" : `j${index - 1}`}][p${index}]`;
  const join = typeof joint === "object"
    ? `xfade=transition=${joint.transition}:duration=${joint.frames / FPS}:offset=${start / FPS}`
    : "concat=n=2:v=1";
  // The next join wants one time base and a steady rate on both sides; a transition may add a frame, as its
  // times are rounded.
  return `${both}${join},settb=1/${FPS},setpts=N,fps=${FPS},trim=end_frame=${end}[j${index}]`;
}
