/** A server in the place of a sidecar: accepts connections, records requests and gives scripted answers. */

/** Bytes to send; `cut` closes the connection without an answer, `hang` keeps it open without one. */
export type SidecarReply = Uint8Array | "cut" | "hang";
export type SidecarScript<Request> = (
  request: Request,
  index: number,
) => SidecarReply | Promise<SidecarReply>;

export interface SidecarDouble<Request> extends AsyncDisposable {
  /** Address for the setting that names the sidecar. */
  readonly address: string;
  readonly port: number;
  readonly requests: readonly Request[];
  /** What callers did that the protocol forbids; a connection ends with its first fault. */
  readonly faults: readonly string[];
  /** Connections that were opened so far, and that are open now. */
  readonly accepted: number;
  readonly open: number;
  /** Says how everything is answered from now on. */
  answer(script: SidecarScript<Request>): void;
  /** Closes every connection; new ones are still accepted. */
  dropConnections(): void;
}

/** Reads `length` bytes of a connection; null where it ended before the first of them. */
export type Read = (length: number) => Promise<Uint8Array | null>;

/**
 * Opens a sidecar of the test: `receive` reads the next request, null when there is none, and what it throws
 * is a fault of the caller.
 */
export function openSidecarDouble<Request>(
  receive: (read: Read, connection: number) => Promise<Request | null>,
  script: SidecarScript<Request>,
): SidecarDouble<Request> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections = new Set<Deno.Conn>();
  const requests: Request[] = [];
  const faults: string[] = [];
  let current = script;
  let accepted = 0;

  async function serve(conn: Deno.Conn, connection: number) {
    const read: Read = (length) => readExactly(conn, length);
    try {
      for (;;) {
        const request = await receive(read, connection);
        if (request === null) return;
        requests.push(request);
        const reply = await current(request, requests.length - 1);
        if (reply === "cut") return;
        if (reply === "hang") await readExactly(conn, 1);
        else for (let at = 0; at < reply.length;) at += await conn.write(reply.subarray(at));
      }
    } catch (error) {
      const isGone = error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted ||
        error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.ConnectionReset;
      if (!isGone) faults.push(String(error));
    } finally {
      connections.delete(conn);
      close(conn);
    }
  }
  const serving = new Set<Promise<void>>();
  const accepting = (async () => {
    for await (const conn of listener) {
      connections.add(conn);
      const served = serve(conn, accepted++).finally(() => serving.delete(served));
      serving.add(served);
    }
  })();

  const { port } = listener.addr as Deno.NetAddr;
  const double: SidecarDouble<Request> = {
    address: `127.0.0.1:${port}`,
    port,
    requests,
    faults,
    get accepted() {
      return accepted;
    },
    get open() {
      return connections.size;
    },
    answer: (script) => void (current = script),
    dropConnections() {
      for (const conn of [...connections]) close(conn);
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting; // the last connection that was accepted is among those that are dropped
      double.dropConnections();
      await Promise.all(serving);
    },
  };
  return double;
}

async function readExactly(conn: Deno.Conn, length: number): Promise<Uint8Array | null> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = await conn.read(bytes.subarray(at));
    if (count === null) {
      if (at > 0) throw new Error("a message was cut off");
      return null;
    }
    at += count;
  }
  return bytes;
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // It was closed before.
  }
}
