/** One request and its answer on one stream: the stream becomes a `Request`, and the `Response` becomes
 * frames.
 */

import { joinedBytes } from "../base/bytes.ts";
import type { Deadlines } from "../base/wait.ts";
import { LIMITS } from "../contract/limits.ts";
import { ByteSource, type PieceMemory } from "./wire/byte_source.ts";
import { ConnectionFault, RequestFault } from "./wire/faults.ts";
import { FRAME, frame, frameHead, FrameReader, isUnknown, unexpected } from "./wire/frames.ts";
import { decodeFields } from "./qpack/field_decoder.ts";
import { RequestBody } from "./request_body.ts";
import { type RequestHead, requestHead } from "./request_head.ts";
import { responseHead } from "./response_head.ts";

/** Answers a request, of whatever transport. */
export type Respond = (request: Request) => WholeOrStreamed | Promise<WholeOrStreamed>;

/**
 * A response, and the text of its body where all of it is at hand: to read that from a stream takes as long
 * as to send it.
 */
export type WholeOrStreamed = Response & { readonly wholeBody?: string | null };

export interface Http3ExchangeOptions {
  readonly respond: Respond;
  /** The deadlines by which the heads of requests must be there. */
  readonly headDeadlines: Deadlines;
  /** How long the rest of a body is read that nobody needs. */
  readonly restDeadlines: Deadlines;
  /** The memory into which requests are read. */
  readonly memory: PieceMemory;
  /** Ends the connection. */
  readonly fail: (fault: ConnectionFault) => void;
  /** Is told why the body of an answer could not be read to its end. */
  readonly onCut: (error: unknown) => void;
}

/** Why a request is aborted whose client has given it up, or whose connection is lost. */
export class RequestAbandoned extends Error {
  override readonly name = "RequestAbandoned";
}

/** What a request throws that is read no further, which is not the end of its stream. */
const REST_UNREAD = new RequestAbandoned("the rest of the request is not read");
/**
 * The longest piece that is copied behind the head of its frame; a longer one is written by a write of its
 * own. A write costs more than copying so many bytes.
 */
const COPIED_BYTES_MAX = 16 * 1024;
/** Frames without meaning before the head of a request. */
const UNKNOWN_FRAMES_MAX = 64;
/**
 * Turns of the event loop that a body has to be at hand: one that is at hand takes 2 (measured on 24 November
 * 2026).
 */
const TURNS_MAX = 4;
const ENCODER = new TextEncoder();
/** A frame that every receiver ignores. */
const NOTHING = frame(FRAME.RESERVED, new Uint8Array());

/**
 * ```
 *   head (deadline) ── Request ── respond ── HEADERS ── DATA … ── end
 *        └ fault: an answer of 400, 408, 431 or 501       └ the client stops reading: the request's signal aborts
 * ```
 * Deno 2.9 tells that a client has stopped reading only when something is written, so `probe` writes a frame
 * without meaning.
 */
export class Http3Exchange {
  readonly #options: Http3ExchangeOptions;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #frames: FrameReader;
  #abandoned: { readonly reason: unknown } | undefined;
  #aborting: AbortController | undefined;
  #answer: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #hasAnswered = false;
  #isOver = false;
  #hasClosed = false;

  constructor({ readable, writable }: Deno.QuicBidirectionalStream, options: Http3ExchangeOptions) {
    this.#options = options;
    this.#frames = new FrameReader(new ByteSource(readable, options.memory));
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => {}); // a write tells it
  }

  /** Whether the answer has begun. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Reads, answers and ends the stream. Never throws. */
  async run(): Promise<void> {
    try {
      await this.#run();
    } catch (error) {
      if (error instanceof ConnectionFault) this.#options.fail(error);
      else if (error instanceof RequestFault) await this.#refuse(error);
      this.abort(error);
    } finally {
      this.#isOver = true;
      this.#stopReading();
      if (!this.#hasClosed) await this.#close().catch(() => {}); // the client does not read any more
    }
  }

  /** Ends the work of the request, whose client takes no answer any more. */
  abort(reason: unknown): void {
    if (this.#isOver || this.#abandoned !== undefined) return;
    this.#abandoned = { reason };
    this.#aborting?.abort(reason);
    this.#answer?.cancel(reason).catch(() => {});
    this.#stopReading();
  }

  /** Finds out whether the client still reads, unless something else is being written, or nothing more is. */
  probe(): void {
    if (this.#isOver || this.#hasClosed || (this.#writer.desiredSize ?? 0) <= 0) return;
    this.#write(NOTHING).catch((error) => this.abort(error));
  }

  async #run(): Promise<void> {
    const head = await this.#readHead();
    if (head === null) return;
    const { method, contentLength } = head;
    const body = new RequestBody(this.#frames, contentLength);
    const hasBody = method !== "GET" && method !== "HEAD" && contentLength !== 0;
    const request = this.#requestOf(head, hasBody ? body : null);
    if (!hasBody) this.#frames.source.reusesMemory = true;
    const end = hasBody ? undefined : this.#drop(body);
    const response = await this.#options.respond(request);
    if (this.#abandoned !== undefined) return void response.body?.cancel().catch(() => {});
    await this.#send(response, method === "HEAD");
    await (end ?? this.#drop(body));
  }

  /** Reads the head of the request; null where the stream ends, or is reset, before anything was asked. */
  async #readHead(): Promise<RequestHead | null> {
    let isLate = false;
    let unknown = 0;
    using _deadline = this.#options.headDeadlines.start(() => {
      isLate = true;
      this.#stopReading();
    });
    try {
      for (let head = await this.#frames.next(); head !== null; head = await this.#frames.next()) {
        if (head.type !== FRAME.HEADERS) {
          if (!isUnknown(head)) throw unexpected(head, "begins a request");
          if (++unknown > UNKNOWN_FRAMES_MAX) {
            throw new ConnectionFault("H3_EXCESSIVE_LOAD", "too many frames before a request");
          }
          await this.#frames.skip(head);
          continue;
        }
        const sizeMax = LIMITS.http3.fieldSectionBytes;
        if (head.length > sizeMax) throw new RequestFault(431, "The header fields are too long");
        return requestHead(decodeFields(await this.#frames.whole(head), sizeMax));
      }
    } catch (error) {
      if (!isLate) throw error;
    }
    if (isLate) {
      throw new RequestFault(408, `The request did not arrive within ${LIMITS.http3.headReadMs} ms`);
    }
    return null;
  }

  #requestOf({ method, url, headers }: RequestHead, body: RequestBody | null): Request {
    const signal = () => this.#signal();
    const init = { method, headers };
    try {
      if (body === null) return new AbandonableRequest(url, init, signal);
      const stream = body.stream((error) => {
        if (error instanceof ConnectionFault) this.#options.fail(error);
        else if (!(error instanceof RequestFault)) this.abort(abandoned(error));
      });
      return new AbandonableRequest(url, { ...init, body: stream, duplex: "half" } as RequestInit, signal);
    } catch (error) {
      if (error instanceof TypeError) {
        throw new RequestFault(400, "The request is malformed: the URL is wrong");
      }
      throw error;
    }
  }

  #signal(): AbortSignal {
    if (this.#aborting === undefined) {
      this.#aborting = new AbortController();
      if (this.#abandoned !== undefined) this.#aborting.abort(this.#abandoned.reason);
    }
    return this.#aborting.signal;
  }

  async #send(response: WholeOrStreamed, isHead: boolean): Promise<void> {
    this.#hasAnswered = true;
    const { wholeBody } = response;
    if (typeof wholeBody === "string" && !isHead) {
      return await this.#end(this.#writeData(ENCODER.encode(wholeBody), response));
    }
    const { body } = response;
    if (body === null || isHead) {
      body?.cancel().catch(() => {});
      return await this.#end(this.#write(responseHead(response)));
    }
    const reader = this.#answer = body.getReader();
    let next = this.#nextPiece(reader, response);
    let unsent: Response | null = response;
    if (!await isReady(next)) {
      await this.#write(responseHead(response)); // an event stream may have nothing to say for long
      unsent = null;
    }
    for (let piece = await next; !piece.done; piece = await next) {
      const written = this.#writeData(piece.value, unsent);
      unsent = null;
      next = this.#nextPiece(reader, response);
      next.catch(() => {}); // it is awaited unless the write fails
      await written;
    }
    if (unsent !== null) await this.#write(responseHead(response));
    await this.#close();
  }

  /** Ends the stream behind what is being written. */
  async #end(written: Promise<void>): Promise<void> {
    written.catch(() => {}); // closing tells it
    await this.#close();
  }

  /**
   * The next piece of an answer's body. An answer that breaks off must not look whole: with a declared length
   * the client sees that it is short; without one the connection ends, as Deno 2.9 cannot reset a stream.
   */
  async #nextPiece(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    { headers }: Response,
  ): Promise<ReadableStreamReadResult<Uint8Array>> {
    try {
      return await reader.read();
    } catch (error) {
      if (this.#abandoned === undefined) this.#options.onCut(error);
      if (!headers.has("content-length")) {
        this.#options.fail(new ConnectionFault("H3_INTERNAL_ERROR", "an answer broke off"));
      }
      throw error;
    }
  }

  /** Writes a DATA frame, behind the head of the response where that was not sent yet. */
  async #writeData(piece: Uint8Array, unsent: Response | null): Promise<void> {
    if (piece.length <= COPIED_BYTES_MAX) {
      if (unsent !== null) return await this.#write(responseHead(unsent, piece));
      return piece.length > 0 ? await this.#write(frame(FRAME.DATA, piece)) : undefined;
    }
    const head = frameHead(FRAME.DATA, piece.length);
    const before = unsent === null ? head : joinedBytes(responseHead(unsent), head);
    // Both are in the queue before anything else can be.
    await Promise.all([this.#write(before), this.#write(piece)]);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#writer.write(bytes);
    } catch (error) {
      throw abandoned(error);
    }
  }

  /**
   * Reads what is left of the request. What is wrong with it changes nothing any more, unless it ends the
   * connection. The client is not told to stop at once: it would get code 0, as Deno 2.9 has no other, and
   * then Chromium does not look at the answer.
   */
  async #drop(body: RequestBody): Promise<void> {
    using _deadline = this.#options.restDeadlines.start(() => this.#stopReading());
    try {
      await body.drop(LIMITS.body.uploadBytes);
    } catch (error) {
      if (error instanceof ConnectionFault) this.#options.fail(error);
      else if (error !== REST_UNREAD && !(error instanceof RequestFault)) this.abort(abandoned(error));
    }
  }

  async #close(): Promise<void> {
    if (this.#hasClosed) return;
    this.#hasClosed = true;
    try {
      await this.#writer.close();
    } catch (error) {
      throw abandoned(error);
    }
  }

  #stopReading(): void {
    this.#frames.source.stop(REST_UNREAD);
  }

  async #refuse({ status, message }: RequestFault): Promise<void> {
    const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
    await this.#send(new Response(message, { status, headers }), false).catch(() => {});
  }
}

/**
 * A request whose signal is made when somebody asks for it, which few requests need. A request that is made
 * with a signal gets another one that follows it, which costs as much as all the rest of the request.
 */
class AbandonableRequest extends Request {
  readonly #signal: () => AbortSignal;

  constructor(url: string, init: RequestInit, signal: () => AbortSignal) {
    super(url, init);
    this.#signal = signal;
  }

  override get signal(): AbortSignal {
    return this.#signal();
  }
}

/**
 * Whether the piece is there after a few turns of the event loop: then the body was at hand, and goes with
 * the head.
 */
async function isReady(piece: Promise<unknown>): Promise<boolean> {
  let hasEnded = false;
  const end = () => void (hasEnded = true);
  piece.then(end, end);
  for (let turn = 0; turn < TURNS_MAX && !hasEnded; turn++) await null;
  return hasEnded;
}

function abandoned(error: unknown): RequestAbandoned {
  return new RequestAbandoned("the client has given up the request", { cause: error });
}
