/** The run page: the film of an upload with its marks, what is known of a mark, exports, a model's words,
 * live events, and runs that are not there.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, KEY_A, KEY_B, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** Uploads a clip and decodes all of its frames. */
async function decodedUpload(test: TestService, clip = "bbb480.mp4"): Promise<string> {
  const runId = await newRun(test);
  const body = new FormData();
  body.append("file", new File([await Deno.readFile(join(CLIPS, clip))], clip));
  const uploaded = await test.send("/v1/upload", { method: "POST", headers: { "x-api-key": KEY_A }, body });
  assert.equal(uploaded.status, 200, uploaded.text);
  const source = { source_uri: uploaded.json.file_path, max_frames: 2000 };
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, source);
  assert.equal(ingested.status, 200, ingested.text);
  return runId;
}

async function analyze(test: TestService, runId: string): Promise<void> {
  const analyzed = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  assert.equal(analyzed.status, 200, analyzed.text);
}

/** Media time of the film's picture, milliseconds. */
function filmMs(page: Page): Promise<number> {
  return page.locator(".screen video").evaluate((video) =>
    (video as unknown as { currentTime: number }).currentTime * 1000
  );
}

/** What the timeline shows once all that has changed is drawn, and whether it plots signals by now. */
function drawing(page: Page): Promise<{ image: string; signals: boolean }> {
  return page.locator(".timeline canvas").evaluate(async (element) => {
    // deno-lint-ignore no-explicit-any -- the globals of the page
    const { devicePixelRatio, requestAnimationFrame } = globalThis as any;
    for (let frame = 0; frame < 3; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
    const canvas = element as unknown as { height: number; toDataURL(): string };
    return { image: canvas.toDataURL(), signals: canvas.height / devicePixelRatio > 200 };
  });
}

/** A mark of the list by a part of its text. */
function row(page: Page, text: string | RegExp) {
  return page.getByRole("option").filter({ hasText: text });
}

Deno.test({
  ...needing(CHROMIUM, "the run page shows the film of an upload, its marks, and what is known of each"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await decodedUpload(test);
    await analyze(test, runId);
    const { json: { markers } } = await test.call("GET", `/v1/runs/${runId}/markers?event_type=scene_cut`);
    await using shown = await openConsole(test, { place: `/runs/${runId}` });
    const { page } = shown;
    await page.getByRole("heading", { name: "bbb480.mp4" }).waitFor();
    await page.getByText("0:29.958").first().waitFor();

    // A mark of the list is chosen: the film goes there, the details tell of it, the address names it.
    const [cut] = markers;
    await page.getByLabel("Text of marks").fill("scene_cut");
    await page.getByText(`${markers.length} of `).waitFor();
    await row(page, /cut.*0:11\.875/).click();
    const details = page.getByRole("region", { name: "Details" });
    await details.getByRole("heading", { name: "cut" }).waitFor();
    await details.getByText("A new shot begins with this frame.").first().waitFor();
    await details.getByText(`frame ${cut.start_frame}`).waitFor();
    await details.getByText("Measured of this frame").waitFor();
    await page.waitForURL(/[?&]t=11875/);
    assert.ok(Math.abs(await filmMs(page) - cut.start_pts_ms) < 60, `the film is at ${await filmMs(page)}`);
    await details.getByText("Raw event").click();
    await details.getByText(cut.marker_id).first().waitFor();

    // What is typed into the search stays while the address of the run changes.
    await page.getByLabel("Search descriptions").fill("a rabbit");
    await page.getByRole("button", { name: "Next mark" }).click();
    await page.waitForURL(/t=157\d\d/);
    assert.equal(await page.getByLabel("Search descriptions").inputValue(), "a rabbit");
    await row(page, /cut.*0:11\.875/).click();
    await page.waitForURL(/[?&]t=11875/);

    // Keys: the next mark, a frame on, the lanes on and off.
    assert.equal(await page.getByRole("option").count(), markers.length);
    await page.getByRole("heading", { name: "bbb480.mp4" }).click();
    await page.keyboard.press("1");
    await page.getByText("No mark passes the filter.").waitFor();
    await page.keyboard.press("1");
    await row(page, "cut").first().waitFor();
    await page.getByRole("heading", { name: "bbb480.mp4" }).click();
    await page.keyboard.press("]");
    await page.waitForURL(new RegExp(`t=${markers[1].start_pts_ms}`));
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/t=157\d\d|t=158\d\d/);
    // A stretch without a mouse: from here to a second later.
    await page.keyboard.press("i");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("o");
    await page.waitForURL(/in=15\d\d\d&out=16\d\d\d/);
    await page.keyboard.press("x");
    await page.waitForURL((url) => !url.hash.includes("in="));

    // The list is moved through with the keyboard alone.
    await page.getByRole("listbox").focus();
    await page.keyboard.press("End");
    await page.waitForURL(new RegExp(`t=${markers.at(-1).start_pts_ms}`));
    await page.keyboard.press("Home");
    await page.waitForURL(/t=11875/);

    // A link shows the same to another reader.
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByRole("option", { selected: true }).filter({ hasText: "0:11.875" }).waitFor();
    await page.getByText(`${markers.length} of `).waitFor();
    assert.equal(await page.getByRole("option").count(), markers.length);
    await page.getByRole("button", { name: "Show all" }).click();

    // An address may name anything.
    await shown.show(`/runs/${runId}?start=0&end=${Number.MAX_SAFE_INTEGER}&t=1e300&seq=1.5&lanes=__proto__`);
    await page.getByRole("img", { name: /^\d+ marks from 0:00\.000 to 0:29\.958/ }).waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await shown.show(`/runs/${runId}?start=0&end=29958`);
    await page.locator("[data-part=playhead]").getByText("0:00.000").waitFor();
    await until("the signals are drawn", async () => (await drawing(page)).signals);
    const { image } = await drawing(page);
    await shown.show(`/runs/${runId}?start=0&end=${Number.MAX_SAFE_INTEGER}`);
    await page.getByRole("heading", { name: "No mark is chosen" }).waitFor();
    await until("no more is drawn than the run is long", async () => (await drawing(page)).image === image);
    // From the run to its policies.
    await page.getByRole("button", { name: "Policies" }).click();
    await page.getByRole("heading", { name: "No revisions yet" }).waitFor();
    await shown.show(`/runs/${runId}`);
    await page.getByRole("option").first().waitFor();

    const download = page.waitForEvent("download");
    await page.getByText("Export").click();
    await page.getByRole("button", { name: "WebVTT, for players" }).click();
    const saved = await Deno.readTextFile(await (await download).path());
    assert.match(saved, /^WEBVTT/);
    await page.getByRole("button", { name: "Close note" }).click();
    await shown.checkAccessible();
    await shown.photograph("run");
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "marks come while the run is looked at, and the wheel, a drag and a double click move the window",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await decodedUpload(test, "bbb120.mp4");
    await using shown = await openConsole(test, { place: `/runs/${runId}` });
    const { page } = shown;
    await page.getByText("Decoded, not yet analyzed").waitFor();
    await analyze(test, runId);
    const canvas = page.locator(".timeline canvas");
    await canvas.waitFor();
    await page.getByLabel("Text of marks").fill("scene_cut");
    await row(page, "cut").first().waitFor();
    await page.getByRole("img", { name: /marks from 0:00\.000/ }).waitFor();

    await canvas.hover({ position: { x: 700, y: 80 } });
    for (let notch = 0; notch < 8; notch++) await page.mouse.wheel(0, -200);
    const windowOf = (url: string) =>
      /start=(\d+)&end=(\d+)/.exec(url)?.slice(1).map(Number) ?? [0, Infinity];
    await page.waitForURL(({ href }) => windowOf(href)[1]! - windowOf(href)[0]! < 10_000);
    const [start] = windowOf(page.url());
    await page.mouse.down();
    await page.mouse.move(300, 500, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL((url) => !url.hash.includes(`start=${start}&`));

    // With shift a stretch is chosen, which the export offers.
    const box = (await canvas.boundingBox())!;
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 400, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + 600, box.y + 80, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForURL(/in=\d+&out=\d+/);
    await page.getByText("Export").click();
    await page.getByText("Markers of the chosen stretch").waitFor();
    await page.keyboard.press("Escape");
    await canvas.dblclick({ position: { x: 900, y: 10 } });
    await page.waitForURL((url) => !url.hash.includes("start="));

    // On hold it cannot be deleted.
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByText("on hold", { exact: true }).waitFor();
    assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.on_hold, true);
    assert.ok(await page.getByRole("button", { name: "Delete" }).isDisabled());
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByRole("button", { name: "Hold" }).waitFor();
    assert.ok(await page.getByRole("button", { name: "Delete" }).isEnabled());

    // Stopped from the page, with a question before.
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop run" }).click();
    await page.getByText("cancelled").first().waitFor();
    assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.status, "cancelled");
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(CHROMIUM, "a run that is not there, or is another caller's, says so"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    await using shown = await openConsole(test, { place: `/runs/${runId}`, key: KEY_B });
    const { page } = shown;
    await page.getByRole("heading", { name: "There is no such run" }).waitFor();
    await shown.show("/runs/run-0");
    await page.getByText("run-0", { exact: true }).waitFor();
    await shown.checkAccessible();
    await shown.show("/runs/..");
    await page.getByText("an id must be a text other than").waitFor();

    // What no page can show does not take the rail away.
    const json = { runs: [{ created_at: "never" }], next_cursor: null };
    await page.route(/\/v1\/runs\?/, (route) => route.fulfill({ json }));
    await shown.show("/runs");
    await page.getByRole("heading", { name: "This page does not work" }).waitFor();
    await page.unroute(/\/v1\/runs\?/);
    await page.getByRole("navigation", { name: "Pages" }).getByText("Search").click();
    await page.getByRole("heading", { name: "Search", exact: true }).waitFor();
    await until("the title is that of the page", async () => await page.title() === "Search – Console");
    shown.checkQuiet(/404|422|Error/);
  },
});
