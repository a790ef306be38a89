/** Sends spans to a collector: OTLP over gRPC, one call for each batch, over one HTTP/2 connection. */

import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import { Deadline } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";

export interface OtlpGrpcExporterOptions {
  /** The URL of the collector: `http:` (HTTP/2 without TLS) or `https:`. */
  readonly endpoint: string;
  /** PEM certificates of the authorities to trust. */
  readonly roots: readonly string[];
  readonly world: Pick<World, "sleep">;
}

const METHOD = "opentelemetry.proto.collector.trace.v1.TraceService/Export";
/** Bytes before a message: one that says whether it is compressed, four with its length. */
const FRAME_HEAD_BYTES = 5;
const ANSWER_BYTES_MAX = 64 * 1024;

/**
 * The call is made with `fetch`. The library for gRPC uses the runtime's copy of Node's HTTP/2, and a process
 * that had both a client and a server of it was once ended by an assertion of nghttp2 (Deno 2.9.6, November
 * 2026); which of the two caused it is not known. What `fetch` does not show is the trailer with the status
 * of a call: a call that failed has no message in its answer, or its status in the headers. A batch is sent
 * once.
 */
export class OtlpGrpcExporter implements SpanExporter {
  readonly #url: URL;
  readonly #client: Deno.HttpClient;
  readonly #world: Pick<World, "sleep">;
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<void>>();

  constructor({ endpoint, roots, world }: OtlpGrpcExporterOptions) {
    this.#url = new URL(`${endpoint}/${METHOD}`);
    this.#client = Deno.createHttpClient({ http1: false, http2: true, caCerts: [...roots] });
    this.#world = world;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter["export"]>[1]): void {
    const sending = this.#send(spans)
      .then(() => done({ code: 0 }), (error) => done({ code: 1, error }))
      .finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Does nothing: the owner of the exporter closes it. */
  shutdown(): Promise<void> {
    return Promise.resolve();
  }

  /** Ends the calls under way; later ones fail at once. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the service is closing"));
    await this.forceFlush();
    this.#client.close();
  }

  async #send(spans: ReadableSpan[]): Promise<void> {
    using deadline = new Deadline(this.#world, LIMITS.traces.exportTimeoutMs, this.#closing.signal);
    const response = await fetch(this.#url, {
      client: this.#client,
      method: "POST",
      headers: { "content-type": "application/grpc", te: "trailers" },
      body: framed(ProtobufTraceSerializer.serializeRequest(spans)!),
      redirect: "error",
      signal: deadline.signal,
    });
    const bytes = await lengthOf(response);
    if (response.status !== 200) {
      throw new Error(`the collector answered with HTTP status ${response.status}`);
    }
    const status = response.headers.get("grpc-status") ?? "0";
    if (status !== "0") {
      const known = /^\d{1,3}$/.test(status) ? status : "that is no number";
      throw new Error(`the collector answered with gRPC status ${known}`);
    }
    if (bytes < FRAME_HEAD_BYTES) throw new Error("the collector did not take the spans");
  }
}

function framed(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEAD_BYTES + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, FRAME_HEAD_BYTES);
  return frame;
}

/** How many bytes the body has; of a longer one the rest is not read. */
async function lengthOf({ body }: Response): Promise<number> {
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) break;
  }
  return bytes;
}
