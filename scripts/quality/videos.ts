/** Finds labelled videos in folders, and says from which sources each was made. */

import { basename, join } from "node:path";
import { groupOf, originOf } from "./edits/files/origins.ts";
import type { Truth } from "./truth.ts";

export interface LabelledVideo {
  readonly path: string;
  readonly truth: Truth;
}

/**
 * The videos of all `*.truth.json` in the folders and in their subfolder `truth`, by name. A video lies beside its truth, where
 * the truth says, or by its name in the folder or its subfolder `clips`.
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

/** The kind of a video, for one without: `edit: hard` of `P01_hard` and `D01_hard`, `real` of a clip that nobody edited. */
export function kindOf({ kind, name }: Truth): string {
  if (kind !== undefined) return kind;
  const numbered = /^[A-Z]\d+[a-z]?_(.+)$/.exec(name);
  return numbered ? `edit: ${numbered[1]}` : "real";
}

/**
 * In which of `folds` a frame is judged: by the origin of the shot that it belongs to. Drawn shots are new in every video and
 * belong to no origin, so they are judged with the others of their video.
 */
export function foldsOfFrames(truth: Truth, folds: number): (frame: number) => number {
  const shots = (truth.shots ?? [])
    .filter(({ src }) => !src.startsWith("drawn:"))
    .map(({ start, src, origin }) => ({ start, fold: groupOf(origin ?? originOf(src).origin, folds) }))
    .sort((a, b) => a.start - b.start);
  const alone = groupOf(originOf(basename(truth.video)).origin, folds);
  if (shots.length === 0) return () => alone;
  return (frame) => (shots.findLast(({ start }) => start <= frame) ?? shots[0]!).fold;
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
