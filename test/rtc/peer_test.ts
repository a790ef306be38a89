import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { RtcpPacketConverter } from "werift";
import { readOffer } from "../../src/model/live/offer.ts";
import type { VideoUnit } from "../../src/rtc/receive/assembler.ts";
import type { AudioUnit } from "../../src/rtc/receive/audio_track.ts";
import { DATAGRAM_BYTES } from "../../src/rtc/link.ts";
import { Peer, type PeerEnd } from "../../src/rtc/peer.ts";
import { realWorld, type World } from "../../src/base/world.ts";
import { startStunServer } from "../support/live/stun_server.ts";
import { until } from "../support/until.ts";
import { type EncodedVideo, readOpus, readVideo } from "../support/live/encoded_media.ts";

const PUBLISHER = new URL("../support/live/rtp_publisher.ts", import.meta.url).pathname;
const WORLD: World = realWorld({ debug() {}, info() {}, warn() {}, error() {} } as unknown as World["log"]);
/** A publisher on this machine. */
const HERE = { isOnLoopback: true };
const NO_SERVERS = {
  stunServers: [],
  turn: null,
  candidates: { listenHost: "127.0.0.1", allowedNetworks: [] },
};

const folder = await Deno.makeTempDir({ prefix: "peer_test_" });
globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));

const SMALL = await encoded("small.ivf", "testsrc2=s=320x180:r=30:d=2", [
  "-c:v",
  "libvpx",
  "-b:v",
  "1M",
  "-g",
  "15",
]);
const LARGE = await encoded("large.ivf", "testsrc2=s=640x360:r=30:d=1", [
  "-c:v",
  "libvpx",
  "-b:v",
  "1M",
  "-g",
  "15",
]);
const H264 = await encoded("h264.h264", "testsrc2=s=322x182:r=30:d=1", [
  "-c:v",
  "libx264",
  "-preset",
  "ultrafast",
  "-tune",
  "zerolatency",
  "-pix_fmt",
  "yuv420p",
  "-g",
  "15",
]);
const ONE_KEYFRAME = await encoded("one.ivf", "testsrc2=s=320x180:r=30:d=1", [
  "-c:v",
  "libvpx",
  "-g",
  "1000",
]);
const SOUND = await encoded("sound.ogg", "sine=d=1", ["-c:a", "libopus", "-b:a", "48k"]);

interface Session {
  readonly units: VideoUnit[];
  readonly audio: AudioUnit[];
  readonly ended: { cause: PeerEnd; message: string }[];
  /** What the publisher printed. */
  readonly printed: Record<string, unknown>[];
  peer: Peer | null;
}

/**
 * Runs a publisher against a peer until the publisher has finished and, with `waitsForEnd`, the peer has
 * ended.
 */
async function publish(
  args: string[],
  options: {
    waitsForEnd?: boolean;
    world?: World;
    mediaIdleMs?: number;
    during?: (session: Session) => Promise<void>;
  } = {},
): Promise<Session> {
  const { mediaIdleMs = 60_000 } = options;
  const session: Session = { units: [], audio: [], ended: [], printed: [], peer: null };
  const ended = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const body = await request.text();
    if (request.method === "DELETE") {
      await session.peer!.close();
      return new Response(null, { status: 200 });
    }
    if (request.method === "PATCH") {
      const restarted = await session.peer!.restartIce(body, HERE);
      if (restarted !== null) return new Response(restarted);
      session.peer!.trickle(body, HERE);
      return new Response(null, { status: 204 });
    }
    const { peer, answer } = await Peer.answer(
      readOffer(body, new Set(["vp9"])),
      {
        ice: NO_SERVERS,
        bitrate: 2_500_000,
        mediaIdleMs,
      },
      {
        onConnected() {},
        onVideoUnit: (unit) => void session.units.push(unit),
        onAudioUnit: (unit) => void session.audio.push(unit),
        onEnded(cause, message) {
          session.ended.push({ cause, message });
          ended.resolve();
        },
      },
      options.world ?? WORLD,
      HERE,
    );
    session.peer = peer;
    return new Response(answer, { status: 201, headers: { location: "/session" } });
  });
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-prompt",
      PUBLISHER,
      "--url",
      `http://127.0.0.1:${server.addr.port}/whip`,
      ...args,
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const printed = readLines(child.stdout, session.printed);
  await options.during?.(session);
  await child.stdin.close();
  await child.status;
  await printed;
  if (options.waitsForEnd) await ended.promise;
  await session.peer?.close();
  await server.shutdown();
  return session;
}

function fact(session: Session, event: string): Record<string, unknown> {
  const found = session.printed.find((line) => line.event === event);
  assert.ok(found, `no ${event} among ${JSON.stringify(session.printed).slice(0, 500)}`);
  return found;
}

/** Checks that every frame came, once, in order, byte for byte, with the timestamp that it was sent with. */
function assertWhole(session: Session, videos: EncodedVideo[]): void {
  const frames = videos.flatMap((video) => video.frames);
  assert.equal(session.units.length, frames.length, JSON.stringify(session.peer?.counts));
  assert.deepEqual(session.units.map(({ rtpTimestamp }) => rtpTimestamp), fact(session, "sent").timestamps);
  for (const [index, { data, codec }] of session.units.entries()) {
    const plain = (bytes: Uint8Array) =>
      codec === "h264" ? hexOf(bytes).replaceAll("00000001", "000001") : hexOf(bytes);
    assert.equal(plain(data), plain(frames[index]!), `frame ${index}`);
  }
}

function hexOf(bytes: Uint8Array): string {
  return bytes.toHex();
}

Deno.test("frames arrive byte for byte with their exact timestamps, and so does sound", async () => {
  const session = await publish(["--video", SMALL, "--audio", SOUND, "--audio", SOUND]);
  assertWhole(session, [await readVideo(SMALL)]);
  const [first] = session.units;
  assert.deepEqual([first!.isKeyframe, first!.width, first!.height, first!.codec], [true, 320, 180, "vp8"]);
  const packets = await readOpus(SOUND);
  for (const trackId of [0, 1]) {
    const units = session.audio.filter((unit) => unit.trackId === trackId);
    assert.deepEqual(units.map(({ data }) => [...data]), packets.map((packet) => [...packet]));
    assert.ok(
      units.every(({ rtpTimestamp, hasGap }, index) => rtpTimestamp === 48_000 + index * 960 && !hasGap),
    );
  }
  assert.equal(session.peer!.counts.lost, 0);
});

for (const [role, setup] of [["client", "actpass"], ["server", "active"]] as const) {
  Deno.test(`a DTLS ${role} whose answer took long is reminded, and frames still arrive`, async () => {
    const session = await publish(["--video", SMALL, "--setup", setup, "--remind"]);
    assertWhole(session, [await readVideo(SMALL)]);
  });
}

Deno.test("5 % loss, reordering and duplicates over the wrap of sequence and time lose no frame", async () => {
  // The peer waits longer for a packet that it asks for: a publisher on a busy machine may take its time.
  const world = { ...WORLD, monotonicMs: () => performance.now() / 4 };
  await Promise.all([[], ["--plain"]].map(async (plain) => {
    const session = await publish([
      ...["--video", SMALL, "--loss", "5", "--reorder", "3", "--duplicate", "3", "--seed", "7"],
      ...["--sequence", "65500", "--timestamp", String(2 ** 32 - 45_000), ...plain],
    ], { world });
    assertWhole(session, [await readVideo(SMALL)]);
    assert.ok(Number(fact(session, "sent").lost) > 0);
    assert.ok(session.peer!.counts.nacksSent > 0);
  }));
});

Deno.test("after a change of the resolution a keyframe has the new size", async () => {
  const session = await publish(["--video", SMALL, "--video", LARGE, "--no-ssrc", "--trickle"]);
  assertWhole(session, [await readVideo(SMALL), await readVideo(LARGE)]);
  const sizes = session.units.filter(({ isKeyframe }) => isKeyframe).map(({ width }) => width);
  assert.deepEqual([...new Set(sizes)], [320, 640]);
});

Deno.test("H.264 is given as Annex B, and its size is that of the cropped frame", async () => {
  const session = await publish(["--video", H264]);
  assertWhole(session, [await readVideo(H264)]);
  const [first] = session.units;
  assert.deepEqual([first!.isKeyframe, first!.width, first!.height], [true, 322, 182]);
});

Deno.test("after a loss without retransmission the stream continues with a keyframe", async () => {
  // More than 100 packets are lost, including the wrap of the sequence number.
  const session = await publish(["--video", SMALL, "--sequence", "65450", "--hole", "20,130"]);
  const frames = (await readVideo(SMALL)).frames;
  const { timestamps } = fact(session, "sent") as { timestamps: number[] };
  assert.ok(session.units.length < frames.length && session.units.length > 5, `${session.units.length}`);
  let before = -1;
  for (const unit of session.units) {
    const index = timestamps.indexOf(unit.rtpTimestamp);
    assert.equal(hexOf(unit.data), hexOf(frames[index]!));
    assert.ok(unit.isKeyframe || index === before + 1, `frame ${index} after ${before}`);
    before = index;
  }
  assert.equal(before, frames.length - 1);
});

Deno.test("a keyframe is requested when nothing else can be used", async () => {
  const session = await publish(["--video", ONE_KEYFRAME, "--hole", "20,1"]);
  fact(session, "keyframe_request");
  assert.ok(session.units.length < 25, `${session.units.length}`);
  assert.ok(session.peer!.counts.keyframesRequested <= 3);
});

Deno.test("datagrams of strangers change nothing, and media may pause", async () => {
  const session = await publish(["--video", LARGE, "--garbage", "2000", "--silence", "10,0.5"]);
  assertWhole(session, [await readVideo(LARGE)]);
  assert.deepEqual(session.ended, []);
});

Deno.test("reports of a publisher that take long to read hold no frame up, and its sender report is answered", async () => {
  const args = ["--video", LARGE, "--video", LARGE, "--video", LARGE, "--fps", "10", "--reports", "300"];
  const parse = RtcpPacketConverter.deSerialize;
  let longest = 0;
  RtcpPacketConverter.deSerialize = (bytes) => {
    longest = Math.max(longest, bytes.length);
    return parse(bytes);
  };
  const session = await publish(args).finally(() => RtcpPacketConverter.deSerialize = parse);
  assert.equal(longest, 28, "what is parsed is a sender report");
  assertWhole(session, Array(3).fill(await readVideo(LARGE)));
  assert.equal(fact(session, "sent").senderReport, 0x5678_9abc);
});

Deno.test("a publisher that stays connected and sends no more media is ended", async () => {
  const session = await publish(["--video", SMALL, "--end", "stay"], {
    mediaIdleMs: 1_000,
    during: ({ ended }) => until(() => ended.length > 0),
  });
  assert.deepEqual(session.ended, [
    { cause: "media_idle", message: "the publisher sent no media for 1 s" },
  ]);
});

Deno.test("ICE restarts during the session without losing a frame", async () => {
  const session = await publish(["--video", LARGE, "--restart-at", "8"]);
  fact(session, "restarted");
  assertWhole(session, [await readVideo(LARGE)]);
});

Deno.test({
  name: "a publisher that sends a close_notify has ended at once, others when nothing comes for long enough",
  // werift leaves the node:crypto decipher of a forged packet to the garbage collector.
  sanitizeResources: false,
  async fn() {
    // For two of the peers time runs ten times as fast once all was sent.
    const hurried = () => {
      let sinceMs = Infinity;
      const hurryMs = () => 9 * Math.max(0, performance.now() - sinceMs);
      return {
        world: { ...WORLD, monotonicMs: () => performance.now() + hurryMs() },
        during: async ({ printed }: Session) => {
          await until("all was sent", () => {
            const failure = printed.find(({ event }) => event === "failed");
            assert.equal(failure, undefined, JSON.stringify(failure));
            return printed.some(({ event }) => event === "sent");
          });
          sinceMs = performance.now();
        },
      };
    };
    const [notified, forged, vanished] = await Promise.all([
      publish(["--video", LARGE, "--end", "close-notify"], { waitsForEnd: true }),
      publish(["--video", LARGE, "--end", "forge"], { waitsForEnd: true, ...hurried() }),
      publish(["--video", LARGE, "--end", "vanish"], { waitsForEnd: true, ...hurried() }),
    ]);
    const silence = "nothing was received from the publisher for";
    assert.deepEqual([notified, forged, vanished].map(({ ended }) => ended), [
      [{ cause: "peer_closed", message: "the publisher closed the connection" }],
      [{ cause: "peer_disconnected", message: `${silence} 3 s` }],
      [{ cause: "peer_disconnected", message: `${silence} 8 s` }],
    ]);
  },
});

Deno.test("datagrams longer than any network path allows are not cut", async () => {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  socket.setRecvBufferSize(DATAGRAM_BYTES);
  const received = new Promise<number>((resolve) => socket.once("message", (data) => resolve(data.length)));
  socket.send(new Uint8Array(DATAGRAM_BYTES), socket.address().port, "127.0.0.1");
  assert.equal(await received, DATAGRAM_BYTES);
  await new Promise<void>((resolve) => socket.close(resolve));
});

Deno.test("closing leaves no socket, however often and whenever it is called", async () => {
  const before = await sockets();
  const offer = readOffer(await OFFER, new Set());
  const settings = { ice: NO_SERVERS, bitrate: 1_000_000, mediaIdleMs: 60_000 };
  const silent = { onConnected() {}, onVideoUnit() {}, onAudioUnit() {}, onEnded() {} };
  for (let round = 0; round < 20; round++) {
    const { peer } = await Peer.answer(offer, settings, silent, WORLD, HERE);
    await Promise.all([peer.close(), peer.close()]);
    await peer.close();
    peer.trickle("candidate:1 1 udp 1 127.0.0.1 9 typ host", HERE);
    assert.equal(await peer.restartIce("a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901", HERE), null);
    peer.requestKeyframe();
    peer.setBitrate(1);
  }
  assert.equal(await sockets(), before);
  await connectivityChecksEnded();
});

Deno.test("an address of loopback is sent to for a publisher on loopback alone, and offered to no other one", async () => {
  const socket = createSocket("udp4");
  let checks = 0;
  socket.on("message", () => checks++);
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  const candidates = ["127.0.0.1", "::ffff:127.0.0.1", "localhost"].map((address, at) =>
    `candidate:${at} 1 udp ${100 - at} ${address} ${port} typ host`
  );
  const settings = { ice: NO_SERVERS, bitrate: 1, mediaIdleMs: 60_000 };
  const events = { onConnected() {}, onVideoUnit() {}, onAudioUnit() {}, onEnded() {} };
  const offered = (await OFFER).replace(
    /^a=mid:0/m,
    [...candidates.map((line) => `a=${line}`), "a=mid:0"].join("\r\n"),
  );
  const offer = readOffer(offered, new Set());
  for (
    const { text, isOnLoopback } of [
      ...[{ text: "", isOnLoopback: false }, { text: candidates.join("\r\n"), isOnLoopback: false }],
      ...[{ text: "", isOnLoopback: true }],
    ]
  ) {
    checks = 0;
    const { peer, answer } = await Peer.answer(offer, settings, events, WORLD, { isOnLoopback });
    peer.trickle(text, { isOnLoopback });
    if (isOnLoopback) await until("the candidate is checked", () => checks > 0);
    else {
      // A publisher on this machine is found meanwhile, so the other one would have been.
      assert.doesNotMatch(answer, /^a=candidate:.* (127\.|::1 )/m);
      const there = await Peer.answer(offer, settings, events, WORLD, HERE);
      const from = new Set<number>();
      socket.on("message", (_, { port }) => from.add(port));
      await until("the candidate is checked", () => from.size > 0);
      await connectivityChecksEnded();
      const ours = new Set(
        [...answer.matchAll(/^a=candidate:.* (\d+) typ host/gm)].map(([, port]) => Number(port)),
      );
      assert.deepEqual([...from].filter((port) => ours.has(port)), []);
      socket.removeAllListeners("message");
      socket.on("message", () => checks++);
      await there.peer.close();
    }
    await peer.close();
  }
  socket.close();
  await connectivityChecksEnded();
});

Deno.test("every STUN server is asked, and each address that one of them sees is a candidate once", async () => {
  const offer = readOffer(await OFFER, new Set());
  await using silent = await startStunServer(null);
  await using one = await startStunServer(["198.51.100.1", 1111]);
  await using other = await startStunServer(["198.51.100.2", 2222]);
  await using same = await startStunServer(["198.51.100.1", 1111]);
  const servers = [silent, one, other, same];
  const ice = { ...NO_SERVERS, stunServers: servers.map(({ url }) => url) };
  const settings = { ice, bitrate: 1, mediaIdleMs: 60_000 };
  const events = { onConnected() {}, onVideoUnit() {}, onAudioUnit() {}, onEnded() {} };
  const { peer, answer } = await Peer.answer(offer, settings, events, WORLD, HERE);
  const reflexive = [...answer.matchAll(/ (\S+ \d+) typ srflx/g)].map(([, address]) => address);
  assert.deepEqual([...new Set(reflexive)].sort(), ["198.51.100.1 1111", "198.51.100.2 2222"]);
  assert.ok(servers.every(({ requests }) => requests > 0));
  await peer.close();
  await connectivityChecksEnded();
});

Deno.test("a publisher that never connects has failed after 15 seconds", async () => {
  const offer = readOffer(await OFFER, new Set());
  const ended = Promise.withResolvers<[PeerEnd, string]>();
  const world = { ...WORLD, monotonicMs: () => performance.now() * 50 };
  const events = { onConnected() {}, onVideoUnit() {}, onAudioUnit() {} };
  const { peer } = await Peer.answer(
    offer,
    { ice: NO_SERVERS, bitrate: 1, mediaIdleMs: 60_000 },
    {
      ...events,
      onEnded: (cause, message) => ended.resolve([cause, message]),
    },
    world,
    HERE,
  );
  assert.deepEqual(await ended.promise, ["peer_failed", "the publisher did not connect within 15 s"]);
  await peer.close();
  await connectivityChecksEnded();
});

const OFFER = Deno.readTextFile(new URL("fixtures/chromium_156_offer.sdp", import.meta.url));

/** The loop of a closed connection in werift sees that it is closed at its next turn, 20 ms later at most. */
function connectivityChecksEnded(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}

async function sockets(): Promise<number> {
  let count = 0;
  for await (const entry of Deno.readDir("/proc/self/fd")) {
    const target = await Deno.readLink(`/proc/self/fd/${entry.name}`).catch(() => "");
    if (target.startsWith("socket:")) count++;
  }
  return count;
}

async function readLines(from: ReadableStream<Uint8Array>, into: Record<string, unknown>[]): Promise<void> {
  let rest = "";
  for await (const text of from.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) into.push(JSON.parse(line));
  }
}

async function encoded(name: string, source: string, codec: string[]): Promise<string> {
  const path = `${folder}/${name}`;
  const args = ["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", source, ...codec, path];
  const { success, stderr } = await new Deno.Command("ffmpeg", { args, stderr: "piped" }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return path;
}
