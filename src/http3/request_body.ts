/** The body of a request: the DATA frames of its stream, read as fast as the service takes them. */

import { PieceCount } from "../sharing/piece_count.ts";
import { LIMITS } from "../contract/limits.ts";
import { RequestFault } from "./wire/faults.ts";
import { FRAME, type FrameReader, isUnknown, unexpected } from "./wire/frames.ts";
import { decodeFields } from "./qpack/field_decoder.ts";
import { checkTrailers } from "./request_head.ts";

/** Of a body that comes fast. A larger piece needs fewer turns of the event loop. */
const PIECE_BYTES = 64 * 1024;

export class RequestBody {
  readonly #frames: FrameReader;
  /** As declared; null where it is not. */
  readonly #expectedBytes: number | null;
  #receivedBytes = 0;
  /** Of the DATA frame that was begun. */
  #leftBytes = 0;
  /** Of frames, whatever is in them. */
  readonly #count = new PieceCount({
    bytesMin: LIMITS.body.pieceBytesMin,
    smallMax: LIMITS.body.smallPiecesMax,
  });
  #hasTrailers = false;
  #hasEnded = false;
  #reading: Promise<Uint8Array | null> | undefined;

  constructor(frames: FrameReader, expectedBytes: number | null) {
    this.#frames = frames;
    this.#expectedBytes = expectedBytes;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What a handler reads. A piece is read from the connection when the handler asks for one. `onFault` gets what else ends it. */
  stream(onFault: (error: unknown) => void): ReadableStream<Uint8Array<ArrayBuffer>> {
    this.#frames.source.pieceBytes = PIECE_BYTES;
    this.#frames.source.reusesMemory = true;
    let isCancelled = false;
    return new ReadableStream({
      type: "bytes",
      autoAllocateChunkSize: PIECE_BYTES,
      pull: async (controller) => {
        try {
          const length = await this.#fill(room(controller));
          if (isCancelled) return; // by a handler that has waited for this piece for too long
          if (length === 0) controller.close();
          controller.byobRequest!.respond(length);
        } catch (error) {
          controller.error(error);
          onFault(error);
        }
      },
      cancel: () => void (isCancelled = true),
    }, { highWaterMark: 0 });

    function room({ byobRequest }: ReadableByteStreamController): Uint8Array<ArrayBuffer> {
      return byobRequest!.view as Uint8Array<ArrayBuffer>;
    }
  }

  /** Copies the next bytes to `room`, those of several frames where they are there already: how many; 0 at the end. */
  async #fill(room: Uint8Array<ArrayBuffer>): Promise<number> {
    let filled = 0;
    do {
      const piece = await this.next(room.length - filled);
      if (piece === null) break;
      room.set(piece, filled);
      filled += piece.length;
    } while (filled < room.length && this.#frames.source.unread > 0);
    return filled;
  }

  /** The next piece; null at the end. Throws a fault, or what reading the stream throws. */
  next(bytesMax = Infinity): Promise<Uint8Array | null> {
    return this.#reading = this.#reading === undefined
      ? this.#next(bytesMax)
      : this.#reading.then(() => this.#next(bytesMax));
  }

  /** Reads and drops the rest, up to so many bytes. */
  async drop(bytesMax: number): Promise<void> {
    for (let left = bytesMax; left > 0 && !this.#hasEnded;) {
      const piece = await this.next();
      left -= piece?.length ?? 0;
    }
  }

  async #next(bytesMax: number): Promise<Uint8Array | null> {
    while (this.#leftBytes === 0) {
      if (this.#hasEnded) return null;
      const head = await this.#frames.next();
      if (head !== null && !this.#count.add(head.type === FRAME.DATA ? head.length : 0)) {
        throw new RequestFault(
          400,
          `The body comes in frames that are too small: of less than ${LIMITS.body.pieceBytesMin} bytes`,
        );
      }
      if (head === null) {
        this.#hasEnded = true;
        if (this.#expectedBytes !== null && this.#receivedBytes !== this.#expectedBytes) throw wrongLength();
      } else if (head.type === FRAME.DATA && !this.#hasTrailers) {
        this.#leftBytes = head.length;
        const received = this.#receivedBytes += head.length;
        if (this.#expectedBytes !== null && received > this.#expectedBytes) throw wrongLength();
      } else if (head.type === FRAME.HEADERS && !this.#hasTrailers) {
        this.#hasTrailers = true;
        if (head.length > LIMITS.http3.fieldSectionBytes) {
          throw new RequestFault(431, "The trailers are too long");
        }
        checkTrailers(decodeFields(await this.#frames.whole(head), LIMITS.http3.fieldSectionBytes));
      } else if (isUnknown(head)) await this.#frames.skip(head);
      else throw unexpected(head, "stands in a request");
    }
    const piece = await this.#frames.part(Math.min(this.#leftBytes, bytesMax));
    this.#leftBytes -= piece.length;
    return piece;
  }
}

function wrongLength(): RequestFault {
  return new RequestFault(400, "The body is not as long as declared");
}
