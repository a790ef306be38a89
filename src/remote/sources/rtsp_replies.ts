/** What an RTSP server may say to ffmpeg: its replies are read strictly and written anew, its media passes unchanged. */

import { joinedBytes } from "../../base/bytes.ts";

/** The server's words are not passed on, and the connection must end. The message names the reason. */
export class RtspRefused extends Error {
  override readonly name = "RtspRefused";
}

/**
 * The bytes of one connection from the server, in order. ffmpeg reads replies loosely (`RTSP/1.0<tab>302` is a redirect for
 * it, a line that begins with `$` is media), so nothing that a server wrote reaches it as it was written, except the
 * payload of interleaved frames and the bodies of replies, whose lengths are counted here:
 *
 * ```
 *   $ channel length payload                →  the same bytes; nothing of a payload below 8 bytes
 *   RTSP/1.0 200 OK + headers + body        →  RTSP/1.0 200 OK, the headers of the list, the body; one for each request
 *   everything else                         →  RtspRefused
 * ```
 *
 * With no redirect, no `Location` and no request of the server left, ffmpeg has no reason to connect to anything else.
 */
export class RtspReplies {
  /** Bytes of the interleaved frame or body that are still to come, and pass unchanged. */
  #passing = 0;
  /** The start of a reply or of a frame's header that is not complete. */
  #held = new Uint8Array();
  /** How many of them were searched for the end of the reply, so that each byte is looked at once. */
  #searched = 0;
  #shortFrames = 0;
  /** Requests that are not answered. */
  #open = 0;
  /** Bytes of a body that are still to come, and do not pass. */
  #dropping = 0;
  readonly #isAsked: (reply: RtspReply) => boolean;
  readonly #transport: (transport: string) => string;

  /**
   * A reply for which `isAsked` is true does not pass: its request is sent again. `transport` says what ffmpeg gets as the
   * transport of a reply, or throws `RtspRefused`.
   */
  constructor(
    isAsked: (reply: RtspReply) => boolean = () => false,
    transport: (transport: string) => string = interleaved,
  ) {
    this.#isAsked = isAsked;
    this.#transport = transport;
  }

  /** Whether ffmpeg has a part of a body and waits for the rest: nothing may be put in between. */
  get isWithinBody(): boolean {
    return this.#passing > 0;
  }

  /** ffmpeg has sent this many more requests: a reply that answers none is refused, so that nobody has to read a flood of them. */
  requested(count: number): void {
    this.#open += count;
  }

  /** What ffmpeg may read of the next bytes. */
  take(received: Uint8Array): Uint8Array[] {
    const bytes = this.#held.length === 0 ? received : joinedBytes(this.#held, received);
    const passed: Uint8Array[] = [];
    let at = 0;
    /** Frames from here on pass in one piece. */
    let from = 0;
    let searched = this.#searched;
    this.#searched = 0;
    while (at < bytes.length) {
      if (this.#passing > 0) {
        const count = Math.min(this.#passing, bytes.length - at);
        this.#passing -= count;
        at += count;
        continue;
      }
      if (this.#dropping > 0) {
        const count = Math.min(this.#dropping, bytes.length - at);
        this.#dropping -= count;
        from = at += count;
        continue;
      }
      if (bytes[at] === DOLLAR) {
        if (bytes.length - at < FRAME_HEADER_BYTES) break;
        const payloadBytes = bytes[at + 2]! * 256 + bytes[at + 3]!;
        if (payloadBytes >= PAYLOAD_BYTES_MIN) {
          this.#passing = FRAME_HEADER_BYTES + payloadBytes;
          continue;
        }
        if (++this.#shortFrames > SHORT_FRAMES_MAX) {
          throw new RtspRefused("its server sends frames without media");
        }
        const frameEnd = at + FRAME_HEADER_BYTES + payloadBytes;
        if (frameEnd > bytes.length) break;
        if (at > from) passed.push(bytes.subarray(from, at));
        at = frameEnd;
        from = frameEnd;
        continue;
      }
      const end = headEnd(bytes, at, searched);
      searched = 0;
      if (end === -1) {
        this.#searched = bytes.length - at;
        break;
      }
      if (at > from) passed.push(bytes.subarray(from, at));
      if (this.#open-- <= 0) throw new RtspRefused("its server answers what nobody asked");
      const { head, bodyBytes, ...reply } = rewritten(
        LATIN1.decode(bytes.subarray(at, end)),
        this.#transport,
      );
      if (this.#isAsked(reply)) {
        this.#open++;
        this.#dropping = bodyBytes;
      } else {
        passed.push(new TextEncoder().encode(head));
        this.#passing = bodyBytes;
      }
      at = end;
      from = end;
    }
    if (at > from) passed.push(bytes.subarray(from, at));
    this.#held = bytes.slice(at);
    return passed;
  }
}

const LATIN1 = new TextDecoder("latin1");
const DOLLAR = 0x24;
const FRAME_HEADER_BYTES = 4;
/** An RTCP packet has 8 bytes. Of shorter frames ffmpeg reads the header and takes the payload for the server's words. */
const PAYLOAD_BYTES_MIN = 8;
/** Short frames of one connection. They are left out, so a server that sends them is not held back by ffmpeg. */
const SHORT_FRAMES_MAX = 1000;
const HEAD_BYTES_MAX = 16 * 1024;
/** A description has some kilobytes. */
const BODY_BYTES_MAX = 256 * 1024;

/** Where the head of a reply ends, after its empty line; -1 when that has not come. It is not among the bytes searched. */
function headEnd(bytes: Uint8Array, from: number, searched: number): number {
  for (let at = from + searched; at < bytes.length; at++) {
    if (at - from >= HEAD_BYTES_MAX) throw new RtspRefused("its server's answer is too long");
    if (bytes[at] !== 0x0a) continue;
    // A line feed of its own would end a line for ffmpeg.
    if (bytes[at - 1] !== 0x0d || at === from) throw new RtspRefused(NOT_RTSP);
    if (bytes[at - 2] === 0x0a && at - 2 >= from) return at + 1;
  }
  return -1;
}

const NOT_RTSP = "its server does not answer in RTSP";

/** What a reply says of the credentials. */
export interface RtspReply {
  readonly code: number;
  /** The values of `WWW-Authenticate`. */
  readonly challenges: readonly string[];
}

/** The head of a reply as ffmpeg gets it, and the length of the body that follows. */
function rewritten(
  head: string,
  transport: (transport: string) => string,
): RtspReply & { head: string; bodyBytes: number } {
  const [first = "", ...lines] = head.slice(0, -4).split("\r\n");
  const code = Number(STATUS_LINE.exec(first)?.[1] ?? NaN);
  if (code >= 300 && code < 400) throw new RtspRefused("its server redirects to another place");
  if (!CODES.has(code)) throw new RtspRefused(NOT_RTSP);
  // A server may name the transports that it has when it refuses one.
  const isKept = (name: string) => HEADERS.has(name) && (name !== "transport" || code === 200);
  const headers = lines.map(headerOf).filter(([name]) => isKept(name));
  const single = (name: string) => {
    const values = headers.filter((header) => header[0] === name).map(([, value]) => value);
    if (values.length > 1 && name !== "www-authenticate") throw new RtspRefused(NOT_RTSP);
    return values[0];
  };
  for (const [name] of headers) single(name);
  const length = single("content-length") ?? "0";
  const bodyBytes = /^\d{1,9}$/.test(length) ? Number(length) : NaN;
  if (!(bodyBytes <= BODY_BYTES_MAX)) {
    throw new RtspRefused("the length of its server's answer is not a small number");
  }
  const kept = headers.map(([name, value]) =>
    `${HEADERS.get(name)}: ${name === "transport" ? transport(value) : value}\r\n`
  );
  const challenges = headers.filter(([name]) => name === "www-authenticate").map(([, value]) => value);
  const passed = `RTSP/1.0 ${code} ${code === 200 ? "OK" : "Refused"}\r\n${kept.join("")}\r\n`;
  return { head: passed, bodyBytes, code, challenges };
}

const STATUS_LINE = /^RTSP\/1\.0 ([1-9]\d\d)(?: [\x20-\x7e]*)?$/;

/** RFC 2326, section 7.1.1: what a server answers to a client that only plays. */
const CODES: ReadonlySet<number> = new Set([
  ...[200, 400, 401, 402, 403, 404, 405, 406, 408, 410, 412, 413, 414, 415],
  ...[451, 452, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462, 500, 501, 502, 503, 504, 505, 551],
]);

/** What ffmpeg needs to play, by the lower-case name. `Location` is not among it, and nothing that names a kind of server. */
const HEADERS: ReadonlyMap<string, string> = new Map(
  [
    ...["CSeq", "Content-Base", "Content-Length", "Content-Type", "Public", "Range", "RTP-Info", "Session"],
    ...["Transport", "WWW-Authenticate"],
  ].map((name) => [name.toLowerCase(), name]),
);

/** The transport that ffmpeg asks for, without the addresses in it: ffmpeg never opens another connection for the media. */
export function interleaved(transport: string): string {
  const channels = /^RTP\/AVP\/TCP(?:;[^;,]*)*?;interleaved=(\d{1,3}(?:-\d{1,3})?)(?:;[^;,]*)*$/i.exec(
    transport,
  )?.[1];
  if (channels === undefined) {
    throw new RtspRefused("its server does not send the media inside the connection");
  }
  return `RTP/AVP/TCP;unicast;interleaved=${channels}`;
}

function headerOf(line: string): [name: string, value: string] {
  const [, name, value] = /^([A-Za-z][\w-]{0,63})[ \t]*:[ \t]*([\x20-\x7e\x80-\xff\t]*)$/.exec(line) ?? [];
  if (name === undefined) throw new RtspRefused(NOT_RTSP);
  return [name.toLowerCase(), value!.trim()];
}
