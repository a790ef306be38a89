/** What answers and refusals become: readable errors, exact numbers, genuine deliveries. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Client, HttpError, ParseError, UploadError, verifyWebhook } from "../../client/mod.ts";
import { fromJson, toJson } from "../../client/src/http/exact_json.ts";
import { Receiver } from "../support/http/receiver.ts";
import { CLIPS, KEY_A, startService } from "../support/service.ts";
import { rejection, startScripted } from "./scripted_service.ts";

const RUN = `run-${"0".repeat(32)}`;

Deno.test("the message of a refusal names the request, the fields, their rules and the request id", async () => {
  await using test = await startService();
  const client = new Client(test.url, { apiKey: KEY_A });
  const error = await rejection(client.createRun({ mode: 3, colour: "red" } as never));
  assert.ok(error instanceof HttpError);
  assert.match(
    error.message,
    /^POST \/v1\/runs: 422 validation_error: mode must be a text.*; colour is not a field.* \(request req-[0-9a-f]{16}\)$/,
  );
  assert.equal(error.requestId, error.apiError!.request_id);
  assert.deepEqual(error.apiError!.details.map(({ field }) => field), ["mode", "colour"]);
  assert.deepEqual([error.isValidationError, error.isClientError, error.isServerError], [true, true, false]);
  const absent = await rejection(client.getRun(`run-${"0".repeat(32)}`));
  assert.ok(absent instanceof HttpError && absent.isNotFound && absent.code === "not_found");
  const stranger = await rejection(new Client(test.url, { apiKey: "wrong-key" }).listRuns());
  assert.ok(stranger instanceof HttpError && stranger.status === 401);
  assert.doesNotMatch(stranger.message, /wrong-key/);
  const early = await rejection(client.getMarkers((await client.createRun()).run_id, { from_frame: NaN }));
  assert.ok(early instanceof HttpError && early.code === "bad_request");
  assert.match(early.message, /^GET \/v1\/runs\/run-\w+\/markers: 400 bad_request.*from_frame/);
  const plain = await rejection(client.whipTerminate("no-such-session"));
  assert.ok(plain instanceof HttpError && plain.apiError === null && plain.code === "http_error");
});

Deno.test("integers beyond 2^53 come and go with all their digits on request", async () => {
  await using test = await startService();
  const client = new Client(test.url, { apiKey: KEY_A, exactIntegers: true });
  const { run_id } = await client.createRun();
  await client.ingestRun(run_id, { source_uri: `${CLIPS}/bbb120.mp4`, max_frames: 100 });
  const { matches: [decoded] } = await client.query({ run_id, kind: "frames_decoded" });
  const { signals } = decoded!.payload as { signals: Record<string, unknown>[] };
  const large = signals.filter(({ perceptual_hash }) => typeof perceptual_hash === "bigint");
  assert.ok(large.length > 0);
  const { text } = await test.call("POST", "/v1/query", { run_id, kind: "frames_decoded" });
  for (const { perceptual_hash } of signals) {
    assert.ok(text.includes(`"perceptual_hash":${perceptual_hash}`), String(perceptual_hash));
  }
  const frames = [0, 1, 2].map((index) => ({
    frame_index: index,
    pts_ms: index * 40,
    perceptual_hash: 2n ** 64n - 1n,
    luma_mean: 0.5,
    flicker_score: 0,
    ghosting_score: 0,
    noise_variance_score: 0,
  }));
  const { generated } = await client.analyzeRun(run_id, { model: "Qwen/Qwen3-VL-4B-Instruct", frames });
  assert.equal(generated, 3);
});

Deno.test("JSON is read and written exactly, and texts that look like numbers are left alone", () => {
  const text =
    '{"a":18446744073709551615,"b":"18446744073709551615","c":-9007199254740993,"d":9007199254740991,' +
    '"e":0.12345678901234567,"f":1.2345678901234567e+20,"g":"\\"12345678901234567890\\\\","h":[12345678901234567890]}';
  assert.deepEqual(fromJson(text, true), {
    a: 18446744073709551615n,
    b: "18446744073709551615",
    c: -9007199254740993n,
    d: 9007199254740991,
    e: 0.12345678901234567,
    f: 1.2345678901234567e20,
    g: '"12345678901234567890\\',
    h: [12345678901234567890n],
  });
  assert.deepEqual(fromJson(text, false), JSON.parse(text));
  assert.equal(toJson({ a: 2n ** 64n, b: "2", c: [-1n] }), '{"a":18446744073709551616,"b":"2","c":[-1]}');
  assert.equal(toJson({ a: 1 }), '{"a":1}');
});

Deno.test("a delivery of the service is genuine, and nothing else is", async () => {
  await using receiver = await Receiver.start();
  await using test = await startService({
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  });
  const client = new Client(test.url, { apiKey: KEY_A });
  const { run_id } = await client.createRun();
  const { signing_secret } = await client.createWebhook(run_id, { url: receiver.url });
  await client.keepaliveRun(run_id);
  await receiver.waitFor(() => receiver.received.length > 0);
  const { headers, body } = receiver.received[0]!;
  const text = new TextDecoder().decode(body);
  assert.equal(await verifyWebhook(headers, body, signing_secret), true);
  assert.equal(await verifyWebhook(new Headers(headers), text, signing_secret), true);
  assert.equal(
    await verifyWebhook({ ...headers, other: ["a", "b"] }, body.slice().buffer, signing_secret),
    true,
  );

  const nowMs = Number(headers["webhook-timestamp"]) * 1000;
  const cases: [about: string, Promise<boolean>][] = [
    ["another body", verifyWebhook(headers, `${text} `, signing_secret)],
    ["another secret", verifyWebhook(headers, body, "0".repeat(64))],
    ["too old", verifyWebhook(headers, body, signing_secret, { nowMs: nowMs + 301_000 })],
    ["from the future", verifyWebhook(headers, body, signing_secret, { nowMs: nowMs - 301_000 })],
    ["no headers", verifyWebhook({}, body, signing_secret)],
    ...["x-service-signature", "webhook-id", "webhook-timestamp", "webhook-signature"].map((
      name,
    ): [string, Promise<boolean>] => [
      `without ${name}`,
      verifyWebhook({ ...headers, [name]: undefined }, body, signing_secret),
    ]),
    [
      "a later time",
      verifyWebhook({ ...headers, "webhook-timestamp": `${nowMs / 1000 + 1}` }, body, signing_secret),
    ],
  ];
  for (const [about, isGenuine] of cases) assert.equal(await isGenuine, false, about);
  const { "x-service-signature": signature } = headers;
  const alone = { "x-service-signature": signature };
  assert.equal(await verifyWebhook(alone, body, signing_secret, { toleranceSecs: null }), true);
  await assert.rejects(verifyWebhook(headers, body, "no hex"), /^TypeError: secret must be the hex digits/);
});

Deno.test("an upload that is refused says why, and its file is let go", async () => {
  await using test = await startService();
  const client = new Client(test.url, { apiKey: KEY_A });
  let isLetGo = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(65536)),
    cancel: () => void (isLetGo = true),
  });
  const stop = new AbortController();
  const aborted = client.uploadFile({ stream: endless, name: "a.mp4" }, (loaded, total) => {
    assert.equal(total, null);
    if (loaded > 2 ** 20) stop.abort("enough");
  }, { signal: stop.signal });
  assert.equal(await rejection(aborted), "enough");
  assert.ok(isLetGo);
  const refused = await rejection(client.uploadFile(new Blob(["text"])));
  assert.ok(refused instanceof UploadError && refused.cause instanceof HttpError, String(refused));
  assert.equal(refused.cause.status, 422);
  assert.match(refused.message, /^the file was not uploaded: POST \/v1\/upload: 422 .*file /);
  const broken = new ReadableStream<Uint8Array>({
    pull: () => Promise.reject(new Error("the disk is gone")),
  });
  assert.ok(await rejection(client.uploadFile({ stream: broken, name: "a.mp4" })) instanceof UploadError);
});

Deno.test("an analysis that fails deletes the run it made", async () => {
  await using service = startScripted((_index, { method, path }) => {
    if (path.endsWith("/ingest")) {
      return Response.json({ error: { code: "validation_error" } }, { status: 422 });
    }
    return Response.json(method === "POST" ? { run_id: "run-1" } : {});
  });
  const error = await rejection(new Client(service.url).analyze("absent.mp4"));
  assert.ok(error instanceof HttpError && error.status === 422);
  assert.deepEqual(service.asked.map(({ method, path }) => `${method} ${path}`), [
    "POST /v1/runs",
    "POST /v1/runs/run-1/ingest",
    "DELETE /v1/runs/run-1",
  ]);
});

Deno.test("an analysis looks at the whole film, completes its run, and says where a bound cut it", async () => {
  await using test = await startService();
  const client = new Client(test.url, { apiKey: KEY_A });
  const whole = await client.analyze(join(CLIPS, "bbb120.mp4"));
  assert.deepEqual([whole.truncated, whole.analyzeResponse.generated], [false, 720]);
  assert.equal(await client.getRunState(whole.runId), "completed");
  const part = await client.analyze(join(CLIPS, "bbb120.mp4"), {
    maxFrames: 100,
    includeFrameMetadata: false,
  });
  assert.deepEqual([part.truncated, part.analyzeResponse.generated], [true, 100]);
  assert.deepEqual(part.analyzeResponse.metadata, []);
  const pass = (await part.events()).find(({ kind }) => kind === "analysis_generated");
  assert.equal(pass?.payload.truncated, true);
});

Deno.test("an answer that is none of the service is a ParseError, and none stays unread for ever", async () => {
  const bodies = ["null", "7", "[]", "{}", '{"runs":[]}'];
  await using service = startScripted((index) => new Response(bodies[index % bodies.length]));
  const client = new Client(service.url);
  for (const call of [() => client.listModels(), () => client.health(), () => client.getEvents(RUN)]) {
    for (const body of bodies) {
      const error = await rejection(call());
      assert.ok(error instanceof ParseError, `${body}: ${error}`);
      assert.match(error.message, /is not one of this service/);
    }
  }
  await using page = startScripted(() =>
    new Response("{}", { headers: { "content-type": "text/html; charset=utf-8" } })
  );
  const other = new Client(page.url);
  for (const events of [other.subscribeEvents(RUN), other.streamEvents(RUN)]) {
    const error = await rejection(events.next());
    assert.ok(error instanceof ParseError, String(error));
    assert.match(error.message, /the type text\/html/);
  }
});

Deno.test("of an answer no more is read than maxAnswerBytes, of a refusal 64 KiB, however much comes", async () => {
  const endless = (status: number, type: string) => {
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(0x61)),
    });
    return new Response(body, { status, headers: { "content-type": type } });
  };
  let answer = () => endless(200, "application/json");
  await using service = startScripted(() => answer());
  const client = new Client(service.url, { maxAnswerBytes: 1_000_000, maxRetries: 0 });
  for (const call of [() => client.listRuns(), () => client.metrics(), () => client.getFile("a.mp4")]) {
    const error = await rejection(call());
    assert.ok(error instanceof ParseError, String(error));
    assert.match(error.message, /^GET \/\S+: the answer has more than 1000000 bytes$/);
  }
  answer = () => endless(200, "application/x-ndjson");
  const error = await rejection(client.streamEvents(RUN).next());
  assert.match(String(error), /a line has more than 1000000 characters/);
  answer = () => endless(404, "text/plain");
  const refused = await rejection(client.getRun(RUN));
  assert.ok(refused instanceof HttpError && refused.isNotFound, String(refused));
  answer = () => new Response(JSON.stringify(["a".repeat(999_990)]));
  assert.equal((await client.listRuns()).length, 1);
});
