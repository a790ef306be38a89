/** SERVICE_WAL_SYNC=group: one fdatasync for everybody who waits (D3). */

import { refuse } from "../../base/refusal.ts";

export class GroupSync {
  readonly #syncData: (file: Deno.FsFile) => Promise<void>;
  readonly #directory: string;
  /** Commits that were written, and how many of them the disk has. */
  #written = 0;
  #synced = 0;
  #file: Deno.FsFile | undefined;
  /** Full segments with bytes that no sync covered yet; they stay open until one did. */
  #full: Deno.FsFile[] = [];
  #directoryIsNew = true;
  #running: Promise<void> | undefined;
  #failure = "";

  constructor(syncData: (file: Deno.FsFile) => Promise<void>, directory: string) {
    this.#syncData = syncData;
    this.#directory = directory;
  }

  /**
   * After a failed fdatasync nobody knows what the disk has: the kernel may have dropped the bytes and report
   * success the next time. So the timeline takes nothing more until it is opened again and reads what is there.
   */
  assertUsable(): void {
    if (this.#failure === "") return;
    throw refuse.because(
      "storage_unavailable",
      `The timeline takes no events until a restart: ${this.#failure}`,
    );
  }

  wrote(file: Deno.FsFile): void {
    this.#file = file;
    this.#written++;
  }

  /** A new segment begins; `full` is the one before. */
  rolled(full: Deno.FsFile | undefined): void {
    this.#directoryIsNew = true;
    if (full !== undefined && this.#synced < this.#written) this.#full.push(full);
  }

  async synced(): Promise<void> {
    const target = this.#written;
    while (this.#synced < target) {
      this.assertUsable();
      // A sync that is under way may have begun before the last commit: then one more follows.
      await (this.#running ??= this.#run());
    }
  }

  /** Lets those who wait have their answer before the files are closed; whether it was a failure is theirs to know. */
  async close(): Promise<void> {
    await this.synced().catch(() => {});
  }

  async #run(): Promise<void> {
    const covers = this.#written;
    const files = [...this.#full, this.#file!];
    const directoryIsNew = this.#directoryIsNew;
    this.#full = [];
    this.#directoryIsNew = false;
    try {
      for (const file of files) await this.#syncData(file);
      if (directoryIsNew) await this.#syncDirectory();
      this.#synced = covers;
    } catch (error) {
      this.#failure = `fdatasync failed: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      this.#running = undefined;
    }
  }

  /** A new file is safe only when its name is. */
  async #syncDirectory(): Promise<void> {
    using directory = await Deno.open(this.#directory, { read: true });
    await directory.sync();
  }
}
