/** A file of the data directory that only takes room, so that something small can be written when the disk is
 * full.
 */

import { join } from "node:path";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";

/** The file of the reserve, relative to the data directory. */
export const RESERVE_FILE = "reserve";

export interface DiskReserveOptions {
  readonly dataDir: string;
  readonly world: Pick<World, "randomBytes" | "log">;
}

/**
 * ```
 *   filled ──a write is refused──► shorter by one step ──► … ──► empty
 *      ▲                                                           │
 *      └──────────────── there is room again ──────────────────────┘
 * ```
 *
 * Its length is all that it says, so a process may be killed at any step. It is given up in steps, as others
 * may take what is given up before the one for whom it was.
 */
export class DiskReserve {
  readonly #path: string;
  readonly #world: DiskReserveOptions["world"];

  constructor({ dataDir, world }: DiskReserveOptions) {
    this.#path = join(dataDir, RESERVE_FILE);
    this.#world = world;
  }

  /** Bytes that the reserve still has to give. */
  get bytes(): number {
    try {
      return Deno.statSync(this.#path).size;
    } catch {
      return 0; // the first start, or somebody has removed it
    }
  }

  /**
   * Gives up one step, in this turn of the thread, so that the caller may write before anything else of the
   * service does. False where the reserve is empty.
   */
  giveUp(): boolean {
    const { bytes } = this;
    if (bytes === 0) return false;
    try {
      Deno.truncateSync(this.#path, Math.max(0, bytes - LIMITS.retention.reserveStepBytes));
      return true;
    } catch (error) {
      this.#world.log.error("cannot give up the reserve on the disk", { error: String(error) });
      return false;
    }
  }

  /**
   * Fills the reserve, unless the disk would then have less than twice the reserve: `freeBytes` is what it
   * has now.
   */
  async fill(freeBytes: number): Promise<void> {
    const reserveBytes = LIMITS.retention.reserveBytes;
    const lacks = reserveBytes - this.bytes;
    if (lacks <= 0 || freeBytes < lacks + 2 * reserveBytes) return;
    try {
      using file = await Deno.open(this.#path, { create: true, append: true, mode: 0o600 });
      // Of chance, as a file system may give zeros and repetitions no blocks.
      for (let left = lacks; left > 0;) {
        left -= await file.write(this.#world.randomBytes(Math.min(left, PIECE_BYTES)));
      }
      await file.syncData();
    } catch (error) {
      this.#world.log.warn("cannot take a reserve on the disk", { error: String(error) });
    }
  }
}

/** Bytes that are written at once: few enough that to make them takes a fraction of a millisecond. */
const PIECE_BYTES = 64 * 1024;
