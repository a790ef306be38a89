/** One QUIC connection that speaks HTTP/3: its streams, its requests under way, and how it ends. */

import { errorText } from "../base/log.ts";
import { hasEndedWithin } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import { Http3Exchange, type Http3ExchangeOptions, RequestAbandoned } from "./exchange.ts";
import { ConnectionFault, ERROR_CODES, type ErrorCode } from "./wire/faults.ts";
import { FRAME, frame } from "./wire/frames.ts";
import { PeerStreams } from "./peer_streams.ts";
import { ownSettings } from "./wire/settings.ts";
import { varint } from "./wire/varint.ts";

export interface Http3ConnectionOptions extends Omit<Http3ExchangeOptions, "fail" | "onCut"> {
  readonly world: Pick<World, "monotonicMs" | "sleep" | "log">;
}

/** The type of the stream on which this server sends its settings. */
const CONTROL_STREAM = 0x0;
/** Identifiers of request streams are 0, 4, 8 and so on (RFC 9000 2.1). */
const STREAM_ID_STEP = 4;
/**
 * How long a connection lingers before it is closed: closing drops what was not yet sent, or has to be sent
 * again, and Deno 2.9 does not tell how much that is.
 */
const LINGER_MS = 1000;
/** Answers that have begun are probed only every so many probes: an event stream writes by itself. */
const PROBES_OF_ANSWERS = 5;

/**
 * ```
 *   client ── control, encoder, decoder ──▶ PeerStreams
 *          ◀── control: SETTINGS … GOAWAY
 *          ◀─▶ a stream for each request ─▶ Http3Exchange
 * ```
 */
export class Http3Connection {
  readonly #connection: Deno.QuicConn;
  readonly #options: Http3ConnectionOptions;
  /**
   * The requests under way. No `Set`: each of its former tables points to the next one, so the first that has
   * grown old would keep every later request.
   */
  readonly #exchanges: Http3Exchange[] = [];
  readonly #peer = new PeerStreams();
  readonly #ended = Promise.withResolvers<void>();
  #control: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #accepted = 0;
  #probes = 0;
  #idleSinceMs: number;
  #isEnding = false;
  #hasEnded = false;
  /** Called when an exchange has ended. */
  #onRoom = () => {};

  constructor(connection: Deno.QuicConn, options: Http3ConnectionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#idleSinceMs = options.world.monotonicMs();
  }

  /** Serves until the connection has ended. Never throws. */
  async run(): Promise<void> {
    this.#connection.closed.then(() => this.#end(), () => this.#end());
    void this.#openControl();
    void this.#acceptPeerStreams();
    void this.#acceptRequests();
    await this.#ended.promise;
  }

  /**
   * Once a second or so: ends a connection without requests, and finds out which clients have given up
   * theirs.
   */
  tick(): void {
    if (this.#exchanges.length === 0) {
      const idleMs = this.#options.world.monotonicMs() - this.#idleSinceMs;
      if (idleMs >= LIMITS.http3.idleMs) this.#goAway().finally(() => this.close("H3_NO_ERROR", "idle"));
      return;
    }
    const isTurnOfAnswers = ++this.#probes % PROBES_OF_ANSWERS === 0;
    for (const exchange of this.#exchanges) {
      if (isTurnOfAnswers || !exchange.hasAnswered) exchange.probe();
    }
  }

  /** Takes no further requests, and closes when those under way are answered. */
  async drain(): Promise<void> {
    await this.#goAway();
    while (this.#exchanges.length > 0 && !this.#hasEnded) await this.#room();
    const { world } = this.#options;
    const lingerMs = this.#idleSinceMs + LINGER_MS - world.monotonicMs();
    if (this.#accepted > 0 && lingerMs > 0) await hasEndedWithin(world, lingerMs, this.#ended.promise);
    this.close("H3_NO_ERROR", "the service closes");
  }

  close(code: ErrorCode, reason: string): void {
    if (this.#hasEnded) return;
    this.#connection.close({ closeCode: ERROR_CODES[code], reason });
    this.#end();
  }

  async #openControl(): Promise<void> {
    try {
      const stream = await this.#connection.createUnidirectionalStream({ waitUntilAvailable: true });
      const control = this.#control = stream.getWriter();
      control.closed.catch(() => this.#failUnlessEnded("H3_CLOSED_CRITICAL_STREAM", "control"));
      await control.write(new Uint8Array([CONTROL_STREAM, ...ownSettings()]));
    } catch {
      // The connection is lost, or the control stream is: both are told elsewhere.
    }
  }

  async #acceptPeerStreams(): Promise<void> {
    try {
      for await (const stream of this.#connection.incomingUnidirectionalStreams) {
        this.#peer.read(stream).catch((error) => this.#failed(error));
      }
    } catch {
      this.#end(); // the connection is lost
    }
  }

  async #acceptRequests(): Promise<void> {
    try {
      for await (const stream of this.#connection.incomingBidirectionalStreams) {
        // A stream may be gone before its work has ended, so QUIC's own bound is not enough.
        while (this.#exchanges.length >= LIMITS.http3.requestsPerConnection) await this.#room();
        this.#accept(stream);
      }
    } catch {
      this.#end(); // the connection is lost
    }
  }

  #accept(stream: Deno.QuicBidirectionalStream): void {
    if (this.#isEnding || this.#hasEnded) {
      // GOAWAY has told the client that this request is not looked at.
      stream.readable.cancel().catch(() => {});
      return void stream.writable.close().catch(() => {});
    }
    this.#accepted++;
    const { respond, headDeadlines, restDeadlines, memory, world } = this.#options;
    const exchange = new Http3Exchange(stream, {
      respond,
      headDeadlines,
      restDeadlines,
      memory,
      fail: (fault) => this.#failed(fault),
      onCut: (error) => world.log.warn("an answer was cut short", { error: errorText(error) }),
    });
    this.#exchanges.push(exchange);
    void exchange.run().then(() => {
      this.#exchanges[this.#exchanges.indexOf(exchange)] = this.#exchanges.at(-1)!;
      this.#exchanges.pop();
      if (this.#exchanges.length === 0) this.#idleSinceMs = this.#options.world.monotonicMs();
      this.#onRoom();
    });
  }

  async #room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#onRoom;
    this.#onRoom = () => {
      this.#onRoom = () => {};
      before();
      resolve();
    };
    await promise;
  }

  async #goAway(): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const nextId = new Uint8Array(varint(STREAM_ID_STEP * this.#accepted));
    await this.#control?.write(frame(FRAME.GOAWAY, nextId)).catch(() => {});
  }

  /**
   * Handles what reading a stream throws: it is a fault of the peer where the stream is critical, unless the
   * connection is lost anyway.
   */
  #failed(error: unknown): void {
    if (error instanceof ConnectionFault) {
      this.#options.world.log.debug("an HTTP/3 connection was closed", {
        code: error.code,
        why: error.message,
      });
      this.close(error.code, error.message);
    } else this.#failUnlessEnded("H3_CLOSED_CRITICAL_STREAM", "a stream");
  }

  #failUnlessEnded(code: ErrorCode, what: string): void {
    if (!this.#hasEnded) this.close(code, `${what} was given up`);
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const reason = new RequestAbandoned("the connection has ended");
    for (const exchange of this.#exchanges) exchange.abort(reason);
    this.#onRoom();
    this.#ended.resolve();
  }
}
