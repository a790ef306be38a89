/** What the relay makes of cameras that send JPEGs over HTTP, and what it says of those that do not. */

import assert from "node:assert/strict";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { quietLog } from "../../../src/base/log.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld, type SleepSignal, type World } from "../../../src/base/world.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { MjpegRelay } from "../../../src/remote/sources/mjpeg_relay.ts";
import { serveRaw } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n";
const PART = "--frame\r\nContent-Type: image/jpeg\r\n";

/** A relay whose camera is at the port; public addresses are rerouted to loopback. */
async function opened(port: number, world: World = realWorld(quietLog())) {
  const agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  const relay = await MjpegRelay.open(new URL(`http://camera.test:${port}/video`), {
    world,
    agent,
    resolve: () => Promise.resolve(["93.184.216.34"]),
    allowedNetworks: [],
    signal: NEVER_ABORTED,
  });
  return {
    relay,
    get fault(): string | null {
      return relay.fault?.details[0]?.message ?? null;
    },
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      agent[Symbol.dispose]();
    },
  };
}

Deno.test("a reader that leaves a camera whose picture does not end is no fault of the camera; a cut is", async () => {
  // The first connection is that of the test when the relay is opened.
  let connections = 0;
  let left = 0;
  const chunked = HEAD.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n");
  await using camera = serveRaw(`${chunked}${PART}Content-Length: 1000\r\n\r\n`, async (connection) => {
    if (++connections <= 2) {
      await connection.read(new Uint8Array(1)).catch(() => {/* it was reset */});
      left++;
    }
    connection.close();
  });
  await using test = await opened(camera.port);
  const leaving = new AbortController();
  const reading = fetch(test.relay.url, { signal: leaving.signal }).catch(() => {/* aborted */});
  await until("the relay reads from the camera", () => connections === 2);
  leaving.abort();
  await reading;
  await until("the relay has left the camera, too", () => left === 2);
  // What the relay did about it is over when it answers again.
  await answered(`${test.relay.url}x`, 404);
  assert.equal(test.fault, null);

  await fetch(test.relay.url).then((response) => response.body!.cancel()).catch(() => {/* cut */});
  await until("the cut is known", () => test.fault !== null);
  assert.equal(test.fault, "it cannot be fetched: the connection was cut");
});

/** A JPEG as far as its length, its first and its last bytes say. */
const JPEG = Uint8Array.of(
  ...[0xff, 0xd8],
  ...Array.from({ length: LIMITS.sources.jpegBytesMin - 4 }, (_, at) => at % 100),
  ...[0xff, 0xd9],
);

interface Seen {
  readonly jpegs: number;
  readonly text: string;
  readonly fault: string | null;
  readonly end: string | undefined;
}

/**
 * What the reader gets of a camera that sends these texts and bytes as its body, then closes; and why it gets
 * no more.
 */
function read(...body: (string | Uint8Array)[]): Promise<Seen> {
  return readAnswer(HEAD, ...body);
}

/** What the relay makes of a whole answer. */
async function readAnswer(...answer: (string | Uint8Array)[]): Promise<Seen> {
  const bytes = joinedBytes(
    ...answer.map((part) => typeof part === "string" ? new TextEncoder().encode(part) : part),
  );
  await using camera = serveRaw(bytes);
  await using test = await opened(camera.port);
  const text = await fetch(test.relay.url).then(async (response) =>
    new TextDecoder("latin1").decode(await response.arrayBuffer())
  ).catch(() => "");
  const { end } = test.relay;
  return { jpegs: text.split("--jpeg\r\n").length - 1, text, fault: test.fault, end };
}

Deno.test("a camera that closes after its picture, without its length or another boundary, is seen if the picture is whole", async () => {
  const whole = await read(`${PART}\r\n`, JPEG);
  assert.deepEqual([whole.jpegs, whole.fault], [1, null]);
  assert.ok(whole.text.includes(`Content-Length: ${JPEG.length}\r\n\r\n`));
  assert.equal((await read(`${PART}\r\n`, JPEG, "\r\n")).jpegs, 1);
  assert.equal((await read(`${PART}\r\n`, JPEG, `\r\n${PART}\r\n`, JPEG)).jpegs, 2);
  assert.equal((await read(`${PART}\r\n`, JPEG.subarray(0, 5))).jpegs, 0);
  assert.equal((await read(`${PART}Content-Length: 100\r\n\r\n`, JPEG)).jpegs, 0);
});

Deno.test("empty parts and texts between pictures are left out; a camera that sends nothing else is refused", async () => {
  const empty = `${PART}Content-Length: 0\r\n\r\n\r\n`;
  const text = "--frame\r\nContent-Type: text/plain\r\n\r\nno picture now\r\n";
  const picture = [`${PART}Content-Length: ${JPEG.length}\r\n\r\n`, JPEG, "\r\n"];
  const others = [empty, text].join("").repeat(LIMITS.sources.otherPartsMax / 2);
  const seen = await read(others, ...picture, others, ...picture, text, "--frame--\r\n");
  assert.deepEqual([seen.jpegs, seen.fault], [2, null]);
  const refused = await read(others, empty, ...picture);
  assert.deepEqual([refused.jpegs, refused.fault], [0, "its server sends parts that are no JPEGs"]);
});

async function answered(url: string, status: number): Promise<void> {
  const response = await fetch(url);
  await response.body!.cancel();
  assert.equal(response.status, status);
}

Deno.test("heads and boundaries are read however cameras spell them", async () => {
  const boundaries: [contentType: string, delimiter: string][] = [
    ["multipart/x-mixed-replace; boundary=frame", "--frame"],
    ["multipart/x-mixed-replace;boundary=--frame", "--frame"],
    ['multipart/x-mixed-replace;boundary="--frame"', "--frame"],
    ["multipart/x-mixed-replace; Boundary = frame ", "--frame"],
    ["Multipart/X-Mixed-Replace;charset=utf-8;boundary=frame;x=y", "--frame"],
    ["multipart/x-mixed-replace;boundary=Frame", "--frame"],
    ["multipart/x-mixed-replace;boundary=other", "--frame"],
    ["multipart/x-mixed-replace;boundary=frame", "frame"],
    ["multipart/x-mixed-replace;boundary=----frame", "----frame"],
    ['multipart/x-mixed-replace;boundary=""', "--frame"],
    ["multipart/x-mixed-replace", "--frame"],
    ["multipart/mixed;boundary=frame", "--frame"],
  ];
  const length = `Content-Length: ${JPEG.length}`;
  const heads = [
    ["Content-Type: image/jpeg", length],
    ["Content-Type: image/jpeg"],
    ["content-type:image/jpg", `content-length:${JPEG.length}`, "X-Odd"],
    ["Content-type : image/pjpeg", `Content-length :  +${JPEG.length} bytes`],
    ["X-Timestamp: 1"],
  ];
  for (const [contentType, delimiter] of boundaries) {
    for (const end of ["\r\n", "\n"]) {
      for (const head of heads) {
        const part = [`${delimiter}${end}${head.join(end)}${end}${end}`, JPEG, end];
        const answer = `HTTP/1.1 200 OK${end}Content-Type: ${contentType}${end}${end}`;
        const seen = await readAnswer(answer, end, ...part, ...part, end, ...part, `${delimiter}--${end}`);
        assert.deepEqual(
          [seen.jpegs, seen.fault],
          [3, null],
          JSON.stringify([contentType, delimiter, end, head]),
        );
        assert.equal(seen.end, "its server ended the series of pictures");
      }
    }
  }
  const unbounded = await readAnswer(
    "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace\r\n\r\nContent-Type: image/jpeg\r\n\r\n",
    JPEG,
  );
  const reason = "its server sends parts without a boundary and a length";
  assert.deepEqual([unbounded.jpegs, unbounded.fault, unbounded.end], [0, reason, reason]);
  await assert.rejects(
    readAnswer("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n", JPEG),
    /series of JPEGs/,
  );
});

Deno.test("a camera that sends more pictures than a second of its budget has is read slowly, and the reason says so", async () => {
  const real = realWorld(quietLog());
  let sleptMs = 0;
  const world = {
    ...real,
    monotonicMs: () => sleptMs,
    sleep: (ms: number, signal?: SleepSignal) => {
      if (ms >= 30_000) return real.sleep(ms, signal);
      sleptMs += ms;
      return Promise.resolve();
    },
  };
  const pictures = 5 * LIMITS.sources.budget.picturesPerSecond;
  const part = joinedBytes(new TextEncoder().encode(`${PART}\r\n`), JPEG, new TextEncoder().encode("\r\n"));
  const flood = joinedBytes(...Array(pictures).fill(part));
  await using camera = serveRaw(HEAD, async (connection) => {
    for (let at = 0; at < flood.length;) at += await connection.write(flood.subarray(at));
    await connection.read(new Uint8Array(1));
  });
  await using test = await opened(camera.port, world);
  const leaving = new AbortController();
  const reading = fetch(test.relay.url, { signal: leaving.signal }).then((response) => response.arrayBuffer())
    .catch(() => {});
  await until("all but the first second and the last picture are paid for", () => sleptMs > 3_900);
  assert.ok(sleptMs < 4_200, `${sleptMs} ms`);
  assert.equal(test.relay.end, "its server sends more than one source may, and is read slowly");
  assert.equal(test.fault, null);
  leaving.abort();
  await reading;
});
