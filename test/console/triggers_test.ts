/** Triggers: faults at their place, the compiled program, and where it fires over a real clip, one click from
 * the moment.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, newRun, startService } from "../support/service.ts";

Deno.test({
  ...needing(CHROMIUM, "a trigger is written with its faults at their place, and tried out over a run"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    const source_uri = join(CLIPS, "bbb480.mp4");
    const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri, max_frames: 2000 });
    assert.equal(ingested.status, 200, ingested.text);
    const unread = await newRun(test);
    await using shown = await openConsole(test, { place: "/triggers" });
    const { page } = shown;

    // The first example is compiled at once; a fault is marked in the text, and its place is one click away.
    await page.getByText("motion-lasts").first().waitFor();
    const editor = page.getByRole("textbox", { name: "Source" });
    const text = "trigger quick version 2\nwhen motoin_score >= 0.5\ncooldown 5s\nemit quick_motion\nend\n";
    await editor.fill(text);
    await page.getByRole("button", { name: "line 2, column 6" }).waitFor();
    await page.locator(".code-marks mark").first().waitFor();
    assert.deepEqual(await page.locator(".code-marks mark").allInnerTexts(), ["motoin_score", "5s"]);
    await page.getByText(/unknown signal "motoin_score", did you mean "motion_score"/).first().waitFor();
    await shown.checkAccessible();
    await shown.photograph("triggers-faults");
    await page.getByRole("button", { name: "line 2, column 6" }).click();
    await page.keyboard.type("motion_score");
    await page.getByRole("button", { name: "line 3, column 10" }).click();
    await page.keyboard.type("5000ms");
    await page.getByText("quick, version").waitFor();
    await page.getByRole("group", { name: "Instructions" }).getByText("lets one pass, then none for 5.0 s")
      .waitFor();

    // Over the run it fires where the service says.
    await page.getByLabel("Run", { exact: true }).selectOption(runId);
    const { json: { program } } = await test.call("POST", "/v1/triggers/compile", {
      source: await editor.inputValue(),
    });
    const { json: { fired } } = await test.call("POST", `/v1/runs/${runId}/triggers/evaluate`, { program });
    assert.ok(fired.length > 0);
    await page.getByText(
      /^It fires .* in 720 frames of bbb480\.mp4, and each time writes an event quick_motion\.$/,
    )
      .waitFor();
    await page.getByRole("img", { name: /^motion_score, greatest value 0\.\d+, compared with 0\.5$/ })
      .waitFor();
    await page.getByLabel("Begin with an example").selectOption("Motion that lasts");
    await page.getByRole("button", { name: "Replace text" }).click();
    await page.getByText(/^It fires \d+ times in 720 frames/).waitFor();
    await shown.checkAccessible();
    await shown.photograph("triggers");

    // A part of the run; the address has text, run and part, so that a link shows the same.
    await page.getByLabel("to second").fill("5");
    await page.keyboard.press("Tab");
    await page.getByText(/in 121 frames of/).waitFor();
    await page.waitForURL(/text=.*&.*out=5000|out=5000.*text=/);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByText(/in 121 frames of/).waitFor();
    assert.match(await page.getByRole("textbox", { name: "Source" }).inputValue(), /trigger motion-lasts/);
    await page.getByRole("button", { name: "Whole run" }).click();
    await page.getByText(/in 720 frames of/).waitFor();

    // The compiled program can be changed by hand, and its faults have places, too.
    await page.getByRole("button", { name: "Edit as program" }).click();
    const json = page.getByRole("textbox", { name: "Program" });
    const compiled = await json.inputValue();
    await json.fill(compiled.replace('"slot":1', '"slot":99'));
    await page.getByText(/slot must be from 0 to 15: got 99/).first().waitFor();
    await page.getByText("The text has faults. This is the program of the last text without any.").waitFor();
    await json.fill(compiled.replace('"instructions": [', '"instructions": ['.slice(0, -1)));
    await page.locator(".code-faults").getByRole("button", { name: /^line \d+, column \d+$/ }).waitFor();
    await json.fill(compiled);
    await page.getByText(/^It fires \d+ times in 720 frames/).waitFor();

    // A run without a decode says what to do, and a firing leads to its moment.
    await page.getByLabel("Run", { exact: true }).selectOption(unread);
    await page.getByText("This run has decoded nothing").waitFor();
    await page.getByLabel("Run", { exact: true }).selectOption(runId);
    await page.getByRole("group", { name: /^firings/ }).getByRole("link").first().click();
    await page.waitForURL(new RegExp(`#/runs/${runId}\\?t=\\d+`));
    await page.getByRole("heading", { name: "bbb480.mp4" }).waitFor();

    // From a stretch of the run page to a trigger over that stretch.
    await shown.show("/runs");
    await page.getByRole("table").waitFor();
    await shown.show(`/runs/${runId}?in=1000&out=3000`);
    await page.getByRole("button", { name: "Try a trigger" }).click();
    await page.getByText(/in 49 frames of/).waitFor();
    // Chromium reports each refused text as an error of its own.
    shown.checkQuiet(/422 \(Unprocessable/);
  },
});
