/** Where a backup lies: objects with names, each written whole or not at all. A folder and an S3 bucket are
 * such places.
 */

export interface BackupStorage {
  /** The name of the place in messages; without secrets. */
  readonly name: string;
  /** Lists all objects whose name begins with `prefix`. */
  list(prefix: string): AsyncIterable<BackupObject>;
  /** The object, of at most {@link BACKUP_PART_BYTES}; null where there is none of that name. */
  get(name: string): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Stores an object, also in the place of one of that name. Resolves when a crash cannot harm it. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Removes an object. Resolves also where there is no such one. */
  remove(name: string): Promise<void>;
}

export interface BackupObject {
  readonly name: string;
  readonly bytes: number;
}

/** Files are stored in parts of at most this size. */
export const BACKUP_PART_BYTES = 16 * 1024 * 1024;
