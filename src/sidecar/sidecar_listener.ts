/** A TCP listener with its connections: each is served request by request until it ends, is idle or takes too
 * long.
 */

import type { Address } from "../contract/setting_parsers.ts";
import { TaskGroup } from "../base/tasks.ts";
import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { SidecarPeer } from "./sidecar_peer.ts";

/** Connections at once; a further one is closed when it arrives. */
const CONNECTIONS_MAX = 64;
/** A connection without a request for this long is closed; its client notices that and opens another. */
const IDLE_MS = 600_000;
/** For receiving a request after its header, and for sending an answer. */
const TRANSFER_MS = 30_000;

/** One request of a connection. */
export interface SidecarExchange {
  /**
   * The next `length` bytes; null when the client has ended the connection. Throws when they take too long.
   */
  read(length: number): Promise<Uint8Array | null>;
  /** Throws when it takes too long. */
  write(parts: Uint8Array[]): Promise<void>;
  /**
   * Called once the request is read: sends the result of `work`, whose signal aborts when the client
   * disconnects or the sidecar closes.
   */
  answer(work: (disconnected: AbortSignal) => Promise<Uint8Array[]>): Promise<void>;
}

/** Serves one request whose header is `head`; false when the bytes after it cannot be understood. */
export type ServeRequest = (head: Uint8Array, exchange: SidecarExchange) => Promise<boolean>;

export interface SidecarListenerOptions {
  readonly world: Pick<World, "sleep">;
  readonly bindAddr: Address;
  readonly headerBytes: number;
  readonly serve: ServeRequest;
}

export class SidecarListener implements AsyncDisposable {
  readonly #listener: Deno.TcpListener;
  readonly #options: SidecarListenerOptions;
  readonly #tasks = new TaskGroup();
  readonly #peers = new Set<SidecarPeer>();

  private constructor(listener: Deno.TcpListener, options: SidecarListenerOptions) {
    this.#listener = listener;
    this.#options = options;
  }

  /** Throws when the address is taken. */
  static listen(options: SidecarListenerOptions): SidecarListener {
    const listener = new SidecarListener(listening(options.bindAddr), options);
    listener.#tasks.start(() => listener.#accept());
    return listener;
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** Ends every connection and the work for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const peer of this.#peers) peer[Symbol.dispose]();
    await this.#tasks.close();
  }

  async #accept(): Promise<void> {
    for await (const conn of this.#listener) {
      if (this.#peers.size >= CONNECTIONS_MAX) {
        conn.close();
        continue;
      }
      const peer = new SidecarPeer(conn);
      this.#peers.add(peer);
      this.#tasks.start((closing) => this.#serve(peer, closing));
    }
  }

  async #serve(peer: SidecarPeer, closing: AbortSignal): Promise<void> {
    try {
      while (!closing.aborted && await this.#serveOne(peer, closing)) { /* the next one */ }
    } catch {
      // The connection was cut off, or it took too long.
    } finally {
      this.#peers.delete(peer);
      peer[Symbol.dispose]();
    }
  }

  /** False when the connection has ended, or when its next bytes cannot be understood. */
  async #serveOne(peer: SidecarPeer, closing: AbortSignal): Promise<boolean> {
    const { headerBytes, serve } = this.#options;
    const head = await this.#bounded(peer, IDLE_MS, () => peer.read(headerBytes));
    if (!head) return false;
    return await serve(head, {
      read: (length) => this.#bounded(peer, TRANSFER_MS, () => peer.read(length)),
      write: (parts) => this.#bounded(peer, TRANSFER_MS, () => peer.write(parts)),
      async answer(work) {
        const disconnected = new AbortController();
        const signal = AbortSignal.any([closing, disconnected.signal]);
        peer.watch(() => {
          disconnected.abort(new Deno.errors.ConnectionReset("the client has disconnected"));
        });
        const response = await work(signal);
        signal.throwIfAborted();
        await this.write(response);
      },
    });
  }

  /** A transfer that takes longer is ended by closing its connection. */
  async #bounded<T>(peer: SidecarPeer, ms: number, transfer: () => Promise<T>): Promise<T> {
    using _timer = timer(this.#options.world, ms, () => peer[Symbol.dispose]());
    return await transfer();
  }
}

function listening({ hostname, port }: Address): Deno.TcpListener {
  try {
    return Deno.listen({ hostname, port });
  } catch (error) {
    throw new Error(
      `Cannot listen on ${hostname}:${port}: ${error instanceof Error ? error.message : error}`,
    );
  }
}
