/** The continuous recordings of cameras on the disk: a folder for each source and day, a file for each
 * segment. See docs/protocols.md#recordings.
 */

import { join } from "node:path";
import type { World } from "../../base/world.ts";
import { SOURCE_NAME } from "../../model/source_name.ts";
import {
  recordedName,
  type RecordedSegment,
  segmentDay,
  segmentId,
  segmentOfName,
  segmentStartMs,
} from "../../model/sources/recorded_segment.ts";
import { isFolder, RECORDINGS_FOLDER } from "../files/folder.ts";
import { onDisk, PartialFile, removeLeftovers } from "../files/partial_file.ts";
import { DAY_FOLDER, firstNotBefore, nameOfId, SegmentDays } from "./segment_days.ts";

/** A range of the segments of a source: those that have something of `[fromMs, toMs)`. */
export interface RecordedRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export class Recordings {
  readonly #dataDir: string;
  readonly #root: string;
  readonly #world: World;
  readonly #days: SegmentDays;
  /** The end of the newest segment of each source, as far as it was asked for or stored. */
  readonly #newestEndMs = new Map<string, number>();

  private constructor(dataDir: string, world: World) {
    const root = join(dataDir, RECORDINGS_FOLDER);
    this.#dataDir = dataDir;
    this.#root = root;
    this.#world = world;
    this.#days = new SegmentDays(root);
  }

  /**
   * Opens the recordings, and removes the unfinished files of a killed process. Call it only as the owner of
   * the data directory.
   */
  static open(dataDir: string, world: World): Recordings {
    const root = join(dataDir, RECORDINGS_FOLDER);
    for (const source of subfolders(root)) {
      const days = subfolders(join(root, source)).filter((day) => DAY_FOLDER.test(day)).sort();
      // A process writes into the newest day, and may be killed just behind midnight.
      for (const day of days.slice(-2)) removeLeftovers(join(root, source, day));
    }
    return new Recordings(dataDir, world);
  }

  /**
   * Stores a segment: its file is synced, and has its name only when it is whole. Where the source has
   * another segment of the same millisecond, this one begins a millisecond later. Refuses with
   * `storage_unavailable` when the disk is full or fails.
   */
  async write(source: string, segment: RecordedSegment, mp4: Uint8Array): Promise<RecordedSegment> {
    let placed = segment;
    let day = segmentDay(placed.startMs);
    for (let { names } = await this.#days.read(source, day); nameOfId(names, segmentId(placed.startMs));) {
      placed = { ...placed, startMs: placed.startMs + 1, endMs: Math.max(placed.endMs, placed.startMs + 2) };
      day = segmentDay(placed.startMs);
      ({ names } = await this.#days.read(source, day));
    }
    const folder = join(this.#root, source, day);
    using partial = await PartialFile.create(folder, this.#world);
    await partial.write(mp4);
    const name = recordedName(placed);
    await partial.publish(join(folder, name));
    await this.#days.added(source, day, name);
    this.#newestEndMs.set(source, placed.endMs);
    return placed;
  }

  /** The end of the newest segment; null where there is none. */
  async newestEndMs(source: string): Promise<number | null> {
    const known = this.#newestEndMs.get(source);
    if (known !== undefined) return known;
    for (const day of (await this.#days.of(source)).reverse()) {
      const newest = (await this.#days.read(source, day)).names.at(-1);
      if (newest === undefined) continue;
      const { endMs } = segmentOfName(newest)!;
      // One that was stored meanwhile is newer.
      if (!this.#newestEndMs.has(source)) this.#newestEndMs.set(source, endMs);
      return this.#newestEndMs.get(source)!;
    }
    return null;
  }

  /** Every source that has a folder, also one that no file names any more. */
  sources(): string[] {
    return subfolders(this.#root).filter((name) => SOURCE_NAME.test(name)).sort();
  }

  /**
   * Like `sources`, without those whose folder is a link to another disk: what they have takes no room of the
   * data directory.
   */
  sourcesOnDisk(): string[] {
    return this.sources().filter((source) => !isOtherDisk(join(this.#root, source), this.#dataDir));
  }

  /** The segments in the range, oldest first; behind the segment with the id `after`, if there is one. */
  async *segments(
    source: string,
    { fromMs, toMs }: RecordedRange,
    after: string | null = null,
  ): AsyncGenerator<RecordedSegment, void> {
    const days = await this.#days.of(source);
    const [first, last] = [dayOf(fromMs), dayOf(toMs)];
    // The segment before the range may reach into it, and began on an earlier day then.
    const begin = Math.max(0, days.findLastIndex((day) => day < first));
    for (const day of days.slice(begin)) {
      if (day > last) return;
      if (after !== null && day < after.slice(0, day.length)) continue;
      const { names } = await this.#days.read(source, day);
      // A copy, as a segment may be added or removed while somebody reads the list.
      const at = after === null
        ? Math.max(0, firstNotBefore(names, idAt(fromMs)) - 1)
        : firstNotBefore(names, `${after}~`);
      for (const name of names.slice(at)) {
        const segment = segmentOfName(name)!;
        if (segment.startMs >= toMs) return;
        if (segment.endMs > fromMs) yield segment;
      }
    }
  }

  /** The segment with this id; null where the source has none. */
  async find(source: string, id: string): Promise<RecordedSegment | null> {
    const startMs = segmentStartMs(id);
    if (startMs === null) return null;
    const { names } = await this.#days.read(source, segmentDay(startMs));
    const name = nameOfId(names, id);
    return name === undefined ? null : segmentOfName(name);
  }

  /** Opens the file of a segment; null where it was removed meanwhile. The caller closes the file. */
  async open(source: string, segment: RecordedSegment): Promise<Deno.FsFile | null> {
    try {
      return await Deno.open(this.#pathOf(source, segment), { read: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  /**
   * Removes a segment; false where it was gone already. Refuses with `storage_unavailable` when the disk
   * fails.
   */
  async remove(source: string, segment: RecordedSegment): Promise<boolean> {
    const day = segmentDay(segment.startMs);
    if (this.#newestEndMs.get(source) === segment.endMs) this.#newestEndMs.delete(source);
    const isRemoved = await onDisk(this.#world, async () => {
      try {
        await Deno.remove(this.#pathOf(source, segment));
        return true;
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
        return false;
      }
    });
    await this.#days.removed(source, day, recordedName(segment));
    return isRemoved;
  }

  /**
   * Removes the folders of days that have passed and have no file any more, and then the folder of the source
   * if it has no day left.
   */
  async removeEmptyFolders(source: string): Promise<void> {
    const today = segmentDay(this.#world.now());
    for (const day of await this.#days.of(source)) {
      if (day >= today) break;
      const { names } = await this.#days.read(source, day);
      if (names.length === 0) await removeIfEmpty(join(this.#root, source, day));
    }
    if ((await this.#days.of(source)).length === 0) await removeIfEmpty(join(this.#root, source));
  }

  /** Bytes of all segments of a source. */
  async bytesOf(source: string): Promise<number> {
    let bytes = 0;
    for (const day of await this.#days.of(source)) bytes += await this.#days.bytesOf(source, day);
    return bytes;
  }

  #pathOf(source: string, segment: RecordedSegment): string {
    return join(this.#root, source, segmentDay(segment.startMs), recordedName(segment));
  }
}

/**
 * The first and the last moment of years with four digits: others have no segments, and a bound may be any
 * number.
 */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");

function idAt(ms: number): string {
  return segmentId(Math.min(LATEST_MS, Math.max(EARLIEST_MS, ms)));
}

function dayOf(ms: number): string {
  return segmentDay(Math.min(LATEST_MS, Math.max(EARLIEST_MS, ms)));
}

function subfolders(path: string): string[] {
  try {
    return [...Deno.readDirSync(path)].filter((entry) =>
      entry.isDirectory || entry.isSymlink && isFolder(join(path, entry.name))
    ).map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Whether two paths are on different disks; false where one of them is gone. */
function isOtherDisk(one: string, other: string): boolean {
  try {
    return Deno.statSync(one).dev !== Deno.statSync(other).dev;
  } catch {
    return false;
  }
}

async function removeIfEmpty(path: string): Promise<void> {
  try {
    if ((await Deno.lstat(path)).isSymlink) return; // the operator made it
    await Deno.remove(path);
  } catch {
    // it is not empty, or gone: a later pass looks again
  }
}
