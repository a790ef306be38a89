/**
 * Measures the cut detection of the service with labelled videos: `./scripts/deno task quality [media folder] [predictions
 * folder]`. Prints precision, recall and F1 for each video and in total, and writes the predicted cuts of each video to
 * `<name>.json`.
 */

import { basename, join } from "node:path";
import { FRAME_BYTES, FrameFilter, PLANE_HEIGHT, PLANE_WIDTH } from "../../src/media/kernels/frame_filter.ts";
import { CUT_SCORE_THRESHOLD } from "../../src/model/frames/signals.ts";
import { rates, tallyCuts } from "./score.ts";
import type { CutTruth } from "./truth.ts";

const mediaFolder = Deno.args[0] ?? join(import.meta.dirname!, "../../../shared/media");

if (import.meta.main) {
  const truths = await readTruths(join(mediaFolder, "truth"));
  if (truths.length === 0) {
    console.log(`Nothing was measured: there is no truth/*.truth.json in ${mediaFolder}`);
  } else {
    await measureAll(truths, Deno.args[1] ?? await Deno.makeTempDir({ prefix: "quality-" }));
  }
}

async function measureAll(truths: readonly CutTruth[], predictionsFolder: string): Promise<void> {
  await Deno.mkdir(predictionsFolder, { recursive: true });
  const filter = await FrameFilter.load();
  const sum = { hits: 0, falseAlarms: 0, misses: 0 };
  let worst = { name: "", f1: Infinity };
  for (const truth of truths) {
    const { cuts, frames } = await predictCuts(filter, await findVideo(truth));
    await Deno.writeTextFile(join(predictionsFolder, `${truth.name}.json`), JSON.stringify({ cuts }));
    const tally = tallyCuts(truth, cuts);
    const counts = {
      hits: tally.hits,
      falseAlarms: tally.falseAlarms.length,
      misses: tally.misses.length,
    };
    sum.hits += counts.hits;
    sum.falseAlarms += counts.falseAlarms;
    sum.misses += counts.misses;
    const { f1 } = rates(counts);
    if (f1 < worst.f1) worst = { name: truth.name, f1 };
    console.log(line(truth.name, counts) + `  frames ${frames}` + listed(tally.misses, tally.falseAlarms));
  }
  console.log(line("TOTAL", sum));
  console.log(`lowest F1 ${worst.f1.toFixed(3)} (${worst.name}); predictions are in ${predictionsFolder}`);
}

/** Passes every decoded frame through the filter; frames are numbered in the order of decoding. */
async function predictCuts(filter: FrameFilter, video: string): Promise<{ cuts: number[]; frames: number }> {
  const child = new Deno.Command("ffmpeg", {
    args: [
      ...["-nostdin", "-v", "quiet", "-i", video, "-map", "0:v:0"],
      ...[
        "-vf",
        `scale=${PLANE_WIDTH}:${PLANE_HEIGHT}:flags=area:in_range=full:out_range=full,format=yuv420p`,
        "-fps_mode",
        "passthrough",
      ],
      ...["-f", "rawvideo", "pipe:1"],
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  filter.reset();
  let filled = 0;
  for await (const chunk of child.stdout) {
    for (let taken = 0; taken < chunk.length;) {
      const part = chunk.subarray(taken, taken + FRAME_BYTES - filled);
      filter.staging.set(part, filled);
      filled += part.length;
      taken += part.length;
      if (filled < FRAME_BYTES) continue;
      // Only the order of the frames matters here, so their index is used as the media time.
      filter.push(0, filter.count);
      filled = 0;
    }
  }
  filter.finish();
  await child.status;
  if (filter.count === 0) throw new Error(`Cannot measure ${video}: ffmpeg decoded no frame of it`);
  const cuts: number[] = [];
  filter.columns().cutScore.forEach((score, frame) => {
    if (score >= CUT_SCORE_THRESHOLD) cuts.push(frame);
  });
  return { cuts, frames: filter.count };
}

async function readTruths(folder: string): Promise<CutTruth[]> {
  const names: string[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) {
      if (entry.name.endsWith(".truth.json")) names.push(entry.name);
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  names.sort();
  return await Promise.all(
    names.map(async (name) => JSON.parse(await Deno.readTextFile(join(folder, name))) as CutTruth),
  );
}

/** Edited videos are in the folder of their truth file, real clips in `clips/`. */
async function findVideo(truth: CutTruth): Promise<string> {
  const places = [
    join(mediaFolder, "truth", truth.video),
    join(mediaFolder, "clips", basename(truth.video)),
  ];
  for (const place of places) {
    if (await Deno.stat(place).then((info) => info.isFile, () => false)) return place;
  }
  throw new Error(`Cannot measure ${truth.name}: there is no ${places.join(" and no ")}`);
}

function line(name: string, counts: { hits: number; falseAlarms: number; misses: number }): string {
  const { precision, recall, f1 } = rates(counts);
  const { hits, falseAlarms, misses } = counts;
  return `${name.padEnd(18)} P ${precision.toFixed(3)} R ${recall.toFixed(3)} F1 ${f1.toFixed(3)}` +
    `  hits ${hits} false ${falseAlarms} missed ${misses}`;
}

function listed(misses: readonly number[], falseAlarms: readonly number[]): string {
  const missed = misses.length > 0 ? `  missed at ${misses.join(" ")}` : "";
  return missed + (falseAlarms.length > 0 ? `  false at ${falseAlarms.join(" ")}` : "");
}
