/** The small quality set: short videos of the main kinds, made from the clips of the repository and a seed.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readClips } from "./edits/files/clips.ts";
import { KINDS } from "./edits/kinds/table.ts";
import { makeVideo } from "./edits/make.ts";
import { planVideo, type VideoPlan } from "./edits/plan.ts";

const CLIPS = fileURLToPath(new URL("../fixtures/clips/", import.meta.url));
const SEED = 21;
const SIZE = { width: 320, height: 180 };
const SECONDS = 10;
/**
 * The encoding of the videos: every ffmpeg has this encoder, and its pictures do not depend on the version.
 */
const ENCODING = {
  codec: "mpeg4",
  extension: "mkv",
  args: ["-c:v", "mpeg4", "-q:v", "4", "-g", "48"],
} as const;

/** Kinds, and the rate at which each is shown. */
const SET: readonly (readonly [kind: string, fps: number])[] = [
  ...[["hard", 24], ["inserts", 25], ["similar", 30], ["colours", 25], ["dark_object", 24]] as const,
  ...[["dissolve", 25], ["fade", 24], ["wipe", 30], ["flash", 25], ["freeze", 24], ["black", 15]] as const,
  ...[["repeat", 24], ["blocks", 25], ["flicker", 24], ["foreign", 25], ["fields", 25]] as const,
  ...[["chroma", 24], ["bursts", 30], ["damaged_bytes", 25], ["whip", 30]] as const,
];

/** Makes the videos in `folder`, as many side by side as there are processors. */
export async function makeSmallSet(folder: string): Promise<void> {
  const clips = (await readClips([CLIPS], join(folder, ".work"))).filter(({ file }) => file !== "bbb120.mp4");
  const queue = SET.map(([kind, fps], n): VideoPlan => ({
    ...planVideo(SEED, kind, KINDS[kind]!, 0, n),
    ...{ size: SIZE, fps, seconds: SECONDS, uneven: 0, encoding: ENCODING },
  }));
  await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, async () => {
    for (let plan = queue.shift(); plan; plan = queue.shift()) {
      await makeVideo({ seed: SEED, groups: 1, clips, outFolder: folder }, plan, KINDS[plan.kind]!);
    }
  }));
}

if (import.meta.main) await makeSmallSet(Deno.args[0]!);
