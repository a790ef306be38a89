/** What an RTSP server may say to ffmpeg: it is read loosely, and what ffmpeg needs of it is written anew. */

import { joinedBytes } from "../../base/bytes.ts";
import {
  leadingNumber,
  numberPair,
  type RtspHeaders,
  rtspHeaders,
  rtspSession,
  type RtspStart,
  rtspStart,
  rtspTransports,
} from "../../model/sources/rtsp_head.ts";

/**
 * The error of a server whose words are not passed on, after which the connection must end. The message names
 * the reason.
 */
export class RtspRefused extends Error {
  override readonly name = "RtspRefused";
}

/** A request that a server is to answer. */
export interface RtspRequest {
  readonly method: string;
  /** The address as it was sent to the server. */
  readonly uri: string;
  /** The number by which ffmpeg knows the answer. */
  readonly cseq: string;
  /** The channels that ffmpeg has asked for a track: `0-1`. */
  readonly channels: string;
}

/** What a server says of a request. */
export interface RtspReply {
  readonly code: number;
  /** The values of `WWW-Authenticate`. */
  readonly challenges: readonly string[];
}

/** What a server asks of a client. */
export interface RtspServerRequest {
  readonly method: string;
  /** The number of the request; null where it has none. */
  readonly cseq: number | null;
  readonly session: string | null;
  readonly hasBody: boolean;
}

export interface RtspRepliesOptions<Request extends RtspRequest> {
  /** The present time, on the monotonic clock. */
  readonly nowMs: () => number;
  /** Whether the request is sent again, so that its reply does not pass. May throw `RtspRefused`. */
  readonly isAskedAgain?: (reply: RtspReply, request: Request) => boolean;
  /**
   * The channels of a track for ffmpeg as `0-1`, for what the server says of its transport, null where it
   * says nothing. Or throws `RtspRefused`.
   */
  readonly channels?: (transport: string | null, request: Request) => string;
  /** Called with each description, before it passes. */
  readonly onDescription?: (description: string) => void;
  readonly onRequest?: (request: RtspServerRequest) => void;
}

/**
 * The bytes of one connection from the server, in order. ffmpeg reads replies in ways of its own
 * (`RTSP/1.0<tab>302` is a redirect for it, a line that begins with `$` is media), so nothing that a server
 * wrote reaches it as it was written, except the payload of interleaved frames and the bodies of
 * descriptions, whose lengths are counted here:
 *
 * ```
 *   $ channel length payload                →  the same bytes; nothing of a payload below 8 bytes
 *   RTSP/1.0 200 OK + headers + body        →  RTSP/1.0 200 OK, the headers of the list, a description; one for each request
 *   OPTIONS, ANNOUNCE … of the server       →  nothing: `onRequest` may answer
 *   redirects, other transports             →  RtspRefused
 *   everything else                         →  nothing; RtspRefused before the first reply, and where too much of it comes
 * ```
 *
 * With no redirect, no `Location` and no request of the server left, ffmpeg has no reason to connect to
 * anything else.
 */
export class RtspReplies<Request extends RtspRequest = RtspRequest> {
  readonly #options: RtspRepliesOptions<Request>;
  /** Bytes of the interleaved frame that are still to come, and pass unchanged. */
  #passing = 0;
  /** The start of a line or of a frame's header that is not complete. */
  #held = new Uint8Array();
  /** How many bytes of `#held` were searched for the end of the line, so that each byte is looked at once. */
  #searched = 0;
  /** The lines of the head that is being read, first the start line; empty between messages. */
  #lines: string[] = [];
  #headBytes = 0;
  /** The body of the message whose head was read last; null between messages. */
  #body: Body | null = null;
  /** Whether the server has said something in RTSP. What else it says is left out from then on. */
  #isRtsp = false;
  #hasMedia = false;
  /** Whether the place of the next message is not known, so that it must be searched. */
  #isLost = false;
  /** Requests that are not answered, by the numbers under which they were sent. */
  readonly #open = new Map<number, Request>();
  /** What the last reply said, but for its number. */
  #lastReply = "";
  readonly #channels = new Set<number>();
  readonly #noise: Noise;

  constructor(options: RtspRepliesOptions<Request>) {
    this.#options = options;
    this.#noise = new Noise(options.nowMs);
  }

  /** Whether ffmpeg has a part of a frame and waits for the rest: nothing may be put in between. */
  get isWithinFrame(): boolean {
    return this.#passing > 0;
  }

  /** Notes that the request was sent under this number, which is greater than all before. */
  requested(request: Request, number: number): void {
    this.#open.set(number, request);
    if (this.#open.size > UNANSWERED_MAX) this.#open.delete(this.#open.keys().next().value!);
  }

  /** What ffmpeg may read of the next bytes. */
  take(received: Uint8Array): Uint8Array[] {
    const bytes = this.#held.length === 0 ? received : joinedBytes(this.#held, received);
    const passed: Uint8Array[] = [];
    let at = 0;
    /** Where the frames begin that pass in one piece. */
    let from = 0;
    /** Leaves out the bytes from `at` to `end`; the frames before `at` pass. */
    const skipTo = (end: number) => {
      if (at > from) passed.push(bytes.subarray(from, at));
      from = at = end;
    };
    let searched = this.#searched;
    this.#searched = 0;
    while (at < bytes.length) {
      if (this.#passing > 0) {
        const count = Math.min(this.#passing, bytes.length - at);
        this.#passing -= count;
        at += count;
        continue;
      }
      if (this.#body !== null) {
        const count = Math.min(this.#body.leftBytes, bytes.length - at);
        const piece = bytes.subarray(at, at + count);
        skipTo(at + count);
        passed.push(...this.#takeBody(piece));
        continue;
      }
      if (this.#isLost) {
        const next = nextMessage(bytes, at, this.#channels);
        if (next.at > at) this.#noise.heard(next.at - at);
        skipTo(next.at);
        if (next.isCut) break;
        this.#isLost = false;
        continue;
      }
      if (bytes[at] === DOLLAR) {
        if (bytes.length - at < FRAME_HEADER_BYTES) break;
        const payloadBytes = bytes[at + 2]! * 256 + bytes[at + 3]!;
        if (payloadBytes >= PAYLOAD_BYTES_MIN) {
          this.#noise.mediaCame();
          this.#hasMedia = true;
          this.#passing = FRAME_HEADER_BYTES + payloadBytes;
          continue;
        }
        const frameEnd = at + FRAME_HEADER_BYTES + payloadBytes;
        if (frameEnd > bytes.length) break;
        this.#noise.heardShortFrame(frameEnd - at);
        skipTo(frameEnd);
        continue;
      }
      const isStart = this.#lines.length === 0;
      const line = lineAt(bytes, at, { searched, bytesMax: HEAD_BYTES_MAX - this.#headBytes, isStart });
      searched = 0;
      if (line === "cut") {
        this.#searched = bytes.length - at;
        break;
      }
      if (line === "binary") {
        if (!this.#isRtsp) throw new RtspRefused(NOT_RTSP);
        this.#noise.heard(1);
        skipTo(at + 1);
        this.#isLost = true;
        continue;
      }
      skipTo(line.end);
      passed.push(...this.#takeLine(line.text, line.bytes));
    }
    if (at > from) passed.push(bytes.subarray(from, at));
    this.#held = bytes.slice(at);
    return passed;
  }

  #takeLine(text: string, bytes: number): Uint8Array[] {
    if (this.#lines.length > 0) {
      this.#headBytes += bytes;
      if (text !== "") {
        this.#lines.push(text);
        return [];
      }
      const [first = "", ...lines] = this.#lines;
      this.#lines = [];
      return this.#takeHead(rtspStart(first)!, rtspHeaders(lines, READ_HEADERS));
    }
    if (rtspStart(text) !== null) {
      this.#lines = [text];
      this.#headBytes = bytes;
    } else if (text.trim() === "" || this.#isRtsp && (this.#hasMedia || isRest(text))) {
      this.#noise.heard(bytes);
    } else throw new RtspRefused(NOT_RTSP);
    return [];
  }

  #takeHead(start: RtspStart, headers: RtspHeaders): Uint8Array[] {
    this.#isRtsp = true;
    const bodyBytes = leadingNumber(headers.get("content-length")) ?? 0;
    if (bodyBytes > BODY_BYTES_MAX) {
      throw new RtspRefused("the length of its server's answer is not a small number");
    }
    const dropped: Body = { leftBytes: bodyBytes, pieces: [], whole: null };
    this.#body = dropped;
    if (start.kind === "request") {
      this.#noise.heard(bodyBytes);
      this.#options.onRequest?.({
        method: start.method,
        cseq: leadingNumber(headers.get("cseq")),
        session: rtspSession(headers.get("session")?.at(-1))?.name ?? null,
        hasBody: bodyBytes > 0,
      });
      return this.#takeBody(NOTHING);
    }
    const { code } = start;
    if (code >= 300 && code < 400) throw new RtspRefused(REDIRECTS);
    const request = code < 200 ? null : this.#answered(code, headers);
    if (request === null) {
      this.#noise.heard(bodyBytes);
      return this.#takeBody(NOTHING);
    }
    const challenges = headers.get("www-authenticate") ?? [];
    if (this.#options.isAskedAgain?.({ code, challenges }, request)) return this.#takeBody(NOTHING);
    if (request.method === "DESCRIBE" && code < 300 && bodyBytes > 0) {
      const whole = (body: Uint8Array) => {
        this.#options.onDescription?.(LATIN1.decode(body));
        return [this.#written(code, headers, request, body), body];
      };
      this.#body = { leftBytes: bodyBytes, pieces: [], whole };
    } else this.#body = { ...dropped, whole: () => [this.#written(code, headers, request)] };
    return this.#takeBody(NOTHING);
  }

  /** What passes with the next bytes of the body. */
  #takeBody(piece: Uint8Array): Uint8Array[] {
    const body = this.#body!;
    body.leftBytes -= piece.length;
    if (body.whole !== null) body.pieces.push(piece.slice());
    if (body.leftBytes > 0) return [];
    this.#body = null;
    return body.whole?.(joinedBytes(...body.pieces)) ?? [];
  }

  /**
   * The request that a reply is for; null where it answers none. Some servers count in their own way, so
   * there the order of the replies decides.
   */
  #answered(code: number, headers: RtspHeaders): Request | null {
    const stated = leadingNumber(headers.get("cseq"));
    const said = JSON.stringify([code, ...[...headers].filter(([name]) => name !== "cseq")]);
    const isAgain = said === this.#lastReply;
    const oldest = this.#open.keys().next().value;
    if (oldest === undefined) return null;
    // The second answer to a request that was answered.
    if (stated !== null && stated > 0 && stated < oldest && isAgain) return null;
    const number = stated !== null && this.#open.has(stated) ? stated : oldest;
    const request = this.#open.get(number)!;
    for (const one of this.#open.keys()) if (one <= number) this.#open.delete(one);
    this.#lastReply = said;
    return request;
  }

  /** A reply as ffmpeg gets it; without the body, of which it has the length. */
  #written(code: number, headers: RtspHeaders, request: Request, body: Uint8Array = NOTHING): Uint8Array {
    const { method, cseq } = request;
    // Nothing needs the answer to it, and some servers have none.
    if (method === "OPTIONS" && code >= 400) return head(200, { "CSeq": cseq, "Public": PUBLIC });
    const isFine = code < 300;
    const last = (name: string) => headers.get(name)?.at(-1) || null;
    const session = rtspSession(headers.get("session")?.at(-1));
    const timeoutS = session?.timeoutS ?? 0;
    const timeout = timeoutS > 0
      ? `;timeout=${Math.min(TIMEOUT_S.max, Math.max(TIMEOUT_S.min, timeoutS))}`
      : "";
    return head(isFine ? 200 : CODES.has(code) ? code : code < 500 ? 400 : 500, {
      "CSeq": cseq,
      "Session": session && session.name + timeout,
      "Public": headers.get("public")?.join(", ") ?? null,
      "Transport": isFine && method === "SETUP" ? this.#transport(headers, request) : null,
      "Content-Base": method === "DESCRIBE" ? baseOf(last("content-base"), request) : null,
      "Content-Type": body.length > 0 ? last("content-type") : null,
      "Range": last("range"),
      "RTP-Info": headers.get("rtp-info")?.join(",") ?? null,
      "Content-Length": body.length > 0 ? String(body.length) : null,
    });
  }

  #transport(headers: RtspHeaders, request: Request): string {
    const stated = [...new Set(headers.get("transport") ?? [])].join(",").trim() || null;
    const channels = (this.#options.channels ?? interleavedChannels)(stated, request);
    for (const channel of channels.split("-")) this.#channels.add(Number(channel));
    return `RTP/AVP/TCP;unicast;interleaved=${channels}`;
  }
}

/** The body of the message whose head was read. */
interface Body {
  leftBytes: number;
  readonly pieces: Uint8Array[];
  /** What passes when the body is complete; null for a body that does not pass. */
  readonly whole: ((body: Uint8Array) => Uint8Array[]) | null;
}

/**
 * Counts what comes between messages and does not pass. It is bounded by time, as nobody holds its sender
 * back.
 */
class Noise {
  readonly #nowMs: () => number;
  #sinceMs = -Infinity;
  #messages = 0;
  #bytes = 0;
  /** Since when only frames without media have come; null while there are none, and while media comes. */
  #emptySinceMs: number | null = null;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  heard(bytes: number): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#sinceMs > NOISE_WINDOW_MS) {
      [this.#sinceMs, this.#messages, this.#bytes] = [nowMs, 0, 0];
    }
    this.#messages++;
    this.#bytes += bytes;
    if (this.#messages > NOISE_MESSAGES_MAX || this.#bytes > NOISE_BYTES_MAX) {
      throw new RtspRefused("its server sends too much that is neither media nor an answer");
    }
  }

  heardShortFrame(bytes: number): void {
    this.heard(bytes);
    const nowMs = this.#nowMs();
    this.#emptySinceMs ??= nowMs;
    if (nowMs - this.#emptySinceMs > EMPTY_MS) throw new RtspRefused("its server sends frames without media");
  }

  mediaCame(): void {
    this.#emptySinceMs = null;
  }
}

const LATIN1 = new TextDecoder("latin1");
const NOTHING = new Uint8Array();
const DOLLAR = 0x24;
const FRAME_HEADER_BYTES = 4;
/**
 * The shortest payload that is passed on: an RTCP packet has 8 bytes. Of a shorter frame ffmpeg reads the
 * header and takes the payload for the server's words.
 */
const PAYLOAD_BYTES_MIN = 8;
const HEAD_BYTES_MAX = 16 * 1024;
/** The longest body in bytes; a description has some kilobytes. */
const BODY_BYTES_MAX = 256 * 1024;
/** Requests that may be open: some servers never answer those that keep the session alive. */
const UNANSWERED_MAX = 16;
/**
 * The time in which what is left out is counted. In it no camera sends as much that is left out, and reading
 * so much takes a small part of the thread.
 */
const NOISE_WINDOW_MS = 10_000;
const NOISE_MESSAGES_MAX = 20_000;
const NOISE_BYTES_MAX = 8 * 2 ** 20;
/**
 * How long frames without media may come: ffmpeg gives up after 10 s without media, and does not know the
 * reason.
 */
const EMPTY_MS = 8_000;
/**
 * The range of a session's timeout in seconds. ffmpeg asks for the session after half of it, so with a
 * timeout of one second it would ask all the time.
 */
const TIMEOUT_S = { min: 4, max: 3_600 };

const NOT_RTSP = "its server does not answer in RTSP";
/** The reason where a server names another place. */
export const REDIRECTS = "its server redirects to another place";
const PUBLIC = "OPTIONS, DESCRIBE, SETUP, TEARDOWN, PLAY";

/** Statuses with which a server answers a client that only plays (RFC 2326, section 7.1.1). */
const CODES: ReadonlySet<number> = new Set([
  ...[400, 401, 402, 403, 404, 405, 406, 408, 410, 412, 413, 414, 415],
  ...[451, 452, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462, 500, 501, 502, 503, 504, 505, 551],
]);

/** Headers that are read. `Location` is not one of them, and no header that names a kind of server. */
const READ_HEADERS: ReadonlySet<string> = new Set([
  ...["cseq", "content-base", "content-length", "content-type", "public", "range", "rtp-info", "session"],
  ...["transport", "www-authenticate"],
]);

function head(code: number, headers: Readonly<Record<string, string | null>>): Uint8Array {
  const lines = Object.entries(headers).filter(([, value]) => value !== null).map(([name, value]) =>
    `${name}: ${value}\r\n`
  );
  const text = `RTSP/1.0 ${code} ${code === 200 ? "OK" : "Refused"}\r\n${lines.join("")}\r\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

/**
 * The address for which the addresses of tracks are meant. It may name another host: it goes over the same
 * connection.
 */
function baseOf(stated: string | null, { uri }: RtspRequest): string | null {
  const text = stated?.replace(/^[<"]+|[>"]+$/g, "").trim() ?? "";
  if (text === "") return null;
  if (/^rtsps?:\/\/[^/\s]/i.test(text)) return text;
  return URL.parse(text, uri)?.href ?? null;
}

/**
 * The channels in which the media comes inside the connection: what was asked for where the server does not
 * say them.
 */
export function interleavedChannels(transport: string | null, { channels: asked }: RtspRequest): string {
  if (transport === null) return asked;
  for (const { protocol, parameters } of rtspTransports(transport)) {
    const stated = numberPair(parameters.get("interleaved"), CHANNEL_MAX);
    const isTcp = /^rtp\/[a-z]+\/tcp$/.test(protocol) || stated !== null && /^rtp\/[a-z]+$/.test(protocol);
    // Where the channels are said, the word multicast does not matter.
    if (stated !== null && isTcp) return stated.join("-");
    if (isTcp && !parameters.has("multicast")) return asked;
  }
  throw new RtspRefused("its server does not send the media inside the connection");
}

const CHANNEL_MAX = 255;

type SaidLine = { readonly text: string; readonly bytes: number; readonly end: number };

/**
 * The line that begins at `at`, without its end: a line feed, with or without carriage returns before it.
 * `cut` where the line feed has not come; `binary` where what should start a message is no text. The first
 * `searched` bytes were looked at before, and have no line feed.
 */
function lineAt(
  bytes: Uint8Array,
  at: number,
  { searched, bytesMax, isStart }: {
    readonly searched: number;
    readonly bytesMax: number;
    readonly isStart: boolean;
  },
): SaidLine | "cut" | "binary" {
  for (let place = at + searched; place < bytes.length; place++) {
    if (place - at >= bytesMax) throw new RtspRefused("its server's answer is too long");
    const byte = bytes[place]!;
    if (byte === 0x0a) {
      const text = LATIN1.decode(bytes.subarray(at, place)).replaceAll("\r", "");
      return { text, bytes: place + 1 - at, end: place + 1 };
    }
    if (isStart && !isTextByte(byte, place === at)) {
      const isTold = place - at >= REPLY_BYTES && isReply(bytes.subarray(at, at + REPLY_BYTES));
      if (!isTold) return "binary";
    }
  }
  return "cut";
}

/** Whether a line may be the rest of a description or head whose length was wrong. */
function isRest(line: string): boolean {
  return /^[a-z]=|^[\w-]+\s*:/i.test(line);
}

/** Whether a message may have the byte; it begins with a letter, a blank or an empty line. */
function isTextByte(byte: number, isFirst: boolean): boolean {
  if (byte === 0x0d || byte === 0x09 || byte === 0x20) return true;
  return isFirst ? byte >= 0x41 && byte <= 0x7a : byte > 0x20;
}

/** Whether the bytes begin a reply, or are too few to tell. */
function isReply(bytes: Uint8Array): boolean {
  return [0, 1].some((at) =>
    REPLIES[at]!.every((byte, place) => place >= bytes.length || bytes[place] === byte)
  );
}

/** The bytes with which replies begin. */
const REPLIES = ["RTSP/", "rtsp/"].map((text) =>
  Uint8Array.from(text, (character) => character.charCodeAt(0))
);
const REPLY_BYTES = 5;

/**
 * Where the next reply begins, or a frame that looks like media. `isCut` where the bytes end before it is
 * known, and where there is none at all.
 */
function nextMessage(
  bytes: Uint8Array,
  from: number,
  channels: ReadonlySet<number>,
): { readonly at: number; readonly isCut: boolean } {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === DOLLAR) {
      const [channel, high, low, first] = bytes.subarray(at + 1, at + 5);
      if (first === undefined) return { at, isCut: true };
      // Version 2 of RTP and RTCP.
      if (channels.has(channel!) && high! * 256 + low! >= PAYLOAD_BYTES_MIN && first >> 6 === 2) {
        return { at, isCut: false };
      }
    } else if (isReply(bytes.subarray(at, at + REPLY_BYTES))) {
      return { at, isCut: bytes.length - at < REPLY_BYTES };
    }
  }
  return { at: bytes.length, isCut: true };
}
