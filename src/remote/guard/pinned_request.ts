/** HTTP requests to addresses that the guard has checked, without a second look-up, a proxy or redirects. */

import { Buffer } from "node:buffer";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { World } from "../../base/world.ts";
import { timer } from "../../base/wait.ts";
import { AnnouncementCount } from "./announcement_count.ts";
import type { PinnedAgent } from "./pinned_agent.ts";
import { failureOf, RequestFailed } from "./request_failed.ts";

export interface PinnedRequest {
  readonly world: World;
  /** Has the connections and the trusted certificates. */
  readonly agent: PinnedAgent;
  /** http or https, without user name and password. */
  readonly url: URL;
  /** Addresses of the URL's host, from `checkedTarget`. The first one that accepts a connection is used. */
  readonly addresses: readonly string[];
  readonly method: string;
  /** Headers, sent as given, after `Host`, and after `Content-Length` where there is a body. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, sent as given. */
  readonly body?: Uint8Array | string;
  /**
   * Never sends the request twice, even when a kept connection is found to be closed: for callers that count
   * attempts.
   */
  readonly isSentOnce?: true;
  /** Time for each address to accept a connection, TLS included; limited by `timeoutMs` only unless given. */
  readonly connectTimeoutMs?: number;
  /** Time from the first connection attempt to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /**
   * Called before each piece of the body that a loop gets, with the bytes that the connection has received
   * for it and for what stood between chunks. The next bytes are read when the promise that it returns has
   * resolved.
   */
  readonly pace?: (bytes: number) => Promise<void> | undefined;
}

export interface PinnedResponse {
  readonly status: number;
  readonly headers: Headers;
  /**
   * The body of the answer. It must be read to its end, drained or cancelled; until then, or until the
   * deadline, it occupies the connection.
   */
  readonly body: PinnedBody;
}

/**
 * Returns the server's answer whatever its status, redirects and errors included. When a kept connection is
 * found to be closed, the request is sent again on another one; in no other case is a request sent again.
 * Errors: `RequestFailed`, or the reason of `signal`. See docs/security/sources.md#outbound-addresses.
 */
export async function pinnedRequest(request: PinnedRequest): Promise<PinnedResponse> {
  const { agent, url } = request;
  const end = new RequestEnd(request);
  try {
    let failure: RequestFailed | null = null;
    for (const address of agent.inOrder(url, request.addresses)) {
      try {
        const message = await exchange(request, address, end);
        agent.rememberAnswer(url, address);
        return new Answer(message, end, request.pace);
      } catch (error) {
        if (!(error instanceof RequestFailed && error.kind === "connect")) throw error;
        failure = error;
      }
    }
    throw failure ?? new RequestFailed("connect", "it has no address");
  } catch (error) {
    end[Symbol.dispose]();
    throw error;
  }
}

class Answer implements PinnedResponse {
  readonly status: number;
  readonly body: PinnedBody;
  readonly #message: IncomingMessage;

  constructor(message: IncomingMessage, end: RequestEnd, pace: PinnedRequest["pace"]) {
    this.status = message.statusCode!;
    this.body = new PinnedBody(message, end, pace);
    this.#message = message;
  }

  /** The headers of the answer, made when they are asked for, as few callers look at them. */
  get headers(): Headers {
    return headersOf(this.#message);
  }
}

/**
 * Ends a request that takes too long, or whose caller aborts. One function at a time is told: first the one
 * that waits for the head of the answer, then the body's.
 */
class RequestEnd implements Disposable {
  /** Why the request ended; undefined while it is under way. */
  reason: Error | undefined;
  readonly #signal: AbortSignal;
  readonly #timer: Disposable;
  #onEnd: ((reason: Error) => void) | undefined;
  readonly #onAbort = () => this.#end(this.#signal.reason);

  constructor({ world, timeoutMs, signal }: Pick<PinnedRequest, "world" | "timeoutMs" | "signal">) {
    this.#signal = signal;
    this.#timer = timer(
      world,
      timeoutMs,
      () => this.#end(new RequestFailed("timeout", "it took too long to answer")),
    );
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener("abort", this.#onAbort);
  }

  /** Tells `onEnd` from now on, and nobody else. */
  tell(onEnd: (reason: Error) => void): void {
    this.#onEnd = onEnd;
    if (this.reason !== undefined) onEnd(this.reason);
  }

  [Symbol.dispose](): void {
    this.#onEnd = undefined;
    this.#timer[Symbol.dispose]();
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #end(reason: Error): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.#onEnd?.(reason);
  }
}

/**
 * The most chunks that are read of an answer that nobody wants: each takes as long as a new connection does,
 * however short it is.
 */
const DRAINED_CHUNKS_MAX = 256;

/**
 * The body of an answer, to be read once. Reading rejects with `RequestFailed` when the connection or the
 * time ends.
 */
export class PinnedBody implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #end: RequestEnd;
  readonly #pace: NonNullable<PinnedRequest["pace"]>;

  /** Makes a body that owns `end` from now on. */
  constructor(message: IncomingMessage, end: RequestEnd, pace: PinnedRequest["pace"] = () => undefined) {
    this.#pace = pace;
    this.#message = message;
    this.#end = end;
    end.tell((reason) => message.destroy(reason));
    message.once("close", () => end[Symbol.dispose]());
    message.on("error", () => {/* the reader gets it */});
  }

  /** Gives the chunks of the body. Leaving the loop early closes the connection. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      const { socket } = this.#message;
      let receivedBytes = socket.bytesRead;
      for await (const chunk of this.#message) {
        const turn = this.#pace(Math.max(chunk.length, socket.bytesRead - receivedBytes));
        receivedBytes = socket.bytesRead;
        if (turn !== undefined) await turn;
        yield chunk;
      }
      if (!this.#message.complete) throw cut();
    } catch (error) {
      throw this.#end.reason ?? failureOf(error);
    } finally {
      this.cancel();
    }
  }

  /**
   * All chunks, or those up to the first that makes them longer than `maxBytes`, or more than `maxChunks`:
   * then the connection is closed. It costs less than the loop.
   */
  collect(maxBytes: number, maxChunks = Infinity): Promise<Uint8Array[]> {
    const message = this.#message;
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      let isOver = false;
      const fail = (error: () => unknown) => {
        if (isOver) return;
        isOver = true;
        this.cancel();
        reject(this.#end.reason ?? failureOf(error()));
      };
      const succeed = () => {
        isOver = true;
        this.cancel();
        resolve(chunks);
      };
      message.on("data", (chunk: Uint8Array) => {
        if (isOver) return;
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > maxBytes || chunks.length > maxChunks) succeed();
      });
      message.once("end", () => message.complete ? succeed() : fail(cut));
      message.once("error", (error) => fail(() => error));
      message.once("close", () => fail(cut));
      if (message.destroyed) fail(cut);
    });
  }

  /**
   * Reads and drops the rest, so that the connection can be used again. A rest over `maxBytes`, or in many
   * chunks, closes it instead.
   */
  async drain(maxBytes: number): Promise<void> {
    try {
      await this.collect(maxBytes, DRAINED_CHUNKS_MAX);
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error; // the rest is not needed
    }
  }

  /** Closes the connection, unless the whole body was read. */
  cancel(): void {
    this.#message.destroy();
    this.#end[Symbol.dispose]();
  }
}

function cut(): RequestFailed {
  return new RequestFailed("reset", "the connection was cut");
}

/** One request to one address, up to the status line and headers of the answer. */
async function exchange(
  request: PinnedRequest,
  address: string,
  end: RequestEnd,
): Promise<IncomingMessage> {
  while (true) {
    if (end.reason !== undefined) throw end.reason;
    const sent = send(request, address);
    try {
      return await headOf(sent.outgoing, sent.isConnected, end);
    } catch (error) {
      const isStale = sent.isReused() && error instanceof RequestFailed && error.kind === "reset";
      if (!isStale || request.isSentOnce) throw error;
    }
  }
}

function send(request: PinnedRequest, address: string) {
  const { world, agent, url, method, headers, body, connectTimeoutMs } = request;
  const outgoing = agent.open(url, address, {
    method,
    path: `${url.pathname}${url.search}`,
    headers: {
      host: url.host,
      ...headers,
      ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }),
    },
  });
  let connected = false;
  let reused = false;
  outgoing.once("socket", (socket) => {
    endTooManyAnnouncements(outgoing, socket);
    reused = outgoing.reusedSocket;
    // If this is true, the runtime itself sends the request again when the connection ends, even when it was
    // destroyed on purpose (denoland/deno#36786). `exchange` decides whether to try again.
    outgoing.reusedSocket = false;
    connected = reused;
    if (reused) return;
    const onTimeout = () => outgoing.destroy(new RequestFailed("connect", "it does not accept a connection"));
    const connectTimer = connectTimeoutMs === undefined
      ? undefined
      : timer(world, connectTimeoutMs, onTimeout);
    outgoing.once("close", () => connectTimer?.[Symbol.dispose]());
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => {
      connected = true;
      connectTimer?.[Symbol.dispose]();
    });
  });
  outgoing.end(
    body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : body,
  );
  return { outgoing, isConnected: () => connected, isReused: () => reused };
}

/** The most announcements of an answer (1xx) that a server may send before it. */
const ANNOUNCEMENTS_MAX = 8;

/**
 * Ends a request whose server only announces an answer. The parser makes an object of each announcement,
 * thousands of one piece, and goes on with a piece after its request was ended: so a piece with too many of
 * them is blanked before the parser sees it.
 */
function endTooManyAnnouncements(outgoing: ClientRequest, socket: Socket): void {
  const heads = new AnnouncementCount();
  const onData = (bytes: Uint8Array) => {
    if (heads.add(bytes) <= ANNOUNCEMENTS_MAX) return;
    bytes.fill(0);
    outgoing.destroy(new RequestFailed("protocol", "it announces an answer too many times"));
  };
  socket.prependListener("data", onData);
  const stop = () => void socket.off("data", onData);
  outgoing.once("response", stop);
  outgoing.once("close", stop);
}

function headOf(
  outgoing: ClientRequest,
  isConnected: () => boolean,
  end: RequestEnd,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    end.tell((reason) => {
      reject(reason);
      outgoing.destroy();
    });
    const onClose = () => {
      stopListening();
      reject(new RequestFailed(isConnected() ? "reset" : "connect", "the connection was closed"));
    };
    const stopListening = () => void outgoing.off("close", onClose);
    outgoing.once("response", (message) => {
      stopListening();
      resolve(message);
    });
    outgoing.once("upgrade", (_message, socket) => {
      stopListening();
      socket.destroy();
      reject(new RequestFailed("protocol", "its answer is not plain HTTP"));
    });
    outgoing.on("error", (error) => {
      stopListening();
      reject(failureOf(error, isConnected()));
    });
    outgoing.once("close", onClose);
  });
}

function headersOf(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    headers.append(message.rawHeaders[index]!, message.rawHeaders[index + 1]!);
  }
  return headers;
}
