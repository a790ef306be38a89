/** Runs `scripts/cli` as a user does: a process of its own, with its own folder for settings. */

import { join } from "node:path";
import { TemporaryFolder } from "../folders.ts";
import { KEY_A, PROJECT_ROOT } from "../service.ts";

export const CLI = join(PROJECT_ROOT, "scripts", "cli");

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Bytes for its stdin; closed and empty unless given. */
  readonly stdin?: string;
}

/** One user: the server's address, a key and a home that nothing else looks into. */
export class CliUser implements Disposable {
  readonly #home = new TemporaryFolder();
  readonly url: string;
  readonly key: string | null;

  constructor(url: string, key: string | null = KEY_A) {
    this.url = url;
    this.key = key;
  }

  /** A folder of the user. */
  get home(): string {
    return this.#home.path;
  }

  env(changes: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      PATH: Deno.env.get("PATH")!,
      HOME: this.home,
      SERVICE_API_URL: this.url,
      ...(this.key !== null && { SERVICE_API_KEY: this.key }),
      ...Object.fromEntries(
        ["DENO_DIR", "SERVICE_FFMPEG_PATH"].flatMap((name) => {
          const value = Deno.env.get(name);
          return value === undefined ? [] : [[name, value]];
        }),
      ),
      ...changes,
    };
  }

  /** Starts it and leaves its streams to the caller. */
  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Deno.ChildProcess {
    return new Deno.Command(CLI, {
      args: [...args],
      env: this.env(env),
      clearEnv: true,
      cwd: this.home,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  /** Runs the command line to its end. */
  async run(args: readonly string[], { env = {}, stdin = "" }: CliOptions = {}): Promise<CliRun> {
    const child = this.start(args, env);
    const writer = child.stdin.getWriter();
    const writing = writer.write(new TextEncoder().encode(stdin)).then(() => writer.close())
      // It does not have to read what it is given.
      .catch(() => {});
    const { code, stdout, stderr } = await child.output();
    await writing;
    const text = new TextDecoder();
    return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
  }

  /** What it prints with --json; fails with its stderr. */
  // deno-lint-ignore no-explicit-any -- tests look into answers of every shape
  async json(args: readonly string[], options?: CliOptions): Promise<any> {
    const { code, stdout, stderr } = await this.run([...args, "--json"], options);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  [Symbol.dispose](): void {
    this.#home[Symbol.dispose]();
  }
}
