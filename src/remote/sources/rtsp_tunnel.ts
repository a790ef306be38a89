/** A tunnel on loopback through which ffmpeg reads one RTSP source, from checked addresses and one server only. */

import { createServer, type Server, type Socket } from "node:net";
import { joinedBytes } from "../../base/bytes.ts";
import { Refusal } from "../../base/refusal.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, canonicalHost } from "../guard/address_guard.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import { listenForFfmpeg } from "./listening.ts";
import { Authorization } from "../../model/sources/source_credentials.ts";
import { type FetchContext, LOGIN_REFUSED, sourceAddresses } from "./source_request.ts";
import { RtspRefused, RtspReplies } from "./rtsp_replies.ts";
import { failureOf } from "../guard/request_failed.ts";

/**
 * ```
 *   ffmpeg ─rtsp, loopback→ tunnel ─rtsp or rtsps, pinned, verified→ the server
 * ```
 *
 * The tunnel is needed because ffmpeg itself (5.1) does not verify the certificate of an rtsps server, and follows
 * redirects to any host. It also keeps the user name and password of a source, which ffmpeg never gets. Media is interleaved in the same connection, so a server that only sends over UDP cannot be
 * read. See docs/live.md#pulled-sources.
 */
export class RtspTunnel implements AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  readonly #server: Server;
  readonly #target: Target;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  readonly #sockets = new Set<Socket>();
  #fault: Refusal | undefined;

  private constructor(server: Server, host: string, target: Target, context: FetchContext) {
    this.#server = server;
    this.#target = target;
    this.#context = context;
    // Not with the path of the source, in which there may be a secret: who looks at the processes sees what ffmpeg opens.
    this.url = `rtsp://${host}/source`;
    server.on("connection", (client) => void this.#join(client));
  }

  /**
   * Connects once as a test, so that a failure is refused with its reason: 422 `source_uri`. `url` is rtsp or rtsps. It listens
   * on the Unix socket, or without one on a port of the machine's loopback.
   */
  static async open(url: URL, context: FetchContext, socket: string | null = null): Promise<RtspTunnel> {
    const target = await targetOf(url, context);
    (await connectToFirst(target, context, context.signal)).destroy();
    const server = createServer();
    return new RtspTunnel(server, await listenForFfmpeg(server, socket), target, context);
  }

  /** Why the tunnel closed a connection to the server, if it did; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the tunnel is closing"));
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Connects ffmpeg's connection to the server. */
  async #join(client: Socket): Promise<void> {
    this.#track(client);
    try {
      const upstream = this.#track(
        await connectToFirst(this.#target, this.#context, this.#closing.signal),
      );
      client.once("close", () => upstream.destroy());
      upstream.once("close", () => client.end());
      const onRefused = (error: unknown) => {
        const isExpected = error instanceof RtspRefused;
        // A flaw of ours ends one connection, and not the service.
        if (!isExpected) {
          this.#context.world.log.error("an RTSP answer could not be read", { error: String(error) });
        }
        this.#fault ??= sourceFault(isExpected ? error.message : "its server's answer could not be read");
        upstream.destroy();
      };
      const { named, world } = this.#context;
      const credentials = named?.login?.credentials;
      joinSockets(client, upstream, {
        tunnelUrl: this.url,
        serverUrl: `${this.#target.origin}${this.#target.path}`,
        authorization: credentials ? new Authorization(credentials, world.randomBytes(8).toHex()) : null,
        onLoginRefused: () => void (this.#fault ??= sourceFault(LOGIN_REFUSED)),
        onRefused,
      });
    } catch (error) {
      if (error instanceof Refusal) this.#fault ??= error;
      client.destroy();
    }
  }

  /** Closes the socket with the tunnel. */
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
  /** As it is in RTSP requests: `rtsps://host:port`. */
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

interface JoinOptions {
  readonly tunnelUrl: string;
  readonly serverUrl: string;
  /** Null for a source without a user name. */
  readonly authorization: Authorization | null;
  /** The server does not take the credentials. */
  readonly onLoginRefused: () => void;
  readonly onRefused: (error: unknown) => void;
}

/**
 * Passes bytes on, with three exceptions: in a request the URL of the tunnel is replaced by that of the source; of the
 * server's answers only what `RtspReplies` lets through reaches ffmpeg; where the server asks for the credentials, the last
 * request is sent again with them, and so are all later ones.
 */
function joinSockets(client: Socket, upstream: Socket, options: JoinOptions): void {
  const { tunnelUrl, serverUrl, authorization, onLoginRefused, onRefused } = options;
  let last = "";
  const replies = new RtspReplies(({ code, challenges }) => {
    if (code !== 401) {
      authorization?.accepted();
      return false;
    }
    if (authorization === null) return false;
    if (last === "" || !authorization.take(challenges)) {
      onLoginRefused();
      return false;
    }
    pass(client, upstream, latin1(withAuthorization(last, authorization)));
    return true;
  });
  client.on("data", (bytes: Uint8Array) => {
    const text = LATIN1.decode(bytes);
    const requests = text.match(REQUEST_LINE)?.length ?? 0;
    replies.requested(requests);
    if (requests === 0) return pass(client, upstream, bytes);
    const sent = text.replaceAll(tunnelUrl, () => serverUrl);
    if (authorization === null) return pass(client, upstream, latin1(sent));
    last = sent.slice([...sent.matchAll(REQUEST_LINE)].at(-1)?.index ?? 0);
    pass(client, upstream, latin1(withAuthorization(sent, authorization)));
  });
  upstream.on("data", (bytes: Uint8Array) => {
    if (upstream.destroyed) return;
    try {
      const passed = replies.take(bytes);
      // In one piece: thousands of short replies in one packet are not thousands of writes.
      if (passed.length > 0) {
        pass(upstream, client, passed.length === 1 ? passed[0]! : joinedBytes(...passed));
      }
    } catch (error) {
      onRefused(error);
    }
  });
}

/** The requests of a text with the header `Authorization` after their first lines; unchanged before the server asked. */
function withAuthorization(requests: string, authorization: Authorization): string {
  return requests.replace(REQUEST_LINE, (line) => {
    const [method = "", uri = ""] = line.split(" ");
    const value = authorization.header({ method, uri });
    return value === null ? line : `${line}Authorization: ${value}\r\n`;
  });
}

const LATIN1 = new TextDecoder("latin1");
/** ffmpeg sends a request in one piece; reports on the media may stand before it. */
const REQUEST_LINE = /[A-Z_]+ \S+ RTSP\/1\.0\r\n/g;

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

/** Passes bytes on; pauses reading `from` while the buffer of `to` is full. */
function pass(from: Socket, to: Socket, bytes: Uint8Array): void {
  if (to.destroyed || to.write(bytes)) return;
  from.pause();
  to.once("drain", () => from.resume());
}
