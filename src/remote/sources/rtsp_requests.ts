/** What ffmpeg says to an RTSP server, read piece by piece: its requests, and the reports on the media
 * between them.
 */

import { joinedBytes } from "../../base/bytes.ts";

export type RtspMessage =
  | { readonly kind: "request"; readonly method: string; readonly text: string }
  /** An interleaved frame, with its header of four bytes. */
  | { readonly kind: "frame"; readonly bytes: Uint8Array };

/** Reads requests. They have no body, as ffmpeg only plays. */
export class RtspRequests {
  #held = new Uint8Array();

  /** The messages that are whole with the next bytes. Throws on what is no RTSP. */
  take(received: Uint8Array): RtspMessage[] {
    const bytes = this.#held.length === 0 ? received : joinedBytes(this.#held, received);
    const messages: RtspMessage[] = [];
    let at = 0;
    while (at < bytes.length) {
      const end = bytes[at] === DOLLAR ? frameEnd(bytes, at) : requestEnd(bytes, at);
      if (end === -1 || end > bytes.length) break;
      const part = bytes.slice(at, end);
      messages.push(part[0] === DOLLAR ? { kind: "frame", bytes: part } : requestOf(LATIN1.decode(part)));
      at = end;
    }
    this.#held = bytes.slice(at);
    if (this.#held.length > HELD_BYTES_MAX) throw new Error("a request that does not end");
    return messages;
  }
}

const LATIN1 = new TextDecoder("latin1");
const DOLLAR = 0x24;
const HELD_BYTES_MAX = 128 * 1024;

function frameEnd(bytes: Uint8Array, at: number): number {
  return bytes.length - at < 4 ? -1 : at + 4 + bytes[at + 2]! * 256 + bytes[at + 3]!;
}

function requestEnd(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(0x0a, from); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (at - from >= 3 && bytes[at - 1] === 0x0d && bytes[at - 2] === 0x0a && bytes[at - 3] === 0x0d) {
      return at + 1;
    }
  }
  return -1;
}

function requestOf(text: string): RtspMessage {
  const [first, method, uri] = /^([A-Z_]+) ([^\r\n]+) RTSP\/1\.0(?=\r\n)/.exec(text) ?? [];
  if (first === undefined) throw new Error("something that is no request");
  // The address of a track is as the description has it, with blanks behind it.
  return {
    kind: "request",
    method: method!,
    text: `${method} ${uri!.trim()} RTSP/1.0${text.slice(first.length)}`,
  };
}

/** The address in a request; there may be blanks in it. */
export function uriOf(request: string): string {
  return request.slice(request.indexOf(" ") + 1, request.indexOf(" RTSP/1.0"));
}
