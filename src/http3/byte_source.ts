/** The bytes of one stream in their order, of which a reader takes as many as it needs. */

import { joinedBytes } from "../base/bytes.ts";
import { readVarint, varintLength } from "./varint.ts";

/** A request without a body comes in one piece of this size. Memory for it is taken for every stream that is open. */
const FIRST_PIECE_BYTES = 2048;

const NO_BYTES = new Uint8Array();

export class ByteSource {
  readonly #reader: ReadableStreamBYOBReader;
  #piece = NO_BYTES;
  #at = 0;
  #hasEnded = false;
  #stopped: Error | undefined;
  /** How much to ask for at once. */
  pieceBytes = FIRST_PIECE_BYTES;
  /** Whether each piece is read into the memory of the one before, so that nobody may keep what is taken. */
  reusesMemory = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader({ mode: "byob" });
  }

  /** How many bytes were read and not taken. */
  get unread(): number {
    return this.#piece.length - this.#at;
  }

  /** How many bytes the next varint has, as far as is known: 1 where nothing is unread. */
  get varintBytes(): number {
    return this.unread === 0 ? 1 : varintLength(this.#piece[this.#at]!);
  }

  /** Takes the next varint; undefined where not all of it is unread. */
  varint(): number | undefined {
    const length = this.varintBytes;
    if (this.unread < length) return undefined;
    const value = readVarint(this.#piece, this.#at);
    this.#at += length;
    return value;
  }

  /** Reads until `count` bytes are unread: false where the stream ends before that. Throws what it was stopped with. */
  async reach(count: number): Promise<boolean> {
    while (this.unread < count) {
      const { done, value } = await this.#reader.read(this.#room(count));
      if (this.#stopped !== undefined) throw this.#stopped;
      if (done) {
        this.#hasEnded = true;
        return false;
      }
      this.#piece = this.unread === 0 ? value : joinedBytes(this.#piece.subarray(this.#at), value);
      this.#at = 0;
    }
    return true;
  }

  /** The next bytes, at most `count` and no more than are unread: a view, not a copy. */
  take(count: number): Uint8Array {
    const taken = this.#piece.subarray(this.#at, this.#at + count);
    this.#at += taken.length;
    return taken;
  }

  /** Reads no further: who waits for bytes gets `reason`. */
  stop(reason: Error): void {
    if (this.#hasEnded || this.#stopped !== undefined) return;
    this.#stopped = reason;
    this.#reader.cancel().catch(() => {});
  }

  #room(count: number): Uint8Array<ArrayBuffer> {
    const { buffer } = this.#piece;
    if (this.reusesMemory && this.unread === 0 && buffer.byteLength >= count) {
      this.#piece = NO_BYTES; // as the reader takes its memory away
      this.#at = 0;
      return new Uint8Array(buffer);
    }
    return new Uint8Array(Math.max(this.pieceBytes, count - this.unread));
  }
}
