/** How much room the disk of a folder has. */

export interface DiskRoom {
  /** Bytes that a user who is not root may still write. */
  readonly free_bytes: number;
  readonly total_bytes: number;
}

/** The room of the file system that a folder is on; null where the system does not tell. */
export async function diskRoom(folder: string): Promise<DiskRoom | null> {
  try {
    // Loaded when it is asked for: the module takes the start as long as all others of the store.
    const { statfs } = await import("node:fs/promises");
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize };
  } catch {
    return null;
  }
}
