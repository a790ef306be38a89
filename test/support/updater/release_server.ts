/** An https server of releases on loopback, with an authority of its own, whose answers a test decides. */

import { join } from "node:path";
import { TempFolder } from "../media.ts";
import { PROJECT_ROOT } from "../service.ts";

/** What the server does for an address: bytes are served whole or from where a range begins. */
export type Served = Uint8Array<ArrayBuffer> | ((request: Request) => Response);

export class ReleaseServer implements AsyncDisposable {
  readonly files = new Map<string, Served>();
  /** `GET /path`, with the range that was asked for behind it. */
  readonly requests: string[] = [];
  readonly ca: string;
  readonly #folder = new TempFolder();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    const args = [join(PROJECT_ROOT, "scripts/dev-certs"), this.#folder.path];
    const { success } = new Deno.Command("bash", { args, stdout: "null" }).outputSync();
    if (!success) throw new Error("no certificates");
    const of = (name: string) => Deno.readTextFileSync(join(this.#folder.path, name));
    this.ca = of("ca.crt");
    const options = {
      port: 0,
      hostname: "127.0.0.1",
      onListen() {},
      cert: of("dev.crt"),
      key: of("dev.key"),
    };
    this.#server = Deno.serve(options, (request) => this.#answer(request)) as Deno.HttpServer<Deno.NetAddr>;
  }

  url(path: string): string {
    return `https://localhost:${this.#server.addr.port}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    this.#folder[Symbol.dispose]();
  }

  #answer(request: Request): Response {
    const { pathname } = new URL(request.url);
    const range = request.headers.get("range");
    this.requests.push(`GET ${pathname}${range ? ` ${range}` : ""}`);
    const served = this.files.get(pathname);
    if (!served) return new Response("nothing here", { status: 404 });
    if (typeof served === "function") return served(request);
    const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    if (range === null) return new Response(served);
    const headers = { "content-range": `bytes ${start}-${served.byteLength - 1}/${served.byteLength}` };
    return new Response(served.slice(start), { status: 206, headers });
  }
}

/** An answer that stops after its first bytes, until `go` is called; then it goes on, or ends when the client has gone. */
export function halted(bytes: Uint8Array<ArrayBuffer>, at: number): { served: Served; go: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const served = () => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(bytes.slice(0, at));
        await promise;
        try {
          controller.enqueue(bytes.slice(at));
          controller.close();
        } catch {
          // The client has gone.
        }
      },
    });
    return new Response(body, { headers: { "content-length": String(bytes.byteLength) } });
  };
  return { served, go: resolve };
}
