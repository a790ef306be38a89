/** The server of the reference embedding sidecar: it works on one picture, lets a few wait and refuses the
 * rest.
 */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Address } from "../../contract/setting_parsers.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import {
  decodeEmbeddingRequest,
  EMBEDDING_HEADER_BYTES,
  EmbeddingProtocolFault,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../../model/sidecars/embedding_protocol.ts";
import { describePicture } from "./picture_descriptor.ts";
import { smallPicture, UndecodableJpeg } from "./small_picture.ts";
import { type SidecarExchange, SidecarListener } from "../sidecar_listener.ts";

export interface EmbeddingServerOptions {
  readonly world: World;
  /** Decodes a file; `smallPicture` unless given. */
  readonly decode?: (jpeg: Uint8Array, signal: AbortSignal) => Uint8Array | Promise<Uint8Array>;
  readonly bindAddr: Address;
  /** Pictures that may wait. */
  readonly queue: number;
  /** Deadline of one request, its wait included. */
  readonly timeoutMs: number;
}

export class EmbeddingServer implements AsyncDisposable {
  readonly #options: EmbeddingServerOptions;
  #listener!: SidecarListener;
  /** One picture at a time. */
  readonly #permits: PermitQueue;

  private constructor(options: EmbeddingServerOptions) {
    this.#options = options;
    this.#permits = new PermitQueue({
      limit: 1,
      waiterLimit: options.queue,
      what: "pictures",
      refusal: "inference_provider_unavailable",
    });
  }

  /** Throws when the address is taken. */
  static listen(options: EmbeddingServerOptions): EmbeddingServer {
    const server = new EmbeddingServer(options);
    server.#listener = SidecarListener.listen({
      world: options.world,
      bindAddr: options.bindAddr,
      headerBytes: EMBEDDING_HEADER_BYTES,
      serve: (head, exchange) => server.#serve(head, exchange),
    });
    return server;
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Ends every connection and the work for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#permits.close();
    await this.#listener[Symbol.asyncDispose]();
  }

  async #serve(head: Uint8Array, exchange: SidecarExchange): Promise<boolean> {
    let jpegBytes: number;
    try {
      ({ jpegBytes } = decodeEmbeddingRequest(head));
    } catch (error) {
      if (!(error instanceof EmbeddingProtocolFault)) throw error;
      await exchange.write(encodeEmbeddingFailure("bad_request", error.message));
      return false;
    }
    const jpeg = await exchange.read(jpegBytes);
    if (!jpeg) return false;
    await exchange.answer((disconnected) => this.#answer(jpeg, disconnected));
    return true;
  }

  async #answer(jpeg: Uint8Array, disconnected: AbortSignal): Promise<Uint8Array[]> {
    const { timeoutMs, world } = this.#options;
    using deadline = new Deadline(world, timeoutMs, disconnected);
    const { signal } = deadline;
    try {
      return encodeEmbedding(await this.#embed(jpeg, signal));
    } catch (error) {
      disconnected.throwIfAborted();
      if (signal.reason instanceof OutOfTime) {
        return encodeEmbeddingFailure("timeout", `it was not done within ${timeoutMs} ms`);
      }
      if (error instanceof Refusal) return encodeEmbeddingFailure("overloaded", error.message);
      if (error instanceof UndecodableJpeg) return encodeEmbeddingFailure("bad_request", error.message);
      world.log.error("a picture was not embedded", { error: String(error) });
      return encodeEmbeddingFailure("inference_error", "the picture was not embedded");
    }
  }

  async #embed(jpeg: Uint8Array, signal: AbortSignal): Promise<Float32Array> {
    using _permit = await this.#permits.acquire({ signal });
    signal.throwIfAborted();
    const { decode = smallPicture } = this.#options;
    return describePicture(await decode(jpeg, signal));
  }
}
