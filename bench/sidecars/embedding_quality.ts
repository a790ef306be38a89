/**
 * The distances of the reference embedding between pictures of the same shot and of different shots, in real
 * clips. Prints percentiles of the distance that the service computes, with quantization, and the share of
 * pairs at or below the default novelty threshold:
 *
 *     ./scripts/deno run -A bench/sidecars/embedding_quality.ts [folder with clips …]
 */

import { basename, join } from "node:path";
import { cosineDistance, type Quantized, quantized } from "../../src/model/live/novelty.ts";
import { describePicture } from "../../src/sidecar/embedding/picture_descriptor.ts";
import { smallPicture } from "../../src/sidecar/embedding/small_picture.ts";
import { percentile } from "../support.ts";

const THRESHOLD = 0.01;
/** Pictures a second: one every 200 ms, like the keyframes of a stream with much motion. */
const FPS = 5;
const PICTURES_MAX = 150;
/** Scene score of ffmpeg from which on a picture starts a new shot. */
const CUT_SCORE = 0.3;

const ROOT = new URL("../../", import.meta.url).pathname;
const folders = Deno.args.length > 0
  ? Deno.args
  : [join(ROOT, "fixtures", "clips"), join(ROOT, "..", "shared", "media", "clips")];

interface Picture {
  readonly embedding: Quantized;
  /** The number of cuts before the picture in its clip. */
  readonly shot: number;
  readonly clip: string;
}

if (import.meta.main) {
  const pictures: Picture[] = [];
  let decodeMs = 0;
  for (const path of clips()) {
    const startedMs = performance.now();
    const own = await picturesOf(path);
    decodeMs += performance.now() - startedMs;
    if (own.length < 2) continue;
    pictures.push(...own);
    const next = stepsOf(own, 1);
    console.log(`${basename(path).padEnd(28)} ${own.length} pictures, next in shot: ${summary(next)}`);
  }
  const byClip = Map.groupBy(pictures, ({ clip }) => clip);
  const shots = Map.groupBy(pictures, ({ clip, shot }) => `${clip} ${shot}`);
  const firsts = [...shots.values()].map(([first]) => first!);
  const steps = (distance: number) => [...byClip.values()].flatMap((own) => stepsOf(own, distance));
  console.log(`\nnext picture of the shot, 0.2 s   ${summary(steps(1))}`);
  console.log(`five pictures on, 1 s             ${summary(steps(5))}`);
  console.log(`ten pictures on, 2 s              ${summary(steps(10))}`);
  const cuts = [...byClip.values()].flatMap((own) =>
    own.flatMap((picture, at) => {
      const before = own[at - 1];
      return before && before.shot !== picture.shot
        ? [cosineDistance(before.embedding, picture.embedding)]
        : [];
    })
  );
  console.log(`across a cut                      ${summary(cuts)}`);
  const others = firsts.flatMap((one, at) =>
    firsts.slice(at + 1).filter(({ clip }) => familyOf(clip) !== familyOf(one.clip))
      .map((other) => cosineDistance(one.embedding, other.embedding))
  );
  console.log(`different clips                   ${summary(others)}`);
  console.log(`\n${pictures.length} pictures, extraction and embedding ${Math.round(decodeMs)} ms`);
}

function clips(): string[] {
  return folders.flatMap((folder) => {
    try {
      return [...Deno.readDirSync(folder)]
        .filter(({ name, isFile }) => isFile && /\.(mp4|webm|avi)$/.test(name) && !name.startsWith("bad_"))
        .map(({ name }) => join(folder, name));
    } catch {
      console.log(`${folder} is not there`);
      return [];
    }
  }).filter((path, at, all) => all.findIndex((other) => basename(other) === basename(path)) === at);
}

/**
 * Name of the film of a path, the same for all its encodings: `flower_av1.mp4` and `flower_vp9.webm`,
 * `bbb480.mp4` and `bbb_rotated.mp4`.
 */
function familyOf(path: string): string {
  return /^[a-z]+/.exec(basename(path))?.[0] ?? path;
}

/** Embeddings of JPEGs like those of the service, computed as in the sidecar. */
async function picturesOf(path: string): Promise<Picture[]> {
  const folder = await Deno.makeTempDir({ prefix: "embedding-quality-" });
  try {
    const args = ["-v", "error", "-i", path, "-frames:v", String(PICTURES_MAX)];
    const filter = `fps=${FPS},select='gte(scene,0)',metadata=print:file=${folder}/scores.txt`;
    await new Deno.Command("ffmpeg", {
      args: [...args, "-vf", filter, "-q:v", "5", "-an", `${folder}/%04d.jpg`],
    }).output();
    const scores = [...(await Deno.readTextFile(`${folder}/scores.txt`)).matchAll(/scene_score=([\d.]+)/g)]
      .map(([, score]) => Number(score));
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
      name.endsWith(".jpg")
    );
    const pictures: Picture[] = [];
    let shot = 0;
    for (const [at, name] of names.sort().entries()) {
      if (at > 0 && (scores[at] ?? 0) >= CUT_SCORE) shot++;
      const rgb = smallPicture(await Deno.readFile(join(folder, name)));
      pictures.push({ embedding: quantized(describePicture(rgb))!, shot, clip: path });
    }
    return pictures;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Distances of pictures `step` apart in one shot. */
function stepsOf(pictures: readonly Picture[], step: number): number[] {
  return pictures.flatMap((picture, at) => {
    const later = pictures[at + step];
    return later && later.shot === picture.shot ? [cosineDistance(picture.embedding, later.embedding)] : [];
  });
}

function summary(distances: readonly number[]): string {
  if (distances.length === 0) return "none";
  const below = distances.filter((distance) => distance <= THRESHOLD).length / distances.length;
  const percentiles = [0.05, 0.5, 0.95].map((share) => percentile(distances, share).toFixed(4)).join(" / ");
  return `p5/p50/p95 ${percentiles}, ${(100 * below).toFixed(0)} % reused, n=${distances.length}`;
}
