/** A tunnel on loopback through which ffmpeg reads one RTSP source, from checked addresses and one server
 * only.
 */

import { createServer, type Server, type Socket } from "node:net";
import { Refusal } from "../../contract/refusal.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, canonicalHost } from "../guard/address_guard.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import { listenForFfmpeg } from "./listening.ts";
import { Authorization } from "../../model/sources/source_credentials.ts";
import type { CountDatagrams } from "./rtp_datagrams.ts";
import { RtspConnection } from "./rtsp_connection.ts";
import { RtspRefused } from "./rtsp_replies.ts";
import { SourceBudget } from "./source_budget.ts";
import { type FetchContext, sourceAddresses } from "./source_request.ts";
import { failureOf } from "../guard/request_failed.ts";

interface TunnelContext extends FetchContext {
  /** What became of the media that came over UDP. */
  readonly countDatagrams?: CountDatagrams;
}

/**
 * ```
 *   ffmpeg ─rtsp, loopback→ tunnel ─rtsp or rtsps, pinned, verified→ the server
 * ```
 *
 * The tunnel is needed because ffmpeg itself (5.1) does not verify the certificate of an rtsps server, and
 * follows redirects to any host. It also keeps the user name and password of a source, which ffmpeg never
 * gets. Towards ffmpeg media is interleaved in the connection, also that of a server which sends it over UDP.
 * See docs/live.md#pulled-sources.
 */
export class RtspTunnel implements AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  readonly #server: Server;
  readonly #target: Target;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<RtspConnection>();
  readonly #countDatagrams: CountDatagrams;
  readonly #budget: SourceBudget;
  #fault: Refusal | undefined;
  #end: string | undefined;

  private constructor(
    server: Server,
    host: string,
    target: Target,
    { countDatagrams = () => {}, ...context }: TunnelContext,
  ) {
    this.#server = server;
    this.#countDatagrams = countDatagrams;
    this.#target = target;
    this.#context = context;
    this.#budget = new SourceBudget(context.world, context.onChange);
    // Not with the path of the source, in which there may be a secret: who looks at the processes sees what
    // ffmpeg opens.
    this.url = `rtsp://${host}/source`;
    server.on("connection", (client) => void this.#join(client));
  }

  /**
   * Connects once as a test, so that a failure is refused with its reason: 422 `source_uri`. `url` is rtsp or
   * rtsps. It listens on the Unix socket, or without one on a port of the machine's loopback.
   */
  static async open(url: URL, context: TunnelContext, socket: string | null = null): Promise<RtspTunnel> {
    const target = await targetOf(url, context);
    (await connectToFirst(target, context, context.signal)).destroy();
    const server = createServer();
    return new RtspTunnel(server, await listenForFfmpeg(server, socket), target, context);
  }

  /** Why the tunnel closed the last connection to the server, if it did; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Why the last connection to the server is over; undefined where ffmpeg or the service ended it. */
  get end(): string | undefined {
    return this.#fault?.details[0]?.message ?? this.#end ?? this.#budget.reason;
  }

  /** Closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the tunnel is closing"));
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Connects ffmpeg's connection to the server. */
  async #join(client: Socket): Promise<void> {
    this.#track(client);
    this.#fault = this.#end = undefined;
    this.#context.onChange?.();
    try {
      const upstream = this.#track(
        await connectToFirst(this.#target, this.#context, this.#closing.signal),
      );
      if (client.destroyed) return void upstream.destroy();
      const { named, world } = this.#context;
      const credentials = named?.login?.credentials;
      const connection = new RtspConnection({
        ...{ world, client, upstream, tunnelUrl: this.url },
        serverUrl: `${this.#target.origin}${this.#target.path}`,
        authorization: credentials ? new Authorization(credentials, world.randomBytes(8).toHex()) : null,
        mayUseUdp: !this.#target.isSecure,
        budget: this.#budget,
        countDatagrams: this.#countDatagrams,
        onFault: (error) => this.#onFault(error),
        onEnded: (reason) => {
          this.#end ??= reason;
          this.#context.onChange?.();
        },
      });
      this.#connections.add(connection);
      upstream.once("close", () => this.#connections.delete(connection));
    } catch (error) {
      if (error instanceof Refusal) this.#fault ??= error;
      this.#context.onChange?.();
      client.destroy();
    }
  }

  #onFault(error: unknown): void {
    const isExpected = error instanceof RtspRefused;
    // A flaw of ours ends one connection, and not the service.
    if (!isExpected) {
      this.#context.world.log.error("an RTSP answer could not be read", { error: String(error) });
    }
    this.#fault ??= sourceFault(isExpected ? error.message : "its server's answer could not be read");
    this.#context.onChange?.();
  }

  /** Keeps the socket in the list of those that are closed with the tunnel. */
  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

interface Target {
  /** The host as an https URL, as `PinnedAgent.connect` needs it. */
  readonly url: URL;
  readonly isSecure: boolean;
  readonly port: number;
  readonly addresses: readonly string[];
  /** The address as it is in RTSP requests: `rtsps://host:port`. */
  readonly origin: string;
  readonly path: string;
}

const PORT = 554;
const SECURE_PORT = 322;

async function targetOf(url: URL, context: FetchContext): Promise<Target> {
  const isSecure = url.protocol === "rtsps:";
  try {
    const addresses = await sourceAddresses(url, context, context.signal);
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

/** A connection to the first of the checked addresses that accepts one. */
async function connectToFirst(
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
