/** Who may look: the key of the console, a wrong one, two callers with their own runs, and the service away
 * for a moment.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openConsole, signIn } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, KEY_A, KEY_B, MODEL, newRun, startService, type TestService } from "../support/service.ts";

Deno.test({
  ...needing(
    CHROMIUM,
    "the console asks for a key, tells why one is refused, and shows each caller his own runs",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    await using shown = await openConsole(test, { place: "/runs", key: null });
    const { page } = shown;
    await page.getByLabel("API key").waitFor();
    await shown.checkAccessible();
    await shown.photograph("sign-in");

    await page.getByLabel("API key").fill("a-wrong-key");
    await page.getByRole("button", { name: "Open the console" }).click();
    assert.match(await page.getByRole("alert").textContent() ?? "", /refused the key/);

    // What no header can carry is not sent: copied along, and not to be seen.
    await page.getByLabel("API key").fill(`${KEY_A}\u200b`);
    await page.getByText("a character that cannot be seen").waitFor();
    await page.getByRole("button", { name: "Open the console" }).click();

    await signIn(page, KEY_A);
    await page.locator(`[title^="${runId}"]`).waitFor();
    assert.doesNotMatch(page.url(), new RegExp(KEY_A));

    await page.reload(); // the key is kept in this tab
    await page.locator(`[title^="${runId}"]`).waitFor();

    // A link that goes away with its page leaves the keyboard at the next page.
    await page.locator("main table a").first().press("Enter");
    await page.waitForURL(new RegExp(`#/runs/${runId}`));
    await page.locator("main:focus").waitFor();
    await shown.show("/triggers");
    await page.getByLabel("Source").fill("what A alone has written");
    await page.waitForURL(/what/);
    await shown.show("/runs");
    await page.getByRole("button", { name: "Forget key" }).click();
    assert.equal(await page.evaluate("sessionStorage.length"), 0);
    await signIn(page, KEY_B);
    await page.getByText("No runs yet").waitFor();
    assert.equal(await page.locator(`[title^="${runId}"]`).count(), 0);
    await shown.show(`/runs/${runId}`);
    await page.getByText("There is no such run").waitFor();
    shown.checkQuiet(/404|422/, { refusals: 1 });
  },
});

/** Whether a film plays in the page: an element cannot send a key, so that the service worker adds it. */
function plays(page: Page): Promise<boolean> {
  return page.evaluate(`(async () => {
    const workers = navigator.serviceWorker;
    if (!workers.controller) await new Promise((resolve) => workers.addEventListener("controllerchange", resolve));
    const film = document.createElement("video");
    return await new Promise((resolve) => {
      film.onloadedmetadata = () => resolve(true);
      film.onerror = () => resolve(false);
      film.src = "/v1/files/bbb120.mp4?" + Math.random(); // not from the cache
    });
  })()`);
}

Deno.test({
  ...needing(CHROMIUM, "where the service takes another key than before, films are asked for with that one"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    assert.ok(await plays(page));
    await test.restart(() => {}, { SERVICE_BIND_ADDR: new URL(test.url).host, SERVICE_API_KEYS: KEY_B });
    await page.getByRole("alert").filter({ hasText: "refused the key" }).waitFor();
    await signIn(page, KEY_B);
    assert.ok(await plays(page));
  },
});

Deno.test({
  ...needing(CHROMIUM, "the console says that the service is away, and goes on by itself when it is back"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    await page.getByText("No runs yet").waitFor();
    await page.context().setOffline(true);
    await page.getByText("no answer since").waitFor();
    // it may be wrong by now
    await page.getByText("No live session is running.").waitFor({ state: "detached" });
    await test.restart(() => {}, { SERVICE_BIND_ADDR: new URL(test.url).host });
    await page.context().setOffline(false);
    const runId = await newRun(test);
    await page.locator(`[title^="${runId}"]`).waitFor();
    await page.getByText("● connected").waitFor();
    shown.checkQuiet(/ERR_CONNECTION|ERR_INTERNET_DISCONNECTED/);
  },
});

/** The cuts of a run in the list, as the reader sees them, once all are there that the service has. */
async function cuts(page: Page, test: TestService, runId: string): Promise<string[]> {
  const { json: { markers } } = await test.call("GET", `/v1/runs/${runId}/markers?event_type=scene_cut`);
  await page.getByLabel("Text of marks").fill("scene_cut");
  await page.getByText(new RegExp(`^${markers.length} of `)).waitFor();
  return await page.getByRole("option").allInnerTexts();
}

Deno.test({
  ...needing(
    CHROMIUM,
    "an open run page survives a restart of the service: it says so, goes on, and has nothing twice",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    const source = { source_uri: join(CLIPS, "bbb480.mp4"), max_frames: 2000 };
    assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, source)).status, 200);
    const analyze = async () => {
      assert.equal((await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL })).status, 200);
    };
    await analyze();
    await using shown = await openConsole(test, { place: `/runs/${runId}` });
    const { page } = shown;
    const before = await cuts(page, test, runId);
    // deno-lint-ignore no-explicit-any -- a mark that a reload would remove
    await page.evaluate(() => void ((globalThis as any).isSamePage = true));

    await test.restart(
      () => page.getByText(/no answer since/).waitFor(),
      { SERVICE_BIND_ADDR: new URL(test.url).host },
    );
    await page.getByText("● connected").waitFor();
    assert.deepEqual(await cuts(page, test, runId), before);
    await analyze(); // its markers come over the event stream
    const after = await cuts(page, test, runId);
    assert.ok(after.length > before.length);
    // deno-lint-ignore no-explicit-any -- as above
    assert.ok(await page.evaluate(() => (globalThis as any).isSamePage));

    await page.reload();
    assert.deepEqual(await cuts(page, test, runId), after);
    shown.checkQuiet(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED/);
  },
});
