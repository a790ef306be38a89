/** Named sources in the console: how each is, and the recording of one, which is played and exported. */

import assert from "node:assert/strict";
import { openConsole } from "../support/console_page.ts";
import { recordSource } from "../support/live/recorded_source.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { KEY_A, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const SOURCES = `
[[sources]]
name = "dock"
uri = "rtsp://192.0.2.1/dock"
principals = ["*"]
live = true
recording = { hours = 48 }

[[sources]]
name = "gate"
uri = "rtsp://192.0.2.1/gate"
principals = ["*"]
`;

Deno.test({
  ...needing(
    CHROMIUM,
    "a day of a camera's recording is seen with its gap, played over the end of a segment, and exported",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService({ SERVICE_ALLOW_UNENCRYPTED_RTSP: "true" }, {
      sourcesFile: SOURCES,
    });
    const noon = new Date();
    noon.setDate(noon.getDate() - 1);
    const beginMs = noon.setHours(12, 0, 0, 0);
    await recordSource(test.dataDir, "dock", [0, 1_000, 2_000, 3_600_000].map((after) => beginMs + after));

    await using shown = await openConsole(test, { place: "/cameras" });
    const { page } = shown;
    const dock = page.getByRole("listitem").filter({ hasText: "dock" });
    await dock.getByText("failed", { exact: true }).waitFor();
    await dock.getByText(/^It cannot be watched: .+ It is asked again\./).waitFor();
    await page.getByRole("listitem").filter({ hasText: "gate" }).getByText("not watched", { exact: true })
      .waitFor();
    await dock.getByRole("button", { name: "Disarm dock" }).click();
    await dock.getByText("Disarmed by hand").waitFor();
    await shown.checkAccessible();
    await shown.photograph("cameras");

    await dock.getByRole("link", { name: "Recording of dock" }).click();
    await page.getByRole("heading", { name: "dock" }).waitFor();
    // It begins with the newest recording, which was made before the service started.
    await page.getByRole("button", { name: "The day before" }).click();
    await page.getByText("Nothing was recorded on this day").waitFor();
    await page.getByRole("button", { name: "The day after" }).click();
    const list = page.getByRole("group", { name: /^stretches/ });
    await list.getByText("Gap: nothing was recorded").waitFor();
    assert.deepEqual(await list.locator("tbody tr td:nth-child(3)").allInnerTexts(), [
      "1.0 s",
      "1 h",
      "3.0 s",
    ]);
    await page.getByRole("img", { name: /with 1 gap/ }).waitFor();

    // The oldest stretch is the last row.
    await list.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByText(/^The stretch ends at/).waitFor();
    const video = page.getByLabel(/^Recording from/);
    const { currentTime, videoWidth } = await video.evaluate((element) => {
      const { currentTime, videoWidth } = element as unknown as { currentTime: number; videoWidth: number };
      return { currentTime, videoWidth };
    });
    assert.ok(Math.abs(currentTime - 3) < 0.1, `it was played to ${currentTime} s`);
    assert.equal(videoWidth, 64);
    await page.getByText(/^3\.0 s, about/).waitFor();
    await shown.checkAccessible();
    await shown.photograph("camera-recording");

    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export as MP4" }).click();
    const file = await (await download).path();
    await page.getByText(/^Saved dock-/).waitFor();
    const url = `${test.url}/v1/sources/dock/recordings/export?from=${beginMs}&to=${beginMs + 3_000}`;
    const exported = await fetch(url, { headers: { "x-api-key": KEY_A } });
    assert.deepEqual(Deno.readFileSync(file), new Uint8Array(await exported.arrayBuffer()));

    await page.getByLabel("To").fill("2020-01-01T00:00:00");
    await page.getByText("It must be after the begin.").waitFor();
    assert.ok(await page.getByRole("button", { name: "Export as MP4" }).isDisabled());

    await page.getByRole("button", { name: "The day before" }).click();
    await page.getByText("Nothing was recorded on this day").waitFor();
    await until("the address names the day", () => page.url().includes("t="));
    await shown.show("/cameras/nobody");
    await page.getByText("There is no such camera").waitFor();
    shown.checkQuiet();
  },
});
