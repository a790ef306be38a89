/** Bodies that are being received: read in pieces of some size, each within its limits, all within a share of
 * time and memory.
 */

import { Deadlines, timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { PieceCount } from "../../sharing/piece_count.ts";
import { RateLimited } from "../../sharing/rate_limit.ts";
import { ReadingTurns } from "../../sharing/reading_turns.ts";
import { Rejection } from "../answers/reply.ts";

/** Nobody works on less than so much of a body, unless it is all. */
const GATHERED_BYTES = 16 * 1024;
/**
 * After which a body that was refused is given up. Of one that is given up before its answer has gone, Deno
 * 2.9 goes through what has come already, and moves all of it for each chunk: seconds of the thread in one
 * piece for 400 KB of chunks of one byte.
 */
const GIVEN_UP_MS = 1_000;
/** What a piece is read into, beginning with the first: most bodies are short, and many may wait. */
const FIRST_ROOM_BYTES = 4096;
const ROOM_BYTES = 64 * 1024;

const READS_PER_TURN = 256;

export interface BodyLimits {
  readonly bodyBytes: number;
  /** Longest pause between two pieces; none unless given. */
  readonly idleMs?: number;
  /** Longest time for all of it; as for JSON unless given. */
  readonly receiveMs?: number;
  /** Whether all of it stays in memory until it is there; false unless given. */
  readonly isKept?: boolean;
}

/** The bodies of all requests under way. */
export class ReceivedBodies implements Disposable {
  readonly world: Pick<World, "sleep" | "monotonicMs">;
  readonly turns: ReadingTurns;
  readonly #jsonDeadlines: Deadlines;
  readonly #givenUp: Deadlines;
  /** Ends those that wait for it. */
  readonly #unread = new Set<() => void>();
  readonly #budgetBytes: number;
  readonly #shares = new Map<string, { bytes: number; readonly bodies: Set<ReceivedBody> }>();
  #bytes = 0;

  constructor(
    world: Pick<World, "sleep" | "monotonicMs">,
    limits: { readonly jsonReadMs: number; readonly receivedBytesMax: number } = {
      jsonReadMs: LIMITS.body.jsonReadMs,
      receivedBytesMax: LIMITS.body.receivedBytesMax,
    },
  ) {
    this.world = world;
    this.turns = new ReadingTurns(world);
    this.#jsonDeadlines = new Deadlines(world, limits.jsonReadMs);
    this.#givenUp = new Deadlines(world, GIVEN_UP_MS);
    this.#budgetBytes = limits.receivedBytesMax;
  }

  /** 413 where the declared length is too much. Dispose what it returns. */
  open(request: Request, principalKey: string, limits: BodyLimits): ReceivedBody {
    return new ReceivedBody(this, request, principalKey, limits);
  }

  /** Bytes in memory, of all bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  startDeadline(
    ms: number | undefined,
    onTimeout: () => void,
  ): { readonly ms: number; readonly running: Disposable } {
    return ms === undefined
      ? { ms: this.#jsonDeadlines.ms, running: this.#jsonDeadlines.start(onTimeout) }
      : { ms, running: timer(this.world, ms, onTimeout) };
  }

  /**
   * Counts memory of a body; where all have too much, the oldest of the principal with the most is ended
   * until they have not.
   */
  hold(body: ReceivedBody, bytes: number): void {
    const share = this.#shares.get(body.principalKey) ?? { bytes: 0, bodies: new Set() };
    this.#shares.set(body.principalKey, share);
    share.bodies.add(body);
    share.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#budgetBytes) {
      const most = this.#shares.values().reduce((one, other) => other.bytes > one.bytes ? other : one);
      const [oldest] = most.bodies;
      oldest!.end(
        new RateLimited(
          1,
          `Cannot receive bodies of more than ${this.#budgetBytes} bytes at once; this one was the oldest of the caller with the most`,
        ),
      );
    }
  }

  release(body: ReceivedBody, bytes: number): void {
    const share = this.#shares.get(body.principalKey);
    if (share?.bodies.delete(body) !== true) return;
    share.bytes -= bytes;
    this.#bytes -= bytes;
    if (share.bodies.size === 0) this.#shares.delete(body.principalKey);
  }

  /** Ends reading from a source, but not before the answer has gone. */
  giveUp(cancel: () => void): void {
    this.#unread.add(cancel);
    this.#givenUp.start(() => {
      this.#unread.delete(cancel);
      cancel();
    });
  }

  [Symbol.dispose](): void {
    this.#jsonDeadlines[Symbol.dispose]();
    this.#givenUp[Symbol.dispose]();
    for (const cancel of this.#unread) cancel();
  }
}

/** One body. Disposing it gives up the rest. */
export class ReceivedBody implements Disposable {
  readonly principalKey: string;
  readonly #bodies: ReceivedBodies;
  readonly #limits: BodyLimits;
  readonly #declaredBytes: number;
  readonly #source: BodySource | null;
  readonly #pieces = new PieceCount({
    bytesMin: LIMITS.body.pieceBytesMin,
    smallMax: LIMITS.body.smallPiecesMax,
  });
  readonly #deadline: { readonly ms: number; readonly running: Disposable } | undefined;
  readonly #endMs: number;
  #idle: Disposable | undefined;
  #readSinceMs = Infinity;
  #reads = 0;
  #length = 0;
  #heldBytes = 0;
  #keptBytes = 0;
  #hasEnded = false;
  #endedBy: Error | undefined;
  #isDisposed = false;
  /** Ends the read under way. */
  #wake = () => {};

  constructor(bodies: ReceivedBodies, request: Request, principalKey: string, limits: BodyLimits) {
    this.#bodies = bodies;
    this.#limits = limits;
    this.principalKey = principalKey;
    this.#declaredBytes = Number(request.headers.get("content-length"));
    if (this.#declaredBytes > limits.bodyBytes) throw this.#tooLarge();
    this.#source = request.body && sourceOf(request.body);
    if (this.#source === null) {
      this.#endMs = Infinity;
      return;
    }
    this.#deadline = bodies.startDeadline(limits.receiveMs, () => this.end(this.#late()));
    this.#endMs = bodies.world.monotonicMs() + this.#deadline.ms;
    if (limits.idleMs !== undefined) this.#watchIdle(limits.idleMs, limits.idleMs);
  }

  /**
   * The next piece, of at least 16 KiB unless it is the last; null at the end. It belongs to the caller.
   * Throws a {@link Rejection} of 400, 408 or 413, and 429 where bodies take too much memory.
   */
  async next(): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#source === null || this.#hasEnded) return null;
    let room = new Uint8Array(this.#roomBytes());
    let filled = 0;
    while (filled < GATHERED_BYTES) {
      if (filled === room.length) {
        const larger = new Uint8Array(ROOM_BYTES);
        larger.set(room);
        room = larger;
      }
      if (this.#length > FIRST_ROOM_BYTES / 4) this.#hold(this.#keptBytes + room.length); // most are shorter
      const got = await this.#read(room.subarray(filled));
      room = new Uint8Array(got.buffer);
      filled += got.length;
      if (got.length === 0) {
        this.#hasEnded = true;
        break;
      }
    }
    if (filled === 0) return null;
    const isRoomy = this.#limits.isKept && filled < room.length / 2 && !this.#hasEnded;
    const piece = isRoomy ? room.slice(0, filled) : room.subarray(0, filled);
    if (this.#limits.isKept) this.#keptBytes += piece.buffer.byteLength;
    return piece;
  }

  /** Reads no further: who reads it gets `reason`. */
  end(reason: Error): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = reason;
    this[Symbol.dispose]();
    this.#wake();
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#hold(0);
    this.#idle?.[Symbol.dispose]();
    this.#deadline?.running[Symbol.dispose]();
    const source = this.#source;
    if (source !== null && !this.#hasEnded) this.#bodies.giveUp(() => source.cancel());
  }

  /** One byte more than was declared: only reading on to the end lets the runtime close the body. */
  #roomBytes(): number {
    const left = this.#declaredBytes > 0 ? this.#declaredBytes - this.#length + 1 : Infinity;
    return Math.max(1, Math.min(this.#length === 0 ? FIRST_ROOM_BYTES : ROOM_BYTES, left));
  }

  /** Empty at the end. */
  async #read(room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    const { world, turns } = this.#bodies;
    // Most bodies are one piece, and come at once. Of others many pieces are read in one turn: Deno 2.9 works
    // more on each where it has to keep many.
    const turn = ++this.#reads % READS_PER_TURN === 3 ? turns.take(this.principalKey) : undefined;
    if (turn !== undefined) await turn;
    this.#readSinceMs = world.monotonicMs();
    const got = await this.#readOrEnd(room);
    const nowMs = world.monotonicMs();
    const idleMs = nowMs - this.#readSinceMs;
    this.#readSinceMs = Infinity;
    if (this.#endedBy !== undefined) throw this.#endedBy;
    if (got === undefined) throw new Rejection(400, "The body was cut short"); // the client has disconnected
    // A timer may be late; the clock is not.
    if (nowMs >= this.#endMs || idleMs >= (this.#limits.idleMs ?? Infinity)) throw this.#late();
    if (got.length === 0) return got;
    this.#length += got.length;
    if (this.#length > this.#limits.bodyBytes) throw this.#tooLarge();
    if (!this.#pieces.add(got.length)) {
      throw new Rejection(
        400,
        `The body comes in pieces that are too small: of less than ${LIMITS.body.pieceBytesMin} bytes`,
        CLOSE,
      );
    }
    return got;
  }

  /** Undefined where it was ended, or the client has disconnected. */
  #readOrEnd(room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (this.#isDisposed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      this.#source!.read(room).then(resolve, () => resolve(undefined));
    });
  }

  #hold(bytes: number): void {
    const before = this.#heldBytes;
    if (bytes === before) return;
    this.#heldBytes = bytes;
    if (bytes === 0) this.#bodies.release(this, before);
    else if (!this.#isDisposed) this.#bodies.hold(this, bytes - before);
  }

  #watchIdle(idleMs: number, nextMs: number): void {
    this.#idle = timer(this.#bodies.world, nextMs, () => {
      const pausedMs = this.#bodies.world.monotonicMs() - this.#readSinceMs;
      if (pausedMs >= idleMs) this.end(this.#late());
      else this.#watchIdle(idleMs, idleMs - Math.max(0, pausedMs));
    });
  }

  #late(): Rejection {
    const { idleMs } = this.#limits;
    const within = idleMs === undefined ? `within ${this.#deadline!.ms} ms` : "in time";
    return new Rejection(408, `The body did not arrive ${within}`, CLOSE);
  }

  #tooLarge(): Rejection {
    return new Rejection(413, `The body is longer than ${this.#limits.bodyBytes} bytes`);
  }
}

const CLOSE = { connection: "close" };

/**
 * Reads into `room`, whose memory it takes and gives back with what was read: nothing at the end, undefined
 * where it was given up.
 */
interface BodySource {
  read(room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined>;
  cancel(): void;
}

function sourceOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): BodySource {
  try {
    return new ByteBody(stream.getReader({ mode: "byob" }));
  } catch {
    return new ChunkBody(stream.getReader());
  }
}

/**
 * A body from a connection. Reading into memory of its own takes a third of the time and none of the garbage
 * of other ways.
 */
class ByteBody implements BodySource {
  readonly #reader: ReadableStreamBYOBReader;

  constructor(reader: ReadableStreamBYOBReader) {
    this.#reader = reader;
  }

  async read(room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return (await this.#reader.read(room)).value;
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }
}

/** A body that is at hand. */
class ChunkBody implements BodySource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  #left: Uint8Array<ArrayBuffer> = new Uint8Array();

  constructor(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>) {
    this.#reader = reader;
  }

  async read(room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    while (this.#left.length === 0) {
      const { done, value } = await this.#reader.read();
      if (done) break;
      this.#left = value;
    }
    const taken = this.#left.subarray(0, room.length);
    room.set(taken);
    this.#left = this.#left.subarray(taken.length);
    return room.subarray(0, taken.length);
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }
}
