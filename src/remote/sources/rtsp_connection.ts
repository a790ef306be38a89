/** One connection of ffmpeg to an RTSP server: its requests with the address and the credentials of the
 * source, and the media back.
 */

import type { Socket } from "node:net";
import { joinedBytes } from "../../base/bytes.ts";
import { hasEndedWithin, timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Authorization } from "../../model/sources/source_credentials.ts";
import { type CountDatagrams, RtpDatagrams } from "./rtp_datagrams.ts";
import {
  interleavedChannels,
  REDIRECTS,
  RtspRefused,
  RtspReplies,
  type RtspReply,
  type RtspRequest,
  type RtspServerRequest,
} from "./rtsp_replies.ts";
import { RtspRequests, uriOf } from "./rtsp_requests.ts";
import type { SourceBudget } from "./source_budget.ts";
import { LOGIN_REFUSED } from "./source_request.ts";
import { pathControls, trackAddresses } from "../../model/sources/rtsp_head.ts";
import { failureOf } from "../guard/request_failed.ts";

export interface RtspConnectionOptions {
  readonly world: World;
  readonly client: Socket;
  readonly upstream: Socket;
  /** The URL by which ffmpeg names the source. */
  readonly tunnelUrl: string;
  readonly serverUrl: string;
  /** Answers the server's questions for credentials; null for a source without a user name. */
  readonly authorization: Authorization | null;
  /** Whether media may come beside the connection: not where it is encrypted. */
  readonly mayUseUdp: boolean;
  /** Pays for what the server sends. */
  readonly budget: SourceBudget;
  readonly countDatagrams: CountDatagrams;
  /** Gets `RtspRefused` with the reason, or a flaw of ours. */
  readonly onFault: (reason: unknown) => void;
  /** Called when the server has ended the connection, for a reason in words of ours. */
  readonly onEnded: (reason: string) => void;
}

/** A request of ffmpeg as the server gets it. */
interface SentRequest extends RtspRequest {
  /** The request without the credentials. */
  readonly text: string;
  /** Where else the track may be, if it is not at its URI. */
  readonly otherUris: readonly string[];
  /** The ports on which its media comes over UDP; null where it does not. */
  readonly track: RtpDatagrams | null;
}

/**
 * Passes bytes on, with these exceptions: in a request the URL of the tunnel is replaced by that of the
 * source; of the server's answers only what `RtspReplies` lets through reaches ffmpeg; what the server asks
 * is answered here; where it asks for the credentials, the request is sent again with them, and so are all
 * later ones; where it has no track at the address that ffmpeg made out, the others that the description may
 * mean are asked for; where it refuses media inside the connection (461), the track is asked for over UDP,
 * and ffmpeg gets its packets as if they had come inside.
 */
export class RtspConnection {
  readonly #options: RtspConnectionOptions;
  readonly #replies: RtspReplies<SentRequest>;
  readonly #requests = new RtspRequests();
  /** The number of the last request. */
  #sequence = 0;
  /** The tracks of the description whose addresses are paths. */
  #paths: readonly string[] = [];
  #isOverUdp = false;
  readonly #tracks: RtpDatagrams[] = [];
  /** Whether the server has begun to send media. */
  #isPlaying = false;
  /** The request that made a server send over UDP; null before, and after ffmpeg has ended the media. */
  #playing: string | null = null;
  #awaited: Disposable | null = null;
  #isClosed = false;
  /** Aborted when the server's connection is over. */
  readonly #closing = new AbortController();
  /** How many wait before the server's connection is read on: ffmpeg, the budget. */
  #pauses = 0;
  /** Why the server will end the connection, where it has said so. */
  #farewell: string | null = null;

  constructor(options: RtspConnectionOptions) {
    this.#options = options;
    const { client, upstream, world } = options;
    this.#replies = new RtspReplies({
      nowMs: () => world.monotonicMs(),
      isAskedAgain: (reply, request) => this.#isAskedAgain(reply, request),
      channels: (transport, request) => channelsOf(transport, request),
      onDescription: (description) => void (this.#paths = pathControls(description)),
      onRequest: (request) => this.#answerServer(request),
    });
    client.on("data", (bytes: Uint8Array) => this.#guarded(() => this.#ask(bytes)));
    upstream.on("data", (bytes: Uint8Array) => {
      this.#guarded(() => this.#answer(bytes));
      void this.#pay(bytes.length);
    });
    client.once("close", () => void this.close());
    upstream.once("end", () => this.#hasEnded("its server closed the connection"));
    upstream.once("error", (error) => this.#hasEnded(failureOf(error).message));
    upstream.once("close", () => {
      this.#closing.abort(new Error("the connection is closed"));
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
    const text = this.#playing &&
      this.#withAuthorization(withNumber(teardownOf(this.#playing), ++this.#sequence));
    // A server that sends over UDP would go on for a minute, as the media has nothing to do with the
    // connection.
    if (text !== null && !upstream.destroyed) {
      const sent = Promise.withResolvers<void>();
      upstream.once("close", sent.resolve);
      upstream.end(latin1(text), sent.resolve);
      await hasEndedWithin(world, TEARDOWN_MS, sent.promise);
    }
    upstream.destroy();
    client.end();
  }

  /** Pays for what came. Reads no further where the server has sent more than it may. */
  async #pay(bytes: number): Promise<void> {
    const { budget } = this.#options;
    budget.spend({ bytes, pieces: 1 });
    const turn = budget.turn(this.#closing.signal);
    if (turn === undefined) return;
    this.#pause();
    await turn.catch(() => {/* it is closed */});
    this.#resume();
  }

  #pause(): void {
    this.#pauses++;
    this.#options.upstream.pause();
  }

  #resume(): void {
    if (--this.#pauses === 0) this.#options.upstream.resume();
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

  #hasEnded(reason: string): void {
    if (!this.#isClosed) this.#options.onEnded(this.#farewell ?? reason);
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
      const uri = uriOf(text);
      const [first = uri, ...otherUris] = method === "SETUP"
        ? trackAddresses(uri, { paths: this.#paths, server: serverUrl })
        : [];
      const request: SentRequest = {
        ...{ method, uri: first, otherUris, text: withUri(text, first), track: null },
        cseq: /^CSeq: *(\d+)/mi.exec(text)?.[1] ?? "0",
        channels: /^Transport:.*?;interleaved=(\d{1,3}(?:-\d{1,3})?)/mi.exec(text)?.[1] ?? "0-1",
      };
      if (this.#isOverUdp && method === "PLAY") this.#play(text);
      if (method === "TEARDOWN") this.#playing = null;
      this.#send(method === "SETUP" && this.#isOverUdp ? this.#overUdp(request) : request);
    }
  }

  #answer(bytes: Uint8Array): void {
    const { client } = this.#options;
    const passed = this.#replies.take(bytes);
    // In one piece: thousands of short replies in one packet are not thousands of writes.
    const whole = passed.length === 1 ? passed[0]! : joinedBytes(...passed);
    if (whole.length === 0 || client.destroyed || client.write(whole)) return;
    this.#pause();
    client.once("drain", () => this.#resume());
  }

  /** Whether the request of this reply was sent again. */
  #isAskedAgain({ code, challenges }: RtspReply, request: SentRequest): boolean {
    const { authorization } = this.#options;
    const { method, otherUris: [uri, ...otherUris] } = request;
    if (code === 401 && authorization !== null) {
      if (authorization.take(challenges)) return this.#send(request);
      if (this.#isPlaying) return false;
      throw new RtspRefused(LOGIN_REFUSED);
    }
    if (code !== 401) authorization?.accepted();
    if (code < 400) {
      if (method === "PLAY") this.#isPlaying = true;
      return false;
    }
    if (method === "SETUP" && code === 461) return this.#send(this.#overUdp(request));
    if (method === "SETUP" && code !== 401 && uri !== undefined) {
      return this.#send({ ...request, uri, otherUris, text: withUri(request.text, uri) });
    }
    if (NEEDED.has(method) && !this.#isPlaying) throw new RtspRefused(refusalOf(method, code));
    return false;
  }

  /** Sends a request; always true. */
  #send(request: SentRequest): boolean {
    const { client, upstream } = this.#options;
    const number = ++this.#sequence;
    this.#replies.requested(request, number);
    pass(client, upstream, latin1(this.#withAuthorization(withNumber(request.text, number))));
    return true;
  }

  /**
   * Answers a request of the server: some ask whether the client is there. It needs nothing of ffmpeg, and
   * the media goes on.
   */
  #answerServer({ method, cseq, session, hasBody }: RtspServerRequest): void {
    const { upstream } = this.#options;
    if (method === "REDIRECT" && !this.#isPlaying) throw new RtspRefused(REDIRECTS);
    this.#farewell = FAREWELLS[method] ?? this.#farewell;
    const isFine = method === "OPTIONS" || /^[GS]ET_PARAMETER$/.test(method) && !hasBody;
    const lines = [
      `RTSP/1.0 ${isFine ? "200 OK" : "501 Not Implemented"}`,
      ...cseq === null ? [] : [`CSeq: ${cseq}`],
      ...session === null ? [] : [`Session: ${session}`],
      ...method === "OPTIONS" ? ["Public: OPTIONS, GET_PARAMETER, SET_PARAMETER"] : [],
    ];
    // A server that asks and does not read has no answer.
    if (!upstream.writable || upstream.writableLength > ANSWERS_BYTES_MAX) return;
    upstream.write(latin1(`${lines.join("\r\n")}\r\n\r\n`));
  }

  /** The request with the header `Authorization` after its first line; unchanged before the server asked. */
  #withAuthorization(request: string): string {
    const method = request.split(" ", 1)[0]!;
    const value = this.#options.authorization?.header({ method, uri: uriOf(request) }) ?? null;
    return value === null ? request : request.replace("\r\n", () => `\r\nAuthorization: ${value}\r\n`);
  }

  /**
   * The request for a track with two ports of ours, which are open from then on. Throws where the track was
   * asked for over UDP before.
   */
  #overUdp(request: SentRequest): SentRequest {
    const { world, upstream, mayUseUdp, budget, countDatagrams: count } = this.#options;
    if (!mayUseUdp) {
      throw new RtspRefused("its server sends the media over UDP only, where it is not encrypted");
    }
    if (request.track) throw new RtspRefused("its server sends the media neither over TCP nor over UDP");
    if (this.#tracks.length >= TRACKS_MAX) throw new RtspRefused("its server has too many tracks");
    const track = new RtpDatagrams({
      ...{ world, channels: request.channels, count, budget },
      localAddress: upstream.localAddress!,
      cameraAddress: upstream.remoteAddress!,
      onFrame: (frame) => this.#media(frame),
    });
    this.#isOverUdp = true;
    this.#tracks.push(track);
    const text = request.text.replace(/^Transport:.*$/mi, () => `Transport: ${track.transport}`);
    return { ...request, text, track };
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
    if (!client.writable || this.#replies.isWithinFrame || client.writableLength > WAITING_BYTES_MAX) {
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

/** Tracks of one source: video, sound, metadata and some more. */
const TRACKS_MAX = 8;
/** How long the media may take to begin: less than ffmpeg waits, as it does not know the reason. */
const FIRST_MEDIA_MS = 8_000;
/** Time for the last words to a server. */
const TEARDOWN_MS = 200;
/** Bytes of answers that wait for a server to read them. */
const ANSWERS_BYTES_MAX = 64 * 1024;
/** Bytes that wait for an ffmpeg that does not read: some seconds of media. */
const WAITING_BYTES_MAX = 4 << 20;

/** The request that ends what `play` has begun. */
function teardownOf(play: string): string {
  const [first = "", ...lines] = play.split("\r\n");
  const kept = lines.filter((line) => /^(?:Session|User-Agent):/i.test(line));
  return [first.replace(/^PLAY/, "TEARDOWN"), "CSeq: 0", ...kept, "", ""].join("\r\n");
}

function withNumber(request: string, number: number): string {
  return request.replace(/^CSeq:[^\r\n]*/mi, `CSeq: ${number}`);
}

function withUri(request: string, uri: string): string {
  return request.replace(uriOf(request), () => uri);
}

/** The channels of a track for ffmpeg. */
function channelsOf(transport: string | null, request: SentRequest): string {
  if (request.track === null) return interleavedChannels(transport, request);
  request.track.accept(transport ?? "");
  return request.track.channels;
}

/** Requests without whose answer there is no media. */
const NEEDED: ReadonlySet<string> = new Set(["DESCRIBE", "SETUP", "PLAY"]);

function refusalOf(method: string, code: number): string {
  if (code === 401) return `its server asks for a user name and a password (401 to ${method})`;
  const words = CODES[code];
  return `its server does not give it out: it answers ${method} with ${code}${words ? ` (${words})` : ""}`;
}

/** What a server means that refuses, by the status (RFC 2326, section 7.1.1). */
const CODES: Readonly<Record<number, string>> = {
  ...{ 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed" },
  ...{ 406: "Not Acceptable", 408: "Request Timeout", 415: "Unsupported Media Type" },
  ...{ 451: "Parameter Not Understood", 453: "Not Enough Bandwidth", 454: "Session Not Found" },
  ...{ 455: "Method Not Valid in This State", 457: "Invalid Range", 459: "Aggregate Not Allowed" },
  ...{ 460: "Only Aggregate Allowed", 500: "Internal Server Error", 501: "Not Implemented" },
  ...{ 503: "Service Unavailable", 551: "Option Not Supported" },
};

/** Why a server ends the connection, by what it asked before. */
const FAREWELLS: Readonly<Record<string, string>> = {
  REDIRECT: REDIRECTS,
  TEARDOWN: "its server ended the session",
};

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

/** Passes bytes on; pauses reading `from` while the buffer of `to` is full. */
function pass(from: Socket, to: Socket, bytes: Uint8Array): void {
  if (to.destroyed || to.write(bytes)) return;
  from.pause();
  to.once("drain", () => from.resume());
}
