/**
 * Whether the service marks the same in films whichever ffmpeg decodes them:
 *
 *     ./scripts/deno run -A lab/ffmpeg_versions.ts --ffmpegs /usr/bin:FOLDER FILM...
 *
 * Prints a line for each film, and each mark that another ffmpeg gives differently; the exit code is 1 where
 * there is one.
 */

import { basename, delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { fileInput } from "../src/media/input.ts";
import { Decoder } from "../src/media/files/decoder.ts";
import type { SamplingPlan } from "../src/model/frames/sampling.ts";
import { CUT_SCORE_THRESHOLD } from "../src/model/frames/signals.ts";
import { localRunner } from "../test/support/local_runner.ts";
import { quietWorld } from "../bench/support.ts";
import { faultyRanges } from "./scores/measure.ts";

/** Marks by type and frames, such as `scene_cut 81-81`, with how sure the service is. */
type Marks = Readonly<Record<string, number>>;

/** How far apart the confidences of one mark may be. */
export const TOLERANCE = 0.005;

const EVERY_FRAME: SamplingPlan = { policy: "source_fps_adaptive", sampleFps: 60, sourceFps: 60 };
const NEVER = new AbortController().signal;

/** What the service marks in films with the ffmpeg and ffprobe of a folder; a refusal is a mark as well. */
export async function marksWith(folder: string, films: readonly string[]): Promise<Marks[]> {
  const tempDir = await Deno.makeTempDir({ prefix: "service-versions-" });
  try {
    await using decoder = new Decoder({
      runner: localRunner({
        ...{ ffmpeg: join(folder, "ffmpeg"), ffprobe: join(folder, "ffprobe") },
        ...{ mkfifo: "mkfifo", prlimit: null },
      }),
      ...{ tempDir, world: quietWorld(), maxConcurrent: 1 },
    });
    const marks: Marks[] = [];
    for (const film of films) marks.push(await marksOf(decoder, film));
    return marks;
  } finally {
    await Deno.remove(tempDir, { recursive: true });
  }
}

async function marksOf(decoder: Decoder, film: string): Promise<Marks> {
  const input = fileInput(film);
  try {
    const info = await decoder.probe(input, NEVER);
    const { signals, ranges } = await decoder.decodeSignals({
      ...{ input, info, plan: EVERY_FRAME, maxFrames: 500_000, signal: NEVER },
    });
    const marks: Record<string, number> = { [`${signals.count} frames`]: 1 };
    for (const { type, startFrame, endFrame, confidence } of ranges) {
      marks[`${type} ${startFrame}-${endFrame}`] = confidence;
    }
    signals.cutScore?.forEach((score, frame) => {
      if (score >= CUT_SCORE_THRESHOLD) marks[`scene_cut ${frame}-${frame}`] = score;
    });
    for (const { start, end, kind } of faultyRanges(signals) ?? []) {
      marks[`${kind} ${start}-${end - 1}`] = Math.max(...signals.artifactScore!.slice(start, end));
    }
    return marks;
  } catch (error) {
    return { [`refused: ${error instanceof Error ? error.message : String(error)}`]: 1 };
  }
}

/** What the second one marks differently, a line each. */
export function differences(one: Marks, other: Marks): string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((mark) => {
    const [first, second] = [one[mark], other[mark]];
    if (first === undefined) return [`+ ${mark}`];
    if (second === undefined) return [`- ${mark}`];
    const apart = Math.abs(first - second);
    return apart > TOLERANCE ? [`~ ${mark}: ${first.toFixed(3)}, ${second.toFixed(3)}`] : [];
  });
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { ffmpegs: { type: "string", default: Deno.env.get("FFMPEGS") ?? "" } },
  });
  const [first, ...others] = values.ffmpegs.split(delimiter).filter((folder) => folder !== "");
  if (first === undefined || others.length === 0 || positionals.length === 0) {
    console.error("Nothing to compare: name two folders or more with --ffmpegs A:B, and films");
    Deno.exit(2);
  }
  let differing = 0;
  for (const film of positionals) {
    const [marks] = await marksWith(first, [film]);
    const lines: string[] = [];
    for (const folder of others) {
      const [found] = await marksWith(folder, [film]);
      lines.push(...differences(marks!, found!).map((line) => `  ${folder}: ${line}`));
    }
    console.log(
      [`${basename(film)}: ${Object.keys(marks!).length} marks, ${lines.length} differ`, ...lines].join("\n"),
    );
    if (lines.length > 0) differing++;
  }
  console.log(`${positionals.length - differing} of ${positionals.length} films are marked the same`);
  Deno.exit(differing > 0 ? 1 : 0);
}
