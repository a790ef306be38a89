/** Runs the scripted publisher `rtp_publisher.ts` as a process, reads what it prints, and makes media for it.
 */

import { join } from "node:path";
import { TemporaryFolder } from "../folders.ts";
import { encoded } from "./live.ts";
import { KEY_A } from "../service.ts";

const SCRIPT = new URL("./rtp_publisher.ts", import.meta.url).pathname;

/** One line that the publisher printed. */
// deno-lint-ignore no-explicit-any -- each event has facts of its own
export type Printed = { readonly event: string } & Record<string, any>;

export interface LivePublisherOptions {
  /** The base address of the service. */
  readonly url: string;
  /** Options of the script besides the address, such as its media and its faults. */
  readonly args: readonly string[];
  readonly key?: string | null;
  /** The value of `x-attach-config`. */
  readonly attach?: unknown;
}

/** A running publisher. Disposing ends it at any point. */
export class LivePublisher implements AsyncDisposable {
  readonly printed: Printed[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  #change = Promise.withResolvers<void>();
  #hasEnded = false;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#reading = this.#read();
  }

  static start({ url, args, key = KEY_A, attach }: LivePublisherOptions): LivePublisher {
    const headers = [
      ...(key === null ? [] : ["--header", `x-api-key: ${key}`]),
      ...(attach === undefined ? [] : ["--header", `x-attach-config: ${encoded(attach)}`]),
    ];
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-prompt", SCRIPT, "--url", `${url}/v1/stream/whip`, ...headers, ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    return new LivePublisher(child);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Resolves with the first line of this event; rejects when the publisher ends without it. */
  async waitFor(event: string): Promise<Printed> {
    for (;;) {
      const found = this.printed.find((line) => line.event === event);
      if (found) return found;
      if (this.#hasEnded) {
        throw new Error(`the publisher never printed ${event}: ${JSON.stringify(this.printed)}`);
      }
      await this.#change.promise;
    }
  }

  async runId(): Promise<string> {
    return (await this.waitFor("answered")).runId;
  }

  async sessionId(): Promise<string> {
    return (await this.waitFor("answered")).location.split("/").at(-1);
  }

  /** Lets one with `--wait` send. */
  async begin(): Promise<void> {
    const writer = this.#child.stdin.getWriter();
    await writer.write(new Uint8Array(1));
    writer.releaseLock();
  }

  /** Resolves when it has ended; closing its stdin ends one with `--end stay`. */
  async finished(): Promise<void> {
    await this.#child.stdin.close().catch(() => {/* it is closed */});
    await this.#child.status;
    await this.#reading;
  }

  /** Kills the process, like a power failure. */
  kill(): void {
    this.#kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill();
    await this.#child.stdin.abort().catch(() => {/* it is closed */});
    await this.#child.status;
    await this.#reading;
  }

  #kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  async #read(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      this.printed.push(...lines.map((line) => JSON.parse(line)));
      this.#changed();
    }
    this.#hasEnded = true;
    this.#changed();
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

/** Media files for publishers, encoded by ffmpeg. */
export class PublisherMedia implements Disposable {
  readonly #folder = new TemporaryFolder();

  /** Encodes the input, a lavfi source or a file, as VP8 with a keyframe every `gop` frames. */
  vp8(name: string, input: readonly string[], gop = 30): string {
    const args = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M"];
    return this.#encode(`${name}.ivf`, input, [...args, "-auto-alt-ref", "0", "-g", String(gop)]);
  }

  /** Encodes a video as H.264 in Annex B, without reordered frames. */
  h264(name: string, input: readonly string[], gop = 30): string {
    const args = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p"];
    return this.#encode(`${name}.h264`, input, [...args, "-g", String(gop), "-b:v", "1M"]);
  }

  opus(name: string, input: readonly string[]): string {
    return this.#encode(`${name}.ogg`, input, ["-vn", "-c:a", "libopus", "-b:a", "48k"]);
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }

  #encode(name: string, input: readonly string[], output: readonly string[]): string {
    const path = join(this.#folder.path, name);
    const args = ["-v", "error", ...input, ...output, "-y", path];
    const { success, stderr } = new Deno.Command("ffmpeg", { args }).outputSync();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    return path;
  }
}

/** ffmpeg's options for a generated video with motion. */
export function testVideo(size: string, seconds: number, fps = 30): string[] {
  return ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=${fps}:d=${seconds}`];
}
