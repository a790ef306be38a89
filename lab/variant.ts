/** A copy of the project in which some files are different, with kernels built anew: for other weights, or
 * other constants.
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Measured } from "./scores/measure.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** What is copied, and what is only linked to because nothing changes it. */
const COPIED = ["assembly", "src", "wasm", "weights", "scripts", "lab", "test", "deno.json", "deno.lock"];
const PRISTINE = ".pristine";
const LINKED = ["fixtures", "schemas", "docs"];

export interface Output {
  readonly success: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

export class Variant implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<Variant> {
    const path = await Deno.makeTempDir({ prefix: "service-variant-" });
    const copies = COPIED.map((name) => join(ROOT, name));
    const { success } = await new Deno.Command("cp", { args: ["-r", ...copies, path] }).output();
    if (!success) throw new Error(`Cannot copy the project to ${path}`);
    await Deno.mkdir(join(path, PRISTINE));
    const again = COPIED.map((name) => join(path, name));
    await new Deno.Command("cp", { args: ["-r", ...again, join(path, PRISTINE)] }).output();
    for (const name of LINKED) await Deno.symlink(join(ROOT, name), join(path, name));
    return new Variant(path);
  }

  /** Writes a file of the copy; `path` is relative to the project. */
  async write(path: string, text: string): Promise<void> {
    await Deno.mkdir(dirname(join(this.path, path)), { recursive: true });
    await Deno.writeTextFile(join(this.path, path), text);
  }

  /** Makes a file what it was when the copy was made, whatever happened to the project since. */
  async restore(path: string): Promise<void> {
    await Deno.copyFile(join(this.path, PRISTINE, path), join(this.path, path));
  }

  /** A file as it was when the copy was made. */
  read(path: string): Promise<string> {
    return Deno.readTextFile(join(this.path, PRISTINE, path));
  }

  /** Runs the copy's own `deno` with these arguments. A run that takes longer than `seconds` is ended. */
  async deno(args: readonly string[], { stdin = "", seconds = 1800 } = {}): Promise<Output> {
    const child = new Deno.Command(Deno.execPath(), {
      args: [...args],
      cwd: this.path,
      env: { NO_COLOR: "1" },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(seconds * 1000),
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(stdin)).then(() => writer.close()).catch(() => {});
    const { success, stdout, stderr } = await child.output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { success, stdout: text(stdout), stderr: text(stderr) };
  }

  /** Builds the kernels of the copy; throws with the compiler's messages. */
  async buildKernels(): Promise<void> {
    const { success, stderr } = await this.deno(["run", "-A", "--no-check", "scripts/build_wasm.ts"]);
    if (!success) throw new Error(`Cannot build the kernels of ${this.path}: ${stderr.slice(-2000)}`);
  }

  /** What the copy finds in these videos; throws where one cannot be measured. */
  async measure(paths: readonly string[]): Promise<Measured[]> {
    if (paths.length === 0) return [];
    const { success, stdout, stderr } = await this.deno(
      ["run", "-A", "--no-check", "lab/scores/measure.ts"],
      { stdin: paths.join("\n") },
    );
    if (!success) throw new Error(`Cannot measure with ${this.path}: ${stderr.slice(-2000)}`);
    const measured = stdout.trim().split("\n").map((line) => JSON.parse(line) as Measured);
    return paths.map((path) => measured.find((one) => one.path === path)!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}
