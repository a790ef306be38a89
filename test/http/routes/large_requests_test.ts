import assert from "node:assert/strict";
import { MODEL, startService, type TestService } from "../../support/service.ts";

function logBytes({ dataDir }: TestService): number {
  return [...Deno.readDirSync(`${dataDir}/timeline`)].filter(({ name }) => name.endsWith(".wal"))
    .reduce((sum, { name }) => sum + Deno.statSync(`${dataDir}/timeline/${name}`).size, 0);
}

Deno.test("names that every event repeats are bounded on every route, and a refusal leaves nothing behind", async () => {
  await using test = await startService();
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  const before = logBytes(test);
  const [long, control, blank] = ["x".repeat(257), "a\u0001b", "  "];
  const bodies: [path: string, field: string, body: Record<string, unknown>][] = [
    ["ingest", "stream_id", { source_uri: "x.mp4" }],
    ["analyze", "stream_id", { model: MODEL }],
    ["analyze", "trace_id", { model: MODEL }],
    ["reason", "stream_id", { model: MODEL, source_uri: "x.mp4", semantic_inference: false }],
    ["reason", "trace_id", { model: MODEL, source_uri: "x.mp4", semantic_inference: false }],
    ["reason", "index_name", { model: MODEL, source_uri: "x.mp4", semantic_inference: false }],
  ];
  for (const [path, field, body] of bodies) {
    for (const name of [long, control, blank]) {
      const answer = await test.call("POST", `/v1/runs/${run_id}/${path}`, { ...body, [field]: name });
      assert.equal(answer.status, 422, `${path} ${field}`);
      assert.deepEqual(answer.json.error.details.map((fault: { field: string }) => fault.field), [field]);
    }
  }
  for (const path of ["ingest", "reason", "live"]) {
    const body = { source_uri: `${"a/../".repeat(900)}x.mp4`, ...(path === "reason" && { model: MODEL }) };
    const answer = await test.call("POST", `/v1/runs/${run_id}/${path}`, body);
    assert.equal(answer.status, 422, answer.text);
    assert.match(answer.text, /source_uri: must be at most 4096 bytes: got 4505/);
  }
  const tenant = await test.send("/v1/runs", {
    method: "POST",
    headers: { "x-api-key": "key-of-a", "content-type": "application/json", "x-tenant-id": long },
    body: "{}",
  });
  assert.equal(tenant.status, 422);
  assert.equal(logBytes(test), before);
});

Deno.test("the largest analysis of a caller's frames writes less than ten times its bytes", async () => {
  await using test = await startService();
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  const before = logBytes(test);
  const frames = Array.from({ length: 4096 }, (_, frame_index) => ({
    frame_index,
    pts_ms: frame_index * 40,
    perceptual_hash: 0,
    luma_mean: 0,
    flicker_score: frame_index % 2,
    ghosting_score: 0,
    noise_variance_score: 0,
  }));
  const name = '"'.repeat(256);
  const body = { model: MODEL, stream_id: name, trace_id: name, frames };
  const answer = await test.call("POST", `/v1/runs/${run_id}/analyze`, body);
  assert.equal(answer.status, 200);
  assert.ok(answer.json.markers.length >= 2048, "every other frame flickers");
  const ratio = (logBytes(test) - before) / JSON.stringify(body).length;
  assert.ok(ratio < 10, `${ratio} times`);
});
