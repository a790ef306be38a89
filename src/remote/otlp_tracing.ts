/** Traces over OTLP gRPC: spans wait in a bounded queue and are sent in batches; a collector that is away
 * costs spans only.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  ROOT_CONTEXT,
  type Span as ApiSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { Log } from "../base/log.ts";
import type { Metrics } from "../contract/metrics.ts";
import {
  NO_SPAN,
  type SpanAttributes,
  type SpanStart,
  type TraceSpan,
  type Tracing,
} from "../base/tracing.ts";
import { hasEndedWithin } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import { OtlpGrpcExporter } from "./otlp_grpc_exporter.ts";

export interface OtlpTracingOptions {
  /** SERVICE_TRACES_ENDPOINT: a URL with `http:` or `https:`. */
  readonly endpoint: string;
  /** SERVICE_TRACES_SAMPLE_RATIO: which part of the traces that begin here is recorded. */
  readonly sampleRatio: number;
  /** PEM certificates of the authorities that an `https:` collector's certificate may have. */
  readonly roots: readonly string[];
  readonly version: string;
  readonly world: Pick<World, "log" | "sleep">;
  readonly metrics: Metrics;
}

/** How long closing waits for the last spans to be sent. */
const CLOSE_MS = 1_000;

/**
 * Makes spans, and sends them to the collector. A trace goes on as its caller decided: the flag of
 * `traceparent` counts, and the ratio only where there is none.
 */
export class OtlpTracing implements Tracing, AsyncDisposable {
  readonly isOn = true;
  readonly #world: Pick<World, "log" | "sleep">;
  readonly #provider: BasicTracerProvider;
  readonly #exporter: OtlpGrpcExporter;
  readonly #tracer: ReturnType<BasicTracerProvider["getTracer"]>;
  readonly #queue: CountedQueue;
  readonly #current = new AsyncLocalStorage<OtlpSpan | SkippedSpan | null>();

  constructor({ endpoint, sampleRatio, roots, version, world, metrics }: OtlpTracingOptions) {
    this.#world = world;

    this.#exporter = new OtlpGrpcExporter({ endpoint, roots, world });
    const queue = new CountedQueue(this.#exporter, { metrics, log: world.log.child("traces") });
    this.#queue = queue;
    queue.feed(
      new BatchSpanProcessor(queue, {
        maxQueueSize: LIMITS.traces.queueSpans,
        maxExportBatchSize: LIMITS.traces.batchSpans,
        scheduledDelayMillis: LIMITS.traces.batchMs,
        exportTimeoutMillis: LIMITS.traces.exportTimeoutMs,
      }),
    );
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ "service.name": SERVICE_NAME, "service.version": version }),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
      spanLimits: {
        attributeCountLimit: ATTRIBUTES_MAX,
        attributeValueLengthLimit: ATTRIBUTE_CHARACTERS_MAX,
      },
      spanProcessors: [queue],
    });
    this.#tracer = this.#provider.getTracer(SERVICE_NAME, version);
  }

  root(name: string, start: SpanStart = {}, traceparent: string | null = null): TraceSpan {
    const parent = parentOf(traceparent);
    return this.#queue.isFull ? this.#skip(parent) : this.#start(name, start, parent);
  }

  child(name: string, start: SpanStart = {}): TraceSpan {
    const current = this.#current.getStore();
    if (!current) return NO_SPAN;
    if (current instanceof SkippedSpan || this.#queue.isFull) return this.#skip(current.context);
    return this.#start(name, start, current.context);
  }

  within<T>(span: TraceSpan | null, work: () => T): T {
    return this.#current.run(span instanceof OtlpSpan || span instanceof SkippedSpan ? span : null, work);
  }

  traceparent(): string | null {
    const current = this.#current.getStore();
    const span = current && trace.getSpanContext(current.context);
    if (!span) return null;
    return `00-${span.traceId}-${span.spanId}-${
      (span.traceFlags & TraceFlags.SAMPLED).toString().padStart(2, "0")
    }`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const shutdown = this.#provider.shutdown().catch(() => {/* the spans that were not sent are counted */});
    const isDone = await hasEndedWithin(this.#world, CLOSE_MS, shutdown);
    if (!isDone) this.#world.log.child("traces").warn("the last spans were not sent in time");
    await this.#exporter.close();
    await shutdown;
  }

  /**
   * A span that is not made, as it could not wait for being sent: one that is made and dropped costs as much
   * as one that is sent.
   */
  #skip(parent: Context): TraceSpan {
    this.#queue.countDropped();
    return new SkippedSpan(parent);
  }

  #start(name: string, { kind = "internal", attributes = {} }: SpanStart, parent: Context): TraceSpan {
    return new OtlpSpan(this.#tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent), parent);
  }
}

const SERVICE_NAME = "video-analysis";
const ATTRIBUTES_MAX = 32;
const ATTRIBUTE_CHARACTERS_MAX = 256;
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

class OtlpSpan implements TraceSpan {
  readonly context: Context;
  readonly #span: ApiSpan;

  constructor(span: ApiSpan, parent: Context) {
    this.#span = span;
    this.context = trace.setSpan(parent, span);
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) this.#span.setAttribute(name, value);
    }
  }

  failed(type: string): void {
    this.#span.setAttribute("error.type", type);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  [Symbol.dispose](): void {
    this.#span.end();
  }
}

/** Stands for a span that is not made. Requests that it makes carry on the trace of the caller. */
class SkippedSpan implements TraceSpan {
  readonly context: Context;

  constructor(context: Context) {
    this.context = context;
  }

  rename(): void {}
  set(): void {}
  failed(): void {}
  [Symbol.dispose](): void {}
}

/**
 * The parent that a `traceparent` header names. It is read as version 00 of W3C Trace Context; later versions
 * begin in the same way. A header that breaks the rules begins a new trace.
 */
function parentOf(traceparent: string | null): Context {
  const parts = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(
    traceparent?.trim() ?? "",
  );
  if (parts === null || (parts[1] === "00" && parts[5] !== undefined)) return ROOT_CONTEXT;
  const [, , traceId, spanId, flags] = parts;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return ROOT_CONTEXT;
  const traceFlags = parseInt(flags!, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: traceId!,
    spanId: spanId!,
    traceFlags,
    isRemote: true,
  });
}

/**
 * A bounded queue. It takes spans while fewer than `LIMITS.traces.queueSpans` are not sent yet, or
 * `awaySpans` while the collector is away, drops the others, and counts both.
 */
class CountedQueue implements SpanProcessor, SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #metrics: Metrics;
  readonly #log: Log;
  #processor: SpanProcessor | undefined;
  #waiting = 0;
  #isAway = false;

  constructor(exporter: SpanExporter, { metrics, log }: { readonly metrics: Metrics; readonly log: Log }) {
    this.#exporter = exporter;
    this.#metrics = metrics;
    this.#log = log;
  }

  /** Sets the processor to which the spans go that it takes; from there they come back to `export`. */
  feed(processor: SpanProcessor): void {
    this.#processor = processor;
  }

  get isFull(): boolean {
    return this.#waiting >= (this.#isAway ? LIMITS.traces.awaySpans : LIMITS.traces.queueSpans);
  }

  countDropped(): void {
    this.#metrics.add("service_trace_spans_dropped_total");
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    // It may have filled since the span began.
    if (this.#waiting >= LIMITS.traces.queueSpans) return this.countDropped();
    if (this.#processor === undefined) return; // the service is closing
    this.#waiting++;
    this.#processor.onEnd(span);
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter["export"]>[1]): void {
    this.#exporter.export(spans, (result) => {
      this.#waiting -= spans.length;
      const isSent = result.code === 0;
      this.#metrics.add(
        isSent ? "service_trace_spans_exported_total" : "service_trace_spans_dropped_total",
        spans.length,
      );
      this.#say(isSent, result.error);
      done(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#processor?.forceFlush() ?? Promise.resolve();
  }

  /** Called from both of its sides: by the provider, then by the processor that it feeds. */
  async shutdown(): Promise<void> {
    const processor = this.#processor;
    this.#processor = undefined;
    await processor?.shutdown();
  }

  /** Logs one line when the collector goes away, and one when it is back. */
  #say(isSent: boolean, error: Error | undefined): void {
    if (isSent !== this.#isAway) return;
    this.#isAway = !isSent;
    if (isSent) this.#log.info("the trace collector is there");
    else {this.#log.warn("the trace collector is away, spans are dropped", {
        reason: error?.message ?? "no answer",
      });}
  }
}
