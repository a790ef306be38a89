/** Receivers of webhooks that answer absurdly: each is a failure within the time of one attempt, and costs
 * next to nothing.
 */

import assert from "node:assert/strict";
import { quietLog } from "../../src/base/log.ts";
import { NEVER_ABORTED } from "../../src/base/wait.ts";
import { realWorld } from "../../src/base/world.ts";
import { PinnedAgent } from "../../src/remote/guard/pinned_agent.ts";
import { WebhookSender } from "../../src/remote/webhook_sender.ts";
import { until } from "../support/until.ts";

const world = realWorld(quietLog());
const TIMEOUT_MS = 1_000;
const MOST_BYTES = 64 * 2 ** 20;

/** Reads a request and writes what `answer` gives, as long as the other side takes it. */
class AbsurdReceiver implements AsyncDisposable {
  written = 0;
  /** Connections that were closed. */
  closed = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #serving: Promise<void>;
  readonly #connections: Promise<void>[] = [];

  constructor(answer: () => Iterable<string> | AsyncIterable<string>) {
    this.#serving = (async () => {
      for await (const connection of this.#listener) {
        this.#connections.push(this.#answer(connection, answer()));
      }
    })();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}/hook`;
  }

  async #answer(connection: Deno.TcpConn, answer: Iterable<string> | AsyncIterable<string>): Promise<void> {
    try {
      await connection.read(new Uint8Array(65_536));
      for await (const text of answer) {
        const bytes = new TextEncoder().encode(text);
        for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
        this.written += bytes.length;
        if (this.written > MOST_BYTES) break;
      }
      while (await connection.read(new Uint8Array(65_536)) !== null);
    } catch {
      // it was cut
    }
    connection.close();
    this.closed += 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#serving;
    await Promise.all(this.#connections);
  }
}

function* endless(first: string, piece: string) {
  yield first;
  for (;;) yield piece;
}

async function* slow(text: string, first = "") {
  yield first;
  for (const character of text) {
    yield character;
    await world.sleep(100);
  }
}

const OK = "HTTP/1.1 200 OK\r\n";
const TIMED_OUT = "webhook cannot be reached: it took too long to answer";
const NO_HTTP = "webhook cannot be reached: its answer is not HTTP";
const CASES: Record<
  string,
  [answer: () => Iterable<string> | AsyncIterable<string>, error: string | undefined]
> = {
  "never anything": [() => [], TIMED_OUT],
  "a head without end": [() => endless(`${OK}x: `, "y".repeat(65_536)), NO_HTTP],
  "fields without end": [() => endless(OK, "x: y\r\n".repeat(10_000)), NO_HTTP],
  "a head with a byte each 100 ms": [() => slow(OK.repeat(3)), TIMED_OUT],
  "a body without end": [() => endless(`${OK}\r\n`, "[".repeat(65_536)), undefined],
  "a body of 4 MB of brackets": [
    () => [`${OK}content-length: 4000000\r\n\r\n${"[".repeat(4_000_000)}`],
    undefined,
  ],
  "a body with a byte each 100 ms": [
    () => slow("a".repeat(99), `${OK}content-length: 99\r\n\r\n`),
    undefined,
  ],
  "chunks of one byte without end": [
    () => endless(`${OK}transfer-encoding: chunked\r\n\r\n`, "1\r\na\r\n".repeat(10_000)),
    undefined,
  ],
  "chunks that are none": [() => [`${OK}transfer-encoding: chunked\r\n\r\nzz\r\n`], undefined],
  "less than it said": [() => [`${OK}content-length: 9\r\nconnection: close\r\n\r\nabc`], undefined],
  "two lengths": [() => [`${OK}content-length: 3\r\ncontent-length: 4\r\n\r\nabcd`], NO_HTTP],
  "a negative length": [() => [`${OK}content-length: -1\r\n\r\n`], NO_HTTP],
  "a redirect": [
    () => ["HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"],
    "webhook returned HTTP 307",
  ],
  "a wait of a million years": [
    () => [`HTTP/1.1 503 No\r\nretry-after: ${"9".repeat(20)}\r\ncontent-length: 0\r\n\r\n`],
    "webhook returned HTTP 503",
  ],
  "a reason of a megabyte": [
    () => [`HTTP/1.1 500 ${"r".repeat(2 ** 20)}\r\ncontent-length: 0\r\n\r\n`],
    NO_HTTP,
  ],
};

for (const [name, [answer, error]] of Object.entries(CASES)) {
  Deno.test(`a receiver that answers with ${name} has its attempt, and no more`, async () => {
    await using receiver = new AbsurdReceiver(answer);
    using agent = new PinnedAgent({ roots: () => [], allowInsecureTls: false });
    const options = { world, agent, timeoutMs: TIMEOUT_MS, allowPrivate: true };
    const sender = new WebhookSender(receiver.url, options);
    const fault = await sender.post({}, new Uint8Array(10), NEVER_ABORTED);
    assert.equal(fault?.error, error);
    assert.ok(receiver.written < MOST_BYTES, `${receiver.written} bytes`);
  });
}

Deno.test("a short answer in thousands of chunks is not read to its end for the sake of its connection", async () => {
  const chunks = "1\r\na\r\n".repeat(5_000) + "0\r\n\r\n";
  await using receiver = new AbsurdReceiver(() => [`${OK}transfer-encoding: chunked\r\n\r\n${chunks}`]);
  using agent = new PinnedAgent({ roots: () => [], allowInsecureTls: false });
  const sender = new WebhookSender(receiver.url, { world, agent, timeoutMs: 10_000, allowPrivate: true });
  assert.equal(await sender.post({}, new Uint8Array(10), NEVER_ABORTED), undefined);
  await until("the connection is closed", () => receiver.closed === 1);
});
