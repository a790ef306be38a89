/** Requests written byte by byte, for what an HTTP client would not send. */

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export class RawConnection implements Disposable {
  readonly #connection: Deno.TcpConn;

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const address = hostname.replace(/^\[|\]$/g, ""); // of IPv6
    return new RawConnection(await Deno.connect({ hostname: address, port: Number(port) }));
  }

  async send(part: string | Uint8Array): Promise<void> {
    let left = typeof part === "string" ? new TextEncoder().encode(part) : part;
    while (left.length > 0) left = left.subarray(await this.#connection.write(left));
  }

  /** The next `bytes` or fewer; null at the end. */
  async receive(bytes = 65_536): Promise<Uint8Array | null> {
    const buffer = new Uint8Array(bytes);
    const got = await this.#connection.read(buffer);
    return got === null ? null : buffer.subarray(0, got);
  }

  /** The whole answer, which must have a content-length. `100 Continue` is skipped. */
  async answer(): Promise<RawAnswer> {
    let text = "";
    for (;;) {
      const [head, ...rest] = text.split("\r\n\r\n");
      if (rest.length > 0 && /^HTTP\/1\.1 100 /.test(head!)) {
        text = rest.join("\r\n\r\n");
        continue;
      }
      if (rest.length > 0) {
        const [first, ...lines] = head!.split("\r\n");
        const headers = new Headers(lines.map((line) => line.split(": ", 2) as [string, string]));
        const body = rest.join("\r\n\r\n");
        if (body.length >= Number(headers.get("content-length"))) {
          return { status: Number(first!.split(" ")[1]), headers, text: body };
        }
      }
      const bytes = await this.receive();
      if (bytes === null) throw new Error(`the connection ended after ${JSON.stringify(text)}`);
      text += new TextDecoder("latin1").decode(bytes);
    }
  }

  /** Closes the sending side only. */
  async finish(): Promise<void> {
    await this.#connection.closeWrite();
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

/**
 * Sends one request on a connection of its own. `path` is sent unchanged, without the normalization of a URL
 * parser.
 */
export async function rawRequest(
  url: string,
  { method = "GET", path, headers = {}, body = "" }: {
    method?: string;
    path: string;
    headers?: Record<string, string>;
    body?: string | Uint8Array;
  },
): Promise<RawAnswer> {
  using connection = await RawConnection.open(url);
  const lines = Object.entries({ host: new URL(url).host, ...headers }).map(([name, value]) =>
    `${name}: ${value}\r\n`
  );
  await connection.send(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  if (body.length > 0) await connection.send(body);
  return await connection.answer();
}

/** How many files of this process whose path has `text` in it are open. */
export function openFiles(text: string): number {
  return [...Deno.readDirSync("/proc/self/fd")].filter(({ name }) => {
    try {
      return Deno.readLinkSync(`/proc/self/fd/${name}`).includes(text);
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}
