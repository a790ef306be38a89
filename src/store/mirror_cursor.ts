/** How far the mirror database has come, and the id of this instance under which it has the rows: two small
 * files.
 */

import { join } from "node:path";
import type { Log } from "../base/log.ts";
import type { World } from "../base/world.ts";
import { readSmallFile, replaceSmallFile } from "./files/small_file.ts";

export interface MirrorCursorOptions {
  /** The data directory. The caller must own its lock. */
  readonly dataDir: string;
  /** The place to which the rows go: another place has none of them yet. */
  readonly place: string;
  readonly world: World;
}

const FOLDER = "mirror";
const ID_BYTES = 16;

/**
 * ```
 *   mirror/instance-id   32 hexadecimal digits, synced to the disk before the first row is written under it
 *   mirror/cursor.json   {"place":"…","seq":40}: every event up to here is in the database, or was refused by it
 * ```
 *
 * The cursor is written without a sync: rows after one that was lost in a power cut are written again, which
 * changes nothing, as the database knows them by instance id and number.
 */
export class MirrorCursor {
  readonly #folder: string;
  readonly #place: string;
  readonly #world: World;
  readonly #log: Log;
  #instanceId: string;
  #seq: number;

  static open(options: MirrorCursorOptions): MirrorCursor {
    const folder = join(options.dataDir, FOLDER);
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
    return new MirrorCursor(options, folder);
  }

  private constructor({ place, world }: MirrorCursorOptions, folder: string) {
    this.#folder = folder;
    this.#place = place;
    this.#world = world;
    this.#log = world.log.child("mirror");
    const known = readSmallFile(folder, "instance-id")?.trim();
    this.#instanceId = known !== undefined && /^[0-9a-f]{32}$/.test(known) ? known : this.#newInstance();
    this.#seq = this.#readSeq();
  }

  get instanceId(): string {
    return this.#instanceId;
  }

  get seq(): number {
    return this.#seq;
  }

  /** Moves the cursor. Errors: the disk is full or fails; then it is where it was. */
  moveTo(seq: number): void {
    const text = JSON.stringify({ place: this.#place, seq });
    replaceSmallFile(this.#folder, "cursor.json", { text, isSynced: false });
    this.#seq = seq;
  }

  /** Gives rows a new instance id from here on: numbers that were used under the old one are used again. */
  startOver(seq: number): void {
    this.#instanceId = this.#newInstance();
    this.moveTo(seq);
  }

  #newInstance(): string {
    const id = this.#world.randomBytes(ID_BYTES).toHex();
    replaceSmallFile(this.#folder, "instance-id", { text: `${id}\n`, isSynced: true });
    return id;
  }

  #readSeq(): number {
    const text = readSmallFile(this.#folder, "cursor.json");
    if (text === undefined) return 0;
    try {
      const { place, seq } = JSON.parse(text);
      if (!Number.isSafeInteger(seq) || seq < 0) throw new Error("its seq is no number of an event");
      if (place === this.#place) return seq;
      this.#log.info("the mirror database is another one than before, copying all records");
    } catch (error) {
      this.#log.warn("the cursor of the mirror cannot be read, copying all records again", {
        error: String(error),
      });
    }
    return 0;
  }
}
