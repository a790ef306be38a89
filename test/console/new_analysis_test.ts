/** A film of this computer is analyzed from the console, without a model and with one; it can be cancelled,
 * and faults of the form are told.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { metric, SEEN, startReason } from "../support/models/reason.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, MODEL, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const FILM = join(CLIPS, "bbb120.mp4");

Deno.test({
  ...needing(CHROMIUM, "a dropped film is sent, analyzed, and shown with its marks"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    await using shown = await openConsole(test, { place: "/new" });
    const { page } = shown;
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("Choose a film or name a source.").waitFor();
    await page.locator("input[type=file]").setInputFiles(FILM);
    await page.getByText("bbb120.mp4").waitFor();
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.waitForURL(/#\/runs\/run-/);
    await page.getByRole("heading", { name: "bbb120.mp4" }).waitFor();
    await page.getByRole("button", { name: /^cut/ }).waitFor();

    // A source that is not there is told of, and the form stays for another try.
    await shown.show("/new");
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByLabel("or the address of a source").fill("not-there.mp4");
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("The analysis failed").waitFor();
    await page.getByText(/source_uri/).first().waitFor();
    await page.getByRole("button", { name: "Analyze" }).waitFor();
    shown.checkQuiet(/422/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a model is asked about a part of the picture, and what it says is shown while it goes",
  ),
  ...LONG_TEST,
  async fn() {
    let release = () => {};
    const held = new Promise<void>((resolve) => release = resolve);
    await using reasoned = await startReason({
      answer: async ({ index }) => {
        if (index > 0) await held;
        return SEEN;
      },
    });
    const { test, model } = reasoned;
    await using shown = await openConsole(test, { place: "/new" });
    const { page } = shown;
    await page.locator("input[type=file]").setInputFiles(FILM);
    await page.getByText("Words about it").click();
    await page.getByRole("textbox", { name: "Question" }).fill("Who wakes up?");
    const choice = page.getByRole("combobox", { name: "Model" });
    await until("one that is ready is chosen", async () => await choice.inputValue() !== "");
    await choice.selectOption(MODEL);
    await page.getByText("Form of the answer").click();
    await page.getByLabel("JSON Schema").fill("{");
    await page.locator(".field, .form").getByText(/JSON at position|Expected|Unexpected/).first().waitFor();
    await page.getByLabel("JSON Schema").fill("");

    // The right half of the picture.
    const picture = page.locator(".crop-picture");
    await page.locator(".crop-picture video").evaluate((video) =>
      new Promise<void>((resolve) => {
        const element = video as unknown as {
          readyState: number;
          addEventListener(name: string, done: () => void): void;
        };
        if (element.readyState >= 2) resolve();
        else element.addEventListener("loadeddata", () => resolve());
      })
    );
    await picture.scrollIntoViewIfNeeded();
    const box = (await picture.boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 1);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 1, box.y + box.height - 1, { steps: 3 });
    await page.mouse.up();
    assert.equal(await page.getByLabel("x", { exact: true }).inputValue(), "50");
    await shown.checkAccessible();
    await shown.photograph("new-analysis");

    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("A large white rabbit comes out of its burrow.").first().waitFor();
    await page.getByText(/A model describes it, chunk by chunk: \d+ chunk/).waitFor();
    release();
    await page.waitForURL(/#\/runs\/run-/);
    await page.getByRole("option").filter({ hasText: "A large white rabbit" }).first().click();
    const details = page.getByRole("region", { name: "Details" });
    await details.getByText("A large white rabbit comes out of its burrow.").first().waitFor();
    await details.getByText(/tokens in/).waitFor();
    assert.match(model.requests[0]!.prompt, /Who wakes up\?/);
    const [image] = model.requests[0]!.images;
    assert.ok(image!.width < 120, `${image!.width} pixels wide`);
    await shown.checkAccessible();
    await shown.photograph("run-described");
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(CHROMIUM, "an analysis that is cancelled stops on the service, too"),
  ...LONG_TEST,
  async fn() {
    await using reasoned = await startReason({
      answer: async ({ signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        return SEEN;
      },
    });
    const { test, model } = reasoned;
    await using shown = await openConsole(test, { place: "/new" });
    const { page } = shown;
    await page.getByLabel("or the address of a source").fill(FILM);
    await page.getByText("Words about it").click();
    await page.getByRole("combobox", { name: "Model" }).selectOption(MODEL);
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("See the run").waitFor();
    await until("the model is asked", () => model.requests.length > 0);
    assert.ok(await metric(test, "service_infer_admission_active") > 0);
    await shown.show("/runs"); // it goes on meanwhile
    await page.getByRole("table").waitFor();
    await shown.show("/new");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("The analysis was cancelled").waitFor();
    // Not its connections: the page has asked whether the model is ready, and that connection may be kept.
    await until(
      "every call to the model was ended",
      async () => await metric(test, "service_infer_admission_active") === 0,
    );
    const asked = model.requests.length;
    const { json: [run] } = await test.call("GET", "/v1/runs");
    const { json: { events } } = await test.call("GET", `/v1/runs/${run.run_id}/events`);
    assert.ok(!events.some(({ kind }: { kind: string }) => kind === "run_completed"));
    assert.equal(model.requests.length, asked);
    shown.checkQuiet();
  },
});
