import assert from "node:assert/strict";
import { ReadingTurns } from "../../../src/sharing/reading_turns.ts";
import { type BodyLimits, ReceivedBodies } from "../../../src/http/requests/received_body.ts";
import { Rejection } from "../../../src/http/answers/reply.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { ManualClock, settled } from "../../support/manual_clock.ts";

const { pieceBytesMin, smallPiecesMax } = LIMITS.body;

/** A body that the test sends piece by piece. */
class SentBody {
  #controller!: ReadableByteStreamController;
  isCancelled = false;
  readonly request = new Request("http://x/", {
    method: "POST",
    body: new ReadableStream({
      type: "bytes",
      start: (controller) => void (this.#controller = controller),
      cancel: () => void (this.isCancelled = true),
    }),
  });

  send(bytes: number): void {
    this.#controller.enqueue(new Uint8Array(bytes));
  }

  /** The client disconnects. */
  cutShort(): void {
    this.#controller.error(new Error("the connection is gone"));
  }

  end(): void {
    this.#controller.close();
    this.#controller.byobRequest?.respond(0);
  }
}

function open(
  limits: Partial<BodyLimits> = {},
  { principalKey = "a", bodies = new ReceivedBodies(new ManualClock()) } = {},
) {
  const sent = new SentBody();
  return { sent, body: bodies.open(sent.request, principalKey, { bodyBytes: 2 ** 30, ...limits }) };
}

function refusedWith(status: number): (error: unknown) => boolean {
  return (error) => (error instanceof Rejection || error instanceof Refusal) && error.status === status;
}

Deno.test("nobody gets less than 16 KiB of a body at once, unless it is all", async () => {
  for (const [pieceBytes, count] of [[300, 400], [5_000, 40], [70_000, 5]] as const) {
    const { sent, body } = open();
    for (let piece = 0; piece < count; piece++) sent.send(pieceBytes);
    sent.end();
    const lengths: number[] = [];
    for (let piece = await body.next(); piece !== null; piece = await body.next()) lengths.push(piece.length);
    assert.equal(lengths.reduce((sum, length) => sum + length, 0), pieceBytes * count);
    assert.ok(lengths.slice(0, -1).every((length) => length >= 16 * 1024), lengths.join());
  }
});

Deno.test("a body in absurdly small pieces is 400 after the first thousand, wherever in it they begin", async () => {
  const read = async (...pieces: readonly (readonly [count: number, bytes: number])[]) => {
    const sent = pieces.flatMap(([count, bytes]) =>
      Array.from({ length: count }, () => new Uint8Array(bytes))
    );
    const request = new Request("http://x/", { method: "POST", body: ReadableStream.from(sent) });
    const body = new ReceivedBodies(new ManualClock()).open(request, "a", { bodyBytes: 2 ** 30 });
    let length = 0;
    for (let piece = await body.next(); piece !== null; piece = await body.next()) length += piece.length;
    return length;
  };
  await assert.rejects(read([smallPiecesMax + 10, 1]), refusedWith(400));
  await assert.rejects(read([50, 70_000], [smallPiecesMax + 10, 1], [50, 70_000]), refusedWith(400));
  assert.equal(await read([smallPiecesMax, 1]), smallPiecesMax);
  assert.equal(await read([5 * smallPiecesMax, pieceBytesMin]), 5 * smallPiecesMax * pieceBytesMin);
});

Deno.test("deadlines are compared with the clock, also where a timer is late", async () => {
  for (const limits of [{ receiveMs: 1_000 }, { receiveMs: 60_000, idleMs: 1_000 }]) {
    const clock = new ManualClock();
    const { sent, body } = open(limits, { bodies: new ReceivedBodies(clock) });
    const read = body.next();
    await settled();
    clock.jump(1_000);
    sent.send(10);
    await assert.rejects(read, refusedWith(408));
  }
});

Deno.test("a pause is counted from the last piece, and ends a body that nobody sends on", async () => {
  const clock = new ManualClock();
  const { sent, body } = open({ receiveMs: 60_000, idleMs: 1_000 }, { bodies: new ReceivedBodies(clock) });
  const read = body.next();
  const rejected = assert.rejects(read, refusedWith(408));
  for (let piece = 0; piece < 10; piece++) {
    await clock.advance(900);
    sent.send(10);
    await settled();
  }
  await clock.advance(1_000);
  await rejected;
  assert.equal(sent.isCancelled, false, "the answer goes first");
  await clock.advance(1_000);
  assert.ok(sent.isCancelled);
});

Deno.test("where bodies take too much memory, the oldest of the caller with the most is 429, and all of it is given back", async () => {
  const bodies = new ReceivedBodies(new ManualClock(), { ...LIMITS.body, receivedBytesMax: 2 ** 20 });
  const quiet = open({ isKept: true }, { principalKey: "b", bodies });
  const quietRead = quiet.body.next();
  quiet.sent.send(20_000);
  const kept = await quietRead;
  const outcomes: string[] = [];
  const loud = Array.from({ length: 8 }, () => open({ isKept: true }, { bodies }));
  const ended = loud.map(async ({ sent, body }, index) => {
    for (let piece = 0; piece < 10; piece++) sent.send(30_000);
    try {
      while (await body.next() !== null);
      outcomes.push(`${index} whole`);
    } catch (error) {
      outcomes.push(`${index} ${(error as Refusal).status}`);
    }
    body[Symbol.dispose]();
  });
  await settled();
  assert.ok(bodies.bytes <= 2 ** 20, `${bodies.bytes}`);
  assert.ok(outcomes.length > 0 && outcomes.every((outcome) => outcome.endsWith(" 429")), outcomes.join());
  assert.equal(outcomes[0], "0 429");
  for (const { sent } of loud) if (!sent.isCancelled) sent.end();
  await Promise.all(ended);
  quiet.sent.end();
  while (await quiet.body.next() !== null);
  assert.equal(kept!.length, 20_000);
  quiet.body[Symbol.dispose]();
  assert.equal(bodies.bytes, 0);
});

Deno.test("a body that is cut short is 400, and one that is longer than it may be 413, whether it says so or not", async () => {
  const { sent, body } = open();
  const read = body.next();
  await settled();
  sent.cutShort();
  await assert.rejects(read, { status: 400, message: "The body was cut short" });
  const long = open({ bodyBytes: 1_000 });
  long.sent.send(1_001);
  await assert.rejects(long.body.next(), { status: 413, message: "The body is longer than 1000 bytes" });
  const bodies = new ReceivedBodies(new ManualClock());
  const declared = new Request("http://x/", { method: "POST", body: "x".repeat(1_001) });
  declared.headers.set("content-length", "1001");
  assert.throws(() => bodies.open(declared, "a", { bodyBytes: 1_000 }), refusedWith(413));
});

Deno.test("a refusal that leaves a body unread closes the connection, and says within which time it had to come", async () => {
  for (
    const [limits, within] of [[{ receiveMs: 1_000 }, "within 1000 ms"], [
      { idleMs: 1_000 },
      "in time",
    ]] as const
  ) {
    const clock = new ManualClock();
    const { body } = open(limits, { bodies: new ReceivedBodies(clock) });
    const rejected = assert.rejects(body.next(), {
      message: `The body did not arrive ${within}`,
      headers: { connection: "close" },
    });
    await clock.advance(1_000);
    await rejected;
  }
  const small = new Request("http://x/", {
    method: "POST",
    body: ReadableStream.from(Array.from({ length: smallPiecesMax + 10 }, () => new Uint8Array(1))),
  });
  const inPieces = new ReceivedBodies(new ManualClock()).open(small, "a", { bodyBytes: 2 ** 30 });
  await assert.rejects(inPieces.next(), { status: 400, headers: { connection: "close" } });
});

Deno.test("a pause ends a body at once when it has lasted, wherever the timer stood, and a body that is done leaves no timer", async () => {
  const clock = new ManualClock();
  const { sent, body } = open({ receiveMs: 60_000, idleMs: 1_000 }, { bodies: new ReceivedBodies(clock) });
  let isOver = false;
  const read = assert.rejects(body.next(), refusedWith(408)).then(() => void (isOver = true));
  await clock.advance(900);
  sent.send(10);
  await settled();
  await clock.advance(999);
  assert.equal(isOver, false);
  await clock.advance(1);
  assert.equal(isOver, true);
  await read;
  const quiet = new ManualClock();
  const done = open({ receiveMs: 60_000, idleMs: 1_000 }, { bodies: new ReceivedBodies(quiet) });
  done.sent.send(10);
  done.sent.end();
  while (await done.body.next() !== null);
  done.body[Symbol.dispose]();
  await settled();
  assert.deepEqual([quiet.sleeping, done.sent.isCancelled], [0, false]);
});

Deno.test("a kept piece counts with its own bytes, and what was given back counts for nobody", async () => {
  const bodies = new ReceivedBodies(new ManualClock(), { ...LIMITS.body, receivedBytesMax: 400_000 });
  const first = open({ isKept: true }, { principalKey: "a", bodies });
  const pieces: number[] = [];
  for (let piece = 0; piece < 3; piece++) {
    const read = first.body.next();
    first.sent.send(20_000);
    pieces.push((await read)!.buffer.byteLength);
  }
  // The first piece is small, so that it is kept in what it was read into.
  assert.deepEqual(pieces.slice(1), [20_000, 20_000]);
  first.body[Symbol.dispose]();
  assert.equal(bodies.bytes, 0);
  const others = ["a", "b", "b", "b", "b"].map((principalKey) =>
    open({ isKept: true }, { principalKey, bodies })
  );
  const ends = others.map(async ({ sent, body }) => {
    for (let piece = 0; piece < 2; piece++) sent.send(60_000);
    try {
      while (await body.next() !== null);
      return "whole";
    } catch (error) {
      return (error as Refusal).status;
    }
  });
  await settled();
  for (const { sent } of others) if (!sent.isCancelled) sent.end();
  const [ofA, ...ofB] = await Promise.all(ends);
  assert.equal(ofA, "whole");
  assert.ok(ofB.includes(429), ofB.join());
  for (const { body } of others) body[Symbol.dispose]();
  assert.equal(bodies.bytes, 0);
});

Deno.test("bodies that were refused are given up when the service closes, each once", async () => {
  const clock = new ManualClock();
  const bodies = new ReceivedBodies(clock);
  const { sent, body } = open({}, { bodies });
  body[Symbol.dispose]();
  body.end(new Error("it has ended before"));
  assert.equal(await body.next().then(() => "", (error) => error.message), "it has ended before");
  assert.equal(sent.isCancelled, false);
  bodies[Symbol.dispose]();
  await settled();
  assert.deepEqual([sent.isCancelled, clock.sleeping], [true, 0]);
});

Deno.test("readers of what is at hand wait after 5 ms until the loop has turned, one principal after the other", async () => {
  const clock = new ManualClock();
  const turns = new ReadingTurns(clock);
  const order: ("a" | "b")[] = [];
  assert.equal(turns.take("a"), undefined);
  clock.jump(4);
  assert.equal(turns.take("a"), undefined);
  clock.jump(1);
  for (let waiter = 0; waiter < 40; waiter++) void turns.take("a")!.then(() => order.push("a"));
  void turns.take("b")!.then(() => order.push("b"));
  await settled();
  assert.equal(order.length, 0);
  await clock.advance(0);
  assert.deepEqual([order.length >= 16, order.indexOf("b")], [true, 1]);
  for (let turn = 0; turn < 5; turn++) await clock.advance(0);
  assert.equal(order.length, 41);
  assert.equal(turns.take("a"), undefined);
});
