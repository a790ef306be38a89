/** Finds labelled videos in folders, and says from which sources each was made. */

import { basename, join } from "node:path";
import { originOf } from "../edits/files/origins.ts";
import type { Truth } from "./truth.ts";

export interface LabelledVideo {
  readonly path: string;
  readonly truth: Truth;
}

/**
 * The videos of all `*.truth.json` in the folders and in their subfolder `truth`, by name. A video lies
 * beside its truth, where the truth says, or by its name in the folder or its subfolder `clips`.
 */
export async function findVideos(folders: readonly string[]): Promise<LabelledVideo[]> {
  const found: LabelledVideo[] = [];
  for (const folder of folders) {
    for (const place of [folder, join(folder, "truth")]) {
      for (const file of await filesIn(place)) {
        if (!file.endsWith(".truth.json")) continue;
        const truth = JSON.parse(await Deno.readTextFile(join(place, file))) as Truth;
        found.push({ truth, path: await findVideo(truth, [place, folder, join(folder, "clips")]) });
      }
    }
  }
  return found.sort((a, b) => a.truth.name < b.truth.name ? -1 : 1);
}

/**
 * The kind of a video, for one without: `edit: hard` of `P01_hard` and `D01_hard`, `real` of a clip that
 * nobody edited.
 */
export function kindOf({ kind, name }: Truth): string {
  if (kind !== undefined) return kind;
  const numbered = /^[A-Z]\d+[a-z]?_(.+)$/.exec(name);
  return numbered ? `edit: ${numbered[1]}` : "real";
}

/** The origin of what a frame shows. Drawn shots are new in every video, so each is an origin of its own. */
export function originsOf({ name, video, shots = [] }: Truth): (frame: number) => string {
  const alone = originOf(basename(video)).origin;
  return (frame) => {
    const shot = shots.findLast(({ start }) => start <= frame) ?? shots[0];
    if (!shot) return alone;
    return shot.src.startsWith("drawn") ? `${name}/${shot.start}` : shot.origin ?? originOf(shot.src).origin;
  };
}

async function findVideo(truth: Truth, places: readonly string[]): Promise<string> {
  const paths = places.flatMap((place) => [join(place, truth.video), join(place, basename(truth.video))]);
  for (const path of paths) {
    if (await Deno.stat(path).then((info) => info.isFile, () => false)) return path;
  }
  throw new Error(`Cannot measure ${truth.name}: there is no ${[...new Set(paths)].join(" and no ")}`);
}

async function filesIn(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
