/** The page of the service itself: models and their circuits, room, disk, metrics, configuration without
 * secrets, and callers who may see less.
 */

import assert from "node:assert/strict";
import { Metrics } from "../../console/pages/system/metrics/prometheus.ts";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { KEY_A, MODEL, newRun, startService } from "../support/service.ts";

/** Ten observations: six up to 10 ms, three more up to 50 ms, one above. */
const TEXT = `
# HELP latency_ms Duration
# TYPE latency_ms histogram
latency_ms_bucket{le="10",of="a \\"b\\""} 6
latency_ms_bucket{le="50",of="a \\"b\\""} 9
latency_ms_bucket{le="+Inf",of="a \\"b\\""} 10
latency_ms_count{of="a \\"b\\""} 10
calls_total{status="ok"} 7
calls_total{status="error"} 2
free 1.5e+3
`;

Deno.test("metrics are read from their text, with sums and quantiles", () => {
  const metrics = new Metrics(TEXT, 0);
  assert.equal(metrics.sum("calls_total"), 9);
  assert.equal(metrics.sum("calls_total", { status: "error" }), 2);
  assert.equal(metrics.sum("free"), 1500);
  assert.equal(metrics.sum("not_there"), 0);
  assert.deepEqual(metrics.samples[0]!.labels, { le: "10", of: 'a "b"' });
  const quantile = (share: number) => metrics.quantile("latency_ms", share, { of: 'a "b"' });
  assert.deepEqual(quantile(0.3), { value: 5, isAbove: false });
  assert.deepEqual(quantile(0.6), { value: 10, isAbove: false });
  assert.deepEqual(quantile(0.8), { value: 10 + 40 * 2 / 3, isAbove: false });
  assert.deepEqual(quantile(0.95), { value: 50, isAbove: true });
  assert.equal(metrics.quantile("latency_ms", 0.5, { of: "c" }), null);
});

const SECRET = "a root secret of at least thirty-two bytes";

Deno.test({
  ...needing(CHROMIUM, "the system page tells of models, room, disk, metrics and settings, by itself"),
  ...LONG_TEST,
  async fn() {
    let isDown = false;
    await using model = startModelServer({ answer: () => isDown ? { status: 500 } : "A rabbit." });
    await using test = await startService({
      SERVICE_API_KEYS: KEY_A,
      SERVICE_VLLM_BASE_URL: model.url,
      SERVICE_WEBHOOK_SECRET: SECRET,
      SERVICE_ACTIVE_STREAM_LIMIT: "7",
    });
    const ask = async (status: number) => {
      const answer = await test.call("POST", "/v1/infer", { model: MODEL, prompt: "What is it?" });
      assert.equal(answer.status, status, answer.text);
    };
    await newRun(test);
    for (let call = 0; call < 3; call++) await ask(200);
    await using shown = await openConsole(test, { place: "/system" });
    const { page } = shown;
    const models = page.getByRole("region", { name: "Models" });
    await models.getByText("● used").waitFor();
    const calls = models.getByRole("row").filter({ hasText: "vllm" });
    await calls.getByRole("cell", { name: "3", exact: true }).waitFor();
    await calls.getByText("93").waitFor(); // 31 tokens of each question
    await models.getByRole("meter", { name: "Calls under way" }).waitFor();
    await models.getByText("No call was refused for want of room.").waitFor();
    await models.getByText("16 models ready").waitFor();
    await page.getByRole("meter", { name: "Memory reserved" }).waitFor();
    await page.getByRole("region", { name: "Disk" }).getByText(/The service takes/).waitFor();
    await page.getByText("Not configured: sound is not analyzed").waitFor();

    // What changes is shown without a word of the reader: the backend fails, and runs are made.
    isDown = true;
    for (let call = 0; call < 3; call++) await ask(500);
    await models.getByText(/skipped after failures; tried again/).waitFor();
    await newRun(test);
    await page.getByRole("img", { name: /^Events a second: .* now, at most 0?\.?\d/ }).waitFor();

    // The configuration: filtered, in the address, and never a secret.
    const settings = page.getByRole("region", { name: "Configuration" });
    await settings.getByLabel("Filter settings").fill("stream_limit");
    const limit = settings.getByRole("listitem");
    await limit.getByText("7", { exact: true }).waitFor();
    await limit.getByText("instead of 5").waitFor();
    assert.equal(await limit.count(), 1);
    await page.waitForURL(/setting=stream_limit/);
    await settings.getByLabel("Filter settings").fill("webhook_secret");
    await settings.getByText("set, secret").waitFor();
    assert.ok(!(await page.content()).includes(SECRET));
    await settings.getByLabel("Filter settings").fill("");
    await settings.getByRole("button", { name: "Set only" }).click();
    await page.getByText("All metrics").click();
    await page.getByLabel("Filter metrics").fill("runs_created");
    await page.getByRole("row").filter({ hasText: "service_runs_created_total" }).getByText("2").waitFor();
    await page.getByText("All metrics").click();
    await page.getByRole("heading", { name: "System" }).scrollIntoViewIfNeeded();
    await shown.checkAccessible();
    await shown.photograph("system");
    await page.getByRole("region", { name: "Metrics" }).evaluate((part) =>
      // deno-lint-ignore no-explicit-any -- an element of the page
      (part as any).scrollIntoView()
    );
    await shown.photograph("system-metrics");
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "where metrics need a key that the reader has not, or several share the service, the page says so",
  ),
  ...LONG_TEST,
  async fn() {
    await using open = await startService({ SERVICE_REQUIRE_API_KEY: "false" });
    await using shown = await openConsole(open, { place: "/system", key: null });
    const { page } = shown;
    await page.getByText(/metrics to callers with a key only/).waitFor();
    await page.getByText("No model backend").waitFor();
    assert.equal(await page.getByLabel("API key").count(), 0, "it goes on without them");
    await shown.checkAccessible();
    await shown.photograph("system-open");
    shown.checkQuiet(/401 \(Unauthorized\) \S+\/v1\/metrics$/);

    await using shared = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "7" });
    await using other = await openConsole(shared, { place: "/system?setting=active_stream" });
    await other.page.getByText(/no value is told to any of them/).waitFor();
    await other.page.getByRole("listitem").filter({ hasText: "SERVICE_ACTIVE_STREAM_LIMIT" })
      .getByText("set", { exact: true }).waitFor();
    other.checkQuiet();
  },
});
