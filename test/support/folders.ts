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

/** Gives `work` a folder that holds 1 MiB. */
export async function withSmallDisk(work: (path: string) => Promise<void>): Promise<void> {
  using folder = new TemporaryFolder();
  if (!mount(folder.path)) throw new Error("cannot mount a small disk");
  try {
    await work(folder.path);
  } finally {
    unmount(folder.path);
  }
}

function mount(path: string): boolean {
  try {
    const args = ["-t", "tmpfs", "-o", "size=1m", "service-test", path];
    return new Deno.Command("mount", { args, stderr: "null" }).outputSync().success;
  } catch {
    return false;
  }
}

function unmount(path: string): void {
  new Deno.Command("umount", { args: ["-l", path] }).outputSync();
}
