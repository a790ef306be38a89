/** `smoke` and `staging-provider`: what they say of a service that works, and of what does not. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LONG_TEST } from "../support/long_tests.ts";
import { goodJson, MALFORMED, type ModelAnswer, startModelServer } from "../support/models/model_server.ts";
import { KEY_A, MODEL, PROJECT_ROOT, startService } from "../support/service.ts";

async function run(script: string, env: Record<string, string>): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-check", "--allow-all", "--config", join(PROJECT_ROOT, "deno.json")],
      join(PROJECT_ROOT, "scripts", "acceptance", `${script}.ts`),
    ],
    env,
  }).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

Deno.test("smoke passes on a service that works and leaves nothing there, and names what fails", async () => {
  await using test = await startService();
  const passed = await run("smoke", { SERVICE_URL: test.url, SERVICE_API_KEY: KEY_A });
  assert.equal(passed.code, 0, passed.text);
  assert.match(passed.text, /\nsmoke: 8 steps passed\n$/);
  assert.deepEqual((await test.call("GET", "/v1/runs")).json, []);
  assert.deepEqual([...Deno.readDirSync(test.uploadRoot)].filter(({ name }) => name.endsWith(".mp4")), []);
  const refused = await run("smoke", { SERVICE_URL: test.url, SERVICE_API_KEY: "wrong" });
  assert.equal(refused.code, 1);
  assert.match(refused.text, /^FAILED {2}key: /m);
  assert.equal((await run("smoke", { SERVICE_API_KEY: KEY_A })).code, 2);
});

Deno.test(
  "staging-provider passes with a provider that answers, and fails with one that does not",
  LONG_TEST,
  async () => {
    const tried = async (answer: () => ModelAnswer) => {
      await using model = startModelServer({ answer, toleratesFaults: true });
      return await run("staging_provider", { SERVICE_VLLM_BASE_URL: model.url, STAGING_MODEL: MODEL });
    };
    const passed = await tried(() => goodJson({ summary: "A bottle stands." }));
    assert.equal(passed.code, 0, passed.text);
    assert.match(
      passed.text,
      /ok +film .* 1 chunks: "A bottle stands."\nstaging provider: 3 steps passed\n$/,
    );
    const failed = await tried(() => MALFORMED);
    assert.equal(failed.code, 1);
    assert.match(failed.text, /^FAILED {2}answer: /m);
  },
);
