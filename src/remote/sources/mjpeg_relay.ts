/** A relay on loopback through which ffmpeg reads one camera that sends JPEGs over HTTP, picture after
 * picture.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Refusal } from "../../contract/refusal.ts";
import { abortWith } from "../../base/wait.ts";
import { LIMITS } from "../../contract/limits.ts";
import { boundaryOf, JpegParts, PartsRefused } from "../../model/sources/jpeg_parts.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused } from "../guard/address_guard.ts";
import type { PinnedResponse } from "../guard/pinned_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";
import { listenForFfmpeg, readerOf, stopListening } from "./listening.ts";
import { SourceBudget } from "./source_budget.ts";
import { type FetchContext, sourceRequest } from "./source_request.ts";

/**
 * ```
 *   ffmpeg ─http, loopback→ relay ─guard, pinned, verified→ the camera
 *          ←─ the same JPEGs, each with its length; nothing else of what the camera sent
 * ```
 *
 * Needed for the same reasons as the relay of HLS, and because ffmpeg (5.1) believes any length that a camera
 * states.
 */
export class MjpegRelay implements AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  readonly #server: Server;
  readonly #target: URL;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  readonly #following: Disposable;
  readonly #budget: SourceBudget;
  #fault: Refusal | undefined;
  #end: string | undefined;

  private constructor(target: URL, server: Server, host: string, context: FetchContext) {
    // The path is a secret, so that other programs of this machine cannot look at the camera through the
    // relay.
    this.url = `http://${host}/${context.world.randomBytes(16).toHex()}`;
    this.#target = target;
    this.#server = server;
    this.#context = context;
    this.#budget = new SourceBudget(context.world, context.onChange);
    server.on("request", (request, response) => void this.#answer(request, response));
    this.#following = abortWith(context.signal, this.#closing);
  }

  /**
   * Asks the camera once as a test, so that a failure is refused with its reason: 422 `source_uri`. It
   * listens on the Unix socket, or without one on a port of the machine's loopback.
   */
  static async open(target: URL, context: FetchContext, socket: string | null = null): Promise<MjpegRelay> {
    const server = createServer();
    const relay = new MjpegRelay(target, server, await listenForFfmpeg(server, socket), context);
    try {
      (await relay.#ask(LIMITS.ingest.prefetchTimeoutMs, relay.#closing.signal)).response.body.cancel();
      return relay;
    } catch (error) {
      await relay[Symbol.asyncDispose]();
      context.signal.throwIfAborted();
      throw faultOf(error) ?? error;
    }
  }

  /** Why the camera gave no pictures when that first happened; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Why the last answer of the camera is over; undefined where ffmpeg or the service ended it. */
  get end(): string | undefined {
    return this.#end ?? this.#budget.reason;
  }

  /** Ends all requests and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]();
    this.#closing.abort(new Error("the relay is closing"));
    await stopListening(this.#server);
  }

  async #ask(
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<{ response: PinnedResponse; boundary: string }> {
    const response = await sourceRequest(this.#target, this.#context, {
      timeoutMs,
      signal,
      budget: this.#budget,
    });
    const boundary = boundaryOf(response.headers.get("content-type"));
    if (response.status === 200 && boundary !== null) return { response, boundary };
    response.body.cancel();
    throw sourceFault(
      response.status === 200
        ? "its server does not send a series of JPEGs (multipart/x-mixed-replace)"
        : `its server answered HTTP ${response.status}`,
    );
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reader = readerOf(response);
    using _closing = abortWith(this.#closing.signal, reader);
    try {
      const isRight = request.method === "GET" && request.url === new URL(this.url).pathname;
      if (!isRight) return void response.writeHead(404).end();
      await this.#pass(response, reader.signal);
    } catch (error) {
      // ffmpeg gets an error status or the end, and the caller gets the reason from `fault`.
      const fault = faultOf(error);
      if (fault) this.#fault ??= fault;
      this.#end = fault?.details[0]?.message;
      this.#context.onChange?.();
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    }
  }

  async #pass(answer: ServerResponse, signal: AbortSignal): Promise<void> {
    const { response: { body }, boundary } = await this.#ask(ENDLESS_MS, signal);
    this.#end = undefined;
    this.#context.onChange?.();
    answer.writeHead(200, { "content-type": "multipart/x-mixed-replace;boundary=jpeg" });
    const parts = new JpegParts(boundary);
    for await (const bytes of body) {
      const jpegs = parts.take(bytes);
      for (const jpeg of jpegs) writePart(answer, jpeg);
      this.#budget.spend({ pictures: jpegs.length });
      await this.#budget.turn(signal);
    }
    const last = parts.end();
    if (last) writePart(answer, last);
    this.#end = "its server ended the series of pictures";
    this.#context.onChange?.();
    answer.end();
  }
}

function writePart(answer: ServerResponse, jpeg: Uint8Array): void {
  // A picture for which ffmpeg has no time is left out, so that it sees the camera as it is now.
  if (answer.writableNeedDrain) return;
  answer.write(`--jpeg\r\nContent-Type: image/jpeg\r\nContent-Length: ${jpeg.length}\r\n\r\n`);
  answer.write(jpeg);
  answer.write("\r\n");
}

/** The longest time that a timer takes, 24 days; then the camera is asked again. */
const ENDLESS_MS = 2 ** 31 - 1;

/** The refusal for a failure of the camera; undefined when ffmpeg has disconnected, and for a bug. */
function faultOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof AddressRefused || error instanceof PartsRefused) return sourceFault(error.message);
  if (error instanceof RequestFailed) return sourceFault(`it cannot be fetched: ${error.message}`);
}
