/** Random answers of a hostile RTSP server, from a seed: nothing that was not counted and rewritten reaches
 * ffmpeg.
 */

import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { quietLog } from "../../../src/base/log.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { RtspRefused, RtspReplies } from "../../../src/remote/sources/rtsp_replies.ts";
import { RtspTunnel } from "../../../src/remote/sources/rtsp_tunnel.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { until } from "../../support/until.ts";

/** Text with one character for each byte; the decoder of that name reads 32 of them in another way. */
const textOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const frame = (payload: string) =>
  `$\x01${String.fromCharCode(payload.length >> 8, payload.length & 255)}${payload}`;
const reply = (head: string, body = "") => `RTSP/1.0 200 OK\r\n${head}\r\n${body}`;

/** What a server says, mostly valid, then broken at up to three places. */
function said(random: () => number): string {
  const under = (count: number) => Math.floor(random() * count);
  const pick = <T>(list: readonly T[]) => list[under(list.length)]!;
  const noise = (length: number) => Array.from({ length }, () => String.fromCharCode(under(256))).join("");
  const piece = () =>
    pick([
      () => frame(noise(under(2000))),
      () => frame("RTSP/1.0 302 Moved\r\nLocation: rtsp://10.0.0.1/\r\n\r\n"),
      () => reply(`CSeq: ${under(1000)}\r\n`),
      () => reply(`cseq:${under(9)}\r\nServer: ${"s".repeat(under(3000))}\r\nLocation: rtsp://10.0.0.1/\r\n`),
      () => {
        const body = noise(under(500));
        return reply(`Content-Type: application/sdp\r\nContent-Length: ${body.length}\r\n`, body);
      },
      () =>
        reply(
          "Transport: RTP/AVP/TCP;unicast;interleaved=0-1;source=10.0.0.1\r\nSession: abc;timeout=60\r\n",
        ),
      () => `RTSP/1.0 ${pick([401, 404, 454, 500, 551])} No\r\nWWW-Authenticate: Basic realm="a"\r\n\r\n`,
    ])();
  let text = Array.from({ length: 1 + under(12) }, piece).join("");
  const damage = [
    (at: number) => text.slice(0, at) + noise(1) + text.slice(at + 1),
    (at: number) => text.slice(0, at) + text.slice(at + 1 + under(20)),
    (at: number) =>
      text.slice(0, at) + pick(["\n", "\r", "\0", "$", "\r\n", "\t", " ", "RTSP/1.0 302 x\r\n"]) +
      text.slice(at),
    (at: number) =>
      text.slice(0, at) + "RTSP/1.0\t302 Moved\r\nLocation: rtsp://10.0.0.1/\r\n\r\n" + text.slice(at),
    (at: number) => text.slice(0, at) + `X: ${"x".repeat(20_000)}` + text.slice(at),
    (at: number) => text.slice(0, at),
  ];
  for (let count = under(4); count > 0; count--) text = pick(damage)(under(text.length + 1));
  return text;
}

/** Replies after as many requests as are remembered. */
function asked(): RtspReplies {
  const replies = new RtspReplies({ nowMs: () => 0 });
  const methods = ["OPTIONS", "DESCRIBE", "SETUP", "PLAY"];
  for (let number = 1; number <= 16; number++) {
    const method = methods[number % 4]!;
    replies.requested({ method, uri: "rtsp://a/", cseq: String(number), channels: "0-1" }, number);
  }
  return replies;
}

/** What ffmpeg gets when the bytes come in such pieces, and whether the rest was refused. */
function taken(bytes: Uint8Array, pieceLength: () => number): { text: string; isRefused: boolean } {
  const replies = asked();
  let text = "";
  try {
    for (let at = 0; at < bytes.length;) {
      const end = Math.min(bytes.length, at + pieceLength());
      for (const part of replies.take(bytes.subarray(at, end))) text += textOf(part);
      at = end;
    }
    return { text, isRefused: false };
  } catch (error) {
    assert.ok(error instanceof RtspRefused, String(error));
    assert.ok(error.message.length < 100);
    return { text, isRefused: true };
  }
}

/**
 * Reads what ffmpeg got as a strict reader: frames, and replies with known headers only. The last piece may
 * be cut off.
 */
function checkPassed(text: string, what: string): void {
  const head = /^RTSP\/1\.0 (?:200 OK|[1-9]\d\d Refused)\r\n((?:[A-Z][\w-]+: [^\r\n\0]*\r\n)*)\r\n/;
  const names =
    /^(CSeq|Content-Base|Content-Length|Content-Type|Public|Range|RTP-Info|Session|Transport|WWW-Authenticate)$/;
  for (let rest = text; rest !== "";) {
    if (rest.startsWith("$")) {
      if (rest.length < 4) return;
      rest = rest.slice(4 + rest.charCodeAt(2) * 256 + rest.charCodeAt(3));
      continue;
    }
    const found = head.exec(rest);
    assert.ok(found, `${what}: ${JSON.stringify(rest.slice(0, 100))}`);
    const lines = found[1]!.split("\r\n").slice(0, -1);
    for (const line of lines) assert.match(line.split(":")[0]!, names, what);
    const length = lines.find((line) => line.startsWith("Content-Length: "))?.slice(16) ?? "0";
    rest = rest.slice(found[0].length + Number(length));
  }
}

Deno.test("whatever a server says, ffmpeg gets frames and rewritten replies, and the same however it is cut", () => {
  let refusals = 0;
  for (let seed = 1; seed <= 120; seed++) {
    const random = seededRandom(seed);
    const bytes = bytesOf(said(random));
    const whole = taken(bytes, () => bytes.length);
    const single = taken(bytes, () => 1);
    const cut = taken(bytes, () => 1 + Math.floor(random() ** 4 * 3000));
    for (const { text } of [whole, single, cut]) checkPassed(text, `seed ${seed}`);
    // What comes before a refusal passes or not, depending on where the pieces end.
    assert.equal(single.isRefused, whole.isRefused, `seed ${seed}`);
    assert.equal(cut.isRefused, whole.isRefused, `seed ${seed}`);
    if (whole.isRefused) {
      refusals++;
      assert.ok(single.text.startsWith(cut.text), `seed ${seed}`);
    } else {
      assert.equal(single.text, whole.text, `seed ${seed}`);
      assert.equal(cut.text, whole.text, `seed ${seed}`);
    }
  }
  assert.ok(refusals > 10 && refusals < 110, `${refusals} of 120 were refused`);
});

Deno.test("a reply that does not end is refused after 16 KiB, whatever it is made of and however it comes", () => {
  const endless = [
    "a",
    "\r",
    "RTSP/1.0 200 OK\r\n".padEnd(40_000, "X: y\r\n"),
    "RTSP/1.0 200 OK\r\nX: ".padEnd(40_000, "$"),
  ];
  for (const text of endless) {
    for (const size of [1, 1000, 40_000]) {
      const bytes = bytesOf(text.padEnd(40_000, text));
      const replies = asked();
      let at = 0;
      assert.throws(() => {
        for (; at < bytes.length; at += size) {
          assert.deepEqual(replies.take(bytes.subarray(at, at + size)), []);
        }
      }, RtspRefused);
      assert.ok(at <= 16_384, `${at} bytes were kept`);
    }
  }
});

interface Hostile extends AsyncDisposable {
  readonly tunnel: RtspTunnel;
  /** A connection through the tunnel, on which the server says its text. */
  connected(): Promise<Socket>;
}

/** A tunnel to a server that calls `speak` when it is spoken to. */
async function hostile(speak: (socket: Socket) => void): Promise<Hostile> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {/* the tunnel has closed it */});
    socket.once("data", () => speak(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  const tunnel = await RtspTunnel.open(new URL(`rtsp://camera.test:${port}/a`), {
    ...{ world: realWorld(quietLog()), agent, allowedNetworks: [], signal: NEVER_ABORTED },
    resolve: () => Promise.resolve(["93.184.216.34"]),
  });
  return {
    tunnel,
    async connected() {
      const client = connect(Number(new URL(tunnel.url).port), "127.0.0.1");
      client.on("error", () => {/* the tunnel has closed it */});
      await new Promise<void>((resolve) => client.once("connect", resolve));
      client.write(`OPTIONS ${tunnel.url} RTSP/1.0\r\nCSeq: 1\r\n\r\n`);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await tunnel[Symbol.asyncDispose]();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      agent[Symbol.dispose]();
    },
  };
}

Deno.test("a tunnel outlives every server: connections end, and it goes on with the next", async () => {
  let text = "";
  await using test = await hostile((socket) => socket.end(bytesOf(text)));
  let refusals = 0;
  for (let seed = 1; seed <= 60; seed++) {
    text = said(seededRandom(seed));
    const client = await test.connected();
    let received = "";
    client.on("data", (bytes: Uint8Array) => void (received += textOf(bytes)));
    await new Promise<void>((resolve) => client.once("close", () => resolve()));
    checkPassed(received, `seed ${seed}`);
    const { fault } = test.tunnel;
    if (fault === undefined) continue;
    refusals++;
    assert.equal(fault.details[0]!.field, "source_uri");
  }
  assert.ok(refusals > 5, `${refusals}`);
});

Deno.test("a server that sends on while ffmpeg does not read is stopped, and thousands of frames are one write", async () => {
  let sent = 0;
  let isStopped = false;
  const media = bytesOf(frame("m".repeat(60_000)) + frame("m".repeat(12)).repeat(4000));
  await using test = await hostile((socket) => {
    const send = () => {
      while (sent < 2 ** 28) {
        sent += media.length;
        if (!socket.write(media)) break;
      }
      isStopped = socket.writableNeedDrain;
      socket.once("drain", send);
    };
    send();
  });
  const client = await test.connected();
  client.pause();
  let last = -1;
  await until("the server is stopped", () => {
    const isSame = isStopped && last === sent;
    last = sent;
    return isSame;
  });
  assert.ok(sent < 2 ** 26, `${sent} bytes are somewhere between the server and a reader that does not read`);
  let received = 0;
  client.on("data", (bytes: Uint8Array) => void (received += bytes.length));
  client.resume();
  await until("it goes on", () => received > 2 ** 26);
  client.destroy();
});
