/** Folders that are removed after a test, and small disks for tests that fill them. */

export class TemporaryFolder implements Disposable {
  readonly path = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-test-" }));

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** Whether this machine lets a test mount a disk. */
export function canMountSmallDisk(): boolean {
  using folder = new TemporaryFolder();
  const isMounted = mount(folder.path);
  if (isMounted) unmount(folder.path);
  return isMounted;
}

/** Gives `work` a folder that holds so many MiB. */
export async function withSmallDisk(work: (path: string) => Promise<void>, mebibytes = 1): Promise<void> {
  using folder = new TemporaryFolder();
  if (!mount(folder.path, mebibytes)) throw new Error("cannot mount a small disk");
  try {
    await work(folder.path);
  } finally {
    unmount(folder.path);
  }
}

function mount(path: string, mebibytes = 1): boolean {
  try {
    const args = ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "service-test", path];
    return new Deno.Command("mount", { args, stderr: "null" }).outputSync().success;
  } catch {
    return false;
  }
}

function unmount(path: string): void {
  new Deno.Command("umount", { args: ["-l", path] }).outputSync();
}

/**
 * Something else on the disk of a folder, which takes all room that is left: files that can be taken away
 * again.
 */
export class Ballast {
  readonly #folder: string;
  #files = 0;

  constructor(folder: string) {
    this.#folder = folder;
    Deno.mkdirSync(folder, { recursive: true });
  }

  /** Leaves no byte of the disk free. */
  fill(): void {
    using file = Deno.openSync(`${this.#folder}/${this.#files++}`, { createNew: true, write: true });
    try {
      for (;;) file.writeSync(PIECE);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOSPC") throw error;
    }
  }

  remove(): void {
    while (this.#files > 0) Deno.removeSync(`${this.#folder}/${--this.#files}`);
  }
}

const PIECE = new Uint8Array(1024 * 1024);
