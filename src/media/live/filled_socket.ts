/** A socket that ffmpeg fills beside its output, and what reads it here until ffmpeg has ended. */

import type { World } from "../../base/world.ts";
import { ToolSocket } from "../broker/tool_socket.ts";

export interface FilledSocketOptions {
  /** The folder for the socket. */
  readonly socketDir: string;
  readonly world: Pick<World, "randomBytes">;
  /**
   * Reads and closes what it gets. It must go on to the end, also where it takes nothing more, as ffmpeg must
   * never wait here.
   */
  readonly read: (connection: Deno.UnixConn) => Promise<void>;
}

export class FilledSocket implements AsyncDisposable {
  readonly #socket: ToolSocket;
  readonly #reading: Promise<void>;

  constructor({ socketDir, world, read }: FilledSocketOptions) {
    this.#socket = new ToolSocket(socketDir, world);
    this.#reading = this.#socket.connection.then((connection) => connection ? read(connection) : undefined);
  }

  /** What ffmpeg fills. */
  get path(): string {
    return this.#socket.path;
  }

  /** Gives on what is left in the socket. Call it when ffmpeg has ended, as reading ends only then. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.giveUp();
    await this.#reading;
  }
}
