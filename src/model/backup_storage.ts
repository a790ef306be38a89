/** Where a backup lies: objects with names, each written whole or not at all. A folder and an S3 bucket are such places. */

export interface BackupStorage {
  /** What it is called in messages; without secrets. */
  readonly name: string;
  /** All objects whose name begins with `prefix`. */
  list(prefix: string): AsyncIterable<BackupObject>;
  /** Null where there is no such object. Objects have at most {@link BACKUP_PART_BYTES}. */
  get(name: string): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Resolves when the object is where a crash does not reach it any more. An object of that name is replaced. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Resolves also where there is no such object. */
  remove(name: string): Promise<void>;
}

export interface BackupObject {
  readonly name: string;
  readonly bytes: number;
}

/** Files are stored in parts of at most this size. */
export const BACKUP_PART_BYTES = 16 * 1024 * 1024;
