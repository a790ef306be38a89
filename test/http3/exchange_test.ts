/** One request and its answer, on streams of which the test holds the other ends: memory that is reused, and
 * who has given up.
 */

import assert from "node:assert/strict";
import { quietLog } from "../../src/base/log.ts";
import { Deadlines, gatherFor, yieldToEventLoop } from "../../src/base/wait.ts";
import { realWorld } from "../../src/base/world.ts";
import { PieceMemory } from "../../src/http3/wire/byte_source.ts";
import type { Http3Exchange, Respond } from "../../src/http3/exchange.ts";
import { FRAME, frame } from "../../src/http3/wire/frames.ts";
import { exchanged, exchangeOn, headersFrame, requestFields } from "../support/http3/streams.ts";
import { until } from "../support/until.ts";

const get = headersFrame(requestFields("GET", "/"));
const post = headersFrame(requestFields("POST", "/"));
const data = (text: string) => frame(FRAME.DATA, new TextEncoder().encode(text));

/**
 * An exchange whose client sends what the test gives it, and takes what is answered unless `writable` says
 * otherwise.
 */
class Held implements Disposable {
  readonly #deadlines = new Deadlines(realWorld(quietLog()), 60_000);
  #client!: ReadableByteStreamController;
  readonly exchange: Http3Exchange;
  isStopped = false;

  constructor(respond: Respond, writable = new WritableStream<Uint8Array>()) {
    const readable = new ReadableStream({
      type: "bytes",
      start: (controller) => void (this.#client = controller),
      cancel: () => void (this.isStopped = true),
    });
    const fail = (fault: Error) => assert.fail(fault);
    const options = { respond, deadlines: this.#deadlines, memory: new PieceMemory(), fail };
    this.exchange = exchangeOn({ readable, writable }, options);
  }

  send(...pieces: readonly Uint8Array[]): void {
    for (const piece of pieces) this.#client.enqueue(new Uint8Array(piece));
  }

  end(): void {
    this.#client.close();
    this.#client.byobRequest?.respond(0);
  }

  [Symbol.dispose](): void {
    this.#deadlines[Symbol.dispose]();
  }
}

Deno.test("what a handler keeps of a body stays as it was, whatever is read into the same memory later", async () => {
  const memory = new PieceMemory();
  const kept: { readonly text: string; readonly parts: Uint8Array[] }[] = [];
  const keep = (text: string): Respond => async ({ body }) => {
    const parts: Uint8Array[] = [];
    for await (const part of body!) parts.push(part);
    kept.push({ text, parts });
    return new Response();
  };
  for (let round = 0; round < 20; round++) {
    const text = String.fromCharCode(97 + round).repeat(10 + 150 * round);
    const half = text.length >> 1;
    await exchanged([post, data(text.slice(0, half)), data(text.slice(half))], keep(text), memory);
    const path = `/${"-".repeat(100 * round)}`;
    const other = headersFrame(requestFields("GET", path));
    let url = "";
    await exchanged([other.subarray(0, 9), other.subarray(9)], (request) => {
      url = request.url;
      return new Response();
    }, memory);
    assert.equal(url, `https://localhost${path}`);
  }
  for (const { text, parts } of kept) {
    const decoder = new TextDecoder();
    assert.equal(parts.map((part) => decoder.decode(part, { stream: true })).join(""), text);
  }
});

Deno.test("the memory of a request without a body is given back once, and no other", async () => {
  const memory = new PieceMemory();
  const given: number[] = [];
  memory.giveBack = ({ byteLength }) => void given.push(byteLength);
  const answer = () => new Response();
  await exchanged([post, data("kept")], answer, memory);
  for (let request = 0; request < 3; request++) await exchanged([get], answer, memory);
  const room = memory.take().byteLength;
  assert.deepEqual(given, [room, room, room]);
});

Deno.test("a signal that is asked for only after the client has given up has aborted, with the reason", async () => {
  const { promise: goOn, resolve } = Promise.withResolvers<void>();
  let signal: AbortSignal | undefined;
  using held = new Held(async (request) => {
    await goOn;
    signal = request.signal;
    return new Response();
  });
  held.send(get);
  const running = held.exchange.run();
  await until("the head is read", () => !held.exchange.hasAnswered);
  const reason = new Error("gone");
  held.exchange.abort(reason);
  resolve();
  await running;
  assert.deepEqual([signal?.aborted, signal?.reason], [true, reason]);
});

Deno.test("who reads a body no further, while a piece of it is under way, has a client who has not given up", async () => {
  let signal: AbortSignal | undefined;
  using held = new Held(async (request) => {
    signal = request.signal;
    const reader = request.body!.getReader();
    await reader.read();
    const next = reader.read();
    await yieldToEventLoop(); // until it is asked for
    await reader.cancel();
    await next;
    return new Response("too late", { status: 408 });
  });
  held.send(post, data("a"));
  const running = held.exchange.run();
  await until("it is answered", () => held.exchange.hasAnswered);
  held.send(data("b"));
  await gatherFor(10);
  assert.deepEqual([signal!.aborted, held.isStopped], [false, false]);
  held.end();
  await running;
});

Deno.test("a probe while the end of an answer is being sent is not taken for a client who has given up", async () => {
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  let signal: AbortSignal | undefined;
  let isEnding = false;
  const close = () => {
    isEnding = true;
    return sent;
  };
  using held = new Held((request) => {
    signal = request.signal;
    return new Response("early");
  }, new WritableStream({ close }));
  held.send(post, data("a"));
  const running = held.exchange.run();
  await until("its end is being sent", () => isEnding);
  held.exchange.probe();
  await gatherFor(10);
  assert.deepEqual([signal!.aborted, held.isStopped], [false, false]);
  resolve();
  held.end();
  await running;
});
