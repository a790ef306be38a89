import assert from "node:assert/strict";
import { VERSION } from "../../../src/http/description/version.ts";
import { KEY_A, KEY_B, startService } from "../../support/service.ts";

const SECRET = "a root secret of at least thirty-two bytes";

interface Shown {
  readonly name: string;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly value: string | null;
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
  assert.ok(json.disk.free_bytes > 0 && json.disk.free_bytes <= json.disk.total_bytes);
  const settings = new Map((json.settings as Shown[]).map((row) => [row.name, row]));
  const valueOf = (name: string) => settings.get(name)?.value;
  assert.equal(valueOf("SERVICE_ACTIVE_STREAM_LIMIT"), "7");
  assert.equal(settings.get("SERVICE_ACTIVE_STREAM_LIMIT")?.is_set, true);
  assert.equal(valueOf("SERVICE_WEBHOOK_RETRY_DELAYS_MS"), "1,2,3");
  assert.equal(valueOf("SERVICE_INFERENCE_GLOBAL_LIMIT"), "8");
  assert.equal(settings.get("SERVICE_INFERENCE_GLOBAL_LIMIT")?.is_set, false);
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
