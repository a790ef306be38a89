/** Listens for HTTP/3: the UDP endpoint, which connections it takes, and how it closes. */

import { networkOf } from "../base/ip_address.ts";
import { Deadlines, hasEndedWithin, timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import { PieceMemory } from "./wire/byte_source.ts";
import { Http3Connection } from "./connection.ts";
import type { Respond } from "./exchange.ts";
import { ERROR_CODES } from "./wire/faults.ts";

/** Texts in PEM. */
export interface Certificate {
  /** The certificate of the service, and those between it and an authority. */
  readonly chain: string;
  readonly key: string;
}

export interface ListenerOptions {
  readonly address: { readonly hostname: string; readonly port: number };
  readonly certificate: Certificate;
  /** `address` is that of the client. */
  readonly respond: (request: Request, address: string) => ReturnType<Respond>;
  readonly world: Pick<World, "monotonicMs" | "sleep" | "log">;
}

/** The application protocol that clients must speak. */
const ALPN = "h3";
/** Streams on which a client only sends: three are usual, and an unknown one ends at once. */
const PEER_STREAMS_MAX = 16;
/** Work must end within 2 s after its client is gone. */
const TICK_MS = 1000;

/**
 * Early data waits until the handshake is complete, which nobody can repeat (RFC 8446 2.3): a connection is taken only then.
 * Where it comes from is known only then, too: reading the address of one that was not accepted spoils it in Deno 2.9.
 */
export class Http3Listener implements AsyncDisposable {
  readonly #endpoint: Deno.QuicEndpoint;
  readonly #listener: Deno.QuicListener;
  readonly #options: ListenerOptions;
  readonly #headDeadlines: Deadlines;
  readonly #restDeadlines: Deadlines;
  readonly #connections = new Set<Http3Connection>();
  readonly #byAddress = new Map<string, number>();
  readonly #memory = new PieceMemory();
  #handshakes = 0;
  #total = 0;
  #tick: Disposable | undefined;
  #closing: Promise<void> | undefined;

  /** Throws where the address is taken, or key and certificate do not belong together. */
  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#endpoint = new Deno.QuicEndpoint(options.address);
    const { chain, key } = options.certificate;
    this.#listener = this.#endpoint.listen({
      cert: chain,
      key,
      alpnProtocols: [ALPN],
      maxIdleTimeout: LIMITS.http3.silenceMs,
      maxConcurrentBidirectionalStreams: LIMITS.http3.requestsPerConnection,
      maxConcurrentUnidirectionalStreams: PEER_STREAMS_MAX,
    });
    this.#headDeadlines = new Deadlines(options.world, LIMITS.http3.headReadMs);
    this.#restDeadlines = new Deadlines(options.world, LIMITS.http3.restReadMs);
    void this.#accept();
  }

  get port(): number {
    return this.#endpoint.addr.port;
  }

  /** How many connections are open. */
  get open(): number {
    return this.#connections.size;
  }

  /** How many there were. */
  get total(): number {
    return this.#total;
  }

  /** Takes no connections and no requests any more, and waits so long for the answers under way. */
  close(graceMs: number): Promise<void> {
    return this.#closing ??= this.#close(graceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0);
  }

  async #close(graceMs: number): Promise<void> {
    const { world } = this.#options;
    this.#listener.stop();
    const drained = Promise.all([...this.#connections].map((connection) => connection.drain()));
    if (!await hasEndedWithin(world, graceMs, drained) && graceMs > 0) {
      world.log.warn(`HTTP/3 responses under way did not end within ${graceMs} ms, dropping them`);
    }
    for (const connection of this.#connections) connection.close("H3_NO_ERROR", "the service closes");
    this.#tick?.[Symbol.dispose]();
    this.#headDeadlines[Symbol.dispose]();
    this.#restDeadlines[Symbol.dispose]();
    this.#endpoint.close({ closeCode: ERROR_CODES.H3_NO_ERROR, reason: "the service closes" });
  }

  async #accept(): Promise<void> {
    for await (const incoming of this.#listener) {
      const isFull = this.#connections.size >= LIMITS.http3.connections;
      if (this.#closing || isFull || this.#handshakes >= LIMITS.http3.handshakes) {
        incoming.refuse();
        continue;
      }
      this.#handshakes++;
      incoming.accept<false>().finally(() => this.#handshakes--).then(
        (connection) => void this.#serve(connection),
        () => {}, // a handshake that failed or took too long
      );
    }
  }

  async #serve(connection: Deno.QuicConn): Promise<void> {
    const { respond, world } = this.#options;
    const { hostname } = connection.remoteAddr;
    const address = networkOf(hostname);
    const ofAddress = this.#byAddress.get(address) ?? 0;
    const isFull = this.#connections.size >= LIMITS.http3.connections;
    if (this.#closing || isFull || ofAddress >= LIMITS.http3.connectionsPerAddress) {
      return connection.close({ closeCode: ERROR_CODES.H3_EXCESSIVE_LOAD, reason: "too many connections" });
    }
    this.#total++;
    this.#byAddress.set(address, ofAddress + 1);
    const served = new Http3Connection(connection, {
      respond: (request) => respond(request, hostname),
      ...{ world, headDeadlines: this.#headDeadlines, restDeadlines: this.#restDeadlines },
      memory: this.#memory,
    });
    this.#connections.add(served);
    this.#schedule();
    await served.run();
    this.#connections.delete(served);
    const left = this.#byAddress.get(address)! - 1;
    if (left === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, left);
  }

  #schedule(): void {
    this.#tick ??= timer(this.#options.world, TICK_MS, () => {
      this.#tick = undefined;
      for (const connection of this.#connections) connection.tick();
      if (this.#connections.size > 0 && !this.#closing) this.#schedule();
    });
  }
}
