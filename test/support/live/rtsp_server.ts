/** A small RTSP server on loopback that plays one MPEG-TS file to every client as fast as it reads, or tracks
 * in real time.
 */

import { joinedBytes } from "../../../src/base/bytes.ts";
import { createHash } from "node:crypto";
import { TEST_TLS } from "../http/tls_server.ts";
import { type CameraTrack, replay, type ReplayOptions } from "./camera_tracks.ts";
import type { RtspQuirk } from "./rtsp_quirks.ts";

export interface RtspServer extends AsyncDisposable {
  readonly port: number;
  /** The first line of each request, in order. */
  readonly requests: string[];
  /** Bytes of media that were written to sockets; a few megabytes of them may not have been read yet. */
  readonly sentBytes: number;
  /** The track that was set up last over UDP; null before. */
  readonly udp: UdpTrack | null;
}

/** Where one track is sent by datagrams. */
export interface UdpTrack {
  readonly rtp: Deno.DatagramConn;
  readonly rtcp: Deno.DatagramConn;
  /** The first of the client's two ports. */
  readonly clientPort: number;
  /** Whether the request that ends the track has come. */
  isEnded: boolean;
}

export interface RtspOptions {
  readonly isSecure?: boolean;
  /** Plays the file again and again instead of closing; an empty file gives no media. */
  readonly isEndless?: boolean;
  /** Sends nothing more after the file, and leaves the connection open. */
  readonly fallsSilent?: boolean;
  /** How long playing the file takes; default as long as the client takes to read it. */
  readonly playsMs?: number;
  /** Headers of a redirect with which DESCRIBE is answered, instead of the stream. */
  readonly describe?: string;
  /** The first bytes of the answer to a method, instead of `RTSP/1.0 200 OK` and its end of line. */
  readonly statusLines?: Readonly<Record<string, string>>;
  /** More headers in every answer, each with its end of line. */
  readonly extraHeaders?: string;
  /** The user name and password without which every request but OPTIONS is answered with 401. */
  readonly login?: { readonly scheme: "basic" | "digest"; readonly user: string; readonly password: string };
  /** The address of the track in the description; default `track1`. */
  readonly control?: string;
  /**
   * Media inside the connection is refused with 461. `transport` replaces what is answered as the transport.
   */
  readonly udp?: { readonly transport?: string };
  /** Tracks that are sent instead of the file, inside the connection. */
  readonly tracks?: readonly CameraTrack[];
  /** How the tracks are sent to the client with this number, from 0 on. */
  readonly replay?: (client: number) => ReplayOptions;
  /** How the server departs from RTSP. */
  readonly quirk?: RtspQuirk;
  /** Called when the first packet of the tracks goes to a client. */
  readonly onPlay?: () => void;
  /** Port on which it listens; a free one unless given. */
  readonly port?: number;
}

/**
 * Serves MPEG-TS by RTSP. Each RTP packet has seven packets of MPEG-TS (RFC 2250), and is interleaved in the
 * RTSP connection.
 */
export function serveRtsp(mpegts: Uint8Array, options: RtspOptions = {}): RtspServer {
  const where = { hostname: "127.0.0.1", port: options.port ?? 0 };
  const listener = options.isSecure ? Deno.listenTls({ ...where, ...TEST_TLS }) : Deno.listen(where);
  const requests: string[] = [];
  let sentBytes = 0;
  let udp: UdpTrack | null = null;
  let clients = 0;
  const open = new Map<Deno.Conn, Promise<void>>();
  const accepting = (async () => {
    while (true) {
      const connection = await listener.accept().catch((error) => {
        if (error instanceof Deno.errors.BadResource) return null;
        return undefined; // a handshake that failed
      });
      if (connection === null) return;
      if (connection === undefined) continue;
      const conversation = converse(connection, mpegts, requests, {
        ...options,
        client: clients++,
        onSent: (bytes) => void (sentBytes += bytes),
        onTrack: (track) => void (udp = track),
      }).catch(() => {/* the peer has disconnected */}).finally(
        () => {
          open.delete(connection);
          try {
            connection.close();
          } catch {
            // closed already
          }
        },
      );
      open.set(connection, conversation);
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    requests,
    get sentBytes() {
      return sentBytes;
    },
    get udp() {
      return udp;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting; // the last connection that was accepted is open by now
      const conversations = [...open.values()];
      for (const connection of open.keys()) connection.close();
      await Promise.all(conversations);
    },
  };
}

async function converse(
  connection: Deno.Conn,
  mpegts: Uint8Array,
  requests: string[],
  options: RtspOptions & {
    readonly client: number;
    readonly onSent: (bytes: number) => void;
    readonly onTrack: (track: UdpTrack) => void;
  },
): Promise<void> {
  const { isEndless, describe, statusLines = {}, extraHeaders = "", quirk = {} } = options;
  const control = quirk.control ?? options.control ?? "track1";
  const { login, udp, tracks, client, playsMs = 0, onSent, onTrack } = options;
  await using opened = new AsyncDisposableStack();
  let track: UdpTrack | null = null;
  const decoder = new TextDecoder("latin1");
  const buffer = new Uint8Array(16_384);
  const nonce = crypto.randomUUID();
  let text = "";
  let method = "";
  const reply = (cseq: string, extra = "", body = "", status = "200 OK") =>
    write(
      connection,
      latin1(withQuirk(
        `${statusLines[method] ?? `RTSP/1.0 ${status}\r\n`}CSeq: ${cseq}\r\n${extraHeaders}${extra}${
          body && "Content-Length: {length}\r\n"
        }\r\n${body}`,
        ...[quirk, method, cseq] as const,
      )),
    );
  while (true) {
    const count = await connection.read(buffer);
    if (count === null) return;
    text += decoder.decode(buffer.subarray(0, count));
    for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
      const request = text.slice(0, end);
      text = text.slice(end + 4);
      const [line = ""] = request.split("\r\n");
      method = line.split(" ")[0]!;
      const cseq = /^CSeq: (\d+)/mi.exec(request)?.[1] ?? "0";
      requests.push(line);
      if (login && method !== "OPTIONS" && !isLoggedIn(request, login, nonce)) {
        const asked = login.scheme === "basic"
          ? 'Basic realm="camera"'
          : `Digest realm="camera", nonce="${nonce}", algorithm=MD5, qop="auth"`;
        await reply(cseq, `WWW-Authenticate: ${asked}\r\n`, "<html>login</html>", "401 Unauthorized");
        continue;
      }
      if (method === "DESCRIBE" && describe !== undefined) await reply(cseq, describe, "", "302 Moved");
      else if (method === "DESCRIBE") {
        await reply(cseq, "Content-Type: application/sdp\r\n", sdp(control, tracks));
      } else if (
        method === "SETUP" && quirk.track &&
        !quirk.track.test(line.slice(line.indexOf(" ") + 1, line.lastIndexOf(" RTSP")))
      ) {
        await reply(cseq, "", "", "404 Not Found");
      } else if (method === "SETUP" && udp) {
        const clientPort = Number(/client_port=(\d+)/.exec(request)?.[1] ?? NaN);
        if (Number.isNaN(clientPort)) {
          await reply(cseq, "Transport: RTP/AVP;unicast\r\n", "", "461 Unsupported Transport");
          continue;
        }
        track = udpTrack(clientPort);
        opened.defer(() => closeTrack(track));
        onTrack(track);
        const [first, second] = [track.rtp, track.rtcp].map(({ addr }) => (addr as Deno.NetAddr).port);
        const answered = udp.transport ?? `RTP/AVP;unicast;client_port=${clientPort}-${clientPort + 1};` +
            `server_port=${first}-${second};source=127.0.0.1`;
        await reply(cseq, `Session: 1;timeout=60\r\nTransport: ${answered}\r\n`);
      } else if (method === "SETUP") {
        const channels = /interleaved=([\d-]+)/.exec(request)?.[1] ?? "0-1";
        await reply(cseq, `Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=${channels}\r\n`);
      } else {await reply(
          cseq,
          method === "PLAY" ? "Session: 1\r\n" : "Public: OPTIONS, DESCRIBE, SETUP, PLAY\r\n",
        );}
      if (method === "TEARDOWN" && track) track.isEnded = true;
      if (method !== "PLAY") continue;
      if (track) {
        const played = track;
        const playing = playDatagrams(played, mpegts);
        opened.defer(() => {
          played.isEnded = true;
          return playing;
        });
        continue;
      }
      if (tracks) {
        options.onPlay?.();
        // Until the client closes the connection: what it says meanwhile is read by nobody.
        const replay = options.replay?.(client) ?? {};
        return await playTracks(connection, tracks, { ...replay, ...quirk }, onSent);
      }
      do {
        await play(connection, mpegts, playsMs);
        onSent(mpegts.length);
      } while (isEndless && mpegts.length > 0);
      if (!isEndless && !options.fallsSilent) return;
    }
  }
}

/** The reply as a camera with this quirk gives it; `{length}` is that of its body. */
function withQuirk(
  reply: string,
  { replies = {}, before = {}, after = {} }: RtspQuirk,
  method: string,
  cseq: string,
): string {
  let text = reply;
  for (const [from, to] of replies[method] ?? replies.all ?? []) text = text.replace(from, to);
  const head = /^[^]*?(?:\r*\n){2}/.exec(text)?.[0] ?? text;
  text = text.replaceAll("{length}", String(text.length - head.length));
  const unasked = (texts: Readonly<Record<string, string>>) =>
    (texts[method] ?? texts.all ?? "").replaceAll("{cseq}", cseq).replaceAll("{reply}", () => text);
  return unasked(before) + text + unasked(after);
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/**
 * RFC 2617, as a camera checks it: the count of a nonce must go up, and the address is that of the request
 * line.
 */
function isLoggedIn(request: string, login: NonNullable<RtspOptions["login"]>, nonce: string): boolean {
  const value = /^Authorization: (.*)$/m.exec(request)?.[1]?.trim() ?? "";
  if (login.scheme === "basic") return value === `Basic ${btoa(`${login.user}:${login.password}`)}`;
  const field = (name: string) => new RegExp(`\\b${name}="?([^",]*)`).exec(value)?.[1] ?? "";
  const [method, uri] = request.split(" ");
  const md5 = (text: string) => createHash("md5").update(text).digest("hex");
  const secret = md5(`${login.user}:camera:${login.password}`);
  const expected = md5(
    `${secret}:${nonce}:${field("nc")}:${field("cnonce")}:auth:${md5(`${method}:${uri}`)}`,
  );
  return value.startsWith("Digest ") && field("nonce") === nonce && field("uri") === uri &&
    field("response") === expected;
}

function sdp(control: string, tracks: readonly CameraTrack[] | undefined): string {
  const session = "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=test\r\nt=0 0\r\n";
  if (tracks) {
    const parts = tracks.map(({ sdp }, index) =>
      [...sdp, `a=control:${tracks.length === 1 ? control : `track${index}`}`].join("\r\n")
    );
    return `${session}${parts.join("\r\n")}\r\n`;
  }
  return `${session}m=video 0 RTP/AVP 33\r\na=control:${control}\r\n`;
}

const RTP_PAYLOAD_BYTES = 7 * 188;

async function play(connection: Deno.Conn, mpegts: Uint8Array, playsMs: number): Promise<void> {
  const packets = [...interleavedPackets(mpegts)];
  const beginMs = performance.now();
  for (const [index, packet] of packets.entries()) {
    const earlyMs = beginMs + playsMs * index / packets.length - performance.now();
    if (earlyMs > 5) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    await write(connection, packet);
  }
}

function* interleavedPackets(mpegts: Uint8Array): Generator<Uint8Array<ArrayBuffer>> {
  let sequence = 0;
  for (let start = 0; start < mpegts.length; start += RTP_PAYLOAD_BYTES) {
    const payload = mpegts.subarray(start, start + RTP_PAYLOAD_BYTES);
    const packet = new Uint8Array(16 + payload.length);
    const view = new DataView(packet.buffer);
    view.setUint8(0, 0x24); // "$", channel 0, length
    view.setUint16(2, 12 + payload.length);
    view.setUint16(4, 0x8021); // version 2, payload type 33
    view.setUint16(6, sequence++ & 0xffff);
    view.setUint32(8, sequence * 90);
    view.setUint32(12, 1);
    packet.set(payload, 16);
    yield packet;
  }
}

async function playTracks(
  connection: Deno.Conn,
  tracks: readonly CameraTrack[],
  { between = "", betweenFrom = 3, ...options }: ReplayOptions & RtspQuirk,
  onSent: (bytes: number) => void,
): Promise<void> {
  let times = 0;
  for await (const packets of replay(tracks, options)) {
    // Not before the first picture.
    if (++times >= betweenFrom && times % 3 === 0) await write(connection, latin1(between));
    const frames = packets.map(({ track, bytes }) =>
      joinedBytes(Uint8Array.of(0x24, 2 * track, bytes.length >> 8, bytes.length & 0xff), bytes)
    );
    const sent = joinedBytes(...frames);
    await write(connection, sent);
    onSent(sent.length);
  }
}

function udpTrack(clientPort: number): UdpTrack {
  const where = { transport: "udp", hostname: "127.0.0.1", port: 0 } as const;
  return { rtp: Deno.listenDatagram(where), rtcp: Deno.listenDatagram(where), clientPort, isEnded: false };
}

function closeTrack(track: UdpTrack | null): void {
  if (track === null) return;
  track.isEnded = true;
  track.rtp.close();
  track.rtcp.close();
}

/** Again and again, no faster than a socket takes it; every second packet goes before the one before it. */
async function playDatagrams(track: UdpTrack, mpegts: Uint8Array): Promise<void> {
  const packets = Array.from(interleavedPackets(mpegts), (packet) => packet.subarray(4));
  for (let sequence = 0; !track.isEnded && packets.length > 0; sequence++) {
    const place = sequence ^ 1;
    const packet = packets[place % packets.length]!;
    new DataView(packet.buffer).setUint16(6, place & 0xffff);
    await track.rtp.send(packet, { transport: "udp", hostname: "127.0.0.1", port: track.clientPort })
      .catch(() => {/* nobody listens any more */});
    if (sequence % 8 === 7) await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function write(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let left = bytes; left.length > 0;) left = left.subarray(await connection.write(left));
}
