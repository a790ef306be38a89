/** Services in a sandboxed Worker as in production: one Worker for all tests of a file, one after another. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Places } from "../../src/base/program_paths.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { Broker } from "../../src/media/broker/broker.ts";
import { NO_CAGE } from "../../src/media/broker/cage.ts";
import { openNativePipes } from "../../src/media/broker/native_pipes.ts";
import {
  answerAboutConnections,
  permissionsOf,
  type ServiceNotice,
  type ServiceOrder,
  type Start,
  startOrder,
} from "../../src/process/sandbox.ts";

const ENTRY = new URL("./sandboxed_worker.ts", import.meta.url);
const PAGES_DIR = fileURLToPath(new URL("../../dist/pages", import.meta.url));
const CODE_DIRS = ["src", "wasm", "weights"].map((name) =>
  fileURLToPath(new URL(`../../${name}`, import.meta.url))
);

/** Folders of one service, all of them in `root`. */
export function placesIn(root: string, ingestRoots: readonly string[]): Places {
  const folder = (name: string) => {
    Deno.mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
  return {
    dataDir: folder("data"),
    uploadRoot: folder("uploads"),
    tempDir: folder("tmp"),
    socketDir: folder("tmp"),
    ingestRoots: [folder("media"), ...ingestRoots],
    codeDirs: CODE_DIRS,
    pagesDir: PAGES_DIR,
  };
}

/** A start of a test; `knownTools` as in `ServiceOptions`. */
export type TestStart = Start & { readonly knownTools: boolean };

/** A Worker with the permissions of one set of places, in which one service at a time can be open. */
export class SandboxedHost {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-test-" }));
  readonly #places: Places;
  readonly #permissions: Deno.PermissionOptionsObject;
  readonly #worker: Worker;
  #broker: Broker | null = null;
  #answered = Promise.withResolvers<ServiceNotice>();

  constructor(needs: Pick<Start, "config" | "tools">, ingestRoots: readonly string[]) {
    this.#places = placesIn(this.root, ingestRoots);
    this.#permissions = permissionsOf({ ...needs, places: this.#places });
    this.#worker = new Worker(ENTRY.href, {
      type: "module",
      name: "service",
      deno: { permissions: this.#permissions },
    });
    answerAboutConnections(this.#worker);
    this.#worker.onmessage = ({ data }: MessageEvent<ServiceNotice>) => {
      if (data.type !== "look-at-connections") this.#answered.resolve(data);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#answered.resolve({ type: "failed", message: event.message });
    };
  }

  /** Whether a service with these needs has the very permissions of this Worker. */
  suits(needs: Pick<Start, "config" | "tools">): boolean {
    const permissions = permissionsOf({ ...needs, places: this.#places });
    return JSON.stringify(permissions) === JSON.stringify(this.#permissions);
  }

  /** The port of the service. */
  async open(start: TestStart): Promise<number> {
    await this.#broker?.[Symbol.asyncDispose]();
    this.#broker = new Broker({
      ...{ ...start, cage: start.cage ?? NO_CAGE, world: realWorld(quietLog()) },
      pipes: openNativePipes(),
    });
    const order = { ...startOrder(start, this.#broker), knownTools: start.knownTools };
    const notice = await this.#ask(order, [order.broker]);
    if (notice.type === "listening") return notice.port;
    await this.#broker[Symbol.asyncDispose]();
    throw new Error(messageOf(notice));
  }

  async close(): Promise<void> {
    const notice = await this.#ask({ type: "close" });
    await this.#broker?.[Symbol.asyncDispose]();
    this.#broker = null;
    if (notice.type !== "closed") throw new Error(messageOf(notice));
  }

  /** Empties the folders for the next service. */
  clear(): void {
    for (const { name } of Deno.readDirSync(this.root)) {
      Deno.removeSync(join(this.root, name), { recursive: true });
    }
  }

  terminate(): void {
    this.#worker.terminate();
    Deno.removeSync(this.root, { recursive: true });
  }

  async #ask(order: ServiceOrder, moved: Transferable[] = []): Promise<ServiceNotice> {
    this.#answered = Promise.withResolvers();
    this.#worker.postMessage(order, moved);
    return await this.#answered.promise;
  }
}

function messageOf(notice: ServiceNotice): string {
  return notice.type === "failed" ? notice.message : `an answer that nobody asked for: ${notice.type}`;
}
