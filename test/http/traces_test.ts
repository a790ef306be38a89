import assert from "node:assert/strict";
import { NO_SPAN, NO_TRACING, type Tracing } from "../../src/base/tracing.ts";
import { RequestSpans } from "../../src/http/request_spans.ts";
import { openLog } from "../../src/base/log.ts";
import { type ReceivedSpan, TraceCollector } from "../support/otlp_collector.ts";
import { Receiver } from "../support/http/receiver.ts";
import { FILM, metric, reasonOn, SAMPLED, startReason } from "../support/models/reason.ts";
import { needing, NODE } from "../support/needs.ts";
import { observation, observed, openAudioDouble } from "../support/sidecars/audio_sidecar.ts";
import { KEY_A, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

function tracedTo({ endpoint }: TraceCollector, env: Record<string, string> = {}) {
  return { SERVICE_TRACES_ENDPOINT: endpoint, ...env };
}

function testing(name: string, fn: () => Promise<void>): void {
  Deno.test({ ...needing(NODE, name), fn });
}

/** A request with a `traceparent` header; its status. */
async function call(
  test: TestService,
  path: string,
  traceparent: string | null,
  method = "GET",
): Promise<number> {
  const headers = { "x-api-key": KEY_A, ...(traceparent !== null && { traceparent }) };
  return (await test.send(path, { method, headers })).status;
}

/** The only span of this name, once it has come. */
async function only(collector: TraceCollector, name: string): Promise<ReceivedSpan> {
  await until(`span ${name}`, () => collector.named(name).length > 0);
  const spans = collector.named(name);
  assert.equal(spans.length, 1, name);
  return spans[0]!;
}

function isBelow(child: ReceivedSpan, parent: ReceivedSpan): boolean {
  return child.parentSpanId === parent.spanId && child.traceId === parent.traceId;
}

testing("a request continues the trace of its caller, and what it waits for is below it", async () => {
  await using collector = await TraceCollector.start();
  await using at = await startReason({}, tracedTo(collector));
  const { test, model } = at;
  const runId = await newRun(test);
  const body = { source_uri: FILM, max_frames: 10 };
  const traceparent = `00-${TRACE}-${PARENT}-01`;
  const ingested = await test.send(`/v1/runs/${runId}/ingest?secret=hunter2`, {
    method: "POST",
    headers: { "x-api-key": KEY_A, "content-type": "application/json", traceparent },
    body: JSON.stringify(body),
  });
  assert.equal(ingested.status, 200, ingested.text);
  const request = await only(collector, "POST /v1/runs/:id/ingest");
  assert.deepEqual([request.traceId, request.parentSpanId, request.kind], [TRACE, PARENT, 2]);
  assert.match(String(request.attributes["enduser.pseudo.id"]), /^api-key:[0-9a-f]{64}$/);
  assert.deepEqual({ ...request.attributes, "enduser.pseudo.id": "" }, {
    "http.request.method": "POST",
    "http.route": "/v1/runs/:id/ingest",
    "http.response.status_code": 200,
    "url.scheme": "http",
    "service.request.id": ingested.json.request_id,
    "service.run.id": runId,
    "enduser.pseudo.id": "",
  });
  assert.equal(request.resource["service.name"], "video-analysis");
  const decode = await only(collector, "decode");
  assert.ok(isBelow(decode, request));
  assert.deepEqual([decode.kind, decode.attributes], [1, { "service.frames": 10 }]);
  const commits = collector.named("commit").filter((span) => isBelow(span, request));
  assert.deepEqual(commits.map(({ attributes }) => attributes["service.events"]), [2]);

  collector.spans.length = 0;
  const prompt = "a prompt that nobody else may read";
  const { answer } = await reasonOn(test, { semantic_prompt: prompt, max_frames: 5 });
  assert.equal(answer.status, 200, answer.text);
  const reason = await only(collector, "POST /v1/runs/:id/reason");
  const chat = await only(collector, `chat ${MODEL}`);
  const wait = await only(collector, "admission wait");
  assert.ok(
    isBelow(chat, reason) && isBelow(wait, reason) && isBelow(await only(collector, "decode"), reason),
  );
  assert.equal(reason.parentSpanId, "");
  assert.deepEqual([chat.kind, chat.attributes], [3, {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "vllm",
    "gen_ai.request.model": MODEL,
    "gen_ai.usage.input_tokens": 31,
    "gen_ai.usage.output_tokens": 6,
  }]);
  assert.equal(model.requests[0]!.headers.get("traceparent"), `00-${chat.traceId}-${chat.spanId}-01`);
  model.answer = () => ({ status: 500, body: "secret words of the model" });
  await reasonOn(test, { semantic_prompt: prompt, max_frames: 5 });
  await until(() => collector.named(`chat ${MODEL}`).some((span) => span.isFailed));
  const failed = collector.named(`chat ${MODEL}`).find((span) => span.isFailed)!;
  assert.equal(failed.attributes["error.type"], "InferenceFailed");
  const everything = JSON.stringify(collector.spans);
  assert.doesNotMatch(everything, /nobody else|hunter2|bbb120|key-of-a|secret words/);
});

Deno.test("the span of a request has the scheme that the request came by, which is https over HTTP/3", async () => {
  const schemes: unknown[] = [];
  const root: Tracing["root"] = (_name, start) => {
    schemes.push(start?.attributes?.["url.scheme"]);
    return NO_SPAN;
  };
  const spans = new RequestSpans({ ...NO_TRACING, isOn: true, root });
  for (const url of ["http://localhost/v1/health", "https://localhost/v1/health"]) {
    const caller = { requestId: "req-1", principalKey: "public" };
    await spans.around(new Request(url), caller, () => new Response());
  }
  assert.deepEqual(schemes, ["http", "https"]);
});

testing("an attempt to deliver an event is a trace of its own that the receiver can continue", async () => {
  await using collector = await TraceCollector.start();
  await using receiver = await Receiver.start();
  receiver.answer = ({ attempt }) => attempt === 1 ? 500 : 204;
  await using test = await startService(tracedTo(collector, {
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
    SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1",
  }));
  const runId = await newRun(test);
  const registered = await test.call("POST", `/v1/runs/${runId}/webhooks`, { url: receiver.url });
  assert.equal((await test.call("POST", `/v1/runs/${runId}/keepalive`)).status, 200);
  await receiver.waitFor(() => receiver.received.length >= 2);
  await until(() => collector.named("POST webhook").length >= 2);
  const [first, second] = collector.named("POST webhook");
  assert.deepEqual(
    receiver.received.slice(0, 2).map(({ headers }) => headers.traceparent),
    [first, second].map((span) => `00-${span!.traceId}-${span!.spanId}-01`),
  );
  assert.deepEqual([first!.parentSpanId, first!.kind, first!.isFailed, second!.isFailed], [
    "",
    3,
    true,
    false,
  ]);
  assert.deepEqual(second!.attributes, {
    "http.request.method": "POST",
    "http.request.resend_count": 1,
    "server.address": "127.0.0.1",
    "service.run.id": runId,
    "service.seq": registered.json.registered_seq + 1,
    "service.webhook.id": registered.json.webhook_id,
  });
  assert.doesNotMatch(JSON.stringify(collector.spans), /c%20c|hook\?/);
});

testing("a chunk with sound has a span with its identities, and the sidecar's calls below it", async () => {
  await using collector = await TraceCollector.start();
  await using sidecar = openAudioDouble(observed([observation(1000, 2000, { label: "music" })]));
  await using test = await startService(tracedTo(collector, { SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address }));
  const { runId, answer } = await reasonOn(test, {
    ...SAMPLED,
    chunk_size: undefined,
    max_frames: 5,
    semantic_inference: false,
    media: { mode: "audio_video" },
    local_audio: { voice_feedback: true },
  });
  assert.equal(answer.status, 200, answer.text);
  const chunk = await only(collector, "audio chunk");
  const request = await only(collector, "POST /v1/runs/:id/reason");
  assert.deepEqual(chunk.attributes, {
    "service.run.id": runId,
    "service.request.id": answer.json.request_id,
    "service.stream.id": "stream-0",
    "service.chunk.index": 0,
  });
  assert.ok(isBelow(chunk, request));
  assert.ok(isBelow(await only(collector, "audio analysis"), chunk));
  assert.ok(isBelow(await only(collector, "speech synthesis"), chunk));
});

testing(
  "the caller's flag decides, then the ratio; a header that breaks the rules counts as none",
  async () => {
    await using collector = await TraceCollector.start();
    await using test = await startService(tracedTo(collector, { SERVICE_TRACES_SAMPLE_RATIO: "0" }));
    const sampled = `00-${TRACE}-${PARENT}-01`;
    const path = "/v1/health";
    for (
      const traceparent of [
        null,
        `00-${TRACE}-${PARENT}-00`,
        `ff-${TRACE}-${PARENT}-01`,
        `00-${TRACE}-${PARENT}-01-more`,
        `00-${"0".repeat(32)}-${PARENT}-01`,
        `00-${TRACE}-${"0".repeat(16)}-01`,
        `00-${TRACE.toUpperCase()}-${PARENT}-01`,
        "nonsense",
      ]
    ) {
      assert.equal(await call(test, path, traceparent), 200);
    }
    assert.equal(await call(test, path, sampled), 200);
    assert.equal(await call(test, "/v1/nowhere", `01-${TRACE}-${PARENT}-01-of-a-later-version`), 404);
    await until(() => collector.spans.length >= 2);
    await test.restart(); // what waits is sent before the end
    assert.deepEqual(collector.spans.map(({ name, parentSpanId }) => [name, parentSpanId]), [
      ["GET /v1/health", PARENT],
      ["GET", PARENT],
    ]);
  },
);

testing(
  "a collector that is away costs spans and no request, and gets those that come when it is there",
  async () => {
    const { port } = portOfNobody();
    const env = { SERVICE_TRACES_ENDPOINT: `http://127.0.0.1:${port}` };
    await using test = await startService(env);
    // More than may wait.
    for (let count = 0; count < 44; count++) {
      await Promise.all(
        Array.from({ length: 50 }, async () => assert.equal(await call(test, "/v1/health", null), 200)),
      );
    }
    await until(async () => await metric(test, "service_trace_spans_dropped_total") > 100);
    await using collector = await TraceCollector.start({ port });
    await until(async () => {
      assert.equal(await call(test, "/v1/health", `00-${TRACE}-${PARENT}-01`), 200);
      return collector.spans.some(({ traceId }) => traceId === TRACE);
    });
    await until(async () => await metric(test, "service_trace_spans_exported_total") > 0);
  },
);

testing(
  "a collector that refuses the spans, or takes them and never answers, is one line in the log",
  async () => {
    await using refusing = await TraceCollector.start({ status: 14 });
    const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const lines: string[] = [];
    const stream = {
      writeSync(bytes: Uint8Array) {
        lines.push(new TextDecoder().decode(bytes));
        return bytes.length;
      },
    };
    const log = openLog("info", { stdout: stream, stderr: { writeSync: (bytes) => bytes.length } });
    const reasonOf = async (endpoint: string, timerSpeed = 1) => {
      lines.length = 0;
      await using test = await startService({ SERVICE_TRACES_ENDPOINT: endpoint }, { log, timerSpeed });
      for (let count = 0; count < 2; count++) {
        const dropped = await metric(test, "service_trace_spans_dropped_total");
        await until(async () => await metric(test, "service_trace_spans_dropped_total") > dropped);
      }
      return lines.flatMap((line) =>
        /the trace collector is away, spans are dropped reason="(.*)"/.exec(line)?.[1] ?? []
      );
    };
    assert.deepEqual(await reasonOf(refusing.endpoint), ["the collector did not take the spans"]);
    assert.equal(refusing.spans.length, 0);
    assert.deepEqual(await reasonOf(`http://127.0.0.1:${silent.addr.port}`, 10), ["not done after 5000 ms"]);
    silent.close();
  },
);

function portOfNobody(): { port: number } {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return { port: listener.addr.port };
}
