/** A Unix socket to which one program connects. A pipe would cost a thread for each read (measured in
 * November 2026).
 */

import { join } from "node:path";
import type { World } from "../../base/world.ts";
import { socketName } from "./job_paths.ts";

export class ToolSocket {
  readonly path: string;
  /** The connection of the program; null when it has ended without connecting. */
  readonly connection: Promise<Deno.UnixConn | null>;
  readonly #listener: Deno.UnixListener;
  #isOpen = true;

  /** Listens in the folder under a random name. The socket is removed as soon as it is connected. */
  constructor(folder: string, world: Pick<World, "randomBytes">) {
    this.path = join(folder, socketName(world.randomBytes(8)));
    this.#listener = Deno.listen({ transport: "unix", path: this.path });
    this.connection = this.#listener.accept().catch(() => null).finally(() => this.giveUp());
  }

  /** To be called when no program will connect any more; a connection stays. */
  giveUp(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#listener.close();
    try {
      Deno.removeSync(this.path);
    } catch {
      // It was removed with its folder.
    }
  }
}
