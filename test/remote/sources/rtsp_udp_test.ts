/** A camera that sends over UDP alone, through the tunnel: what ffmpeg gets of it, and what it never gets. */

import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { quietLog } from "../../../src/base/log.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { Authorization } from "../../../src/model/sources/source_credentials.ts";
import type { SourceLogin } from "../../../src/remote/sources/source_request.ts";
import { RtspTunnel } from "../../../src/remote/sources/rtsp_tunnel.ts";
import { type RtspOptions, type RtspServer, serveRtsp } from "../../support/live/rtsp_server.ts";
import { until } from "../../support/until.ts";

const textOf = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);

/** A client that speaks as ffmpeg does to the tunnel. */
class Client {
  readonly #socket: Socket;
  readonly #url: string;
  received = new Uint8Array();
  #sent = 0;

  constructor(url: string) {
    this.#url = url;
    this.#socket = connect(Number(new URL(url).port), "127.0.0.1");
    this.#socket.on("error", () => {/* the tunnel has closed it */});
    this.#socket.on("data", (bytes: Uint8Array) => {
      this.received = Uint8Array.of(...this.received, ...bytes);
    });
  }

  get isClosed(): boolean {
    return this.#socket.destroyed || this.#socket.readableEnded;
  }

  /** The answer to the request; the empty text where the connection was closed. */
  async ask(method: string, headers = ""): Promise<string> {
    const cseq = ++this.#sent;
    this.#socket.write(`${method} ${this.#url} RTSP/1.0\r\nCSeq: ${cseq}\r\n${headers}\r\n`);
    let answer = "";
    await until(`${method} is answered`, () => {
      answer =
        new RegExp(`RTSP/1.0 [^$]*?CSeq: ${cseq}\r\n[^$]*?\r\n\r\n`).exec(textOf(this.received))?.[0] ?? "";
      return answer !== "" || this.isClosed;
    });
    return answer;
  }

  async play(): Promise<void> {
    const setUp = await this.ask("SETUP", "Transport: RTP/AVP/TCP;unicast;interleaved=2-3\r\n");
    assert.match(setUp, /^RTSP\/1\.0 200 OK\r\n/);
    assert.match(setUp, /\r\nTransport: RTP\/AVP\/TCP;unicast;interleaved=2-3\r\n/);
    await this.ask("PLAY", "Session: 1\r\nRange: npt=0.000-\r\n");
    this.received = new Uint8Array();
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The interleaved frames so far: channel, and the last byte of each. */
  get frames(): [channel: number, mark: number][] {
    const frames: [number, number][] = [];
    for (let at = 0; at < this.received.length;) {
      const length = this.received[at + 2]! * 256 + this.received[at + 3]!;
      assert.equal(this.received[at], 0x24);
      frames.push([this.received[at + 1]!, this.received[at + 3 + length]!]);
      at += 4 + length;
    }
    return frames;
  }

  pause(): void {
    this.#socket.pause();
  }

  leave(): void {
    this.#socket.destroy();
  }
}

interface UdpTest extends AsyncDisposable {
  readonly camera: RtspServer;
  readonly tunnel: RtspTunnel;
  readonly counts: Record<string, number>;
  /** Sends RTP with this number and mark from the camera, or from the socket. */
  send(sequence: number, mark: number, from?: Deno.DatagramConn): Promise<void>;
}

async function openUdp(
  options: RtspOptions = {},
  login?: { user: string; password: string },
): Promise<UdpTest> {
  const camera = serveRtsp(new Uint8Array(), { udp: {}, ...options });
  const agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  const counts: Record<string, number> = {};
  const url = new URL(`rtsp://camera.test:${camera.port}/a`);
  const source: SourceLogin | null = login
    ? { credentials: login, origin: url.origin, http: new Authorization(login, "00") }
    : null;
  const tunnel = await RtspTunnel.open(url, {
    ...{ world: realWorld(quietLog()), agent, allowedNetworks: [], signal: NEVER_ABORTED },
    ...{ resolve: () => Promise.resolve(["93.184.216.34"]), named: { login: source } },
    countDatagrams: (outcome, datagrams) => void (counts[outcome] = (counts[outcome] ?? 0) + datagrams),
  });
  return {
    ...{ camera, tunnel, counts },
    async send(sequence, mark, from = camera.udp!.rtp) {
      const packet = Uint8Array.of(0x80, 96, sequence >> 8, sequence & 255, 0, 0, 0, 0, 0, 0, 0, 1, mark);
      await from.send(packet, { transport: "udp", hostname: "127.0.0.1", port: camera.udp!.clientPort });
    },
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]();
      await camera[Symbol.asyncDispose]();
      agent[Symbol.dispose]();
    },
  };
}

/** Whether a port of UDP is free. */
function isFree(port: number): boolean {
  try {
    Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("a camera that refuses TCP is read over UDP: in order, with losses counted, and from its own port alone", async () => {
  await using test = await openUdp();
  const client = new Client(test.tunnel.url);
  await client.play();
  const { camera, counts } = test;
  const [, setUp] = camera.requests;
  assert.match(camera.requests[0]!, /^SETUP rtsp:\/\/camera\.test:\d+\/a RTSP/);
  assert.equal(setUp, camera.requests[0]);
  const { clientPort, rtp, rtcp } = camera.udp!;
  assert.equal(clientPort % 2, 0);
  // A firewall on the way sees that the media is wanted.
  const [knock] = await rtp.receive();
  assert.deepEqual([knock[0], knock.length], [0x80, 12]);
  assert.equal((await rtcp.receive())[0][1], 201);

  using strangers = new DisposableStack();
  const [stranger, neighbour] = ["127.0.0.1", "127.0.0.2"].map((hostname) =>
    strangers.adopt(
      Deno.listenDatagram({ transport: "udp", hostname, port: 0 }),
      (socket) => socket.close(),
    )
  );
  await test.send(7, 1);
  await test.send(8, 99, stranger);
  await test.send(8, 98, neighbour);
  for (const [sequence, mark] of [[9, 3], [8, 2], [8, 97], [12, 5], [10, 4]] as const) {
    await test.send(sequence, mark);
  }
  await rtp.send(Uint8Array.of(0x40, 96, 0, 13), {
    transport: "udp",
    hostname: "127.0.0.1",
    port: clientPort,
  });
  await rtp.send(new Uint8Array(10_000).fill(0x80), {
    transport: "udp",
    hostname: "127.0.0.1",
    port: clientPort,
  });
  const report = Uint8Array.of(0x80, 200, 0, 1, 0, 0, 0, 77);
  await rtcp.send(report, { transport: "udp", hostname: "127.0.0.1", port: clientPort + 1 });
  await until("what is missing is given up", () => counts.passed === 6 && counts.dropped === 2);
  await until("ffmpeg has it", () => client.frames.length === 6);
  assert.deepEqual(client.frames.filter(([channel]) => channel === 2).map(([, mark]) => mark), [
    1,
    2,
    3,
    4,
    5,
  ]);
  assert.deepEqual(client.frames.filter(([channel]) => channel === 3), [[3, 77]]);
  assert.deepEqual(counts, { passed: 6, foreign: 2, late: 1, lost: 1, dropped: 2 });

  // ffmpeg's reports go on as datagrams, one a second at most.
  const receiverReport = Uint8Array.of(0x80, 201, 0, 1, 0, 0, 0, 9);
  for (let count = 0; count < 3; count++) client.write(Uint8Array.of(0x24, 3, 0, 8, ...receiverReport));
  assert.deepEqual((await rtcp.receive())[0], receiverReport);

  client.leave();
  await until("the camera is told to stop", () => camera.udp!.isEnded);
  assert.match(camera.requests.at(-1)!, /^TEARDOWN rtsp:\/\/camera\.test:\d+\/a RTSP/);
  await until("no port is open", () => isFree(clientPort) && isFree(clientPort + 1));
  assert.equal(test.tunnel.fault, undefined);
});

Deno.test("the order holds where the numbers wrap and where the camera starts anew, and what ffmpeg does not read is dropped", async () => {
  await using test = await openUdp();
  const client = new Client(test.tunnel.url);
  await client.play();
  for (
    const [sequence, mark] of [[65_534, 1], [0, 3], [65_535, 2], [1, 4], [40_000, 9], [40_001, 5]] as const
  ) {
    if (sequence === 40_001) await until("the jump waits", () => test.counts.passed === 4);
    await test.send(sequence, mark);
  }
  await until("both sides of the wrap, and the new start", () => client.frames.length === 6);
  assert.deepEqual(client.frames.map(([, mark]) => mark), [1, 2, 3, 4, 9, 5]);
  client.pause();
  const packet = new Uint8Array(9_000);
  packet.set([0x80, 96]);
  const view = new DataView(packet.buffer);
  for (let sequence = 40_002; !test.counts.dropped; sequence++) {
    assert.ok(sequence < 45_000, "45 MB wait for an ffmpeg that does not read");
    view.setUint16(2, sequence);
    await test.camera.udp!.rtp.send(packet, {
      transport: "udp",
      hostname: "127.0.0.1",
      port: test.camera.udp!.clientPort,
    });
    // What comes is read before the next ones, so that none is lost in the socket.
    if (sequence % 8 === 0) {
      await until("taken", () => test.counts.passed! + (test.counts.dropped ?? 0) >= sequence - 39_995);
    }
  }
  client.leave();
});

Deno.test("a password is asked for as over TCP, and the last words have it too", async () => {
  const login = { user: "viewer", password: "sesame" };
  for (const scheme of ["digest", "basic"] as const) {
    await using test = await openUdp({ login: { scheme, ...login } }, login);
    const client = new Client(test.tunnel.url);
    await client.play();
    await test.send(1, 1);
    await until("it plays", () => client.frames.length === 1);
    client.leave();
    await until("told to stop, with the password", () => test.camera.udp!.isEnded);
  }
});

Deno.test("a server that takes neither way, or answers with another one, is refused with the reason", async () => {
  const answers = [
    ["RTP/AVP;multicast;destination=239.0.0.1;port=5000-5001", /neither inside the connection nor by UDP/],
    ["RTP/AVP/TCP;unicast;interleaved=0-1", /neither inside the connection nor by UDP/],
    ["RTP/AVP;unicast;server_port=53-54", /UDP port that is not from 1024/],
  ] as const;
  for (const [transport, reason] of answers) {
    await using test = await openUdp({ udp: { transport } });
    const client = new Client(test.tunnel.url);
    assert.equal(await client.ask("SETUP", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), "");
    assert.match(test.tunnel.fault!.details[0]!.message, reason);
    await until("no port is open", () => isFree(test.camera.udp!.clientPort));
  }
  await using refusing = await openUdp({ statusLines: { SETUP: "RTSP/1.0 461 Unsupported Transport\r\n" } });
  const client = new Client(refusing.tunnel.url);
  assert.equal(await client.ask("SETUP", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), "");
  assert.match(refusing.tunnel.fault!.details[0]!.message, /neither over TCP nor over UDP/);
  client.leave();
});
