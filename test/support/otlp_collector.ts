/** A trace collector on loopback for a test: an OTLP gRPC server of Node.js that hands on the spans which it
 * receives.
 */

import { fileURLToPath } from "node:url";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the span that this one is a part of; empty for the first span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** Kind of the span: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly isFailed: boolean;
  readonly attributes: Attributes;
  /** Attributes of the program that sent the span. */
  readonly resource: Attributes;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

const PROGRAM = fileURLToPath(new URL("./otlp_collector_process.mjs", import.meta.url));

export class TraceCollector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly #process: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  readonly #listening = Promise.withResolvers<number>();
  #port = 0;

  /** Starts a collector; `status` is that of gRPC with which it answers, 0 is success. */
  static async start(
    { port = 0, status = 0 }: { port?: number; status?: number } = {},
  ): Promise<TraceCollector> {
    const collector = new TraceCollector([String(port), String(status)]);
    collector.#port = await collector.#listening.promise;
    return collector;
  }

  private constructor(args: string[]) {
    this.#process = new Deno.Command("node", { args: [PROGRAM, ...args], stdin: "null", stdout: "piped" })
      .spawn();
    this.#reading = this.#read();
  }

  get port(): number {
    return this.#port;
  }

  /** Address for SERVICE_TRACES_ENDPOINT. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  named(name: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#process.status;
    await this.#reading;
  }

  /** The first line is the port, each further one the message of a call, as base64. */
  async #read(): Promise<void> {
    let rest = "";
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (line.startsWith("port ")) this.#listening.resolve(Number(line.slice(5)));
        else this.spans.push(...spansOf(Uint8Array.fromBase64(line)));
      }
    }
    this.#listening.reject(new Error("the collector did not start"));
  }
}

/** The spans of an ExportTraceServiceRequest, see opentelemetry/proto/trace/v1/trace.proto of OTLP. */
function spansOf(request: Uint8Array): ReceivedSpan[] {
  return fields(request).many(1).flatMap((resourceSpans) => {
    const resource = attributesOf(fields(fields(resourceSpans).many(1)[0] ?? new Uint8Array()).many(1));
    const scopes = fields(resourceSpans).many(2);
    return scopes.flatMap((scope) => fields(scope).many(2)).map((bytes) => {
      const span = fields(bytes);
      return {
        traceId: span.many(1)[0]!.toHex(),
        spanId: span.many(2)[0]!.toHex(),
        parentSpanId: span.many(4)[0]?.toHex() ?? "",
        name: textOf(span.many(5)[0]!),
        kind: span.number(6),
        isFailed: fields(span.many(15)[0] ?? new Uint8Array()).number(3) === 2,
        attributes: attributesOf(span.many(9)),
        resource,
      };
    });
  });
}

function attributesOf(list: readonly Uint8Array[]): Attributes {
  return Object.fromEntries(list.map((bytes) => {
    const pair = fields(bytes);
    const value = fields(pair.many(2)[0]!);
    const text = value.many(1)[0];
    return [
      textOf(pair.many(1)[0]!),
      text ? textOf(text) : value.has(2) ? value.number(2) === 1 : value.number(3),
    ];
  }));
}

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/**
 * The fields of a message of Protocol Buffers, by number: those with a length as bytes, varints as numbers.
 */
function fields(message: Uint8Array) {
  const values = new Map<number, (number | Uint8Array)[]>();
  let at = 0;
  const varint = () => {
    for (let value = 0, scale = 1;; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const [number, wire] = [tag >>> 3, tag & 7];
    let value: number | Uint8Array = 0;
    if (wire === 0) value = varint();
    else {
      const length = wire === 2 ? varint() : wire === 1 ? 8 : 4;
      value = message.subarray(at, at += length);
    }
    values.set(number, [...values.get(number) ?? [], value]);
  }
  return {
    has: (number: number) => values.has(number),
    many: (number: number) => (values.get(number) ?? []) as Uint8Array[],
    number: (number: number) => (values.get(number)?.[0] ?? 0) as number,
  };
}
