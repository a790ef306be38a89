/** HTTP requests to addresses that the guard has checked: no second look-up, no proxy, no redirect. Contract 2.2. */

import { Buffer } from "node:buffer";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { World } from "../../base/world.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import type { PinnedAgent } from "./pinned_agent.ts";
import { failureOf, RequestFailed } from "./request_failed.ts";

export interface PinnedRequest {
  readonly world: World;
  /** Holds the connections, and says which certificates are trusted. */
  readonly agent: PinnedAgent;
  /** http or https, without user name and password. */
  readonly url: URL;
  /** Of the URL's host, from `checkedTarget`; the first one that can be connected to is used. */
  readonly addresses: readonly string[];
  readonly method: string;
  /** Sent as given, after `Host`, and `Content-Length` where there is a body. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as given. */
  readonly body?: Uint8Array;
  /** Never sent twice, not even when a kept connection turns out to be closed: for callers that count attempts. */
  readonly isSentOnce?: true;
  /** For each address until it has accepted a connection, TLS included; as long as everything unless given. */
  readonly connectTimeoutMs?: number;
  /** From the first connection to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface PinnedResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Must be read to its end, drained or cancelled; until then it holds the connection, at most until the deadline. */
  readonly body: PinnedBody;
}

/**
 * Answers with whatever the server says, redirects and errors included. A connection that was kept open and turns out to
 * be closed is replaced once; nothing else is tried twice after the request was sent.
 * Errors: `RequestFailed`, or the reason of `signal`.
 */
export async function pinnedRequest(request: PinnedRequest): Promise<PinnedResponse> {
  const { agent, url } = request;
  const deadline = new Deadline(request.world, request.timeoutMs, request.signal);
  try {
    let failure = new RequestFailed("connect", "it has no address");
    for (const address of agent.inOrder(url, request.addresses)) {
      try {
        const message = await exchange(request, address, deadline.signal);
        agent.reached(url, address);
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
    throw failure;
  } catch (error) {
    deadline[Symbol.dispose]();
    throw error;
  }
}

/** The bytes of an answer, once. Reading rejects with `RequestFailed` when the connection is cut or the time is up. */
export class PinnedBody implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #deadline: Deadline;

  /** Takes over `deadline`. */
  constructor(message: IncomingMessage, deadline: Deadline) {
    this.#message = message;
    this.#deadline = deadline;
    const onAbort = () => message.destroy(abortError(deadline.signal));
    deadline.signal.addEventListener("abort", onAbort, { once: true });
    message.once("close", () => deadline[Symbol.dispose]());
    message.on("error", () => {/* told to whoever reads */});
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

  /** Reads and drops what is left, so that the connection can be used again; what is longer than this is cut off. */
  async drain(maxBytes: number): Promise<void> {
    let bytes = 0;
    try {
      for await (const chunk of this) {
        bytes += chunk.length;
        if (bytes > maxBytes) return;
      }
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error; // a cut that nobody needed to read past
    }
  }

  /** Closes the connection, unless all has been read. */
  cancel(): void {
    this.#message.destroy();
    this.#deadline[Symbol.dispose]();
  }
}

/** One request to one address, up to the head of the answer. */
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
  const connecting = new AbortController();
  const onConnected = () => {
    connected = true;
    connecting.abort();
  };
  if (connectTimeoutMs !== undefined) {
    const giveUp = () => outgoing.destroy(new RequestFailed("connect", "it does not accept a connection"));
    world.sleep(connectTimeoutMs, connecting.signal).then(giveUp, () => {/* it was connected in time */});
    outgoing.once("close", () => connecting.abort());
  }
  const ready = url.protocol === "https:" ? "secureConnect" : "connect";
  outgoing.once("socket", (socket) => {
    reused = outgoing.reusedSocket;
    // With it the runtime sends a request again by itself when its connection ends, even one that was destroyed on
    // purpose (denoland/deno#36786): whether to try again is decided here.
    outgoing.reusedSocket = false;
    if (reused) onConnected();
    else socket.once(ready, onConnected);
  });
  outgoing.end(body && Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return { outgoing, isConnected: () => connected, isReused: () => reused };
}

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
    const letGo = () => signal.removeEventListener("abort", onAbort);
    outgoing.once("response", (message) => {
      letGo();
      resolve(message);
    });
    outgoing.once("upgrade", (_message, socket) => {
      letGo();
      socket.destroy();
      reject(new RequestFailed("protocol", "its answer is not plain HTTP"));
    });
    outgoing.on("error", (error) => {
      letGo();
      reject(failureOf(error, isConnected()));
    });
    outgoing.once("close", () => {
      letGo();
      reject(new RequestFailed(isConnected() ? "reset" : "connect", "the connection was closed"));
    });
  });
}

/** The deadline is a failure of the request; an abort by the caller stays the caller's own. */
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
