/**
 * Makes edited videos with known cuts, transitions and faults from a folder of clips:
 * `./scripts/deno run -A lab/make_edits.ts --clips FOLDER[,FOLDER] --out FOLDER --seed N [--videos N |
 * --kinds a,b] [--groups K] [--group i] [--jobs 1] [--work FOLDER]`. The same seed and clips give the same
 * truth; see docs/quality.md.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { readClips } from "./edits/files/clips.ts";
import { KINDS } from "./edits/kinds/table.ts";
import { type MadeVideo, makeVideo } from "./edits/make.ts";
import { groupOf } from "./edits/files/origins.ts";
import { planVideos } from "./edits/plan.ts";
import { editTable } from "./edits/summary.ts";

const VIDEOS = 120;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    clips: { type: "string", default: "" },
    out: { type: "string" },
    seed: { type: "string", default: "1" },
    videos: { type: "string" },
    kinds: { type: "string" },
    groups: { type: "string", default: "1" },
    group: { type: "string" },
    jobs: { type: "string", default: "1" },
    work: { type: "string" },
  },
});
if (values.out === undefined) throw new Error("Missing: --out FOLDER");
const outFolder = values.out;
const seed = wholeNumber("seed", values.seed);
const groups = wholeNumber("groups", values.groups, 1);
const group = values.group === undefined ? undefined : wholeNumber("group", values.group);
if (group !== undefined && group >= groups) throw new Error(`--group must be below ${groups}`);
const kinds = chosenKinds(values.kinds);
const perKind = Object.keys(kinds).length * groups;
const videos = values.videos === undefined
  ? values.kinds === undefined ? VIDEOS : perKind
  : wholeNumber("videos", values.videos, 1);

await Deno.mkdir(outFolder, { recursive: true });
const folders = values.clips === "" ? [] : values.clips.split(",");
const clips = await readClips(folders, values.work ?? join(outFolder, ".work"));
for (let g = 0; g < groups; g++) {
  const origins = new Set(
    clips.map(({ origin }) => origin).filter((origin) => groupOf(origin, groups) === g),
  );
  console.log(`group ${g}: ${[...origins].sort().join(", ")}`);
}
const plans = planVideos({ seed, kinds, videos, groups, ...(group === undefined ? {} : { group }) });
const made: MadeVideo[] = [];
const failures: string[] = [];
const queue = [...plans];
await Promise.all(Array.from({ length: wholeNumber("jobs", values.jobs, 1) }, async () => {
  for (let plan = queue.shift(); plan; plan = queue.shift()) {
    const start = performance.now();
    let video: MadeVideo;
    try {
      video = await makeVideo({ seed, groups, clips, outFolder }, plan, kinds[plan.kind]!);
    } catch (error) {
      failures.push(`${plan.name} was not made: ${error instanceof Error ? error.message : error}`);
      console.error(failures.at(-1));
      continue;
    }
    made.push(video);
    const { width, height } = plan.size;
    console.log(
      `${plan.name}: ${video.frames} frames, ${width}x${height}, ${plan.fps} a second, ${plan.encoding.codec}, ` +
        `${((performance.now() - start) / 1000).toFixed(1)} s`,
    );
  }
}));
console.log(editTable(made));
if (failures.length > 0) {
  console.error(`${failures.length} of ${plans.length} videos were not made`);
  Deno.exitCode = 1;
}

function chosenKinds(list: string | undefined): typeof KINDS {
  if (list === undefined) return KINDS;
  return Object.fromEntries(
    list.split(",").map((name) => {
      const kind = KINDS[name];
      if (!kind) throw new Error(`There is no kind "${name}"; there are ${Object.keys(KINDS).join(", ")}`);
      return [name, kind];
    }),
  );
}

function wholeNumber(name: string, text: string, least = 0): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) {
    throw new Error(`--${name} must be a whole number from ${least}`);
  }
  return value;
}
