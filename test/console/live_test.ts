/** Live in the console: a camera of the browser is published, a camera on the network is watched, and what is
 * told where neither works.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { openConsole } from "../support/console_page.ts";
import { metric } from "../support/live/live.ts";
import { serveRtsp } from "../support/live/rtsp_server.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { make, TempFolder } from "../support/media.ts";
import { eventsOf, kindsOf, startReason } from "../support/models/reason.ts";
import { observation, observed, openAudioDouble } from "../support/sidecars/audio_sidecar.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const FAKE_DEVICE = "--use-fake-device-for-media-stream";
/** The person allows it, too. */
const FAKE_CAMERA = [FAKE_DEVICE, "--use-fake-ui-for-media-stream"];
const QUIET_ICE = { SERVICE_WEBRTC_STUN_SERVERS: "" };

Deno.test({
  ...needing(
    CHROMIUM,
    "a camera is published with a zone and a question, watched, asked something else, and stopped",
  ),
  ...LONG_TEST,
  async fn() {
    await using live = await startReason({
      answer: ({ index }) => `A green pie turns, seen ${index} times.`,
    }, QUIET_ICE);
    const { test, model } = live;
    await using shown = await openConsole(test, {
      place: "/live",
      args: FAKE_CAMERA,
    });
    const { page } = shown;
    await page.getByRole("button", { name: "Open the camera" }).click();
    await page.getByLabel("What this computer sends").waitFor();
    await page.getByLabel("What is looked at").selectOption("zone");
    assert.ok(await page.getByLabel("Run a trigger program").isDisabled());

    // A corner is dragged, the other one moved by keys.
    const picture = (await page.locator(".zone-picture").boundingBox())!;
    const upper = (await page.getByRole("button", { name: /^Upper left corner/ })
      .boundingBox())!;
    await page.mouse.move(
      upper.x + upper.width / 2,
      upper.y + upper.height / 2,
    );
    await page.mouse.down();
    await page.mouse.move(
      picture.x + picture.width * 0.1,
      picture.y + picture.height * 0.1,
      { steps: 4 },
    );
    await page.mouse.up();
    const lower = page.getByRole("button", { name: /^Lower right corner/ });
    await lower.focus();
    for (let press = 0; press < 3; press++) {
      await page.keyboard.press("Shift+ArrowRight");
    }
    await page.keyboard.press("ArrowDown");
    await page.getByRole("button", {
      name: "Lower right corner of the zone, 90 % from the left, 76 % from the top",
    })
      .waitFor();
    await page.getByText("How much motion enters").click();
    await page.getByLabel("Motion that enters").fill("0.02");
    await page.getByText("It must be above the score that leaves.").waitFor();
    await page.getByLabel("Motion that leaves").fill("0.01");
    await page.getByRole("textbox", { name: "Question to the model" }).fill(
      "What turns?",
    );
    await shown.checkAccessible();
    await shown.photograph("live-start");
    await page.getByRole("button", { name: "Start", exact: true }).click();

    await page.waitForURL(/#\/live\/run-/);
    const runId = /run-[0-9a-f]+/.exec(page.url())![0];
    await page.getByRole("heading", { name: "Published from this tab" })
      .waitFor();
    await page.getByText(/^Frames come in, for/).waitFor();
    const { json: { restricted_zone } } = await test.call(
      "GET",
      `/v1/runs/${runId}/live`,
    );
    const near = (value: number, wanted: number) => assert.ok(Math.abs(value - wanted) < 0.02, `${value}`);
    near(restricted_zone.region.x, 0.1);
    near(restricted_zone.region.y, 0.1);
    near(restricted_zone.region.width, 0.8);
    assert.equal(restricted_zone.enter_motion_score, 0.02);
    await page.getByText(/A green pie turns/).first().waitFor();
    assert.match(model.requests[0]!.prompt, /What turns\?/);
    await page.getByRole("img", { name: /^Motion of the last/ }).waitFor();
    await page.getByText(/^udp, /).waitFor();
    await page.getByText(/ kbit\/s| Mbit\/s/).first().waitFor();

    // Another question is in force once the service says so.
    const question = page.getByRole("textbox", {
      name: "Question to the model",
    });
    assert.equal(await question.inputValue(), "What turns?");
    await question.fill("Which colour?");
    await page.getByRole("button", { name: "Ask this" }).click();
    await page.getByText(/^In force since .*; the session took it over in/)
      .waitFor();
    await until(
      "the model is asked",
      () => model.requests.some(({ prompt }) => /Which colour\?/.test(prompt)),
    );

    // While the list is read, nothing moves; what came meanwhile waits.
    const list = page.getByRole("list", { name: "Events, the newest first" });
    await list.hover();
    const first = await list.getByRole("listitem").first().innerText();
    const { json: { policy } } = await test.call("POST", `/v1/runs/${runId}/policies`, { prompt: "Look." });
    await test.call("POST", `/v1/runs/${runId}/policies/${policy.revision}/activate`, { stage: "shadow" });
    await page.getByRole("button", { name: / new$/ }).waitFor();
    assert.equal(await list.getByRole("listitem").first().innerText(), first);
    await page.getByRole("button", { name: / new$/ }).click();
    assert.notEqual(
      await list.getByRole("listitem").first().innerText(),
      first,
    );

    await shown.checkAccessible();
    await shown.photograph("live-published");

    // A description and its picture are one row.
    assert.equal(await list.getByText("A green pie turns, seen 0 times.", { exact: true }).count(), 1);

    // It goes on while other pages are shown. Its clock begins anywhere, and so does its timeline.
    await shown.show(`/runs/${runId}`);
    const begin = page.getByRole("option").first().locator(".number").first();
    await until(
      "the playhead is at the first mark",
      async () => await page.locator("[data-part=playhead]").innerText() === await begin.innerText(),
    );
    await shown.show("/live");
    await page.getByRole("listitem").getByRole("link", {
      name: "Published stream",
    }).click();
    await page.getByRole("heading", { name: "Published from this tab" })
      .waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop session" }).click();
    await page.getByRole("heading", { name: "The session has ended" })
      .waitFor();
    await page.getByText("The publisher ended the session.").waitFor();
    await shown.checkAccessible();
    assert.equal(kindsOf(await eventsOf(test, runId)).at(-1), "run_completed");
    shown.checkQuiet(/404/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a camera is published with its sound, a part of its picture, a trigger and a limit of tokens",
  ),
  ...LONG_TEST,
  async fn() {
    await using sidecar = openAudioDouble(observed([
      observation(1_000, 2_000, { kind: "audio_event", label: "beep", confidence: 0.9 }),
    ]));
    await using live = await startReason({ answer: () => "It beeps." }, {
      ...QUIET_ICE,
      SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address,
    });
    const { test } = live;
    await using shown = await openConsole(test, { place: "/live", args: FAKE_CAMERA });
    const { page } = shown;
    await page.getByRole("button", { name: "Open the camera" }).click();
    await page.getByText("This is what will be sent: no sound, and nothing before you start.").waitFor();
    await page.getByLabel("Listen to the sound").check();
    await page.getByText("This is what will be sent, with sound, and nothing before you start.").waitFor();
    await page.getByLabel("What is heard").selectOption("physical_world");
    await page.getByLabel("Speech").selectOption("none");
    await page.getByLabel("Least confidence").fill("0.5");
    await page.getByLabel("What is looked at").selectOption("part");
    await page.getByRole("button", { name: /^Upper left corner of the part/ }).press("ArrowRight");
    await page.getByLabel("Run a trigger program").check();
    const source = page.getByRole("textbox", { name: "Source" });
    const program = "trigger any version 1\nwhen motion_score >= 0.0\nedge rising\nemit seen\n";
    await source.fill(`${program}capture clip 1000ms 1000ms\nend\n`);
    await page.getByText("Limit of the answers").click();
    await page.getByLabel("Tokens a second").fill("64.5");
    await page.getByText("A whole number; 0 for as many as it likes.").waitFor();
    await page.getByLabel("Tokens a second").fill("64");
    await shown.checkAccessible();
    await shown.photograph("live-wishes");
    // What a live session cannot do is said in the words of the service.
    const start = page.getByRole("button", { name: "Start", exact: true });
    await start.click();
    await page.getByRole("alert").getByText(/a live session captures keyframes only/).waitFor();
    await source.fill(`${program}capture keyframe\nend\n`);
    await start.click();
    await page.waitForURL(/#\/live\/run-/);
    const runId = /run-[0-9a-f]+/.exec(page.url())![0];
    await page.getByRole("list", { name: "Events, the newest first" }).getByText("trigger").first().waitFor();
    await until("the sound is heard", () => sidecar.requests.length > 0);
    const [request] = sidecar.requests;
    assert.ok(request?.operation === "analyze");
    assert.deepEqual([request.profile, request.engine, request.minConfidence], [
      "physical_world",
      "none",
      0.5,
    ]);
    const fired = (await eventsOf(test, runId)).find(({ kind }) => kind === "trigger.seen")!;
    const part = { x: 0.26, y: 0.25, width: 0.49, height: 0.5 };
    assert.deepEqual(fired.payload.coordinates.requested_region, part);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop session" }).click();
    await page.getByText("The publisher ended the session.").waitFor();
    shown.checkQuiet(/404|400/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a camera on the network is watched, with films and explanations, also while the service is away for a moment",
  ),
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const clip = join(folder.path, "camera.ts");
    make(
      clip,
      "-stream_loop",
      "-1",
      "-i",
      join(CLIPS, "bbb120.mp4"),
      "-t",
      "40",
      "-an",
      "-c:v",
      "libx264",
      "-g",
      "12",
      "-bf",
      "0",
    );
    await using camera = serveRtsp(Deno.readFileSync(clip), { playsMs: 40_000 });
    await using live = await startReason(
      { answer: () => "A white rabbit." },
      QUIET_ICE_RTSP,
      {
        outbound: {
          resolve: (host) =>
            host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
          reroute: () => "127.0.0.1",
        },
      },
    );
    const { test } = live;
    await using shown = await openConsole(test, {
      place: "/live?way=network",
    });
    const { page } = shown;
    await page.getByRole("button", { name: "Watch it" }).click();
    await page.getByText("Enter the address of a camera or a stream.")
      .waitFor();
    await page.getByLabel("Address").fill("rtsp://nowhere.test/1");
    await page.getByRole("button", { name: "Watch it" }).click();
    await page.getByRole("alert").getByText(/Invalid source_uri/).waitFor();
    await shown.checkAccessible();
    await shown.photograph("live-network");
    assert.equal((await test.call("GET", "/v1/runs")).json.length, 0);

    await page.getByLabel("Address").fill(
      `rtsp://camera.test:${camera.port}/dock`,
    );
    await page.getByLabel("Keep a film of what happens").check();
    const filmed = page.getByRole("group", { name: "A film of" });
    assert.ok(await filmed.getByLabel("motion in the zone").isDisabled());
    await page.getByLabel("Seconds before").fill("30.5");
    await page.getByText("A number from 0 to 30.").waitFor();
    await page.getByRole("button", { name: "Watch it" }).click();
    await page.getByLabel("Seconds before").fill("1.5");
    await page.getByLabel("Seconds after").fill("1");
    await filmed.getByLabel("cuts").uncheck();
    await page.getByText("Choose one at least.").waitFor();
    await filmed.getByLabel("every picture that is kept").check();
    await page.getByLabel("Tell at once, explain later").check();
    await page.getByLabel("Within seconds").fill("0");
    await page.getByText("A number from 1 to 120.").waitFor();
    await page.getByLabel("Within seconds").fill("20");
    assert.ok(await page.getByRole("option", { name: "Short clips, one after the other" }).isDisabled());
    await shown.checkAccessible();
    await shown.photograph("live-evidence");
    const asked = page.waitForRequest(/\/v1\/runs\/run-[0-9a-f]+\/live$/);
    await page.getByRole("button", { name: "Watch it" }).click();
    const { record, enrich } = (await asked).postDataJSON();
    assert.deepEqual(record, { pre_roll_ms: 1_500, post_roll_ms: 1_000, on: ["keyframe"] });
    assert.deepEqual(enrich, { on: ["scene_cut"], deadline_ms: 20_000 });
    await page.waitForURL(/#\/live\/run-/);
    const runId = /run-[0-9a-f]+/.exec(page.url())![0];
    await until(
      "a film is stored",
      async () => kindsOf(await eventsOf(test, runId)).includes("clip_stored"),
    );
    await page.getByRole("heading", { name: `camera.test:${camera.port}/dock` })
      .waitFor();
    await page.getByRole("img", { name: "What the session sees now" })
      .waitFor();
    await page.getByText("A white rabbit.").first().waitFor();
    await page.getByRole("button", { name: "Watch live" }).click();
    const video = page.getByLabel("Live view");
    await video.waitFor();
    await page.getByRole("status").getByText("Live", { exact: true }).waitFor();
    const place = () =>
      video.evaluate((video) => {
        const { currentTime, buffered, videoWidth } = video as unknown as ShownVideo;
        return { currentTime, lateS: buffered.end(buffered.length - 1) - currentTime, videoWidth };
      });
    const first = await place();
    await until("it plays", async () => (await place()).currentTime > first.currentTime + 1);
    await until("it is near the newest picture", async () => (await place()).lateS < 1);
    assert.ok(first.videoWidth > 0);
    await shown.checkAccessible();
    await shown.photograph("live-watched");
    await page.getByRole("button", { name: "Stop watching" }).click();
    await page.getByRole("img", { name: "What the session sees now" }).waitFor();
    await until("nobody watches", async () => await metric(test, "service_live_view_viewers") === 0);
    await page.context().setOffline(true);
    await page.getByText(
      "The service does not answer; what is shown is what was known last.",
    ).waitFor();
    await page.context().setOffline(false);
    await page.getByText(
      "The service does not answer; what is shown is what was known last.",
    ).waitFor({
      state: "detached",
    });
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop session" }).click();
    await page.getByText("The live source was closed.").waitFor();
    await shown.photograph("live-ended");
    shown.checkQuiet(/404|422|ERR_INTERNET_DISCONNECTED/);
  },
});

/** The part of a `<video>` that is looked at here. */
interface ShownVideo {
  readonly currentTime: number;
  readonly videoWidth: number;
  readonly buffered: { readonly length: number; end(index: number): number };
}

const QUIET_ICE_RTSP = { ...QUIET_ICE, SERVICE_ALLOW_UNENCRYPTED_RTSP: "true" };

Deno.test({
  ...needing(
    CHROMIUM,
    "a camera that the browser refuses, and a page that is not secure, say what can be done",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService({
      SERVICE_ALLOWED_HOSTS: "console.test",
    });
    await using shown = await openConsole(test, { place: "/live", args: [FAKE_DEVICE] });
    await shown.page.getByRole("button", { name: "Open the camera" }).click();
    await shown.page.getByRole("alert").getByText("The browser may not use the camera.").waitFor();
    await shown.page.getByRole("button", { name: "Try again" }).waitFor();
    await shown.checkAccessible();
    await shown.photograph("live-refused");
    await shown.show("/live/run-00000000000000000000000000000000");
    await shown.page.getByText("Your key has no run of this id").waitFor();
    shown.checkQuiet(/404/);

    const { port } = new URL(test.url);
    await using unsafe = await openConsole({
      url: `http://console.test:${port}`,
    }, {
      place: "/live",
      args: [
        "--host-resolver-rules=MAP console.test 127.0.0.1",
        ...FAKE_CAMERA,
      ],
    });
    await unsafe.page.getByText(
      "This page did not come over a secure connection.",
    ).waitFor();
    assert.equal(
      await unsafe.page.getByRole("button", { name: "Open the camera" })
        .count(),
      0,
    );
    await unsafe.checkAccessible();
    unsafe.checkQuiet();
  },
});
