/** Clients of the event stream: one that reads message by message, and one that opens a connection and never
 * reads.
 */

import assert from "node:assert/strict";
import { KEY_A, type TestService } from "../service.ts";

export interface SseMessage {
  readonly id: number;
  readonly event: string;
  // deno-lint-ignore no-explicit-any -- tests look into payloads of every kind
  readonly data: any;
}

export function streamPath(runId: string, query = ""): string {
  return `/v1/runs/${runId}/events/stream${query}`;
}

/** Reads an event stream strictly: anything but whole messages and comments fails the test. */
export class SseClient implements AsyncDisposable {
  /** Comments that were skipped. */
  readonly comments: string[] = [];
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #cancel: () => Promise<void>;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #text = "";

  constructor(body: AsyncIterator<Uint8Array>, cancel: () => Promise<void>) {
    this.#chunks = body;
    this.#cancel = cancel;
  }

  /** Over HTTP/1.1; fails unless the answer is an event stream. */
  static async open(
    test: TestService,
    runId: string,
    { query = "", headers = {}, key = KEY_A }: { query?: string; headers?: HeadersInit; key?: string } = {},
  ): Promise<SseClient> {
    const response = await fetch(`${test.url}${streamPath(runId, query)}`, {
      headers: { "x-api-key": key, ...headers },
    });
    assert.equal(response.status, 200, response.ok ? "" : await response.text());
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const chunks = response.body![Symbol.asyncIterator]();
    return new SseClient(chunks, async () => void await chunks.return!());
  }

  /** The next message, or undefined when the stream has ended between two messages. */
  async next(): Promise<SseMessage | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        if (!block.startsWith(":")) return messageOf(block);
        this.comments.push(block);
      } else if (!await this.#more()) {
        assert.equal(this.#text, "", "the stream ended inside a message");
        return undefined;
      }
    }
  }

  /** The next `count` messages. */
  async take(count: number): Promise<SseMessage[]> {
    const messages: SseMessage[] = [];
    while (messages.length < count) {
      const message = await this.next();
      assert.ok(message, `the stream ended after ${messages.length} of ${count} messages`);
      messages.push(message);
    }
    return messages;
  }

  async ids(count: number): Promise<number[]> {
    return (await this.take(count)).map(({ id }) => id);
  }

  /** Reads until a comment has come; there must be no message before it. */
  async comment(): Promise<string> {
    while (!this.#text.includes("\n\n")) assert.ok(await this.#more(), "the stream ended");
    const end = this.#text.indexOf("\n\n");
    const block = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + 2);
    assert.ok(block.startsWith(":"), `a message came: ${block}`);
    return block;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cancel();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (!done) this.#text += this.#decoder.decode(value, { stream: true });
    return !done;
  }
}

/** Sends the request on a raw connection and leaves the answer in the kernel until the test reads it. */
export class StalledClient implements Disposable {
  readonly #connection: Deno.TcpConn;

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  static async open(test: TestService, runId: string): Promise<StalledClient> {
    const { hostname, port, host } = new URL(test.url);
    const connection = await Deno.connect({ hostname, port: Number(port) });
    const request = `GET ${streamPath(runId)} HTTP/1.0\r\nhost: ${host}\r\nx-api-key: ${KEY_A}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(request));
    return new StalledClient(connection);
  }

  /** Starts to read. The request is HTTP/1.0, so that the body is not chunked. */
  async read(): Promise<SseClient> {
    const chunks = this.#connection.readable[Symbol.asyncIterator]();
    const decoder = new TextDecoder();
    let text = "";
    while (!text.includes("\r\n\r\n")) {
      const { done, value } = await chunks.next();
      assert.ok(!done, "the connection ended inside the head");
      text += decoder.decode(value, { stream: true });
    }
    assert.match(text, /^HTTP\/1\.[01] 200 /);
    const rest = new TextEncoder().encode(text.slice(text.indexOf("\r\n\r\n") + 4));
    const body = async function* () {
      yield rest;
      for (;;) {
        const { done, value } = await chunks.next();
        if (done) return;
        yield value;
      }
    };
    return new SseClient(body(), () => Promise.resolve());
  }

  [Symbol.dispose](): void {
    try {
      this.#connection.close();
    } catch {
      // reading to the end has closed it
    }
  }
}

/** A message of a block: `id:`, `event:` and exactly one `data:` line, in any order and nothing else. */
function messageOf(block: string): SseMessage {
  const fields = block.split("\n").map((line) => {
    const [, name, value] = /^(\w+): (.*)$/s.exec(line) ?? assert.fail(`no field: ${line}`);
    return [name, value] as const;
  });
  assert.deepEqual(fields.map(([name]) => name).toSorted(), ["data", "event", "id"]);
  const { id, event, data } = Object.fromEntries(fields) as Record<string, string>;
  assert.match(id!, /^\d+$/);
  return { id: Number(id), event: event!, data: JSON.parse(data!) };
}
