/** HTTP requests to addresses that the guard has checked, without a second look-up, a proxy or redirects. */

import { Buffer } from "node:buffer";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { World } from "../../base/world.ts";
import { Deadline, OutOfTime, timer } from "../../base/wait.ts";
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
  /** Sent as given, after `Host`, and after `Content-Length` where there is a body. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as given. */
  readonly body?: Uint8Array;
  /**
   * Never sends the request twice, even when a kept connection is found to be closed: for callers that count attempts.
   */
  readonly isSentOnce?: true;
  /** Time for each address to accept a connection, TLS included; limited by `timeoutMs` only unless given. */
  readonly connectTimeoutMs?: number;
  /** Time from the first connection attempt to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface PinnedResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Must be read to its end, drained or cancelled. Until then, or until the deadline, it occupies the connection. */
  readonly body: PinnedBody;
}

/**
 * Returns the server's answer whatever its status, redirects and errors included. When a kept connection is found to be
 * closed, the request is sent again on another one; in no other case is a request sent again.
 * Errors: `RequestFailed`, or the reason of `signal`. See docs/security.md#outbound-addresses.
 */
export async function pinnedRequest(request: PinnedRequest): Promise<PinnedResponse> {
  const { agent, url } = request;
  const deadline = new Deadline(request.world, request.timeoutMs, request.signal);
  try {
    let failure: RequestFailed | null = null;
    for (const address of agent.inOrder(url, request.addresses)) {
      try {
        const message = await exchange(request, address, deadline.signal);
        agent.rememberAnswer(url, address);
        return {
          status: message.statusCode!,
          headers: headersOf(message),
          body: new PinnedBody(message, deadline),
        };
      } catch (error) {
        if (!(error instanceof RequestFailed && error.kind === "connect")) throw error;
        failure = error;
      }
    }
    throw failure ?? new RequestFailed("connect", "it has no address");
  } catch (error) {
    deadline[Symbol.dispose]();
    throw error;
  }
}

/**
 * The body of an answer, to be read once. Reading rejects with `RequestFailed` when the connection or the time ends.
 */
export class PinnedBody implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #deadline: Deadline;

  /** Owns `deadline` from now on. */
  constructor(message: IncomingMessage, deadline: Deadline) {
    this.#message = message;
    this.#deadline = deadline;
    const onAbort = () => message.destroy(abortError(deadline.signal));
    deadline.signal.addEventListener("abort", onAbort, { once: true });
    message.once("close", () => deadline[Symbol.dispose]());
    message.on("error", () => {/* the reader gets it */});
  }

  /** Leaving the loop early closes the connection. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      for await (const chunk of this.#message) yield chunk;
      if (!this.#message.complete) throw new RequestFailed("reset", "the connection was cut");
    } catch (error) {
      throw this.#deadline.signal.aborted ? abortError(this.#deadline.signal) : failureOf(error);
    } finally {
      this.cancel();
    }
  }

  /** Reads and drops the rest, so that the connection can be used again. A rest over `maxBytes` closes it instead. */
  async drain(maxBytes: number): Promise<void> {
    let bytes = 0;
    try {
      for await (const chunk of this) {
        bytes += chunk.length;
        if (bytes > maxBytes) return;
      }
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error; // the rest is not needed
    }
  }

  /** Closes the connection, unless the whole body was read. */
  cancel(): void {
    this.#message.destroy();
    this.#deadline[Symbol.dispose]();
  }
}

/** One request to one address, up to the status line and headers of the answer. */
async function exchange(
  request: PinnedRequest,
  address: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  while (true) {
    if (signal.aborted) throw abortError(signal);
    const sent = send(request, address);
    try {
      return await headOf(sent.outgoing, sent.isConnected, signal);
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
      ...(body && { "content-length": String(body.length) }),
    },
  });
  let connected = false;
  let reused = false;
  const onTimeout = () => outgoing.destroy(new RequestFailed("connect", "it does not accept a connection"));
  const connectTimer = connectTimeoutMs === undefined ? undefined : timer(world, connectTimeoutMs, onTimeout);
  outgoing.once("close", () => connectTimer?.[Symbol.dispose]());
  const onConnected = () => {
    connected = true;
    connectTimer?.[Symbol.dispose]();
  };
  const ready = url.protocol === "https:" ? "secureConnect" : "connect";
  outgoing.once("socket", (socket) => {
    reused = outgoing.reusedSocket;
    // If this is true, the runtime itself sends the request again when the connection ends, even when it was destroyed
    // on purpose (denoland/deno#36786). `exchange` decides whether to try again.
    outgoing.reusedSocket = false;
    if (reused) onConnected();
    else socket.once(ready, onConnected);
  });
  outgoing.end(body && Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return { outgoing, isConnected: () => connected, isReused: () => reused };
}

/** A server that only announces its answer (1xx) would keep the thread busy until the deadline. */
const INFORMATIONAL_MAX = 8;

function headOf(
  outgoing: ClientRequest,
  isConnected: () => boolean,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(abortError(signal));
      outgoing.destroy();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const onClose = () => {
      stopListening();
      reject(new RequestFailed(isConnected() ? "reset" : "connect", "the connection was closed"));
    };
    const stopListening = () => {
      signal.removeEventListener("abort", onAbort);
      outgoing.off("close", onClose);
    };
    outgoing.once("response", (message) => {
      stopListening();
      resolve(message);
    });
    let informational = 0;
    const onInformation = () => {
      if (++informational <= INFORMATIONAL_MAX) return;
      outgoing.destroy(new RequestFailed("protocol", "it announces an answer too many times"));
    };
    outgoing.on("continue", onInformation);
    outgoing.on("information", onInformation);
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

/** The deadline becomes a `RequestFailed`; an abort by the caller stays the caller's reason. */
function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof OutOfTime
    ? new RequestFailed("timeout", "it took too long to answer")
    : signal.reason;
}

function headersOf(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    headers.append(message.rawHeaders[index]!, message.rawHeaders[index + 1]!);
  }
  return headers;
}
