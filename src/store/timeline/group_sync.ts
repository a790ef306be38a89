/** One fdatasync for all requests that wait, as SERVICE_WAL_SYNC=group asks for. */

import { errorText } from "../../base/log.ts";
import { refuse } from "../../contract/refusal.ts";

export class GroupSync {
  readonly #syncData: (file: Deno.FsFile) => Promise<void>;
  readonly #directory: string;
  /** How many commits were written, and how many of them were synced. */
  #written = 0;
  #synced = 0;
  #file: Deno.FsFile | undefined;
  /** Full segments with bytes that were not synced yet; they stay open until they are. */
  #full: Deno.FsFile[] = [];
  #directoryIsNew = true;
  #running: Promise<void> | undefined;
  #failure = "";

  constructor(syncData: (file: Deno.FsFile) => Promise<void>, directory: string) {
    this.#syncData = syncData;
    this.#directory = directory;
  }

  /**
   * Throws after a failed fdatasync, so that every commit is refused. What is on the disk is then unknown:
   * the kernel may have dropped the bytes and may report success the next time. So the timeline takes no
   * events until the service is started again and reads what is there.
   */
  assertUsable(): void {
    if (this.#failure === "") return;
    throw refuse.because(
      "storage_unavailable",
      `The timeline takes no events until a restart: ${this.#failure}`,
    );
  }

  /** Notes a commit. Call it after each one, with the file that it was written to. */
  recordWrite(file: Deno.FsFile): void {
    this.#file = file;
    this.#written++;
  }

  /** Notes that a new segment has started; `full` is the file of the one before. */
  recordNewSegment(full: Deno.FsFile | undefined): void {
    this.#directoryIsNew = true;
    if (full !== undefined && this.#synced < this.#written) this.#full.push(full);
  }

  /** Resolves when every commit so far is synced; refuses with `storage_unavailable` when a sync failed. */
  async synced(): Promise<void> {
    const target = this.#written;
    while (this.#synced < target) {
      this.assertUsable();
      // A sync that is under way may have started before the last commit: then one more follows.
      await (this.#running ??= this.#run());
    }
  }

  /**
   * Waits for the last sync before the files are closed. A failure is reported to the callers of `synced`
   * only.
   */
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
      this.#failure = `fdatasync failed: ${errorText(error)}`;
    } finally {
      this.#running = undefined;
    }
  }

  /** Syncs the directory: a new file survives a power cut only with its directory entry. */
  async #syncDirectory(): Promise<void> {
    using directory = await Deno.open(this.#directory, { read: true });
    await directory.sync();
  }
}
