/** HTTPS on loopback: a certificate for `media.test`, `*.media.test` and 127.0.0.1, and the authority that
 * signed it.
 */

const file = (name: string) => Deno.readTextFileSync(new URL(`./tls/${name}`, import.meta.url));

/** PEM; trust it to trust the server. Made by openssl for these tests, valid until 2126. */
export const TEST_ROOT = file("root.crt");

/** What `Deno.serve` needs to speak TLS with the test certificate. */
export const TEST_TLS = { cert: file("leaf.crt"), key: file("leaf.key") };

export interface LoopbackServer extends AsyncDisposable {
  readonly port: number;
  /** The ports of the peers of all connections so far. */
  readonly connections: ReadonlySet<number>;
  readonly requests: { method: string; url: string; headers: Headers; body: Uint8Array }[];
}

/** Answers on loopback, with TLS unless `isPlain`, and records the requests. */
export function serve(
  answer: (request: Request) => Response | Promise<Response>,
  { isPlain = false, hostname = "127.0.0.1", port = 0 }: {
    isPlain?: boolean;
    hostname?: string;
    port?: number;
  } = {},
): LoopbackServer {
  const connections = new Set<number>();
  const requests: LoopbackServer["requests"] = [];
  const handler = async (request: Request, info: Deno.ServeHandlerInfo) => {
    connections.add((info.remoteAddr as Deno.NetAddr).port);
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: new Uint8Array(await request.clone().arrayBuffer()) });
    return await answer(request);
  };
  const where = {
    hostname,
    port,
    onListen() {},
    onError: () => new Response(null, { status: 500 }),
  };
  const server = Deno.serve(isPlain ? where : { ...where, ...TEST_TLS }, handler);
  return {
    port: (server.addr as Deno.NetAddr).port,
    connections,
    requests,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/**
 * Answers each connection with raw bytes, whatever was asked, then calls `afterwards` with it, which closes
 * it by default.
 */
export function serveRaw(
  text: string | Uint8Array,
  afterwards: (connection: Deno.Conn) => unknown = (connection) => connection.close(),
): AsyncDisposable & { readonly port: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  const accepting = (async () => {
    for await (const connection of listener) {
      open.add(connection);
      void (async () => {
        await connection.read(new Uint8Array(4096));
        await connection.write(typeof text === "string" ? new TextEncoder().encode(text) : text);
        await afterwards(connection);
      })().catch(() => {/* the peer has disconnected */});
    }
  })();
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const connection of open) {
        try {
          connection.close();
        } catch {
          // closed already
        }
      }
    },
  };
}
