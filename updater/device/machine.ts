/** What the updater takes from the machine and a test replaces: room on the disk, times. */

import { statfs } from "node:fs/promises";
import { LIMITS } from "../../src/contract/limits.ts";

export interface Machine {
  /** Bytes that a process without privileges may still write to the disk of a folder. */
  readonly freeBytes: (folder: string) => Promise<number>;
  /** The pause after which an artifact that does not arrive is given up. */
  readonly idleMs: number;
  readonly hookTimeoutMs: number;
}

export const MACHINE: Machine = {
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
  idleMs: LIMITS.edge.artifactIdleMs,
  hookTimeoutMs: LIMITS.edge.hookTimeoutMs,
};
