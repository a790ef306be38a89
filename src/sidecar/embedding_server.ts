/** The TCP server of the reference embedding sidecar: one picture after the other, a few may wait, the rest is refused. */

import { deadline } from "../base/deadline.ts";
import { Gate } from "../base/gate.ts";
import type { Log } from "../base/log.ts";
import { Refusal } from "../base/refusal.ts";
import type { Address } from "../base/setting.ts";
import { TaskGroup } from "../base/tasks.ts";
import {
  decodeEmbeddingRequest,
  EMBEDDING_HEADER_BYTES,
  EmbeddingProtocolFault,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../model/embedding_protocol.ts";
import { type JpegDecoder, UndecodableJpeg } from "./jpeg_decoder.ts";
import { describePicture } from "./picture_descriptor.ts";
import { SidecarPeer } from "./sidecar_peer.ts";

export interface EmbeddingServerOptions {
  readonly log: Log;
  readonly decoder: Pick<JpegDecoder, "decode">;
  readonly bindAddr: Address;
  readonly queue: number;
  readonly timeoutMs: number;
}

/** Connections at once; one more is closed as it comes. */
const CONNECTIONS_MAX = 64;
/** A connection that says nothing for so long is closed; a client finds out and opens another. */
const IDLE_MS = 600_000;
/** From the header to the last byte of the picture, and for sending the answer. */
const TRANSFER_MS = 30_000;

export class EmbeddingServer implements AsyncDisposable {
  readonly #options: EmbeddingServerOptions;
  readonly #listener: Deno.TcpListener;
  /** ffmpeg takes one picture at a time. */
  readonly #gate: Gate;
  readonly #tasks = new TaskGroup();
  readonly #peers = new Set<SidecarPeer>();

  /** Listens at once. Throws when the address is taken. */
  constructor(options: EmbeddingServerOptions) {
    this.#options = options;
    this.#gate = new Gate({
      limit: 1,
      waiterLimit: options.queue,
      what: "pictures",
      refusal: "inference_provider_unavailable",
    });
    this.#listener = Deno.listen({ ...options.bindAddr });
    this.#tasks.start(() => this.#accept());
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** Ends every connection and what is done for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.#gate.close();
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
    const head = await within(peer, IDLE_MS, () => peer.read(EMBEDDING_HEADER_BYTES));
    if (!head) return false;
    let jpegBytes: number;
    try {
      ({ jpegBytes } = decodeEmbeddingRequest(head));
    } catch (error) {
      if (!(error instanceof EmbeddingProtocolFault)) throw error;
      const refusal = encodeEmbeddingFailure("bad_request", error.message);
      await within(peer, TRANSFER_MS, () => peer.write(refusal));
      return false;
    }
    const jpeg = await within(peer, TRANSFER_MS, () => peer.read(jpegBytes));
    if (!jpeg) return false;

    const gone = new AbortController();
    const signal = AbortSignal.any([closing, gone.signal]);
    peer.watch(() => gone.abort(new Deno.errors.ConnectionReset("the other side has gone")));
    const response = await this.#answer(jpeg, signal);
    signal.throwIfAborted();
    await within(peer, TRANSFER_MS, () => peer.write(response));
    return true;
  }

  async #answer(jpeg: Uint8Array, gone: AbortSignal): Promise<Uint8Array[]> {
    const { timeoutMs, log } = this.#options;
    const late = new AbortController();
    using _deadline = deadline(timeoutMs, () => late.abort());
    const signal = AbortSignal.any([gone, late.signal]);
    try {
      return encodeEmbedding(await this.#embed(jpeg, signal));
    } catch (error) {
      gone.throwIfAborted();
      if (late.signal.aborted) {
        return encodeEmbeddingFailure("timeout", `it was not done within ${timeoutMs} ms`);
      }
      if (error instanceof Refusal) return encodeEmbeddingFailure("overloaded", error.message);
      if (error instanceof UndecodableJpeg) return encodeEmbeddingFailure("bad_request", error.message);
      log.error("a picture was not embedded", { error: String(error) });
      return encodeEmbeddingFailure("inference_error", "the picture was not embedded");
    }
  }

  async #embed(jpeg: Uint8Array, signal: AbortSignal): Promise<Float32Array> {
    using _permit = await this.#gate.acquire({ signal });
    return describePicture(await this.#options.decoder.decode(jpeg, signal));
  }
}

/** Closes the connection if `transfer` takes longer, which ends it. */
async function within<T>(peer: SidecarPeer, ms: number, transfer: () => Promise<T>): Promise<T> {
  using _deadline = deadline(ms, () => peer[Symbol.dispose]());
  return await transfer();
}
