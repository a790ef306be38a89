import assert from "node:assert/strict";
import { join } from "node:path";
import { VERSION } from "../../../src/http/description/version.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { KEY_A, KEY_B, MODEL, newRun, startService } from "../../support/service.ts";

const SECRET = "a root secret of at least thirty-two bytes";

interface Shown {
  readonly name: string;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly value: string | null;
  readonly default: string | null;
  readonly no_effect: string | null;
}

Deno.test("the system tells its versions, the disk and its settings, and never a secret", async () => {
  const before = Date.now();
  await using test = await startService({
    SERVICE_API_KEYS: KEY_A,
    SERVICE_WEBHOOK_SECRET: SECRET,
    SERVICE_ACTIVE_STREAM_LIMIT: "7",
    SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,2,3",
  });
  const { json, text } = await test.call("GET", "/v1/system");
  assert.equal(json.version, VERSION);
  assert.equal(json.deno, Deno.version.deno);
  assert.ok(json.started_at_ms >= before && json.started_at_ms <= Date.now());
  assert.deepEqual(json.backends, []);
  assert.ok(json.disk.used.timeline_bytes >= 0 && json.disk.used.is_complete);
  assert.ok(json.disk.free_bytes > 0 && json.disk.free_bytes <= json.disk.total_bytes);
  const { text: metrics } = await test.call("GET", "/v1/metrics");
  for (const place of ["data_dir", "upload_root"]) {
    const bytes = (family: string) =>
      Number(new RegExp(`^${family}\\{place="${place}"\\} (\\d+)$`, "m").exec(metrics)?.[1]);
    const [free, total] = [bytes("service_disk_free_bytes"), bytes("service_disk_total_bytes")];
    assert.ok(free > 0 && free <= total, `${place}: ${free} of ${total}`);
  }
  const settings = new Map((json.settings as Shown[]).map((row) => [row.name, row]));
  const valueOf = (name: string) => settings.get(name)?.value;
  assert.equal(valueOf("SERVICE_ACTIVE_STREAM_LIMIT"), "7");
  assert.equal(settings.get("SERVICE_ACTIVE_STREAM_LIMIT")?.is_set, true);
  assert.equal(valueOf("SERVICE_WEBHOOK_RETRY_DELAYS_MS"), "1,2,3");
  assert.equal(valueOf("SERVICE_INFERENCE_GLOBAL_LIMIT"), "8");
  assert.equal(settings.get("SERVICE_INFERENCE_GLOBAL_LIMIT")?.is_set, false);
  assert.equal(settings.get("SERVICE_ACTIVE_STREAM_LIMIT")?.default, "5");
  assert.equal(settings.get("SERVICE_ACTIVE_STREAM_LIMIT")?.no_effect, null);
  assert.equal(settings.get("SERVICE_INGEST_FILE_ROOTS")?.default, null);
  assert.match(settings.get("SERVICE_WEBRTC_DECODE_WORKERS")!.no_effect!, /exactly one/);
  assert.equal(valueOf("SERVICE_VLLM_BASE_URL"), null);
  for (const name of ["SERVICE_WEBHOOK_SECRET", "SERVICE_API_KEYS"]) {
    const { is_set, is_secret, value } = settings.get(name)!;
    assert.deepEqual({ is_set, is_secret, value }, { is_set: true, is_secret: true, value: null });
  }
  assert.ok(!text.includes(SECRET) && !text.includes(KEY_A));
});

Deno.test("where several share the service, nobody learns the value of a setting", async () => {
  await using test = await startService({
    SERVICE_API_KEYS: `${KEY_A},${KEY_B}`,
    SERVICE_ACTIVE_STREAM_LIMIT: "7",
  });
  const { json } = await test.call("GET", "/v1/system", undefined, KEY_B);
  const settings = json.settings as Shown[];
  assert.deepEqual(settings.filter(({ value }) => value !== null), []);
  assert.equal(settings.find(({ name }) => name === "SERVICE_ACTIVE_STREAM_LIMIT")?.is_set, true);
});

Deno.test("the system tells what its files take, by what they are for", async () => {
  await using test = await startService();
  await newRun(test);
  Deno.writeFileSync(join(test.dataDir, "media", "blobs", "a"), new Uint8Array(300));
  Deno.writeFileSync(join(test.dataDir, "keyframes", "blobs", "b"), new Uint8Array(200));
  Deno.writeFileSync(join(test.uploadRoot, "film.mp4"), new Uint8Array(4000));
  const { json: { disk: { used } } } = await test.call("GET", "/v1/system");
  assert.equal(used.media_bytes, 300);
  assert.equal(used.keyframe_bytes, 200);
  assert.equal(used.upload_bytes, 4000);
  assert.ok(used.timeline_bytes > 100, JSON.stringify(used));
  const { json: { disk } } = await test.call("GET", "/v1/system");
  assert.deepEqual(disk.used, used, "not counted again so soon");
});

Deno.test("the system tells which backend is skipped after failures, and until when", async () => {
  await using model = startModelServer({ answer: () => ({ status: 500, body: "{}" }) });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url, SERVICE_API_KEYS: KEY_A });
  const look = async () => (await test.call("GET", "/v1/system")).json.backends;
  assert.deepEqual(await look(), [
    {
      ...{ name: "vllm", provider: "vllm", model: null, models: null },
      ...{ circuit: "closed", probe_at_ms: null, is_slow: false, fault: null },
    },
  ]);
  const before = Date.now();
  for (let call = 0; call < 3; call++) {
    assert.equal((await test.call("POST", "/v1/infer", { model: MODEL, prompt: "?" })).status, 500);
  }
  const [{ circuit, probe_at_ms }] = await look();
  assert.equal(circuit, "open");
  assert.ok(probe_at_ms > before + 4000 && probe_at_ms < Date.now() + 5001, `${probe_at_ms - before} ms`);
});
