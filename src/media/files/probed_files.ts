/** What was found in files that have not changed since, so that they are not probed again. */

import type { World } from "../../base/world.ts";

/** Files that are remembered; the one that was not asked for the longest is forgotten. */
const FILES_MAX = 512;
/** Longest time that a file is remembered. */
const KEPT_MS = 10 * 60_000;
/**
 * A file that changed less than this time ago may change again with the same times, which have a resolution
 * of a second here, and is perhaps still being written.
 */
const UNCHANGED_MS = 2_500;

/**
 * What the file system says of a file. Each change of a file gives it another `ctime`, which no user can set.
 */
export type IdentityFacts = Pick<Deno.FileInfo, "isFile" | "dev" | "ino" | "size" | "mtime" | "ctime">;

/** Files that were probed and have not changed since. `Info` is what a probe finds. */
export class ProbedFiles<Info> {
  readonly #world: Pick<World, "now" | "monotonicMs">;
  /** What was found, by identity of the file; the one that was asked for last is at the end. */
  readonly #files = new Map<string, { readonly info: Info; readonly untilMs: number }>();

  constructor(world: Pick<World, "now" | "monotonicMs">) {
    this.#world = world;
  }

  /**
   * What is in the file; undefined where it was not probed, or has changed. `facts` are those of the opened
   * file.
   */
  find(facts: IdentityFacts): Info | undefined {
    const identity = identityOf(facts);
    const known = identity === null ? undefined : this.#files.get(identity);
    if (identity === null || known === undefined) return undefined;
    this.#files.delete(identity);
    if (known.untilMs <= this.#world.monotonicMs()) return undefined;
    this.#files.set(identity, known);
    return known.info;
  }

  /**
   * Remembers what a probe found in the file that had the facts `before` it and has those `after` it. Only
   * where both are the same, and the file did not change just before.
   */
  keep(before: IdentityFacts, after: IdentityFacts, info: Info): void {
    const identity = identityOf(before);
    if (identity === null || identity !== identityOf(after)) return;
    const changedMs = Math.max(before.mtime!.getTime(), before.ctime!.getTime());
    if (changedMs > this.#world.now() - UNCHANGED_MS) return;
    this.#files.delete(identity);
    this.#files.set(identity, { info, untilMs: this.#world.monotonicMs() + KEPT_MS });
    for (const oldest of this.#files.keys()) {
      if (this.#files.size <= FILES_MAX) return;
      this.#files.delete(oldest);
    }
  }
}

/** Identity of a file; null for what is no regular file, and where the file system does not say enough. */
function identityOf({ isFile, dev, ino, size, mtime, ctime }: IdentityFacts): string | null {
  if (!isFile || ino === null || mtime === null || ctime === null) return null;
  return [dev, ino, size, mtime.getTime(), ctime.getTime()].join(":");
}
