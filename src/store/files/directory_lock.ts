/** The lock file of a data directory: only one process at a time may own it. See
 * docs/deployment/data-directory.md.
 */

import { join } from "node:path";

/** The lock, held until it is disposed; the operating system releases it when the process dies. */
export class DirectoryLock implements Disposable {
  readonly #file: Deno.FsFile;

  private constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Takes the lock. Throws when another process owns the directory; the message names its process id. */
  static acquire(directory: string): DirectoryLock {
    const path = join(directory, "lock");
    const file = Deno.openSync(path, { create: true, read: true, write: true, mode: 0o600 });
    if (!file.tryLockSync(true)) {
      file.close();
      const owner = /^\d+/.exec(Deno.readTextFileSync(path))?.[0] ?? "unknown";
      throw new Error(`Cannot open the data directory: another process (pid ${owner}) owns ${directory}`);
    }
    file.truncateSync(0);
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return new DirectoryLock(file);
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}
