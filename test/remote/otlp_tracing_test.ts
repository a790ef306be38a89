/** What tracing does while more spans wait than may. */

import assert from "node:assert/strict";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import { OtlpGrpcExporter } from "../../src/remote/otlp_grpc_exporter.ts";
import { Metrics } from "../../src/contract/metrics.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { OtlpTracing } from "../../src/remote/otlp_tracing.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];

const CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Deno.test("a span that could not wait is not made, and what it asks of others goes on with the caller's trace", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const metrics = new Metrics();
  const tracing = new OtlpTracing({
    ...{ endpoint: `http://127.0.0.1:${silent.addr.port}`, sampleRatio: 1, roots: [], version: "0" },
    ...{ world: realWorld(quietLog()), metrics },
  });
  const asked = () => {
    using root = tracing.root("request", {}, CALLERS);
    return tracing.within(root, () => {
      using child = tracing.child("call");
      return tracing.within(child, () => tracing.traceparent());
    });
  };
  const made = asked()!;
  assert.match(made, /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
  assert.notEqual(made, CALLERS);
  for (let count = 2; count < LIMITS.traces.queueSpans; count++) tracing.root("one more")[Symbol.dispose]();
  assert.equal(await dropped(metrics), 0);
  assert.equal(asked(), CALLERS);
  assert.equal(await dropped(metrics), 2);
  using own = tracing.root("of nobody");
  assert.equal(tracing.within(own, () => tracing.traceparent()), null);
  silent.close();
  await tracing[Symbol.asyncDispose]();
});

Deno.test("a collector that answers absurdly fails one batch in time, and its words are not repeated", async () => {
  const answers: [answer: (stream: ServerHttp2Stream) => void, message: RegExp][] = [
    [(stream) => stream.respond({ ":status": 500, secret: "s" }, { endStream: true }), /HTTP status 500$/],
    [
      (stream) => stream.respond({ ":status": 302, location: "http://127.0.0.1:1/" }, { endStream: true }),
      /redirect/,
    ],
    [(stream) => stream.respond({ "grpc-status": "14" }, { endStream: true }), /gRPC status 14$/],
    [
      (stream) => stream.respond({ "grpc-status": "0".repeat(4000) }, { endStream: true }),
      /gRPC status that is no number$/,
    ],
    [(stream) => stream.respond({}, { endStream: true }), /did not take the spans$/],
    [() => {}, /not done after 5000 ms/],
    [(stream) => {
      stream.respond({});
      stream.write("a");
    }, /not done after 5000 ms/],
    [(stream) => stream.close(2), /fetch failed/],
  ];
  let answer = answers[0]![0];
  const server = createServer((_request, _response) => {});
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    answer(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const world = realWorld(quietLog());
  const exporter = new OtlpGrpcExporter({
    endpoint: `http://127.0.0.1:${port}`,
    roots: [],
    world: { sleep: (ms, signal) => world.sleep(ms / 20, signal) },
  });
  for (const [next, expected] of answers) {
    answer = next;
    const { code, error } = await new Promise<ExportResult>((resolve) => exporter.export([], resolve));
    assert.equal(code, 1, String(expected));
    assert.match(String(error?.message), expected);
    assert.ok(error!.message.length < 300, error!.message.slice(0, 100));
  }
  await exporter.close();
  server.close();
});

async function dropped(metrics: Metrics): Promise<number> {
  return Number(/^service_trace_spans_dropped_total (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
}
