/** A tunnel on loopback through which ffmpeg reads one RTSP source: pinned, verified, and leading nowhere else. */

import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Refusal } from "../../base/refusal.ts";
import { LIMITS } from "../../model/limits.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, canonicalHost, checkedTarget } from "../guard/address_guard.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import type { FetchContext } from "./prefetch.ts";
import { failureOf } from "../guard/request_failed.ts";

/**
 * ```
 *   ffmpeg ─rtsp, loopback→ tunnel ─rtsp or rtsps, pinned, verified→ the server
 * ```
 *
 * ffmpeg itself (5.1) verifies no certificate of an rtsps server, and follows a server's redirect to any host. Media
 * comes interleaved in the same connection, so a server that sends by UDP only cannot be read.
 */
export class RtspTunnel implements AsyncDisposable {
  /** What ffmpeg is to open. */
  readonly url: string;
  readonly #server: Server;
  readonly #origin: string;
  readonly #target: Target;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  readonly #sockets = new Set<Socket>();
  #fault: Refusal | undefined;

  private constructor(server: Server, target: Target, context: FetchContext) {
    this.#server = server;
    this.#target = target;
    this.#context = context;
    this.#origin = `rtsp://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.url = `${this.#origin}${target.path}`;
    server.on("connection", (near) => void this.#join(near));
  }

  /** Connects once, so that what is wrong is told in words: 422 `source_uri`. `url` is one of rtsp or rtsps. */
  static async open(url: URL, context: FetchContext): Promise<RtspTunnel> {
    const target = await targetOf(url, context);
    (await connected(target, context, context.signal)).destroy();
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    return new RtspTunnel(server, target, context);
  }

  /** What the server did that ended the connection; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Ends what is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the tunnel is closing"));
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #join(near: Socket): Promise<void> {
    this.#keep(near);
    try {
      const far = this.#keep(await connected(this.#target, this.#context, this.#closing.signal));
      near.once("close", () => far.destroy());
      far.once("close", () => near.end());
      const onRedirect = () => {
        this.#fault ??= sourceFault("its server redirects to another place");
        far.destroy();
      };
      joinSockets(near, far, {
        nearOrigin: this.#origin,
        farOrigin: this.#target.origin,
        onRedirect,
      });
    } catch (error) {
      if (error instanceof Refusal) this.#fault ??= error;
      near.destroy();
    }
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

interface Target {
  readonly url: URL;
  readonly isSecure: boolean;
  readonly port: number;
  readonly addresses: readonly string[];
  /** As requests name it: `rtsps://host:port`. */
  readonly origin: string;
  readonly path: string;
}

const PORT = 554;
const SECURE_PORT = 322;

async function targetOf(url: URL, { world, allowPrivate, resolve, signal }: FetchContext): Promise<Target> {
  const isSecure = url.protocol === "rtsps:";
  const guard = { world, allowPrivate, timeoutMs: LIMITS.ingest.prefetchTimeoutMs, signal };
  try {
    const addresses = await checkedTarget(url, { ...guard, ...(resolve && { resolve }) });
    const host = canonicalHost(url.hostname);
    const named = `${host.includes(":") ? `[${host}]` : host}${url.port === "" ? "" : `:${url.port}`}`;
    return {
      url: new URL(`https://${named}/`),
      isSecure,
      port: Number(url.port) || (isSecure ? SECURE_PORT : PORT),
      addresses,
      origin: `${url.protocol}//${named}`,
      path: `${url.pathname}${url.search}`,
    };
  } catch (error) {
    throw error instanceof AddressRefused ? sourceFault(error.message) : error;
  }
}

/** The first of the checked addresses that can be connected to. */
async function connected(
  target: Target,
  { world, agent }: FetchContext,
  signal: AbortSignal,
): Promise<Socket> {
  using deadline = new Deadline(world, CONNECT_TIMEOUT_MS, signal);
  let failure = sourceFault("it cannot be connected to");
  for (const address of target.addresses) {
    try {
      return await agent.connect(target.url, address, target.port, target.isSecure, deadline.signal);
    } catch (error) {
      signal.throwIfAborted();
      const isLate = deadline.signal.reason instanceof OutOfTime;
      failure = sourceFault(
        isLate
          ? `connecting to it took longer than ${CONNECT_TIMEOUT_MS / 1000} s`
          : `it cannot be fetched: ${failureOf(error, false).message}`,
      );
    }
  }
  throw failure;
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Bytes as they come, with two exceptions before the media begins: a request names the server instead of the tunnel, and
 * an answer that redirects ends the connection.
 */
function joinSockets(
  near: Socket,
  far: Socket,
  { nearOrigin, farOrigin, onRedirect }: { nearOrigin: string; farOrigin: string; onRedirect: () => void },
): void {
  let isPlaying = false;
  let tail = "";
  near.on("data", (bytes: Uint8Array) => {
    const text = LATIN1.decode(bytes);
    isPlaying ||= /^PLAY /m.test(text);
    const isRequest = /^[A-Z_]+ rtsp:\/\//.test(text);
    pass(near, far, isRequest ? latin1(text.replaceAll(nearOrigin, farOrigin)) : bytes);
  });
  far.on("data", (bytes: Uint8Array) => {
    if (!isPlaying) {
      const text = tail + LATIN1.decode(bytes);
      if (/RTSP\/\d\.\d +3/i.test(text)) return onRedirect();
      tail = text.slice(-REDIRECT_CHARACTERS);
    }
    pass(far, near, bytes);
  });
}

const LATIN1 = new TextDecoder("latin1");
/** A status line up to its first digit, however its parts arrive. */
const REDIRECT_CHARACTERS = 32;

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

/** The reader is stopped while the writer has no room. */
function pass(from: Socket, to: Socket, bytes: Uint8Array): void {
  if (to.destroyed || to.write(bytes)) return;
  from.pause();
  to.once("drain", () => from.resume());
}
