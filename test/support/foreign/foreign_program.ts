/** Starts a program of others for a test (aiortc, aioquic, GStreamer, gortsplib), and talks with it in lines
 * of JSON.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./", import.meta.url));
const ANSWER_DEADLINE_MS = 60_000;
const KEPT_TEXT_CHARACTERS = 4_096;

export type ForeignName =
  | "aiortc_publisher"
  | "gstreamer_publisher"
  | "rtsp_camera"
  | "rtsp_server"
  | "upload"
  | "aioquic_client";

/** Which variable names the Python of each program; of `rtsp_server`, which was built, it is the program. */
const PROGRAMS: Readonly<Record<ForeignName, string>> = {
  aiortc_publisher: "AIORTC_PYTHON",
  upload: "AIORTC_PYTHON",
  aioquic_client: "AIOQUIC_PYTHON",
  gstreamer_publisher: "GSTREAMER_PYTHON",
  rtsp_camera: "GSTREAMER_PYTHON",
  rtsp_server: "RTSP_SERVER",
};

// deno-lint-ignore no-explicit-any -- each command has an answer of its own
export type ForeignAnswer = any;

/** A program that takes one command at a time. Disposing it ends the program. */
export class ForeignProgram implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #commands: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #errors: Promise<void>;
  #error = "";
  #rest = "";

  constructor(name: ForeignName) {
    const program = Deno.env.get(PROGRAMS[name]);
    if (!program) throw new Error(`${PROGRAMS[name]} is not set: start with ./scripts/foreign-clients`);
    this.#child = new Deno.Command(program, {
      args: name === "rtsp_server" ? [] : ["-B", join(FOLDER, `${name}.py`)],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#commands = this.#child.stdin.getWriter();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    this.#errors = this.#readErrors();
  }

  /** The answer to the command; fails with what the program says of its failure. */
  async order(command: string, fields: Readonly<Record<string, unknown>> = {}): Promise<ForeignAnswer> {
    await this.#commands.write(new TextEncoder().encode(JSON.stringify({ do: command, ...fields }) + "\n"));
    const answer = JSON.parse(await this.#line(command));
    if (answer.error) throw new Error(`${command}: ${answer.error}`);
    return answer;
  }

  /** Ends the program at once, as a crash would. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#child.status;
    await this.#commands.abort().catch(() => {});
    await this.#lines.cancel().catch(() => {});
    await this.#errors;
  }

  async #line(command: string): Promise<string> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`${command}: no answer; ${this.#error}`)),
      ANSWER_DEADLINE_MS,
    );
    try {
      for (;;) {
        const end = this.#rest.indexOf("\n");
        if (end >= 0) {
          const line = this.#rest.slice(0, end);
          this.#rest = this.#rest.slice(end + 1);
          return line;
        }
        const { done, value } = await Promise.race([this.#lines.read(), late.promise]);
        if (done) throw new Error(`${command}: the program ended; ${this.#error}`);
        this.#rest += value;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#error = (this.#error + text).slice(-KEPT_TEXT_CHARACTERS);
    }
  }
}

/**
 * Keeps both processors busy, at a lower rank than the service, until it is disposed or two minutes are over.
 */
export class BusyMachine implements AsyncDisposable {
  readonly #loops = Array.from({ length: navigator.hardwareConcurrency }, () =>
    new Deno.Command("timeout", {
      args: ["120", "nice", "-n", "2", "sh", "-c", "while :; do :; done"],
      stdin: "null",
    }).spawn());

  async [Symbol.asyncDispose](): Promise<void> {
    for (const loop of this.#loops) {
      try {
        loop.kill("SIGTERM"); // which `timeout` hands on
      } catch {
        // Its two minutes are over.
      }
    }
    await Promise.all(this.#loops.map(({ status }) => status));
  }
}
