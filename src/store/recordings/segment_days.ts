/** The names of recorded segments, day by day: reads a day's folder once, and keeps the names of a few days
 * up to date.
 */

import { firstIndexWhere } from "../../base/sorted.ts";
import { join } from "node:path";
import { LIMITS } from "../../contract/limits.ts";
import { idOfName, segmentOfName } from "../../model/sources/recorded_segment.ts";

/** The segments of one day: their sorted names, and the bytes of their files. */
export interface SegmentDay {
  readonly names: readonly string[];
  readonly bytes: number;
}

interface KeptDay {
  names: string[];
  bytes: number;
}

export const DAY_FOLDER = /^\d{8}$/;

/** The days of all sources. A folder has the segments that begin on one day (UTC). */
export class SegmentDays {
  readonly #root: string;
  /** The kept names, by source and day; the day that was used last is the last one. */
  readonly #kept = new Map<string, Promise<KeptDay>>();
  /** The bytes of all days that were read, by source and day: sums take little memory. */
  readonly #bytes = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  /** How many days it remembers something of. */
  get remembered(): number {
    return new Set([...this.#kept.keys(), ...this.#bytes.keys()]).size;
  }

  /** The days that a source has, sorted. */
  async of(source: string): Promise<string[]> {
    const names = await namesIn(join(this.#root, source), ({ isDirectory }) => isDirectory);
    return names.filter((name) => DAY_FOLDER.test(name)).sort();
  }

  async read(source: string, day: string): Promise<SegmentDay> {
    return await this.#day(source, day);
  }

  /** The bytes of a day, without reading it again. */
  async bytesOf(source: string, day: string): Promise<number> {
    const key = keyOf(source, day);
    return this.#bytes.get(key) ?? (await this.#day(source, day)).bytes;
  }

  /** Notes that a file is there. */
  async added(source: string, day: string, name: string): Promise<void> {
    await this.#change(source, day, (kept) => {
      const at = firstNotBefore(kept.names, name);
      if (kept.names[at] === name) return 0;
      kept.names.splice(at, 0, name);
      return bytesOfName(name);
    }, bytesOfName(name));
  }

  /** Notes that a file is gone. */
  async removed(source: string, day: string, name: string): Promise<void> {
    await this.#change(source, day, (kept) => {
      const at = firstNotBefore(kept.names, name);
      if (kept.names[at] !== name) return 0;
      kept.names.splice(at, 1);
      return -bytesOfName(name);
    }, -bytesOfName(name));
  }

  async #change(
    source: string,
    day: string,
    change: (kept: KeptDay) => number,
    bytesUnread: number,
  ): Promise<void> {
    const key = keyOf(source, day);
    const pending = this.#kept.get(key);
    if (!pending) {
      const known = this.#bytes.get(key);
      if (known !== undefined) this.#bytes.set(key, known + bytesUnread);
      return;
    }
    const kept = await pending;
    kept.bytes += change(kept);
    this.#bytes.set(key, kept.bytes);
  }

  #day(source: string, day: string): Promise<KeptDay> {
    const key = keyOf(source, day);
    const kept = this.#kept.get(key) ?? this.#read(source, day);
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= LIMITS.recording.daysKept) break;
      this.#kept.delete(oldest);
    }
    return kept;
  }

  async #read(source: string, day: string): Promise<KeptDay> {
    const key = keyOf(source, day);
    try {
      const folder = join(this.#root, source, day);
      const names = (await namesIn(folder, ({ isFile, name }) => isFile && segmentOfName(name) !== null))
        .sort();
      if (names.length === 0) { // also of a day that a caller has made up
        this.#kept.delete(key);
        this.#bytes.delete(key);
        return { names, bytes: 0 };
      }
      const bytes = names.reduce((sum, name) => sum + bytesOfName(name), 0);
      this.#bytes.set(key, bytes);
      return { names, bytes };
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }
}

/** The first place whose name is not before `text`: a name, or the id of a segment. */
export function firstNotBefore(names: readonly string[], text: string): number {
  return firstIndexWhere(names, (name) => name >= text);
}

/** The name of the segment with this id; undefined where there is none. */
export function nameOfId(names: readonly string[], id: string): string | undefined {
  const name = names[firstNotBefore(names, id)];
  return name !== undefined && idOfName(name) === id ? name : undefined;
}

/** The wanted names in a folder; none of one that is not there. */
async function namesIn(folder: string, isWanted: (entry: Deno.DirEntry) => boolean): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) if (isWanted(entry)) names.push(entry.name);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return names;
}

function bytesOfName(name: string): number {
  return segmentOfName(name)?.sizeBytes ?? 0;
}

function keyOf(source: string, day: string): string {
  return `${source}/${day}`;
}
