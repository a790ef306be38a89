/** Spans of traces, as the code makes them: an interface, and the tracing that records nothing. See
 * docs/deployment/monitoring.md#traces.
 */

/**
 * Attributes of a span: text, numbers and truth values; undefined leaves one out. Never a secret, a prompt, a
 * text of a caller or a whole URL.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  /** `server` answers a request of others, `client` waits for others; `internal` unless given. */
  readonly kind?: "server" | "client" | "internal";
  readonly attributes?: SpanAttributes;
}

/** One piece of work with its beginning and its end. Disposing it ends it. */
export interface TraceSpan extends Disposable {
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** Says that the work did not succeed; `type` is a word of a small set, such as the name of an error. */
  failed(type: string): void;
}

/**
 * Each asynchronous piece of work has a current span, or none. What it starts has the same one.
 *
 *     using span = world.tracing.child("decode");
 *     await world.tracing.within(span, () => decode());
 */
export interface Tracing {
  /** Whether spans are recorded at all; false skips what only they need. */
  readonly isOn: boolean;
  /** A new trace, or the continuation of that of a `traceparent` header. */
  root(name: string, start?: SpanStart, traceparent?: string | null): TraceSpan;
  /** A new span below the current one; where there is none, nothing is recorded. */
  child(name: string, start?: SpanStart): TraceSpan;
  /**
   * Runs `work` with the current span `span`; null for none, as background work outlives the request that
   * starts it.
   */
  within<T>(span: TraceSpan | null, work: () => T): T;
  /** The `traceparent` header for a request of the current span; null where there is none. */
  traceparent(): string | null;
}

/** A span that records nothing. */
export const NO_SPAN: TraceSpan = {
  rename() {},
  set() {},
  failed() {},
  [Symbol.dispose]() {},
};

export const NO_TRACING: Tracing = {
  isOn: false,
  root: () => NO_SPAN,
  child: () => NO_SPAN,
  within: (_span, work) => work(),
  traceparent: () => null,
};

/** Runs `work` in a span below the current one, which ends with it and has the type of its error. */
export async function inSpan<T>(
  tracing: Tracing,
  name: string,
  start: SpanStart,
  work: (span: TraceSpan) => Promise<T>,
): Promise<T> {
  if (!tracing.isOn) return await work(NO_SPAN);
  return await ending(tracing, tracing.child(name, start), work);
}

/** Like {@link inSpan} in a trace of its own, for work of the background. */
export async function inRootSpan<T>(
  tracing: Tracing,
  name: string,
  start: SpanStart,
  work: (span: TraceSpan) => Promise<T>,
): Promise<T> {
  if (!tracing.isOn) return await work(NO_SPAN);
  return await ending(tracing, tracing.root(name, start), work);
}

async function ending<T>(
  tracing: Tracing,
  started: TraceSpan,
  work: (span: TraceSpan) => Promise<T>,
): Promise<T> {
  using span = started;
  try {
    return await tracing.within(span, () => work(span));
  } catch (error) {
    span.failed(error instanceof Error ? error.name : "error");
    throw error;
  }
}
