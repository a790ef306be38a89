/** The connections of outbound requests: each to a checked address, with a certificate verified for the
 * host's name.
 */

import {
  Agent as HttpAgent,
  type AgentOptions,
  type ClientRequest,
  request as httpRequest,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { connect as connectPlain, type Socket } from "node:net";
import * as tls from "node:tls";
import { connectPaced } from "./paced_tls.ts";
import { isAddress } from "../../base/ip_address.ts";
import { readOddHead } from "./odd_heads.ts";
import type { Roots } from "./outbound.ts";

export interface PinnedAgentOptions {
  /** The authorities to trust; asked before the first connection with TLS. */
  readonly roots: Roots;
  /** SERVICE_ALLOW_INSECURE_TLS: accepts any certificate, for media sources only. */
  readonly allowInsecureTls?: boolean;
  /** Reads the heads of answers as players do; for media sources only. */
  readonly readsOddHeads?: boolean;
  /** Whether TLS connections pause with their reader; for servers that may send without end. */
  readonly isPaced?: boolean;
  /** How many unused connections to one address under one name are kept open; 4. */
  readonly freeSocketsMax?: number;
  /** Replaces the address of a connection: see `Outbound`. */
  readonly reroute?: (address: string) => string;
}

/**
 * Keeps connections open for the next request to the same address under the same name. Each request brings
 * the addresses that were checked for it, so a kept connection to an address that is not among them is not
 * used.
 */
export class PinnedAgent implements Disposable {
  readonly #options: PinnedAgentOptions;
  readonly #kept: AgentOptions;
  #plainAgent: HttpAgent | null = null;
  #secureAgent: HttpsAgent | null = null;
  #trust: tls.ConnectionOptions | null = null;
  /**
   * The address that answered last, by origin, so that its connection is reused whatever the order of the
   * resolver.
   */
  readonly #lastAnswered = new Map<string, string>();
  readonly #reroute: (address: string) => string;

  constructor(options: PinnedAgentOptions) {
    const { freeSocketsMax = FREE_SOCKETS_MAX, reroute = (address) => address } = options;
    this.#options = options;
    this.#reroute = reroute;
    this.#kept = { keepAlive: true, maxFreeSockets: freeSocketsMax, timeout: IDLE_MS };
  }

  // All of them are made for the first connection, as a start needs none: loading the library, reading the
  // roots and parsing them take 40 ms.

  get #plain(): HttpAgent {
    return this.#plainAgent ??= new HttpAgent(this.#kept);
  }

  get #secure(): HttpsAgent {
    const options = { ...this.#kept, ...this.#trusted };
    return this.#secureAgent ??= this.#options.isPaced ? new PacedAgent(options) : new HttpsAgent(options);
  }

  get #trusted(): tls.ConnectionOptions {
    const { roots, allowInsecureTls = false } = this.#options;
    return this.#trust ??= {
      // Parsed once: for every connection, parsing 160 roots would take as long (10 ms) as verifying against
      // them.
      secureContext: tls.createSecureContext({ ca: [...roots()] }),
      // Without a list here the library reads the environment for one, which the sandbox does not permit.
      ca: [],
      rejectUnauthorized: !allowInsecureTls,
    };
  }

  /** Starts a request to `address` for the host of `url`. Does not follow redirects. */
  open(
    url: URL,
    address: string,
    options: Pick<RequestOptions, "method" | "path" | "headers">,
  ): ClientRequest {
    const isSecure = url.protocol === "https:";
    const target = {
      ...options,
      host: this.#reroute(address),
      // Small servers end lines with LF alone, fold them and more. Nobody but us reads these answers, so
      // there is nobody who could read them in another way.
      insecureHTTPParser: true,
      port: Number(url.port) || (isSecure ? 443 : 80),
    };
    const name = nameOf(url);
    const request = isSecure
      // The TLS handshake can name a host only; a certificate for an address is verified against `host`.
      ? httpsRequest({ ...target, agent: this.#secure, ...(isAddress(name) ? {} : { servername: name }) })
      : httpRequest({ ...target, agent: this.#plain });
    if (this.#options.readsOddHeads) readOddHead(request);
    return request;
  }

  /**
   * A connection to `address` that is not shared, verified against the host of `url` if `isSecure`. The
   * caller closes it. Errors: those of the network library (`failureOf`), and the reason of `signal`.
   */
  connect(url: URL, address: string, port: number, isSecure: boolean, signal: AbortSignal): Promise<Socket> {
    const target = { host: this.#reroute(address), port };
    const name = nameOf(url);
    const connectSecure = this.#options.isPaced ? connectPaced : tls.connect;
    const socket = isSecure
      ? connectSecure({ ...target, ...this.#trusted, ...(isAddress(name) ? {} : { servername: name }) })
      : connectPlain(target);
    return new Promise<Socket>((resolve, reject) => {
      const onAbort = () => socket.destroy(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      socket.once("close", () => signal.removeEventListener("abort", onAbort));
      socket.once(isSecure ? "secureConnect" : "connect", () => resolve(socket));
      socket.on("error", reject);
      // no effect once it was ready
      socket.once("close", () => reject(new Error("closed before it was ready")));
    });
  }

  /** The addresses, with the one that answered last in front. */
  inOrder({ origin }: URL, addresses: readonly string[]): readonly string[] {
    const first = this.#lastAnswered.get(origin);
    if (first === undefined || !addresses.includes(first)) return addresses;
    return [first, ...addresses.filter((address) => address !== first)];
  }

  /** Remembers that `address` answered. */
  rememberAnswer({ origin }: URL, address: string): void {
    if (this.#lastAnswered.get(origin) === address) return;
    if (this.#lastAnswered.size >= ORIGINS_REMEMBERED_MAX) this.#lastAnswered.clear();
    this.#lastAnswered.set(origin, address);
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    this.#plainAgent?.destroy();
    this.#secureAgent?.destroy();
  }
}

class PacedAgent extends HttpsAgent {
  override createConnection(options: tls.ConnectionOptions & { host: string; port: number }): tls.TLSSocket {
    return connectPaced(options);
  }
}

/** The host as certificates write it: without brackets and trailing dots, in lower case. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "").toLowerCase();
}

const FREE_SOCKETS_MAX = 4;
/** An unused connection is closed after this time. */
const IDLE_MS = 30_000;
const ORIGINS_REMEMBERED_MAX = 256;
