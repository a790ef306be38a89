/** Connections of outbound requests: each one to an address that was checked, and verified against the host's name. */

import {
  Agent as HttpAgent,
  type ClientRequest,
  request as httpRequest,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { connect as connectPlain, type Socket } from "node:net";
import tls from "node:tls";
import { isAddress } from "../../model/sources/ip_address.ts";

export interface PinnedAgentOptions {
  /** PEM certificates of the authorities to trust, from `trustedRoots`. */
  readonly roots: readonly string[];
  /** Accepts any certificate: SERVICE_ALLOW_INSECURE_TLS, for media sources only. */
  readonly allowInsecureTls?: boolean;
  /** Kept open to one address under one name; 4. Each may turn out stale before a request goes through. */
  readonly freeSocketsMax?: number;
  /** Where a connection to a checked address really goes: `Outbound`. */
  readonly reroute?: (address: string) => string;
}

/**
 * Connections are kept open for the next request to the same address under the same name. A request names the addresses
 * that were checked for it, so a kept connection to an address that is no longer among them is not used again.
 */
export class PinnedAgent implements Disposable {
  readonly #plain: HttpAgent;
  readonly #secure: HttpsAgent;
  readonly #trust: tls.ConnectionOptions;
  /** By origin: the address that answered last, so that it is not the resolver's order that decides about reuse. */
  readonly #reached = new Map<string, string>();
  readonly #reroute: (address: string) => string;

  constructor(
    {
      roots,
      allowInsecureTls = false,
      freeSocketsMax = FREE_SOCKETS_MAX,
      reroute = (address) => address,
    }: PinnedAgentOptions,
  ) {
    this.#reroute = reroute;
    const kept = { keepAlive: true, maxFreeSockets: freeSocketsMax, timeout: IDLE_MS };
    this.#plain = new HttpAgent(kept);
    this.#trust = {
      // Read once, not for every connection: verifying against 160 roots costs 10 ms, parsing them again as much.
      secureContext: tls.createSecureContext({ ca: [...roots] }),
      // Without a list of its own the library reads the environment for one, which the sandbox refuses.
      ca: [],
      rejectUnauthorized: !allowInsecureTls,
    };
    this.#secure = new HttpsAgent({ ...kept, ...this.#trust });
  }

  /** Starts a request to `address` on behalf of the host of `url`; redirects are answers like any other. */
  open(
    url: URL,
    address: string,
    options: Pick<RequestOptions, "method" | "path" | "headers">,
  ): ClientRequest {
    const name = nameOf(url);
    const isSecure = url.protocol === "https:";
    const target = {
      ...options,
      host: this.#reroute(address),
      port: Number(url.port) || (isSecure ? 443 : 80),
    };
    if (!isSecure) return httpRequest({ ...target, agent: this.#plain });
    // A certificate for an address is verified against `host`; the handshake carries names only.
    return httpsRequest({ ...target, agent: this.#secure, ...(isAddress(name) ? {} : { servername: name }) });
  }

  /**
   * A connection of one's own to `address`, verified against the host of `url` if `isSecure`; the caller ends it.
   * Errors: those of the network library (`failureOf`), and the reason of `signal`.
   */
  connect(url: URL, address: string, port: number, isSecure: boolean, signal: AbortSignal): Promise<Socket> {
    const target = { host: this.#reroute(address), port };
    const name = nameOf(url);
    const socket = isSecure
      ? tls.connect({ ...target, ...this.#trust, ...(isAddress(name) ? {} : { servername: name }) })
      : connectPlain(target);
    return new Promise<Socket>((resolve, reject) => {
      const onAbort = () => socket.destroy(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      socket.once("close", () => signal.removeEventListener("abort", onAbort));
      socket.once(isSecure ? "secureConnect" : "connect", () => resolve(socket));
      socket.on("error", reject);
      socket.once("close", () => reject(new Error("closed before it was ready"))); // too late once it was ready
    });
  }

  /** `addresses`, the one that answered last in front. */
  inOrder({ origin }: URL, addresses: readonly string[]): readonly string[] {
    const reached = this.#reached.get(origin);
    if (reached === undefined || !addresses.includes(reached)) return addresses;
    return [reached, ...addresses.filter((address) => address !== reached)];
  }

  /** Remembers that `address` answered. */
  reached({ origin }: URL, address: string): void {
    if (this.#reached.size >= ORIGINS_REMEMBERED_MAX) this.#reached.clear();
    this.#reached.set(origin, address);
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** As certificates spell it. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "").toLowerCase();
}

const FREE_SOCKETS_MAX = 4;
/** A connection that nobody has used for so long is closed. */
const IDLE_MS = 30_000;
const ORIGINS_REMEMBERED_MAX = 256;
