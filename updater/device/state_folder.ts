/** The state folder of the updater, the only place to which it writes:
 *
 *     enrollment.json   what this device is, and whose manifests it takes
 *     state.json        the releases, replaced in one step
 *     state.lock        held while the state changes       download.lock   held by the process that downloads
 *     hook.lock         held while the hook runs
 *     models/           the artifacts in use               download/       what has arrived of the next one
 */

import { dirname, join } from "node:path";
import { CliError } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { keptReleases } from "../release/steps.ts";
import { type Manifest, modelFileName } from "../release/manifest.ts";
import { NO_RELEASES, readState, type State } from "../release/state.ts";

const LOCK_POLL_MS = 50;
const MODE_OF_OTHERS = 0o077;

export class StateFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Makes the folder where it is missing. Others may use the models if they are given that folder alone, and nothing else. */
  make(): void {
    Deno.mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.check();
    for (const [name, mode] of [["models", 0o755], ["download", 0o700]] as const) {
      const path = join(this.path, name);
      Deno.mkdirSync(path, { recursive: true });
      Deno.chmodSync(path, mode);
    }
  }

  /** Throws where others may look into the folder. */
  check(): void {
    const mode = Deno.statSync(this.path).mode! & 0o777;
    if ((mode & MODE_OF_OTHERS) !== 0) {
      throw new CliError(
        "usage",
        `the state folder ${this.path} must be its owner's alone (mode 0700), got ${
          mode.toString(8).padStart(4, "0")
        }`,
        `chmod 700 ${this.path}`,
      );
    }
  }

  file(name: "enrollment.json" | "hook.lock"): string {
    return join(this.path, name);
  }

  modelPath(manifest: Manifest): string {
    return join(this.path, "models", manifest.release_id, modelFileName(manifest));
  }

  partPath({ release_id }: Manifest): string {
    return join(this.path, "download", `${release_id}.part`);
  }

  readState(): State {
    const path = join(this.path, "state.json");
    let text: string;
    try {
      text = Deno.readTextFileSync(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      // Taken for an empty one it would let the device go back to old manifests.
      throw this.#unusable(path, "is missing");
    }
    const state = readState(text);
    if (!state) throw this.#unusable(path, "is damaged or of another version");
    return state;
  }

  /** Of a device that is enrolled for the first time. */
  writeFirstState(): void {
    this.writeState(NO_RELEASES);
  }

  writeState(state: State): void {
    this.writeFile("state.json", JSON.stringify(state));
  }

  /** The file has its old text or the new one, also after a power failure. */
  writeFile(name: "state.json" | "enrollment.json", text: string): void {
    const path = join(this.path, name);
    const temporary = `${path}.new`;
    {
      using file = Deno.openSync(temporary, { write: true, create: true, truncate: true, mode: 0o600 });
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      file.syncSync();
    }
    Deno.renameSync(temporary, path);
    syncFolder(this.path);
  }

  /** Gives a whole and verified artifact its name as a model. */
  publish(manifest: Manifest): void {
    const path = this.modelPath(manifest);
    const folder = dirname(path);
    Deno.mkdirSync(folder, { recursive: true });
    Deno.chmodSync(folder, 0o755);
    Deno.chmodSync(this.partPath(manifest), 0o444);
    Deno.renameSync(this.partPath(manifest), path);
    for (const changed of [folder, dirname(folder)]) syncFolder(changed);
  }

  /** Removes every artifact that belongs to no release of the state, whole or in part. */
  collect(state: State): void {
    const kept = new Set(keptReleases(state).map((one) => dirname(this.modelPath(one))));
    if (state.incoming) kept.add(this.partPath(state.incoming));
    for (const folder of ["models", "download"]) {
      for (const { name } of Deno.readDirSync(join(this.path, folder))) {
        const path = join(this.path, folder, name);
        if (!kept.has(path)) Deno.removeSync(path, { recursive: true });
      }
    }
  }

  /** Waits for the right to change the state. */
  async lockState(signal: AbortSignal): Promise<Disposable> {
    const end = performance.now() + LIMITS.edge.lockWaitMs;
    for (;;) {
      const lock = this.#tryLock("state.lock");
      if (lock) return lock;
      if (performance.now() > end) {
        throw new CliError(
          "failed",
          `another updater has been at work in ${this.path} for ${LIMITS.edge.lockWaitMs / 1000} s`,
        );
      }
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
    }
  }

  /** The right to download, or null while another process has it. */
  tryLockDownload(): Disposable | null {
    return this.#tryLock("download.lock");
  }

  #unusable(path: string, fault: string): CliError {
    return new CliError(
      "failed",
      `${path} ${fault}: nothing is changed`,
      "put it back from a backup; a device whose folder is removed and that is enrolled anew takes old manifests again",
    );
  }

  /** The system gives a lock back when its process ends, however that happens. */
  #tryLock(name: string): Disposable | null {
    const file = Deno.openSync(join(this.path, name), { write: true, create: true, mode: 0o600 });
    if (file.tryLockSync(true)) return file;
    file.close();
    return null;
  }
}

function syncFolder(path: string): void {
  using folder = Deno.openSync(path);
  folder.syncSync();
}
