/**
 * Measures what the service finds in labelled videos: `./scripts/deno task quality FOLDER... [--markdown]
 * [--json] [--videos] [--folds K] [--jobs n] [--no-cache]`. Prints precision, recall and F1 in total and for
 * each kind of video. See docs/quality.md#measuring.
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { crossValidated } from "./folds/cross_validated.ts";
import { recordAll } from "./folds/recording.ts";
import { measureAll, type Measured } from "./scores/measure.ts";
import { FIGURES, rates, tallyCuts, tallyVideo } from "./scores/score.ts";
import {
  falseMarkersInTenMinutes,
  scoreTable,
  sumOf,
  type Totals,
  totalsOfVideos,
  totalTable,
} from "./scores/score_table.ts";
import type { NamedRange } from "./scores/truth.ts";
import { findVideos, type LabelledVideo } from "./scores/videos.ts";

const CACHE = fileURLToPath(new URL("../.tools/quality", import.meta.url));

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: {
    markdown: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    videos: { type: "boolean", default: false },
    folds: { type: "string" },
    jobs: { type: "string" },
    cache: { type: "boolean", default: true },
  },
  allowNegative: true,
});

const videos = await findVideos(positionals);
if (videos.length === 0) {
  console.error(`Nothing was measured: there is no *.truth.json in ${positionals.join(", ") || "no folder"}`);
  Deno.exit(1);
}
const jobs = Number(values.jobs ?? navigator.hardwareConcurrency);
const startedMs = performance.now();
const measured = await measureAll(videos.map(({ path }) => path), {
  jobs,
  cache: values.cache ? CACHE : undefined,
});
const totalsOf = (found: readonly Measured[]) =>
  totalsOfVideos(videos, found.map(({ predictions }) => predictions));
const inSample = totalsOf(measured);
const apart = values.folds === undefined ? null : await apartBy(Number(values.folds));
const crossValidatedTotals = apart && totalsOf(apart);
if (values.json) {
  const both = {
    inSample: asJson(inSample),
    ...(crossValidatedTotals && { crossValidated: asJson(crossValidatedTotals) }),
  };
  console.log(JSON.stringify(both, null, 1));
} else {
  const form = values.markdown ? "markdown" : "text";
  if (values.videos) {
    for (const [at, video] of videos.entries()) console.log(line(video, (apart ?? measured)[at]!));
  }
  console.log(
    totalTable(
      crossValidatedTotals
        ? [["cross-validated", crossValidatedTotals], ["in-sample", inSample]]
        : [["", inSample]],
      form,
    ) + "\n",
  );
  console.log(
    crossValidatedTotals ? scoreTable(crossValidatedTotals, form, inSample) : scoreTable(inSample, form),
  );
  const frames = measured.reduce((sum, { frames }) => sum + frames, 0);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  console.error(`\n${videos.length} videos, ${frames} frames, ${seconds} s`);
}

/** What is found where nothing that was chosen knows the sources of what it judges. */
async function apartBy(folds: number): Promise<Measured[]> {
  if (!Number.isInteger(folds) || folds < 3) throw new Error("--folds must be a whole number from 3");
  const recorded = await recordAll(videos, { jobs, cache: values.cache ? CACHE : undefined });
  const predictions = await crossValidated(recorded, folds, (line) => console.error(line));
  return measured.map((one, at) => ({ ...one, predictions: predictions[at]! }));
}

/**
 * One video as a line: the figures in which something is wrong, with the cuts that are wrong, and the ranges
 * that there are and that were found.
 */
function line({ truth }: LabelledVideo, { predictions }: Measured): string {
  const { counts } = tallyVideo(truth, predictions);
  const { misses, falseAlarms } = tallyCuts(truth, predictions.cuts ?? []);
  const wrong = FIGURES.flatMap((figure) => {
    const { hits, falseAlarms, misses } = counts[figure] ?? { hits: 0, falseAlarms: 0, misses: 0 };
    if (falseAlarms + misses === 0) return [];
    const said = figure === "cuts" || figure === "artifact_frames" ? [] : predictions[figure] ?? [];
    const wanted = figure === "artifacts"
      ? [...truth.artifacts ?? [], ...truth.corruption ?? []]
      : said.length === 0 || figure === "cuts" || figure === "artifact_frames"
      ? []
      : truth[figure] ?? [];
    const ranges = said.length + wanted.length > 0 ? `: ${listed(said)} for ${listed(wanted)}` : "";
    return [`${figure} ${hits}/${falseAlarms}/${misses}${ranges}`];
  });
  return [
    truth.name.padEnd(20),
    ...wrong,
    misses.length > 0 ? `cuts missed at ${misses.join(" ")}` : "",
    falseAlarms.length > 0 ? `false cuts at ${falseAlarms.join(" ")}` : "",
  ].filter((part) => part !== "").join("  ");
}

function listed(ranges: readonly NamedRange[]): string {
  if (ranges.length === 0) return "nothing";
  const texts = ranges.map(({ start, end, kind }) =>
    `${start}-${end}${kind === undefined ? "" : ` ${kind}`}`
  );
  return texts.slice(0, 12).join(", ") + (texts.length > 12 ? ", …" : "");
}

function asJson(totals: Totals) {
  return Object.fromEntries([...totals].map(([kind, total]) => [kind, {
    videos: total.videos,
    figures: Object.fromEntries(
      Object.entries(total.counts).map(([figure, counts]) => [figure, { ...counts, ...rates(counts) }]),
    ),
    falseArtifactMarkersInTenMinutes: kind === "TOTAL" ? falseMarkersInTenMinutes(sumOf(totals)) : undefined,
  }]));
}
