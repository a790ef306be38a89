/** The process of the cameras of a benchmark: starts it, and hears what it says. */

import { fileURLToPath } from "node:url";
import { linesOf } from "../../src/base/bytes.ts";
import { until } from "../../test/support/until.ts";

/** The process of the cameras; disposing it ends the process at once. */
export class CameraServer implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  port = 0;
  /**
   * When the process began to listen; `playingMs` is when it sent the first packet to its last client. Both
   * in epoch milliseconds.
   */
  listeningMs = NaN;
  playingMs = NaN;

  private constructor(film: string, port: number) {
    const script = fileURLToPath(new URL("camera_server.ts", import.meta.url));
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", script, film, String(port)],
      ...{ stdin: "null", stdout: "piped" },
    }).spawn();
    void this.#read();
  }

  static async start(film: string, port = 0): Promise<CameraServer> {
    const server = new CameraServer(film, port);
    await until("the cameras are there", () => server.port !== 0);
    return server;
  }

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }

  async #read(): Promise<void> {
    for await (const line of linesOf(this.#child.stdout)) {
      const { event, port, atMs } = JSON.parse(line);
      if (event === "playing") this.playingMs = atMs;
      else this.listeningMs = atMs;
      this.port = port ?? this.port;
    }
  }
}
