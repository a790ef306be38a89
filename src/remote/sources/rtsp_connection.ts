/** One connection of ffmpeg to an RTSP server: its requests with the address and the credentials of the source, and the media back. */

import type { Socket } from "node:net";
import { joinedBytes } from "../../base/bytes.ts";
import { hasEndedWithin, timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Authorization } from "../../model/sources/source_credentials.ts";
import { type DatagramOutcome, RtpDatagrams } from "./rtp_datagrams.ts";
import { interleaved, RtspRefused, RtspReplies, type RtspReply } from "./rtsp_replies.ts";
import { RtspRequests } from "./rtsp_requests.ts";
import { LOGIN_REFUSED } from "./source_request.ts";

export interface RtspConnectionOptions {
  readonly world: World;
  readonly client: Socket;
  readonly upstream: Socket;
  /** As ffmpeg names the source. */
  readonly tunnelUrl: string;
  readonly serverUrl: string;
  /** Null for a source without a user name. */
  readonly authorization: Authorization | null;
  /** Whether media may come beside the connection: not where it is encrypted. */
  readonly mayUseUdp: boolean;
  readonly countDatagrams: (outcome: DatagramOutcome, datagrams: number) => void;
  /** `RtspRefused` with the reason, or a flaw of ours. */
  readonly onFault: (reason: unknown) => void;
}

/**
 * Passes bytes on, with these exceptions: in a request the URL of the tunnel is replaced by that of the source; of the
 * server's answers only what `RtspReplies` lets through reaches ffmpeg; where the server asks for the credentials, the last
 * request is sent again with them, and so are all later ones; where it refuses media inside the connection (461), the track is
 * asked for over UDP, and ffmpeg gets its packets as if they had come inside.
 */
export class RtspConnection {
  readonly #options: RtspConnectionOptions;
  readonly #replies: RtspReplies;
  readonly #requests = new RtspRequests();
  /** As it was sent to the server, without the credentials. */
  #last = { method: "", text: "" };
  #isOverUdp = false;
  readonly #tracks: RtpDatagrams[] = [];
  /** The request that made a server send over UDP; null before, and after ffmpeg has ended that. */
  #playing: string | null = null;
  #awaited: Disposable | null = null;
  #isClosed = false;

  constructor(options: RtspConnectionOptions) {
    this.#options = options;
    this.#replies = new RtspReplies((reply) => this.#isAskedAgain(reply), (value) => this.#transport(value));
    const { client, upstream } = options;
    client.on("data", (bytes: Uint8Array) => this.#guarded(() => this.#ask(bytes)));
    upstream.on("data", (bytes: Uint8Array) => this.#guarded(() => this.#answer(bytes)));
    client.once("close", () => void this.close());
    upstream.once("close", () => {
      this.#closeTracks();
      client.end();
    });
  }

  /** Ends the media and both connections. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeTracks();
    const { world, client, upstream } = this.#options;
    const text = this.#playing && this.#withAuthorization(teardownOf(this.#playing));
    // A server that sends over UDP would go on for a minute, as the media has nothing to do with the connection.
    if (text !== null && !upstream.destroyed) {
      const sent = Promise.withResolvers<void>();
      upstream.once("close", sent.resolve);
      upstream.end(latin1(text), sent.resolve);
      await hasEndedWithin(world, TEARDOWN_MS, sent.promise);
    }
    upstream.destroy();
    client.end();
  }

  #guarded(work: () => void): void {
    if (this.#isClosed || this.#options.upstream.destroyed) return;
    try {
      work();
    } catch (error) {
      this.#options.onFault(error);
      this.#options.upstream.destroy();
    }
  }

  #ask(bytes: Uint8Array): void {
    const { client, upstream, tunnelUrl, serverUrl } = this.#options;
    for (const message of this.#requests.take(bytes)) {
      if (message.kind === "frame") {
        if (this.#isOverUdp) this.#report(message.bytes);
        else pass(client, upstream, message.bytes);
        continue;
      }
      const { method } = message;
      const text = message.text.replaceAll(tunnelUrl, () => serverUrl);
      this.#replies.requested(1);
      this.#last = { method, text: method === "SETUP" && this.#isOverUdp ? this.#overUdp(text) : text };
      if (this.#isOverUdp && method === "PLAY") this.#play(text);
      if (method === "TEARDOWN") this.#playing = null;
      this.#send();
    }
  }

  #answer(bytes: Uint8Array): void {
    const { client, upstream } = this.#options;
    const passed = this.#replies.take(bytes);
    // In one piece: thousands of short replies in one packet are not thousands of writes.
    if (passed.length > 0) {
      pass(upstream, client, passed.length === 1 ? passed[0]! : joinedBytes(...passed));
    }
  }

  /** Whether the request of this reply was sent again. */
  #isAskedAgain({ code, challenges }: RtspReply): boolean {
    const { authorization, mayUseUdp, onFault } = this.#options;
    if (code === 461 && this.#last.method === "SETUP") {
      if (!mayUseUdp) {
        onFault(new RtspRefused("its server sends the media over UDP only, where it is not encrypted"));
      } else if (this.#isOverUdp) {
        onFault(new RtspRefused("its server sends the media neither over TCP nor over UDP"));
      } else {
        this.#isOverUdp = true;
        this.#last = { method: "SETUP", text: this.#overUdp(this.#last.text) };
        this.#send();
        return true;
      }
      return false;
    }
    if (code !== 401) {
      authorization?.accepted();
      return false;
    }
    if (authorization === null) return false;
    if (this.#last.text === "" || !authorization.take(challenges)) {
      onFault(new RtspRefused(LOGIN_REFUSED));
      return false;
    }
    this.#send();
    return true;
  }

  #send(): void {
    const { client, upstream } = this.#options;
    pass(client, upstream, latin1(this.#withAuthorization(this.#last.text)));
  }

  /** The request with the header `Authorization` after its first line; unchanged before the server asked. */
  #withAuthorization(request: string): string {
    const [method = "", uri = ""] = request.split(" ", 2);
    const value = this.#options.authorization?.header({ method, uri }) ?? null;
    return value === null ? request : request.replace("\r\n", () => `\r\nAuthorization: ${value}\r\n`);
  }

  /** The request for a track with two ports of ours, which are open from then on. */
  #overUdp(request: string): string {
    const { world, upstream, countDatagrams: count } = this.#options;
    const channels = /^Transport:.*?;interleaved=(\d{1,3}(?:-\d{1,3})?)/mi.exec(request)?.[1] ?? "0-1";
    if (this.#tracks.length >= TRACKS_MAX) throw new RtspRefused("its server has too many tracks");
    const track = new RtpDatagrams({
      ...{ world, channels, count },
      localAddress: upstream.localAddress!,
      cameraAddress: upstream.remoteAddress!,
      onFrame: (frame) => this.#media(frame),
    });
    this.#tracks.push(track);
    return request.replace(/^Transport:.*$/mi, () => `Transport: ${track.transport}`);
  }

  /** What ffmpeg reads as the transport that it has got. */
  #transport(value: string): string {
    const track = this.#isOverUdp ? this.#tracks.at(-1) : undefined;
    if (track === undefined || this.#last.method !== "SETUP") return interleaved(value);
    track.accept(value);
    return `RTP/AVP/TCP;unicast;interleaved=${track.channels}`;
  }

  #play(request: string): void {
    const { world, onFault } = this.#options;
    this.#playing = request;
    for (const track of this.#tracks) track.knock();
    this.#awaited ??= timer(world, FIRST_MEDIA_MS, () => {
      onFault(
        new RtspRefused(
          `its server sends the media over UDP, and none came within ${FIRST_MEDIA_MS / 1000} s`,
        ),
      );
      void this.close();
    });
  }

  /** One packet of the media for ffmpeg. It is dropped where ffmpeg does not keep up. */
  #media(frame: Uint8Array): boolean {
    const { client } = this.#options;
    this.#awaited?.[Symbol.dispose]();
    if (!client.writable || this.#replies.isWithinBody || client.writableLength > WAITING_BYTES_MAX) {
      return false;
    }
    client.write(frame);
    return true;
  }

  #report(frame: Uint8Array): void {
    const track = this.#tracks.find(({ channels }) => Number(channels.split("-")[1]) === frame[1]);
    track?.report(frame.subarray(4));
  }

  #closeTracks(): void {
    this.#awaited?.[Symbol.dispose]();
    for (const track of this.#tracks) track[Symbol.dispose]();
  }
}

/** Video, sound, metadata and some more. */
const TRACKS_MAX = 8;
/** Before ffmpeg gives up, as it does not know the reason. */
const FIRST_MEDIA_MS = 8_000;
/** For the last words to a server. */
const TEARDOWN_MS = 200;
/** What waits for an ffmpeg that does not read: some seconds of media. */
const WAITING_BYTES_MAX = 4 << 20;

/** The request that ends what `play` has begun. */
function teardownOf(play: string): string {
  const [first = "", ...lines] = play.split("\r\n");
  const kept = lines.filter((line) => /^(?:Session|User-Agent):/i.test(line));
  const number = Number(/^CSeq: *(\d+)/mi.exec(play)?.[1] ?? 0);
  return [first.replace(/^PLAY/, "TEARDOWN"), `CSeq: ${number + 1000}`, ...kept, "", ""].join("\r\n");
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

/** Passes bytes on; pauses reading `from` while the buffer of `to` is full. */
function pass(from: Socket, to: Socket, bytes: Uint8Array): void {
  if (to.destroyed || to.write(bytes)) return;
  from.pause();
  to.once("drain", () => from.resume());
}
