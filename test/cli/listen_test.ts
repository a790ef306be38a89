/** `webhooks listen --run`: real deliveries of a real server, and what is left when it ends. */

import assert from "node:assert/strict";
import { CliUser } from "../support/cli/cli.ts";
import { newRun, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const SECRET = { SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes" };

Deno.test("listen registers a webhook, prints what the server delivers, and removes the webhook on Ctrl-C", async () => {
  await using test = await startService({ ...SECRET, SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true" });
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const hooks = async () => (await test.call("GET", `/v1/runs/${run}/webhooks`)).json.webhooks;
  const child = user.start(["webhooks", "listen", "--run", run, "--events", "keepalive_refreshed", "--json"]);
  await child.stdin.close();
  const stderr = new Response(child.stderr).text();
  const lines: string[] = [];
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      lines.push(...text.split("\n").filter((line) => line !== ""));
    }
  })();
  await until("the webhook is registered", async () => (await hooks()).length === 1);
  await test.call("POST", `/v1/runs/${run}/keepalive`);
  await test.call("POST", `/v1/runs/${run}/keepalive`);
  await until("both are printed", () => lines.length === 2);
  for (const line of lines) {
    const { type, is_genuine } = JSON.parse(line);
    assert.deepEqual([type, is_genuine], ["dev.service.timeline.keepalive_refreshed", true]);
  }
  const [hook] = await hooks();
  assert.deepEqual(hook.event_kinds, ["keepalive_refreshed"]);
  child.kill("SIGINT");
  const [{ code }] = await Promise.all([child.status, reading]);
  assert.equal(code, 130);
  assert.deepEqual(await hooks(), []);
  assert.match(await stderr, new RegExp(`${hook.webhook_id} is removed\n$`));
});

Deno.test("a server that calls no private address says so, with what can be done", async () => {
  await using test = await startService(SECRET);
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const { code, stderr } = await user.run(["webhooks", "listen", "--run", run]);
  assert.equal(code, 6, stderr);
  assert.match(stderr, /^error: url: .*\nhint: .*SERVICE_ALLOW_PRIVATE_WEBHOOKS=true.*--public-url/m);
  assert.equal((await user.run(["webhooks", "listen"])).code, 2);
  assert.equal((await user.run(["webhooks", "listen", "--secret", "xyz"])).code, 2);
});
