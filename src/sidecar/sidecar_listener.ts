/** A TCP listener with its connections: each is served request by request until it ends, says nothing, or takes too long. */

import { deadline } from "../base/deadline.ts";
import type { Address } from "../base/setting_parsers.ts";
import { TaskGroup } from "../base/tasks.ts";
import { SidecarPeer } from "./sidecar_peer.ts";

/** Connections at once; one more is closed as it comes. */
const CONNECTIONS_MAX = 64;
/** A connection that says nothing for so long is closed; a client finds out and opens another. */
const IDLE_MS = 600_000;
/** From the header to the last byte of a request, and for sending an answer. */
const TRANSFER_MS = 30_000;

/** One request of a connection. */
export interface SidecarExchange {
  /** The next `length` bytes; null when the other side has ended. Throws when they take too long. */
  read(length: number): Promise<Uint8Array | null>;
  /** Throws when it takes too long. */
  write(parts: Uint8Array[]): Promise<void>;
  /** Once the request is read: the answer of `work`, whose signal aborts when the other side or the sidecar goes. */
  answer(work: (gone: AbortSignal) => Promise<Uint8Array[]>): Promise<void>;
}

/** Serves one request whose header is `head`; false when nothing more would be understood. */
export type ServeRequest = (head: Uint8Array, exchange: SidecarExchange) => Promise<boolean>;

export class SidecarListener implements AsyncDisposable {
  readonly #listener: Deno.TcpListener;
  readonly #headerBytes: number;
  readonly #serveRequest: ServeRequest;
  readonly #tasks = new TaskGroup();
  readonly #peers = new Set<SidecarPeer>();

  /** Listens at once. Throws when the address is taken. */
  constructor(bindAddr: Address, headerBytes: number, serveRequest: ServeRequest) {
    this.#headerBytes = headerBytes;
    this.#serveRequest = serveRequest;
    this.#listener = listening(bindAddr);
    this.#tasks.start(() => this.#accept());
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** Ends every connection and what is done for it. */
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
      // The connection was cut, or it took too long.
    } finally {
      this.#peers.delete(peer);
      peer[Symbol.dispose]();
    }
  }

  /** False when the connection has ended, or can say nothing more that would be understood. */
  async #serveOne(peer: SidecarPeer, closing: AbortSignal): Promise<boolean> {
    const head = await within(peer, IDLE_MS, () => peer.read(this.#headerBytes));
    if (!head) return false;
    return await this.#serveRequest(head, {
      read: (length) => within(peer, TRANSFER_MS, () => peer.read(length)),
      write: (parts) => within(peer, TRANSFER_MS, () => peer.write(parts)),
      async answer(work) {
        const gone = new AbortController();
        const signal = AbortSignal.any([closing, gone.signal]);
        peer.watch(() => gone.abort(new Deno.errors.ConnectionReset("the other side has gone")));
        const response = await work(signal);
        signal.throwIfAborted();
        await this.write(response);
      },
    });
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

/** Closes the connection if `transfer` takes longer, which ends it. */
async function within<T>(peer: SidecarPeer, ms: number, transfer: () => Promise<T>): Promise<T> {
  using _deadline = deadline(ms, () => peer[Symbol.dispose]());
  return await transfer();
}
