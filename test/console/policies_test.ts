/** Policies: revisions from draft to active and back, how they differ, and a zone tried on a film and on
 * stored events.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openConsole } from "../support/console_page.ts";
import { publish, startLive } from "../support/live/live.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { eventsOf } from "../support/models/reason.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { QUARTER_ZONE } from "../support/policy_fixtures.ts";
import { CLIPS, newRun, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** Through shadow and canary, then active. */
async function makeActive(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Move to shadow" }).click();
  await page.getByRole("button", { name: "Move to canary" }).click();
  await page.getByRole("button", { name: "Make active", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", {
    name: /^Make revision \d+ active$/,
  }).click();
}

/** The revisions at a stage, as the line has them. */
function stage(page: Page, name: string) {
  return page.getByRole("region", { name: "Stages" }).getByRole("listitem")
    .filter({
      has: page.getByRole("heading", { name }),
    });
}

Deno.test({
  ...needing(
    CHROMIUM,
    "revisions are written, compared, tried on the film, moved to active and rolled back",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    const runId = await newRun(test);
    const source_uri = join(CLIPS, "bbb480.mp4");
    const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, {
      source_uri,
      max_frames: 2000,
    });
    assert.equal(ingested.status, 200, ingested.text);
    await using shown = await openConsole(test, { place: "/policies" });
    const { page } = shown;
    await page.getByRole("link", { name: "bbb480.mp4" }).click();
    await page.getByText("No revisions yet").waitFor();

    // Faults of the JSON have a place; those that only the service finds stand at their fields.
    const form = page.getByRole("form", { name: "New revision" });
    const schema = form.getByLabel("Form of the answer");
    await schema.fill('{\n  "type": "object"\n  "properties": {}\n}');
    await form.getByRole("button", { name: "line 3, column 3" }).waitFor();
    assert.ok(
      await form.getByRole("button", { name: "Save draft" }).isDisabled(),
    );
    await schema.fill('{ "type": "object" }');
    await form.getByLabel("Restricted zone").check();
    await form.getByLabel("Entered from this motion on").fill("0.01");
    await form.getByLabel("Prompt").fill("Describe the meadow.");
    await form.getByRole("button", { name: "Save draft" }).click();
    await form.getByText("must be above exit_motion_score: got 0.01 and 0.03")
      .first().waitFor();
    await form.getByLabel("Entered from this motion on").fill("0.1");
    await form.locator(".zone-picture video").waitFor();
    await form.getByRole("button", { name: /^Lower right corner/ }).focus();
    await page.keyboard.press("Shift+ArrowRight");
    assert.equal(await form.getByLabel("width, %").inputValue(), "55");
    await shown.checkAccessible();
    await shown.photograph("policies-draft");
    await form.getByRole("button", { name: "as JSON" }).click();
    assert.match(
      await form.getByLabel("Parameters as JSON").inputValue(),
      /"enter_motion_score": 0.1,/,
    );
    await form.getByRole("button", { name: "Save draft" }).click();
    await page.getByText(
      /^Revision \d+ is a draft\. Nothing works with it yet\.$/,
    ).waitFor();
    const first = (await test.call("GET", `/v1/runs/${runId}/policies`)).json.policies[0]
      .revision;

    await makeActive(page);
    await page.getByText(
      `Revision ${first} is active. There is no live session now: the next one of this run starts with it.`,
    )
      .waitFor();
    await stage(page, "active").getByText(`Revision ${first}`).waitFor();

    // Somebody else is faster: the text is kept, and saved on top of theirs.
    await page.getByRole("button", { name: "New revision from this" }).click();
    await form.getByLabel("Prompt").fill("Describe the rabbit on the meadow.");
    const other = await test.call("POST", `/v1/runs/${runId}/policies`, {
      parent_revision: first,
      prompt: "Mine.",
    });
    assert.equal(other.status, 200, other.text);
    const theirs = other.json.policy.revision;
    await form.getByRole("button", { name: "Save draft" }).click();
    await page.getByText(
      `somebody else has written revision ${theirs} meanwhile`,
    ).waitFor();
    await form.getByRole("button", {
      name: `Take revision ${theirs} as the one before`,
    }).click();
    await form.getByRole("button", { name: "Save draft" }).click();
    await page.getByText(`after revision ${theirs}`).waitFor();
    await page.getByLabel("since").selectOption(String(first));
    const changes = page.getByRole("region", { name: "Comparison" });
    assert.match(
      (await changes.locator("ins").allInnerTexts()).join("|"),
      /rabbit/,
    );
    await makeActive(page);
    await page.getByText(/is active\. There is no live session now/).waitFor();
    await shown.photograph("policies");

    // The zone over the film: what the service says, as marks that lead to their moment.
    await page.getByRole("button", { name: "Replay the film" }).click();
    await page.getByText(
      /^In 720 frames of the film the zone is entered \d+ times\./,
    ).waitFor();
    const { json: { events } } = await test.call(
      "GET",
      `/v1/runs/${runId}/events`,
    );
    const { payload } = events.findLast(({ kind }: { kind: string }) => kind === "policy_replay_evaluated");
    const marks = page.getByRole("region", { name: "Replay" }).locator(
      ".replay-mark",
    );
    assert.equal(await marks.count(), payload.intervals_total);
    assert.ok(payload.intervals_total > 0);
    await marks.first().scrollIntoViewIfNeeded();
    await shown.checkAccessible();
    await shown.photograph("policies-replay");

    await page.getByRole("button", { name: new RegExp(`Revision ${first}`) })
      .click();
    await page.getByText("It was active until another revision took its place.")
      .waitFor();
    await page.getByRole("button", { name: "Roll back to this" }).click();
    await page.getByRole("dialog").getByRole("button", {
      name: `Go back to revision ${first}`,
    }).click();
    await stage(page, "active").getByText(`Revision ${first}`).waitFor();
    await page.getByRole("button", { name: /Revision \d+ rolled back/ })
      .waitFor();
    // Chromium reports each refused request as an error of its own.
    shown.checkQuiet(/(409 \(Conflict|422 \(Unprocessable)/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a live session acknowledges a revision, keeps its zone, or is too busy; its events are judged",
  ),
  ...LONG_TEST,
  async fn() {
    const released = Promise.withResolvers<void>();
    await using model = startModelServer({
      answer: async ({ index }) => {
        if (index === 0) await released.promise;
        return "A door.";
      },
    });
    await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
    const session = await publish(test, {
      attach: { token_cap: 0, restricted_zone: QUARTER_ZONE },
    });
    const run = `/v1/runs/${session.runId}`;
    const other = { ...QUARTER_ZONE, enter_motion_score: 0.66 };
    const body = {
      prompt: "Watch the gate.",
      parameters: { restricted_zone: other },
    };
    assert.equal(
      (await test.call("POST", `${run}/policies`, body)).status,
      200,
    );
    await using shown = await openConsole(test, {
      place: `/policies/${session.runId}`,
    });
    const { page } = shown;
    await page.getByText(/^A live session is open, generation 1: /).waitFor();

    // Busy with a picture, it does not acknowledge; afterwards it does, and the zone waits.
    session.worker.picture(0);
    await until("asked", () => model.requests.length === 1);
    await makeActive(page);
    await page.getByText(
      /was not moved to active\. The live session did not acknowledge it within two seconds/,
    ).waitFor();
    released.resolve();
    await until("answered", () => session.worker.acknowledged.pictures === 1);
    await page.getByRole("button", { name: "Make active", exact: true })
      .click();
    await page.getByRole("dialog").getByRole("button", {
      name: /^Make revision/,
    }).click();
    await page.getByText(
      /has acknowledged its prompt .* Its restricted zone waits: /,
    ).waitFor();
    await page.getByText("a part waits").waitFor();

    // Events of the old zone, judged by the new one.
    for (const [index, score] of [0.62, 0.64, 0.7].entries()) {
      const zone = { score, threshold: 0.6, consecutiveFrames: 2 };
      session.worker.picture(10 + 40 * index, { isKeyframe: false, zone }, {
        gateReason: "no_trigger",
      });
    }
    const entered = async () =>
      (await eventsOf(test, session.runId)).filter(({ kind }) => kind === "restricted_zone_activity_entered");
    await until("written", async () => (await entered()).length === 3);
    await page.getByRole("button", { name: "Replay stored events" }).click();
    await page.getByText(
      /^3 stored events: 1 accepted, 2 rejected, 0 without a score/,
    ).waitFor();
    const list = page.getByRole("group", { name: /^marks/ });
    assert.equal(await list.getByText("rejected").count(), 2);
    await shown.checkAccessible();
    await shown.photograph("policies-live");
    await list.getByRole("link").last().click();
    await page.waitForURL(
      new RegExp(`#/runs/${session.runId}\\?t=\\d+&seq=\\d+`),
    );
    shown.checkQuiet(/503 \(Service Unavailable/);
  },
});
