/** The API reference in a browser: it shows every route, tries one with a key, and needs nothing that its
 * policy forbids.
 */

import assert from "node:assert/strict";
import { ROUTES } from "../../src/http/routes/route_table.ts";
import { openWatchedPage } from "../support/browser.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { KEY_A, newRun, startService } from "../support/service.ts";

Deno.test({
  ...needing(CHROMIUM, "the API reference shows every route and tries one, within its policy"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    await using watched = await openWatchedPage(`${test.url}/docs`);
    const { page } = watched;
    await page.locator("#operations-runs-listRuns").waitFor();
    const shown = await page.locator(".opblock:not(.webhooks) .opblock-summary-path").allTextContents();
    const paths = new Set(shown.map((path) => path.replaceAll("\u200b", "")));
    for (const { path } of ROUTES) {
      const described = path.replaceAll(/:(\w+)/g, "{$1}");
      assert.ok(paths.has(described), `${described} is not shown`);
    }

    await page.locator(".auth-wrapper .authorize").first().click();
    await page.locator(".auth-container input[type=text], .auth-container input[type=password]").first().fill(
      KEY_A,
    );
    await page.locator(".auth-btn-wrapper .authorize").first().click();
    await page.locator(".auth-btn-wrapper .btn-done").first().click();
    const operation = page.locator("#operations-runs-listRuns");
    await operation.locator(".opblock-summary").click();
    await operation.locator(".try-out__btn").click();
    await operation.locator(".execute").click();
    const answer = operation.locator(".live-responses-table .response-col_description pre").first();
    await answer.waitFor();
    assert.match(await answer.textContent() ?? "", new RegExp(runId));

    assert.deepEqual(watched.faults, []);
    assert.deepEqual([...watched.hosts], [new URL(test.url).host]);
  },
});
