/** Runs ffmpeg and ffprobe, and moves raw frames in and out of them. */

import type { Picture } from "../pictures/picture.ts";

const QUIET = ["-hide_banner", "-nostdin", "-v", "error"];

/** Runs ffmpeg to its end, one thread each, and returns what it printed. */
export async function ffmpeg(args: readonly string[], name: string): Promise<string> {
  return await output("ffmpeg", [...QUIET, "-threads", "1", "-filter_threads", "1", ...args], name);
}

export async function ffprobe(args: readonly string[], name: string): Promise<string> {
  return await output("ffprobe", ["-v", "error", ...args], name);
}

async function output(program: string, args: readonly string[], name: string): Promise<string> {
  const result = await new Deno.Command(program, { args: [...args], stdin: "null" }).output();
  if (!result.success) throw new Error(`${program} failed at ${name}: ${tail(result.stderr)}`);
  return new TextDecoder().decode(result.stdout);
}

function tail(stderr: Uint8Array): string {
  return new TextDecoder().decode(stderr).trim().slice(-600);
}

/** Reads frames of one size that ffmpeg writes. */
export class FrameReader implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  /**
   * Starts ffmpeg. `args` are everything between its general options and the output; the pixel format is part
   * of them.
   */
  constructor(args: readonly string[], log: "null" | "piped" = "null") {
    this.#child = new Deno.Command("ffmpeg", {
      args: [
        "-hide_banner",
        "-nostdin",
        "-threads",
        "1",
        "-filter_threads",
        "1",
        ...args,
        "-f",
        "rawvideo",
        "pipe:1",
      ],
      stdin: "null",
      stdout: "piped",
      stderr: log,
    }).spawn();
    this.#reader = this.#child.stdout.getReader();
  }

  get child(): Deno.ChildProcess {
    return this.#child;
  }

  /** Reads the next frame; false at the end of the video. */
  async read(into: Uint8Array): Promise<boolean> {
    for (let filled = 0; filled < into.length;) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#reader.read();
        if (done) return false;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, into.length - filled);
      into.set(part, filled);
      filled += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#reader.cancel();
    await this.#child.status;
  }
}

/** Takes the frames of a video in order. */
export interface FrameSink {
  write(picture: Picture): Promise<void>;
}

/** Frames that ffmpeg encodes. */
export class FrameWriter implements FrameSink {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #stderr: Promise<Uint8Array>;
  readonly #name: string;

  constructor(args: readonly string[], name: string) {
    this.#name = name;
    this.#child = new Deno.Command("ffmpeg", {
      args: ["-hide_banner", "-v", "error", "-y", "-f", "rawvideo", ...args],
      stdin: "piped",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#stderr = new Response(this.#child.stderr).bytes();
  }

  async write(picture: Picture): Promise<void> {
    try {
      await this.#writer.write(picture.data);
    } catch (error) {
      throw new Error(`The encoder of ${this.#name} ended early: ${tail(await this.#stderr)}`, {
        cause: error,
      });
    }
  }

  async finish(): Promise<void> {
    await this.#writer.close();
    const { success } = await this.#child.status;
    const log = await this.#stderr;
    if (!success) throw new Error(`The encoder of ${this.#name} failed: ${tail(log)}`);
  }

  /** Ends the encoder, whatever it has. */
  async abort(): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#writer.abort().catch(() => {});
    await this.#child.status;
    await this.#stderr;
  }
}
