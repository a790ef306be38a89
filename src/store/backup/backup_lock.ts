/** The lock file of a folder with backups: a backup that drops others runs into it alone. See
 * docs/backup.md#backup.
 */

import { join } from "node:path";

/** The lock, held until it is disposed; the operating system releases it when the process dies. */
export class BackupLock implements Disposable {
  readonly #file: Deno.FsFile;

  private constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /**
   * Takes the lock. Throws where another backup runs into the folder that this one would harm, or that would
   * harm it.
   */
  static acquire(folder: string, { dropsOthers }: { readonly dropsOthers: boolean }): BackupLock {
    const path = join(folder, "lock");
    const file = Deno.openSync(path, { create: true, read: true, write: true, mode: 0o600 });
    if (file.tryLockSync(dropsOthers)) return new BackupLock(file);
    file.close();
    throw new Error(
      dropsOthers
        ? `another backup runs into ${folder}, and --keep could remove what it counts on; run it again when that one has ended`
        : `a backup with --keep runs into ${folder}, and could remove what this one counts on; run it again when that one has ended`,
    );
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}
