/** Frames of HTTP/3 (RFC 9114 7): a type, a length and a payload, read one after another from a stream, or
 * written.
 */

import { joinedBytes } from "../../base/bytes.ts";
import type { ByteSource } from "./byte_source.ts";
import { ConnectionFault } from "./faults.ts";
import { varint } from "./varint.ts";

export const FRAME = {
  DATA: 0x0,
  HEADERS: 0x1,
  CANCEL_PUSH: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  GOAWAY: 0x7,
  MAX_PUSH_ID: 0xd,
  /** The first of the types that mean nothing and that every receiver ignores (RFC 9114 7.2.8). */
  RESERVED: 0x21,
} as const;

/** Types of HTTP/2 that HTTP/3 does not have; they must not be ignored (RFC 9114 7.2.8). */
const TYPES_OF_HTTP2: readonly number[] = [0x2, 0x6, 0x8, 0x9];
const KNOWN_TYPES: readonly number[] = [
  ...Object.values(FRAME).filter((type) => type !== FRAME.RESERVED),
  ...TYPES_OF_HTTP2,
];

/**
 * ```
 *   type (varint) | length (varint) | payload (length bytes)
 * ```
 */
export interface FrameHead {
  readonly type: number;
  readonly length: number;
}

/** Whether a receiver that does not know the type ignores the frame. */
export function isUnknown({ type }: FrameHead): boolean {
  return !KNOWN_TYPES.includes(type);
}

export function unexpected({ type }: FrameHead, where: string): ConnectionFault {
  return new ConnectionFault("H3_FRAME_UNEXPECTED", `a frame of type ${type} ${where}`);
}

/** Reads frames; a stream that ends inside of one is a fault of the connection (RFC 9114 7.1). */
export class FrameReader {
  readonly source: ByteSource;

  constructor(source: ByteSource) {
    this.source = source;
  }

  /**
   * The head of the next frame; null where the stream ends before it. The payload of the frame before was
   * taken or skipped. What was read already comes without a promise: promises would be most of what a frame
   * costs.
   */
  next(): FrameHead | Promise<FrameHead | null> {
    const type = this.source.varint();
    if (type === undefined) return this.#laterNext();
    const length = this.source.varint();
    return length === undefined ? this.#laterLength(type) : { type, length };
  }

  /** The whole payload of a frame. The caller has checked that it is not too long. */
  whole({ length }: FrameHead): Uint8Array | Promise<Uint8Array> {
    return this.source.unread < length ? this.#later(length, length) : this.source.take(length);
  }

  /** The next part of a payload of which `left` bytes, at least one, were not taken yet. */
  part(left: number): Uint8Array | Promise<Uint8Array> {
    return this.source.unread === 0 ? this.#later(1, left) : this.source.take(left);
  }

  async skip({ length }: FrameHead): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.part(left)).length;
  }

  async #laterNext(): Promise<FrameHead | null> {
    const { source } = this;
    if (!await source.reach(1)) return null;
    if (!await source.reach(source.varintBytes)) throw cutShort();
    return this.next();
  }

  async #laterLength(type: number): Promise<FrameHead> {
    const { source } = this;
    if (!await source.reach(1) || !await source.reach(source.varintBytes)) throw cutShort();
    return { type, length: source.varint()! };
  }

  async #later(needed: number, most: number): Promise<Uint8Array> {
    if (!await this.source.reach(needed)) throw cutShort();
    return this.source.take(most);
  }
}

/** The bytes of a frame before its payload. */
export function frameHead(type: number, length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array([...varint(type), ...varint(length)]);
}

/** How many bytes `putFrameHead` writes. */
export const FRAME_HEAD_BYTES = 5;

/**
 * Writes the head of a frame behind which the payload stands already: its length has four bytes, though fewer
 * may be enough.
 */
export function putFrameHead(bytes: Uint8Array, at: number, type: number, length: number): void {
  bytes[at] = type;
  bytes[at + 1] = 0x80 | (length >> 24);
  bytes[at + 2] = length >> 16;
  bytes[at + 3] = length >> 8;
  bytes[at + 4] = length;
}

export function frame(type: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinedBytes(frameHead(type, payload.length), payload);
}

function cutShort(): ConnectionFault {
  return new ConnectionFault("H3_FRAME_ERROR", "a stream ended inside of a frame");
}
