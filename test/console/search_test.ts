/** What a model said is found again, with its picture, and leads to the moment. */

import assert from "node:assert/strict";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { FILM, SAMPLED, seen, startReason } from "../support/models/reason.ts";
import { CHROMIUM, needing } from "../support/needs.ts";

const SAID = [
  "The meadow lies in the dark.",
  "A large white rabbit comes out of its burrow.",
  "The rabbit smells a flower.",
  "A butterfly sits on a stone.",
];

Deno.test({
  ...needing(CHROMIUM, "a text of a description is found over the runs, and leads to the moment"),
  ...LONG_TEST,
  async fn() {
    await using reasoned = await startReason({
      answer: ({ index }) => seen({ description: SAID[index % SAID.length]! }),
    });
    const { runId } = await reasoned.reason({ ...SAMPLED, vlm_concurrency: 1 });
    await using shown = await openConsole(reasoned.test, { place: "/search" });
    const { page } = shown;
    await page.getByText("Search what was said").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("no such words");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing says “no such words”").waitFor();
    await page.getByRole("searchbox", { name: "Search descriptions" }).fill("RABBIT");
    await page.keyboard.press("Enter");
    await page.getByText(/^6 hits in \d\d events$/).waitFor();
    const hits = page.getByRole("listitem").filter({ has: page.locator("mark") });
    assert.equal(await hits.count(), 6);
    assert.equal(await hits.first().locator("mark").innerText(), "rabbit");
    // The shorter description first, as more of it is the text; then in the order of the film.
    const { json } = await reasoned.test.call("POST", "/v1/search", { query: "rabbit" });
    const scores = json.hits.map(({ score }: { score: number }) => score.toFixed(2)).sort().reverse();
    const shownScores = await page.locator(".hit-score").allInnerTexts();
    assert.deepEqual(shownScores.map((text) => text.replace(/[^\d.]/g, "")), scores);
    await hits.first().getByText(SAID[2]!).waitFor();
    await hits.first().getByText(FILM.split("/").at(-1)!).waitFor();
    await hits.first().locator("video").waitFor();
    await page.waitForTimeout(500); // the films show their frames
    await shown.checkAccessible();
    await shown.photograph("search");
    await page.getByRole("button", { name: "As written" }).click();
    await page.waitForURL(/order=written/);
    await hits.first().getByText(SAID[1]!).waitFor();
    await hits.first().click();
    await page.waitForURL(new RegExp(`#/runs/${runId}`));
    await page.getByRole("region", { name: "Details" }).getByText(SAID[1]!).first().waitFor();

    // What changes the address while a link is followed does not keep the reader on the page.
    await page.getByLabel("Search descriptions").fill("rabbit");
    await page.keyboard.press("Enter");
    const asWritten = page.getByRole("button", { name: "As written" });
    await asWritten.waitFor();
    await asWritten.evaluate((button) => {
      // deno-lint-ignore no-explicit-any -- a global of the page
      (globalThis as any).location.hash = "#/new";
      (button as unknown as { click(): void }).click();
    });
    await page.getByRole("heading", { name: "New analysis" }).waitFor();
    shown.checkQuiet();
  },
});
