/** The overview: the first steps of a new service, live sessions as tiles, and what needs attention. */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Outbound } from "../../src/remote/guard/outbound.ts";
import { openConsole } from "../support/console_page.ts";
import { NO_COUNTS } from "../support/live/fake_live_workers.ts";
import { publish, startLive } from "../support/live/live.ts";
import { startModelProgram } from "../support/models/model_programs.ts";
import { serveRtsp } from "../support/live/rtsp_server.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { make, makeClip, TempFolder } from "../support/media.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, KEY_A, KEY_B, newRun, startService } from "../support/service.ts";

const REROUTED: Outbound = {
  resolve: (host) => host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  reroute: () => "127.0.0.1",
};

Deno.test({
  ...needing(
    CHROMIUM,
    "a new service offers the first steps, and the sample clip is one click from its cuts",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService({
      SERVICE_API_KEYS: KEY_A,
      SERVICE_INGEST_FILE_ROOTS: CLIPS,
    });
    await using shown = await openConsole(test);
    const { page } = shown;
    await page.getByRole("heading", { name: "Begin with one of these" })
      .waitFor();
    await page.getByText(
      "Nothing needs your attention. No live session is running.",
    ).waitFor();
    await page.getByRole("link", { name: /^idle/ }).waitFor();
    await page.getByText("The same in a terminal").nth(2).click();
    await page.getByText("./scripts/cli live rtsps://camera.example.org/1")
      .waitFor();
    await shown.checkAccessible();
    await shown.photograph("overview-first");

    await page.getByRole("button", { name: "Analyze the sample clip" }).click();
    await page.waitForURL(/#\/runs\/run-/);
    await page.getByRole("heading", { name: "bbb480.mp4" }).waitFor();
    await page.getByRole("button", { name: /^cut/ }).waitFor();
    assert.equal(
      (await test.call("GET", "/v1/runs")).json[0].model,
      "",
      "no model was asked, and none is shown",
    );
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", {
      name: "Overview",
    }).click();
    await page.getByRole("link", { name: "bbb480.mp4" }).waitFor();
    await page.getByText("Add something").waitFor();
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "live sessions are tiles with what they see and their last event, and a camera that is away is told",
  ),
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const clip = makeClip(join(folder.path, "camera.ts"), {
      size: "160x120",
      frames: 50,
    });
    await using dock = serveRtsp(Deno.readFileSync(clip), { isEndless: true });
    await using test = await startLive({
      SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    }, { outbound: REROUTED });
    const published = await publish(test);
    published.worker.report({ kind: "connected", tookMs: 3 });
    published.worker.report({
      kind: "counts",
      counts: { ...NO_COUNTS, framesDecoded: 25 },
    });
    published.worker.picture(0, { jpeg: frameOf(folder, 12) });
    const runId = await newRun(test);
    const source_uri = `rtsp://camera.test:${dock.port}/dock`;
    assert.equal(
      (await test.call("POST", `/v1/runs/${runId}/live`, { source_uri }))
        .status,
      200,
    );
    const { last: camera } = test.workers;
    camera.report({
      kind: "counts",
      counts: { ...NO_COUNTS, framesDecoded: 25 },
    });
    camera.picture(0, { jpeg: frameOf(folder, 20) });
    // Sessions that decode nothing for some seconds need attention, and a slow machine shows the page later
    // than that.
    let framesDecoded = 25;
    const decoding = setInterval(() => {
      framesDecoded += 5;
      for (const worker of [published.worker, camera]) {
        worker.report({ kind: "counts", counts: { ...NO_COUNTS, framesDecoded } });
      }
    }, 500);
    using _stop = { [Symbol.dispose]: () => clearInterval(decoding) };

    await using shown = await openConsole(test);
    const { page } = shown;
    const tile = page.getByRole("listitem").filter({
      hasText: "Published stream",
    });
    await tile.getByRole("link", { name: "Watch Published stream" }).locator(
      "canvas",
    ).waitFor();
    await tile.getByText(/A picture was stored|no inference provider/)
      .waitFor();
    await page.getByText(
      "Nothing needs your attention. 2 live sessions are running.",
    ).waitFor();
    await page.getByRole("link", { name: /^healthy/ }).waitFor();
    clearInterval(decoding);

    // A camera that is always watched and does not answer has a tile, too, and can be picked on other pages.
    await test.service.applySources([{
      ...{
        name: "gate",
        kind: "rtsp",
        uri: "rtsp://camera.test:1/gate",
        credentials: null,
        principals: null,
        retentionHours: null,
      },
      watch: { attach: {}, rolloverMs: 86_400_000, webhooks: [], armed: null, recording: null },
    }]);
    const gate = page.getByRole("listitem").filter({ hasText: "gate" });
    await gate.getByText("failed").waitFor();
    await gate.getByText(/^It cannot be watched: it cannot be fetched/).waitFor();
    await gate.getByText("Armed", { exact: true }).waitFor();
    await gate.getByRole("button", { name: "Disarm gate" }).click();
    await gate.getByText("Disarmed by hand").waitFor();
    for (const link of ["New analysis", "Live"]) {
      await page.getByRole("navigation").first().getByRole("link", { name: link, exact: true }).click();
      if (link === "Live") await page.getByRole("button", { name: "Camera on the network" }).click();
      await page.getByLabel("Named source").selectOption("source:gate");
      const address = page.getByLabel(link === "Live" ? "Address" : "or the address of a source");
      assert.equal(await address.inputValue(), "source:gate");
    }
    await page.getByRole("navigation").first().getByRole("link", { name: "Overview", exact: true }).click();

    camera.report({
      kind: "gap",
      reason: "the connection was closed",
      lastPtsMs: 40,
      silentMs: 0,
    });
    camera.report({
      kind: "gap",
      reason: "the connection was closed",
      lastPtsMs: 40,
      silentMs: 0,
    });
    const away = page.getByRole("listitem").filter({
      hasText: "Watch camera.test",
    }).or(
      page.getByRole("listitem").filter({
        hasText: `camera.test:${dock.port}/dock`,
      }),
    );
    await away.getByText("interrupted").waitFor();
    published.worker.report({
      kind: "ended",
      cause: "worker_fault",
      message: "a test",
      fault: { stage: "decode", reason: "unexpected_exit" },
    });
    await page.getByRole("heading", { name: "Needs attention" }).waitFor();
    await page.getByText(/A worker of a live session has failed, /).first()
      .waitFor();
    await page.getByRole("link", { name: /^faulted/ }).waitFor();
    await page.getByRole("table").getByRole("link", { name: "Published stream" }).waitFor();
    await shown.checkAccessible();
    await shown.photograph("overview");
    await away.getByRole("link", { name: /^Watch/ }).click();
    await page.waitForURL(new RegExp(`#/live/${runId}`));
    // The picture of a session may be asked for just as it ends.
    shown.checkQuiet(/404 \(Not Found\) \S+\/snapshot\.jpg$/);

    await using other = await openConsole(test, { key: KEY_B });
    await other.page.getByRole("heading", { name: "Begin with one of these" })
      .waitFor();
    assert.equal(await other.page.getByText("camera.test").count(), 0);
  },
});

/** A frame of a film, as a JPEG. */
function frameOf(folder: TempFolder, second: number): Uint8Array<ArrayBuffer> {
  const path = join(folder.path, `${second}.jpg`);
  make(
    path,
    "-ss",
    String(second),
    "-i",
    join(CLIPS, "bbb480.mp4"),
    "-frames:v",
    "1",
  );
  return Deno.readFileSync(path);
}

Deno.test({
  ...needing(
    CHROMIUM,
    "a model that its server does not know is told in the bar, on the overview and on the live page",
  ),
  ...LONG_TEST,
  async fn() {
    await using server = startModelProgram("ollama", { models: ["llava:13b", "qwen2.5vl:7b"] });
    await using test = await startLive({ SERVICE_VLLM_BASE_URL: `${server.origin}/v1` });
    const told =
      "The model server does not know the model Qwen/Qwen3-VL-8B-Instruct; it has: llava:13b, qwen2.5vl:7b.";
    await using shown = await openConsole(test);
    const { page } = shown;
    const bar = page.getByRole("link", { name: /The model server does not know/ });
    await bar.filter({ hasText: "attention" }).waitFor();
    await page.getByRole("region", { name: "Needs attention" }).getByText(told).waitFor();
    await publish(test);
    await page.reload();
    await bar.filter({ hasText: "faulted" }).waitFor();
    await page.getByRole("link", { name: "Watch Published stream" }).click();
    await page.getByRole("main").getByText(told).waitFor();
    shown.checkQuiet();
  },
});
