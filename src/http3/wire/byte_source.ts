/** The bytes of one stream in their order, of which a reader takes as many as it needs. */

import { joinedBytes } from "../../base/bytes.ts";
import { readVarint, varintLength } from "./varint.ts";

/** A request without a body comes in one piece of this size. Memory for it is taken for every stream that is open. */
const FIRST_PIECE_BYTES = 2048;

/** 128 KB in all. */
const PIECES_KEPT_MAX = 64;
const NO_BYTES = new Uint8Array();

/**
 * Memory that first pieces were read into, for those to come, as making it takes longer than reading. Nobody sees what was in it before:
 * a piece ends where its own bytes end.
 */
export class PieceMemory {
  readonly #kept: ArrayBuffer[] = [];

  take(): Uint8Array<ArrayBuffer> {
    const kept = this.#kept.pop();
    return kept === undefined ? new Uint8Array(FIRST_PIECE_BYTES) : new Uint8Array(kept);
  }

  giveBack(memory: ArrayBuffer): void {
    if (this.#kept.length < PIECES_KEPT_MAX) this.#kept.push(memory);
  }
}

export class ByteSource {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #memory: PieceMemory;
  #piece = NO_BYTES;
  #at = 0;
  #hasEnded = false;
  #stopped: Error | undefined;
  /** How much to ask for at once. */
  pieceBytes = FIRST_PIECE_BYTES;
  /** Whether each piece is read into the memory of the one before, so that nobody may keep what is taken. */
  reusesMemory = false;

  constructor(stream: ReadableStream<Uint8Array>, memory = new PieceMemory()) {
    this.#reader = stream.getReader({ mode: "byob" });
    this.#memory = memory;
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
        if (this.reusesMemory && value?.buffer.byteLength === FIRST_PIECE_BYTES) {
          this.#memory.giveBack(value.buffer);
        }
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
    if (this.reusesMemory && this.unread === 0 && buffer.byteLength >= Math.max(count, this.pieceBytes)) {
      this.#piece = NO_BYTES; // as the reader takes its memory away
      this.#at = 0;
      return new Uint8Array(buffer);
    }
    const bytes = Math.max(this.pieceBytes, count - this.unread);
    return bytes === FIRST_PIECE_BYTES ? this.#memory.take() : new Uint8Array(bytes);
  }
}
