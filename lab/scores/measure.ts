/**
 * What the service finds in videos: each is decoded by the service's own decoder, with every frame as a row.
 * As a program it reads the paths from the standard input, one on a line, and prints a line of JSON for each.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fileInput } from "../../src/media/input.ts";
import { Decoder } from "../../src/media/files/decoder.ts";
import { artifactKindOf, type DetectedRange } from "../../src/model/frames/detected_range.ts";
import type { SamplingPlan } from "../../src/model/frames/sampling.ts";
import {
  ARTIFACT_SCORE_THRESHOLD,
  CUT_SCORE_THRESHOLD,
  type SignalColumns,
} from "../../src/model/frames/signals.ts";
import { localRunner } from "../../test/support/local_runner.ts";
import { quietWorld } from "../../bench/support.ts";
import type { Predictions } from "./score.ts";
import type { NamedRange } from "./truth.ts";

/** What was found in one video. Lists of what is not measured at all are absent. */
export interface Measured {
  readonly path: string;
  readonly frames: number;
  readonly predictions: Predictions;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The programs that decode: found on the path, without limits of memory and CPU time. */
const TOOLS = { ffmpeg: "ffmpeg", ffprobe: "ffprobe", mkfifo: "mkfifo", prlimit: null };
const NEVER = new AbortController().signal;
/** A sampling plan that leaves out no frame, whatever the rate of a video is. */
const EVERY_FRAME: SamplingPlan = { policy: "source_fps_adaptive", sampleFps: 60, sourceFps: 60 };

/**
 * Measures all videos, as many side by side as there are processors, or `jobs`. Answers in the order of the
 * paths.
 */
export async function measureAll(
  paths: readonly string[],
  { jobs = navigator.hardwareConcurrency, cache, onMeasured }: {
    readonly jobs?: number;
    /** Folder in which results are kept; none are unless given. */
    readonly cache?: string | undefined;
    readonly onMeasured?: (measured: Measured) => void;
  } = {},
): Promise<Measured[]> {
  const code = cache === undefined ? "" : codeHash();
  if (cache !== undefined) await Deno.mkdir(cache, { recursive: true });
  const tempDir = await Deno.makeTempDir({ prefix: "service-quality-" });
  const results: Measured[] = new Array(paths.length);
  try {
    await using decoder = new Decoder({
      runner: localRunner(TOOLS),
      tempDir,
      world: quietWorld(),
      maxConcurrent: jobs,
    });
    let next = 0;
    await Promise.all(Array.from({ length: jobs }, async () => {
      while (next < paths.length) {
        const at = next++;
        const path = paths[at]!;
        const kept = cache === undefined ? null : join(cache, `${await fileHash(path, code)}.json`);
        const known = kept === null ? null : await Deno.readTextFile(kept).catch(() => null);
        const measured: Measured = known === null ? await measure(decoder, path) : JSON.parse(known);
        if (kept !== null && known === null) await Deno.writeTextFile(kept, JSON.stringify(measured));
        results[at] = measured;
        onMeasured?.(measured);
      }
    }));
  } finally {
    await Deno.remove(tempDir, { recursive: true });
  }
  return results;
}

async function measure(decoder: Decoder, path: string): Promise<Measured> {
  const input = fileInput(path);
  const info = await decoder.probe(input, NEVER);
  const { signals, ranges } = await decoder.decodeSignals({
    ...{ input, info, plan: EVERY_FRAME, maxFrames: 500_000, signal: NEVER },
  });
  return { path, frames: signals.count, predictions: predictionsOf(signals, ranges) };
}

/** What the columns and ranges of a decode say, with rows for frames. */
export function predictionsOf(signals: SignalColumns, ranges: readonly DetectedRange[]): Predictions {
  const ofType = (wanted: DetectedRange["type"]) =>
    ranges.filter(({ type }) => type === wanted)
      .map(({ startFrame, endFrame }) => ({ start: startFrame, end: endFrame + 1 }));
  const artifacts = faultyRanges(signals);
  return {
    cuts: signals.cutScore ? framesFrom(signals.cutScore, CUT_SCORE_THRESHOLD) : [],
    gradual: ofType("gradual_transition"),
    flashes: ofType("flash"),
    freezes: ofType("freeze"),
    black: ofType("black"),
    loops: ofType("repeat"),
    ...(artifacts && { artifacts }),
  };
}

/**
 * Faulty frames as ranges: those that follow each other are one marker, with the kind of its first frame.
 * Undefined: not measured.
 */
export function faultyRanges(
  { artifactScore, artifactKind }: Pick<SignalColumns, "artifactScore" | "artifactKind">,
): NamedRange[] | undefined {
  if (!artifactScore) return undefined;
  const ranges: { start: number; end: number; kind: string }[] = [];
  for (const frame of framesFrom(artifactScore, ARTIFACT_SCORE_THRESHOLD)) {
    const last = ranges.at(-1);
    if (last?.end === frame) last.end++;
    else {
      const kind = artifactKindOf(artifactKind?.[frame]) ?? "unnamed";
      ranges.push({ start: frame, end: frame + 1, kind });
    }
  }
  return ranges;
}

function framesFrom(scores: Float32Array, threshold: number): number[] {
  const frames: number[] = [];
  scores.forEach((score, frame) => {
    if (score >= threshold) frames.push(frame);
  });
  return frames;
}

/** Hash of the code that decodes and detects; other code may change without a new measurement. */
function codeHash(): string {
  const hash = createHash("sha256");
  const add = (path: string) => {
    if (Deno.statSync(path).isDirectory) {
      for (const { name } of [...Deno.readDirSync(path)].sort((a, b) => a.name < b.name ? -1 : 1)) {
        add(join(path, name));
      }
    } else hash.update(path.slice(ROOT.length)).update(Deno.readFileSync(path));
  };
  for (const part of ["src/media", "src/model/frames", "wasm", "lab/scores/measure.ts"]) {
    add(join(ROOT, part));
  }
  return hash.digest("hex");
}

/** Hash of a video by its place, size and time of change. */
async function fileHash(path: string, code: string): Promise<string> {
  const { size, mtime } = await Deno.stat(path);
  const identity = `${code} ${await Deno.realPath(path)} ${size} ${mtime?.getTime()}`;
  return createHash("sha256").update(identity).digest("hex").slice(0, 32);
}

if (import.meta.main) {
  const paths = (await new Response(Deno.stdin.readable).text()).split("\n").filter((path) => path !== "");
  await measureAll(paths, {
    ...(Deno.args[0] !== undefined && { jobs: Number(Deno.args[0]) }),
    onMeasured: (measured) => console.log(JSON.stringify(measured)),
  });
}
