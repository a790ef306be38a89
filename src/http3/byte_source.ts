/** The bytes of one stream in their order, of which a reader takes as many as it needs. */

import { joinedBytes } from "../base/bytes.ts";

/** Reads the next piece, of at most `sizeBytes`; null at the end of the stream. */
export type ReadPiece = (sizeBytes: number) => Promise<Uint8Array | null>;

/** A request without a body comes in one piece of this size. Memory for it is taken for every stream that is open. */
const FIRST_PIECE_BYTES = 2048;

export class ByteSource {
  readonly #read: ReadPiece;
  #piece: Uint8Array = new Uint8Array();
  #at = 0;
  /** How much to ask for at once. */
  pieceBytes = FIRST_PIECE_BYTES;

  constructor(read: ReadPiece) {
    this.#read = read;
  }

  /** How many bytes were read and not taken. */
  get unread(): number {
    return this.#piece.length - this.#at;
  }

  /** The next byte, which is unread. */
  get first(): number {
    return this.#piece[this.#at]!;
  }

  /** Reads until `count` bytes are unread: false where the stream ends before that. */
  async reach(count: number): Promise<boolean> {
    while (this.unread < count) {
      const piece = await this.#read(Math.max(this.pieceBytes, count - this.unread));
      if (piece === null) return false;
      this.#piece = this.unread === 0 ? piece : joinedBytes(this.#piece.subarray(this.#at), piece);
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
}
