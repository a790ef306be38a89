/** Who may look: the key of the console, a wrong one, two callers with their own runs, and the service away for a moment. */

import assert from "node:assert/strict";
import { openConsole, signIn } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { KEY_A, KEY_B, newRun, startService } from "../support/service.ts";

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

    await signIn(page, KEY_A);
    await page.locator(`[title^="${runId}"]`).waitFor();
    assert.doesNotMatch(page.url(), new RegExp(KEY_A));

    await page.reload(); // the key is kept in this tab
    await page.locator(`[title^="${runId}"]`).waitFor();

    await page.getByRole("button", { name: "Forget key" }).click();
    await signIn(page, KEY_B);
    await page.getByText("No runs yet").waitFor();
    assert.equal(await page.locator(`[title^="${runId}"]`).count(), 0);
    shown.checkQuiet();
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
    await test.restart(() => {}, { SERVICE_BIND_ADDR: new URL(test.url).host });
    await page.context().setOffline(false);
    const runId = await newRun(test);
    await page.locator(`[title^="${runId}"]`).waitFor();
    await page.getByText("● connected").waitFor();
    shown.checkQuiet(/ERR_CONNECTION|ERR_INTERNET_DISCONNECTED/);
  },
});
