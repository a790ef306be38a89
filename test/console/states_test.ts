/** What no page may be harmed by: a tab that is hidden or sleeps, a service that is away, and texts that were
 * written to deceive.
 */

import assert from "node:assert/strict";
import type { Page, Route } from "playwright-core";
import { openConsole } from "../support/console_page.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { SAMPLED, seen, startReason } from "../support/models/reason.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { principalKeyOf } from "../../src/model/identifiers.ts";
import type { NewEvent } from "../../src/model/runs/run.ts";
import { KEY_A, MODEL, newRun, REACHES_IN, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** Adds frames, each of which is a marker of its own. */
async function addMarkers(test: TestService, runId: string, count: number): Promise<void> {
  const frames = Array.from({ length: count }, (_, at) => ({
    ...{ frame_index: at, pts_ms: at * 40, perceptual_hash: 1, luma_mean: 0.5, flicker_score: 0 },
    ...{ ghosting_score: 0, noise_variance_score: 0, cut_score: at % 2 === 0 ? 0.9 : 0 },
  }));
  const { status, text } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL, frames });
  assert.equal(status, 200, text);
}

/**
 * Hides a page or shows it, as a browser does with a tab behind another one; in headless Chromium every tab
 * can be seen.
 */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    // deno-lint-ignore no-explicit-any -- the globals of the page
    const { document, Event } = globalThis as any;
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

Deno.test({
  ...needing(
    CHROMIUM,
    "a hidden tab asks for nothing, and one that has slept shows what came meanwhile, once",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    await addMarkers(test, runId, 4);
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    await page.clock.install();
    const open = new Set<unknown>();
    let asked = 0;
    page.on("request", (request) => {
      asked++;
      open.add(request);
    });
    page.on("requestfinished", (request) => void open.delete(request));
    page.on("requestfailed", (request) => void open.delete(request));
    await page.reload();
    await page.locator(`[title^="${runId}"]`).waitFor();
    asked = 0;
    for (let second = 0; second < 20; second++) {
      await page.clock.runFor(1_000);
      await until("what was asked is answered", () => open.size === 0);
    }
    assert.ok(asked >= 4, `${asked} questions in 20 s`);
    await hide(page, true);
    await page.clock.runFor(1_000); // what was about to be asked before is asked now
    await until("what was asked is answered", () => open.size === 0);
    const second = await newRun(test);
    asked = 0;
    await page.clock.runFor(60_000);
    assert.equal(asked, 0);
    assert.equal(await page.locator(`[title^="${second}"]`).count(), 0);
    await hide(page, false);
    await page.locator(`[title^="${second}"]`).waitFor();
    await page.clock.resume();

    // A sleeping tab does nothing at all; its stream goes on where it was.
    await shown.show(`/runs/${runId}?lanes=all`);
    await page.getByRole("heading", { name: "Marks 4" }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Page.enable");
    await session.send("Page.setWebLifecycleState", { state: "frozen" });
    await addMarkers(test, runId, 6);
    await test.restart(() => {}, { SERVICE_BIND_ADDR: new URL(test.url).host });
    await addMarkers(test, runId, 2);
    await session.send("Page.setWebLifecycleState", { state: "active" });
    await page.getByRole("heading", { name: "Marks 12" }).waitFor();
    await page.getByText("● connected").waitFor();
    shown.checkQuiet(/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a page whose answers take longer than its pauses shows them, and asks anew only where none comes",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    await page.getByText("No runs yet").waitFor();
    await page.clock.install();
    await page.reload();
    await page.getByText("No runs yet").waitFor();
    const questions: Route[] = [];
    await page.route(/\/v1\/runs\?/, (route) => void questions.push(route));
    const runId = await newRun(test);
    await page.clock.runFor(5_000);
    await until("it is asked", () => questions.length === 1);
    await page.clock.runFor(6_000);
    await questions[0]!.continue();
    await page.locator(`[title^="${runId}"]`).waitFor();
    assert.equal(questions.length, 1);
    await page.clock.runFor(20_000);
    await until("it is asked once more", () => questions.length > 2);
    await page.unroute(/\/v1\/runs\?/);
    await Promise.all(questions.slice(1).map((route) => route.continue().catch(() => {/* given up */})));
    await page.clock.resume();
    shown.checkQuiet();
  },
});

Deno.test({
  ...needing(CHROMIUM, "while the service is away, a page says it once, and keeps what was typed"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    await page.getByText("No runs yet").waitFor();
    await page.context().setOffline(true);
    await shown.show(`/triggers?run=${await newRun(test)}`);
    await page.getByRole("alert").getByText("The service does not answer.").waitFor();
    await page.getByText("The program is shown once the service has looked at the text.").waitFor();
    await page.getByText("The runs are listed once the service answers.").waitFor();
    assert.equal(await page.getByRole("alert").count(), 1);
    await page.getByLabel("Source").fill(
      "trigger mine version 1\nwhen motion_score >= 0.5\nemit mine\nend\n",
    );
    await shown.checkAccessible();
    await shown.photograph("triggers-away");
    await page.context().setOffline(false);
    await page.getByText("mine, version").waitFor();
    await page.getByText("This run has decoded nothing").waitFor();
    await until("no alert is left", async () => await page.getByRole("alert").count() === 0);
    shown.checkQuiet(/ERR_INTERNET_DISCONNECTED/);
  },
});

const MARKUP =
  `<img src=x onerror="globalThis.harmed=1"><script>globalThis.harmed=1</script><b class="hostile">bold</b>`;
const DECEIVING = "safe\u202egpj.exe\u2066\u200b \u0007\u001b[31m";
const LONG_WORD = "Wolkenkuckucksheim".repeat(60);
const HOSTILE = `needle ${MARKUP} ${DECEIVING} ${LONG_WORD}`;

const FILM_NAME = `bbb<b class="hostile">${DECEIVING}-${LONG_WORD.slice(0, 100)}.mp4`;

/** Checks that no element came of a text, nothing of it ran, and nothing is wider than the window. */
async function checkHarmless(page: Page, place: string): Promise<void> {
  const found = await page.evaluate(() => {
    // deno-lint-ignore no-explicit-any -- the globals of the page
    const { document, harmed } = globalThis as any;
    const { scrollWidth, clientWidth } = document.documentElement;
    const isWide = scrollWidth > clientWidth;
    const wide = isWide &&
      // deno-lint-ignore no-explicit-any -- an element of the page
      [...document.querySelectorAll("main *")].find((one: any) =>
        one.getBoundingClientRect().right > clientWidth && one.children.length === 0
      );
    return {
      harmed,
      elements: document.querySelectorAll(".hostile, [onerror], main script").length,
      overhang: wide ? wide.outerHTML.slice(0, 200) : isWide,
    };
  });
  assert.deepEqual(found, { harmed: undefined, elements: 0, overhang: false }, place);
}

Deno.test({
  ...needing(CHROMIUM, "markup, turned writing, control characters and endless words harm no page"),
  ...LONG_TEST,
  async fn() {
    await using live = await startReason(
      { answer: () => seen({ description: HOSTILE, object_label: HOSTILE }) },
      { SERVICE_WEBHOOK_SECRET: "whsec_dGhlLXNlY3JldC1vZi10aGUtdGVzdHM=" },
      REACHES_IN,
    );
    const { test } = live;
    const runId = await newRun(test);
    const call = async (path: string, body: unknown, status: number) => {
      const answer = await test.call("POST", path, body);
      assert.equal(answer.status, status, answer.text);
      return answer.json;
    };
    // The service takes no such name today; an earlier version may have written it.
    const payload = { source_uri: `/media/${FILM_NAME}` };
    test.service.timeline.commit(() => [{ kind: "ingest_received", runId, payload }]);
    await call(`/v1/runs/${runId}/reason`, { ...SAMPLED, semantic_prompt: HOSTILE }, 200);
    const { policy } = await call(`/v1/runs/${runId}/policies`, { prompt: HOSTILE }, 200);
    await call(`/v1/runs/${runId}/feedback`, {
      ...{ rating: 1, category: MARKUP.slice(0, 60), feedback: HOSTILE },
    }, 200);
    const hook = await call(`/v1/runs/${runId}/webhooks`, {
      url: `https://93.184.216.34/${encodeURIComponent(MARKUP)}/${LONG_WORD.slice(0, 300)}`,
      event_kinds: ["run_deleted"],
    }, 201);

    await using shown = await openConsole(test, { place: "/" });
    const { page } = shown;
    const typed = encodeURIComponent(HOSTILE);
    const pages: readonly (readonly [place: string, text: string | RegExp])[] = [
      ["/", "bbb<b class"],
      ["/runs", "bbb<b class"],
      [`/runs/${runId}?t=1000`, "bbb<b class"],
      ["/search?q=needle", /hits in/],
      [`/search?q=${encodeURIComponent(MARKUP)}`, /hits in/],
      [`/search?q=${typed.slice(0, 900)}`, /Nothing says|hits in|The URI|query/],
      [`/triggers?run=${runId}&text=${typed}`, "line 1, column 1"],
      ["/policies", "bbb<b class"],
      [`/policies/${runId}?rev=${policy.revision}`, "<img src=x"],
      [`/policies/${typed}`, /.../],
      ["/webhooks", "93.184.216.34"],
      [`/webhooks/${hook.webhook_id}`, "93.184.216.34"],
      [`/system?setting=${typed}`, /No setting|Nothing|setting/],
      [`/live/${typed}`, "Your key has no run of this id"],
      [`/${typed}`, "There is no such page"],
    ];
    // Where it is narrow, nothing may stand out.
    await page.setViewportSize({ width: 390, height: 844 });
    for (const [place, text] of pages) {
      await shown.show(place);
      await page.locator("main").getByText(text).first().waitFor();
      await checkHarmless(page, place.slice(0, 60));
    }

    // Chosen on the run page: the words of the model, the chain, the raw event.
    await shown.show(`/runs/${runId}`);
    await page.getByRole("option").filter({ hasText: "needle" }).first().click();
    const details = page.getByRole("region", { name: "Details" });
    await details.getByText("<script>").first().waitFor();
    await details.getByText("Raw event").click();
    await checkHarmless(page, "the run page with a mark");
    await shown.photograph("run-hostile");
    // The name of the film cannot look like another one.
    assert.match(await page.locator("h1").innerText(), /safe\ufffdgpj\.exe/);

    await shown.show("/new");
    await page.getByLabel("or the address of a source").fill(HOSTILE);
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("The analysis failed").waitFor();
    await checkHarmless(page, "new analysis");
    await shown.show("/live?way=network");
    await page.getByLabel("Address").fill(`rtsp://${LONG_WORD}/${encodeURIComponent(MARKUP)}`);
    await page.getByRole("textbox", { name: "Question to the model" }).fill(HOSTILE);
    await page.getByRole("button", { name: "Watch it" }).click();
    await page.getByRole("alert").first().waitFor();
    await checkHarmless(page, "live");
    shown.checkQuiet(/404|422|400/);
  },
});

Deno.test({
  ...needing(CHROMIUM, "of many runs the newest are listed, and older ones when they are asked for"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService({}, REACHES_IN);
    test.service.timeline.commit((): NewEvent[] =>
      Array.from({ length: 501 }, (_, run) => ({
        kind: "run_created",
        runId: `run-${(run + 1).toString().padStart(32, "0")}`,
        payload: { mode: "balanced", model: null, principal_key: principalKeyOf(KEY_A) },
      }))
    );
    await using shown = await openConsole(test, { place: "/runs" });
    const { page } = shown;
    await page.getByText("the newest 500 runs").waitFor();
    await page.getByRole("searchbox", { name: "Filter runs" }).fill(`run-${"1".padStart(32, "0")}`);
    await page.getByText("Nothing in 500 runs has this text.").waitFor();
    await shown.checkAccessible();
    await page.getByRole("button", { name: "Show older runs" }).click();
    await page.getByText("501 runs", { exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Show older runs" }).count(), 0);
    await page.locator(`[title^="run-${"1".padStart(32, "0")}"]`).waitFor();
    shown.checkQuiet();
  },
});
