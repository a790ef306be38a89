/** The TCP server of the reference embedding sidecar: one picture after the other, a few may wait, the rest is refused. */

import { deadline } from "../../base/deadline.ts";
import { Gate } from "../../base/gate.ts";
import type { Log } from "../../base/log.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Address } from "../../base/setting_parsers.ts";
import {
  decodeEmbeddingRequest,
  EMBEDDING_HEADER_BYTES,
  EmbeddingProtocolFault,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../../model/sidecars/embedding_protocol.ts";
import { type JpegDecoder, UndecodableJpeg } from "./jpeg_decoder.ts";
import { describePicture } from "./picture_descriptor.ts";
import { type ServeRequest, type SidecarExchange, SidecarListener } from "../sidecar_listener.ts";

export interface EmbeddingServerOptions {
  readonly log: Log;
  readonly decoder: Pick<JpegDecoder, "decode">;
  readonly bindAddr: Address;
  readonly queue: number;
  readonly timeoutMs: number;
}

export class EmbeddingServer implements AsyncDisposable {
  readonly #options: EmbeddingServerOptions;
  readonly #listener: SidecarListener;
  /** ffmpeg takes one picture at a time. */
  readonly #gate: Gate;

  /** Listens at once. Throws when the address is taken. */
  constructor(options: EmbeddingServerOptions) {
    this.#options = options;
    this.#gate = new Gate({
      limit: 1,
      waiterLimit: options.queue,
      what: "pictures",
      refusal: "inference_provider_unavailable",
    });
    const serve: ServeRequest = (head, exchange) => this.#serve(head, exchange);
    this.#listener = new SidecarListener(options.bindAddr, EMBEDDING_HEADER_BYTES, serve);
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Ends every connection and what is done for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gate.close();
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
    await exchange.answer((gone) => this.#answer(jpeg, gone));
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
