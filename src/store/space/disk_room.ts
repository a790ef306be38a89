/** How much room the disk of a folder has. */

import { statfs } from "node:fs/promises";

export interface DiskRoom {
  /** What a user who is not root may still write. */
  readonly free_bytes: number;
  readonly total_bytes: number;
}

/** Of the file system of a folder; null where the system does not tell. */
export async function diskRoom(folder: string): Promise<DiskRoom | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize };
  } catch {
    return null;
  }
}
