/** Calls of the embedding sidecar: a JPEG becomes 768 numbers, over one connection that is kept open. */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Address } from "../../contract/setting_parsers.ts";
import type { World } from "../../base/world.ts";
import {
  decodeEmbedding,
  decodeEmbeddingResponse,
  EMBEDDING_HEADER_BYTES,
  EmbeddingProtocolFault,
  embeddingRequestHeader,
} from "../../model/sidecars/embedding_protocol.ts";
import { LIMITS } from "../../contract/limits.ts";
import { BackOff } from "./back_off.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import { ConnectionLost, SidecarConnection } from "./sidecar_connection.ts";

export interface EmbeddingSidecarOptions {
  /** SERVICE_NOVELTY_EMBEDDING_ADDR. */
  readonly address: Address;
  /** SERVICE_NOVELTY_EMBEDDING_TIMEOUT_MS: for waiting, connecting, sending and receiving, each by itself. */
  readonly timeoutMs: number;
  readonly world: World;
  readonly metrics: Metrics;
}

/**
 * The error of a call without an embedding; the caller continues without. The message has the reason and
 * nothing of the picture.
 */
export class EmbeddingUnavailable extends Error {
  override readonly name = "EmbeddingUnavailable";
}

/** Callers that wait for the call before them; the next one fails at once. */
const EMBEDDING_WAITERS_MAX = 2;

/**
 * Sends one request at a time. Every failure, a valid answer that reports one included, closes the connection
 * and starts a back-off: the sidecar is not called for 100 ms, then twice as long each time, at most 5 s, and
 * calls fail at once meanwhile. Two cases start no back-off: a caller that aborts, and a kept connection that
 * is found to be closed, which is opened again, once. See docs/protocols.md#embedding-sidecar.
 */
export class EmbeddingSidecar implements Disposable {
  readonly #options: EmbeddingSidecarOptions;
  readonly #log: Log;
  readonly #backOff = new BackOff();
  readonly #permits = new PermitQueue({
    limit: 1,
    waiterLimit: EMBEDDING_WAITERS_MAX,
    what: "calls to the embedding sidecar",
    refusal: "inference_provider_unavailable",
  });
  #connection: SidecarConnection | null = null;
  #isClosed = false;

  constructor(options: EmbeddingSidecarOptions) {
    this.#options = options;
    this.#log = options.world.log.child("embedding_sidecar");
  }

  /**
   * The embedding of a JPEG file of at most 10 MiB: 768 finite numbers. Rejects with {@link
   * EmbeddingUnavailable}, which a metric counts here, or with the reason of `signal`. Principals take turns.
   */
  async embed(jpeg: Uint8Array, signal: AbortSignal, principalKey?: string): Promise<Float32Array> {
    signal.throwIfAborted();
    const { world, metrics, timeoutMs } = this.#options;
    const startedMs = world.monotonicMs();
    try {
      checkSize(jpeg);
      using _permit = await this.#permits.acquire({ principalKey, signal, within: { world, timeoutMs } });
      this.#refuseDuringBackOff();
      const embedding = await this.#exchange(jpeg, signal);
      metrics.observe("service_pipeline_novelty_embedding_latency_ms", world.monotonicMs() - startedMs);
      return embedding;
    } catch (error) {
      signal.throwIfAborted();
      metrics.add("service_pipeline_novelty_embedding_unavailable_total");
      throw error instanceof Refusal ? new EmbeddingUnavailable(error.message) : error;
    }
  }

  /** Closes the connection; calls under way and later ones fail. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#permits.close();
    this.#drop();
  }

  async #exchange(jpeg: Uint8Array, signal: AbortSignal): Promise<Float32Array> {
    try {
      const embedding = await this.#exchangeOnce(jpeg, signal);
      this.#backOff.succeeded();
      return embedding;
    } catch (error) {
      this.#drop();
      signal.throwIfAborted();
      throw this.#failureOf(error);
    }
  }

  async #exchangeOnce(jpeg: Uint8Array, signal: AbortSignal): Promise<Float32Array> {
    if (this.#connection) {
      try {
        return await this.#ask(this.#connection, jpeg, signal);
      } catch (error) {
        if (!(error instanceof ConnectionLost) || this.#isClosed) throw error;
        this.#drop();
      }
    }
    const { address } = this.#options;
    const connection = await this.#withTimeout(signal, (signal) => SidecarConnection.open(address, signal));
    this.#connection = connection;
    if (this.#isClosed) throw new ConnectionLost("is closed");
    return await this.#ask(connection, jpeg, signal);
  }

  async #ask(connection: SidecarConnection, jpeg: Uint8Array, signal: AbortSignal): Promise<Float32Array> {
    const request = [embeddingRequestHeader(jpeg.length), jpeg];
    await this.#withTimeout(signal, (signal) => connection.send(request, signal));
    return await this.#withTimeout(signal, async (signal) => {
      const { status, payloadBytes } = decodeEmbeddingResponse(
        await connection.receive(EMBEDDING_HEADER_BYTES, signal),
      );
      const payload = await connection.receive(payloadBytes, signal);
      if (status !== "ok") throw new EmbeddingUnavailable(`The embedding sidecar refused: ${status}`);
      return decodeEmbedding(payload);
    });
  }

  async #withTimeout<T>(parent: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using deadline = new Deadline(this.#options.world, this.#options.timeoutMs, parent);
    return await work(deadline.signal);
  }

  #refuseDuringBackOff(): void {
    const remainingMs = this.#backOff.remainingMs(this.#options.world.monotonicMs());
    if (remainingMs > 0) {
      throw new EmbeddingUnavailable(
        `The embedding sidecar failed and is not called for another ${Math.ceil(remainingMs)} ms`,
      );
    }
  }

  /** What the call rejects with. A failure of the sidecar or its connection starts a back-off. */
  #failureOf(error: unknown): unknown {
    const why = whyOf(error, this.#options.timeoutMs);
    if (why === null) return error;
    const pauseMs = this.#isClosed ? 0 : this.#backOff.failed(this.#options.world.monotonicMs());
    if (pauseMs > 0) this.#log.warn(`not called for ${pauseMs} ms: ${why}`);
    return new EmbeddingUnavailable(why);
  }

  #drop(): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = null;
  }
}

/** Why there is no embedding; null for an error that is a bug and not a failure of the sidecar. */
function whyOf(error: unknown, timeoutMs: number): string | null {
  if (error instanceof OutOfTime) return `The embedding sidecar did not react within ${timeoutMs} ms`;
  if (error instanceof ConnectionLost) return `The embedding sidecar ${error.message}`;
  if (error instanceof EmbeddingProtocolFault || error instanceof EmbeddingUnavailable) return error.message;
  return null;
}

/**
 * Refuses a JPEG that is too large. The sidecar would refuse it too, but only after it has received
 * megabytes.
 */
function checkSize(jpeg: Uint8Array): void {
  const maximum = LIMITS.sidecar.embeddingJpegBytesMax;
  if (jpeg.length >= 1 && jpeg.length <= maximum) return;
  throw new EmbeddingUnavailable(
    `Cannot embed a JPEG unless it has 1 to ${maximum} bytes: got ${jpeg.length}`,
  );
}
