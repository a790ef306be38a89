/** The server of the reference audio sidecar: it works on a few requests at once, lets a few wait and refuses
 * the rest.
 */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Address } from "../../contract/setting_parsers.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import {
  decodeRequestHeader,
  encodeResponse,
  ProtocolFault,
  REQUEST_HEADER_BYTES,
  type RequestHeader,
} from "../../model/sidecars/audio_protocol.ts";
import type { SidecarCapacity } from "../../model/sidecars/local_audio.ts";
import { SidecarFault } from "../sidecar_fault.ts";
import { type SidecarExchange, SidecarListener } from "../sidecar_listener.ts";
import type { AudioWork } from "./audio_work.ts";

export interface AudioServerOptions {
  readonly world: World;
  readonly work: AudioWork;
  readonly bindAddr: Address;
  /** Requests that are worked on at once. */
  readonly inFlight: number;
  /** Requests that may wait. */
  readonly queue: number;
  /** Deadline of one request, its wait included. */
  readonly timeoutMs: number;
}

export class AudioServer implements AsyncDisposable {
  readonly #options: AudioServerOptions;
  #listener!: SidecarListener;
  readonly #permits: PermitQueue;

  private constructor(options: AudioServerOptions) {
    this.#options = options;
    this.#permits = new PermitQueue({
      limit: options.inFlight,
      waiterLimit: options.queue,
      what: "requests",
      refusal: "audio_sidecar_unavailable",
    });
  }

  /** Throws when the address is taken. */
  static listen(options: AudioServerOptions): AudioServer {
    const server = new AudioServer(options);
    server.#listener = SidecarListener.listen({
      world: options.world,
      bindAddr: options.bindAddr,
      headerBytes: REQUEST_HEADER_BYTES,
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
    let header: RequestHeader;
    try {
      header = decodeRequestHeader(head);
    } catch (error) {
      if (!(error instanceof ProtocolFault)) throw error;
      const fault = new SidecarFault("decode", error.message, "bad_request");
      await exchange.write(this.#failure(fault));
      return false;
    }
    const audio = await exchange.read(header.audioBytes);
    const text = await exchange.read(header.textBytes);
    if (!audio || !text) return false;
    await exchange.answer((disconnected) => this.#answer(header, audio, text, disconnected));
    return true;
  }

  async #answer(
    header: RequestHeader,
    audio: Uint8Array,
    text: Uint8Array,
    disconnected: AbortSignal,
  ): Promise<Uint8Array[]> {
    const { world, timeoutMs } = this.#options;
    using deadline = new Deadline(world, timeoutMs, disconnected);
    const { signal } = deadline;
    const startedMs = world.monotonicMs();
    try {
      const finish = await this.#admitted(signal, () => this.#work(header, audio, text, signal), startedMs);
      return finish();
    } catch (error) {
      disconnected.throwIfAborted();
      if (signal.reason instanceof OutOfTime) {
        return this.#failure(new SidecarFault("timeout", `it was not done within ${timeoutMs} ms`));
      }
      if (error instanceof Refusal) {
        return this.#failure(new SidecarFault("overloaded", error.message, "overloaded"));
      }
      if (error instanceof SidecarFault) return this.#failure(error);
      world.log.error("a request failed", { error: String(error) });
      return this.#failure(new SidecarFault("inference", "the request failed"));
    }
  }

  /**
   * The permit is released before the answer is encoded, so that the capacity in it is the one for the next
   * request.
   */
  async #admitted(
    signal: AbortSignal,
    work: () => Promise<(queueWaitMs: number) => Uint8Array[]>,
    startedMs: number,
  ): Promise<() => Uint8Array[]> {
    using _permit = await this.#permits.acquire({ signal });
    const queueWaitMs = this.#options.world.monotonicMs() - startedMs;
    const finish = await work();
    return () => finish(queueWaitMs);
  }

  async #work(
    header: RequestHeader,
    audio: Uint8Array,
    text: Uint8Array,
    signal: AbortSignal,
  ): Promise<(queueWaitMs: number) => Uint8Array[]> {
    const { work } = this.#options;
    if (header.operation === "analyze") {
      const analysis = await work.analyze(header, audio, signal);
      return (queueWaitMs) =>
        encodeResponse("ok", { ...analysis, queue_wait_ms: queueWaitMs, capacity: this.#capacity() });
    }
    const { wav, ...speech } = await work.synthesize(spokenText(text), signal);
    return () => encodeResponse("ok", { ...speech, capacity: this.#capacity() }, wav);
  }

  #failure({ status, reason, message }: SidecarFault): Uint8Array[] {
    return encodeResponse(status, { reason, message, capacity: this.#capacity() });
  }

  #capacity(): SidecarCapacity {
    return { active: this.#permits.active, queued: this.#permits.waiting, limit: this.#permits.limit };
  }
}

function spokenText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new SidecarFault("decode", "the text is not UTF-8", "bad_request");
  }
}
