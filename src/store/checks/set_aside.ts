/** The folder in which a repair keeps what it takes out of a data directory: nothing of it is deleted. */

import { dirname, join } from "node:path";
import { syncFolder } from "../files/folder.ts";

export const SET_ASIDE = "set-aside";

/** Made with the first file that comes into it. */
export class SetAside {
  /** Relative to the data directory. */
  readonly folder: string;
  readonly #dataDir: string;
  #isUsed = false;

  constructor(dataDir: string, nowMs: number) {
    this.#dataDir = dataDir;
    const time = new Date(nowMs).toISOString().replaceAll(":", "-");
    this.folder = `${SET_ASIDE}/${time}`;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Moves the file into the folder, where it has the same path. */
  move(path: string): void {
    const to = this.#placeOf(path);
    Deno.renameSync(join(this.#dataDir, path), to);
    syncFolder(dirname(to));
    syncFolder(dirname(join(this.#dataDir, path)));
  }

  /** Keeps the file as it is now in the folder; the file itself stays, and is to be replaced and never written to. */
  keep(path: string): void {
    const to = this.#placeOf(path);
    try {
      Deno.linkSync(join(this.#dataDir, path), to);
    } catch {
      Deno.copyFileSync(join(this.#dataDir, path), to); // a file system without links
    }
    syncFolder(dirname(to));
  }

  write(name: string, text: string): void {
    Deno.writeTextFileSync(this.#placeOf(name), text, { mode: 0o600 });
  }

  #placeOf(path: string): string {
    this.#isUsed = true;
    const to = join(this.#dataDir, this.folder, path);
    Deno.mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    return to;
  }
}
