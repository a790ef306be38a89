/** The client in a page of another origin: publishing, upload progress, and the event stream. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";
import type * as library from "../../client/mod.ts";
import { bundle } from "../../scripts/build_client.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CHROMIUM, CHROMIUM_PATH, needing } from "../support/needs.ts";
import { eventsOf, FILM, kindsOf, payloads, type ReasonTest, startReason } from "../support/models/reason.ts";
import { KEY_A } from "../support/service.ts";
import { until } from "../support/until.ts";

/** What the page has: the library, a client, and what a test puts there. */
interface Window {
  library: typeof library;
  client: library.Client;
  session: library.PublishSession;
  states: string[];
  // deno-lint-ignore no-explicit-any -- a part of a browser, of whose types Deno has none
  navigator: any;
}

Deno.test({
  ...needing(CHROMIUM, "a page publishes, restarts ICE, changes the prompt and ends its session"),
  ...LONG_TEST,
  async fn() {
    await using studio = await openStudio();
    const { page, live: { test } } = studio;
    const { runId, iceServers } = await page.evaluate(async () => {
      const page = globalThis as unknown as Window;
      const camera = await page.navigator.mediaDevices.getUserMedia({ video: { width: 320, height: 240 } });
      page.states = [];
      page.session = await page.client.publish(camera, { prompt: "Look." }, {
        codec: "H264",
        onState: (state) => page.states.push(state),
      });
      // deno-lint-ignore no-explicit-any -- the whole RTCPeerConnection
      const { iceServers } = (page.session.peer as any).getConfiguration();
      return { runId: page.session.runId, iceServers };
    });
    assert.deepEqual(iceServers.map(({ urls }: { urls: string[] }) => urls), [["stun:127.0.0.1:9"]]);
    const state = () => page.evaluate(() => (globalThis as unknown as Window).session.state);
    await until("connected", async () => await state() === "connected");
    const stored = async () => payloads(await eventsOf(test, runId), "keyframe_stored").length;
    await until("a keyframe is stored", async () => await stored() > 0);

    const [before, after] = await page.evaluate(async () => {
      const { session } = globalThis as unknown as Window;
      const ufrag = () => /a=ice-ufrag:(\S+)/.exec(session.peer.localDescription!.sdp)![1]!;
      const before = ufrag();
      await session.restartIce();
      await session.updatePrompt({ prompt: "Look again." });
      return [before, ufrag()];
    });
    assert.notEqual(after, before);
    const sent = () => page.evaluate(framesSent);
    const framesBefore = await sent();
    await until("media goes on", async () => await sent() > framesBefore + 30);
    assert.equal(await state(), "connected");

    await page.evaluate(() => (globalThis as unknown as Window).session.close());
    const events = await eventsOf(test, runId);
    assert.equal(events.at(-1)!.kind, "run_completed", kindsOf(events).join(" "));
    assert.equal(await state(), "closed");
    const states = await page.evaluate(() => (globalThis as unknown as Window).states);
    assert.equal(states.at(-1), "connected");
  },
});

Deno.test({
  ...needing(CHROMIUM, "a refused offer rejects and leaves no connection in the page"),
  ...LONG_TEST,
  async fn() {
    await using studio = await openStudio();
    const refusal = await studio.page.evaluate(async () => {
      // deno-lint-ignore no-explicit-any -- a class of the browser
      const page = globalThis as unknown as Window & { RTCPeerConnection: any };
      const made: { signalingState: string }[] = [];
      page.RTCPeerConnection = class extends page.RTCPeerConnection {
        // deno-lint-ignore no-explicit-any -- as above
        constructor(configuration: any) {
          super(configuration);
          made.push(this as never);
        }
      };
      const camera = await page.navigator.mediaDevices.getUserMedia({ video: true });
      const error = await page.client.publish(camera, { no_such_field: 1 } as never).catch((error) => error);
      const states = made.map(({ signalingState }) => signalingState);
      return { status: error.status, message: error.message, states };
    });
    assert.deepEqual(refusal.states, ["closed"]);
    assert.equal(refusal.status, 400);
    assert.match(refusal.message, /^POST \/v1\/stream\/whip: 400 .*no_such_field/);
  },
});

Deno.test({
  ...needing(CHROMIUM, "a page uploads with progress, follows its run to its end, and can abort"),
  ...LONG_TEST,
  async fn() {
    await using studio = await openStudio();
    const { page, live: { test } } = studio;
    const film = [...Deno.readFileSync(FILM)];
    const uploaded = await page.evaluate(async (bytes) => {
      const { client } = globalThis as unknown as Window;
      const file = new File([Uint8Array.from(bytes)], "film.mp4");
      const progress: number[] = [];
      const { file_path } = await client.uploadFile(file, (loaded) => void progress.push(loaded));
      const stop = new AbortController();
      const reason = await client.uploadFile(file, () => stop.abort("enough"), { signal: stop.signal })
        .catch((reason) => reason);
      const refused = await client.uploadFile(new File(["text"], "notes.txt")).catch((error) => error);
      return { file_path, progress, reason, refused: [refused.name, refused.cause.status] };
    }, film);
    assert.match(uploaded.file_path, /__film\.mp4$/);
    assert.equal(uploaded.progress.at(-1), film.length);
    assert.equal(uploaded.reason, "enough");
    assert.deepEqual(uploaded.refused, ["UploadError", 422]);

    const runId = await page.evaluate(async () => {
      const page = globalThis as unknown as Window & { seen: string[]; end: Promise<unknown> };
      const { run_id } = await page.client.createRun();
      page.seen = [];
      page.end = (async () => {
        for await (const { kind } of page.client.watch(run_id, { reconnectDelayMs: 20 })) {
          page.seen.push(kind);
        }
      })();
      return run_id;
    });
    assert.equal((await test.call("POST", `/v1/runs/${runId}/keepalive`)).status, 200);
    const seen = () => page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen);
    await until("followed", async () => (await seen()).length === 2);
    assert.equal((await test.call("POST", `/v1/runs/${runId}/stop`)).status, 200);
    await page.evaluate(() => (globalThis as unknown as { end: Promise<void> }).end);
    assert.deepEqual(await seen(), ["run_created", "keepalive_refreshed", "stop_requested"]);
  },
});

/** The library in one file, built once. */
let script = "";

Deno.test.beforeAll(() => {
  using folder = new TemporaryFolder();
  const file = join(folder.path, "client.js");
  bundle(fileURLToPath(new URL("../../client/mod.ts", import.meta.url)), file);
  script = Deno.readTextFileSync(file);
});

/** Runs in the page. */
async function framesSent(): Promise<number> {
  const stats = await (globalThis as unknown as Window).session.peer.getStats() as Map<
    string,
    { type: string; framesSent?: number }
  >;
  return [...stats.values()].find(({ type }) => type === "outbound-rtp")?.framesSent ?? 0;
}

interface Studio extends AsyncDisposable {
  readonly live: ReasonTest;
  readonly page: Page;
}

/** A page with the library, of an origin that the service allows, in a browser with a camera of its own. */
async function openStudio(): Promise<Studio> {
  await using opening = new AsyncDisposableStack();
  const pages = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) =>
      request.url.endsWith(".js")
        ? new Response(script, { headers: { "content-type": "text/javascript" } })
        : new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  );
  opening.defer(() => pages.shutdown());
  const origin = `http://127.0.0.1:${pages.addr.port}`;
  const live = opening.use(
    await startReason({ answer: () => "A rabbit." }, {
      SERVICE_WEBRTC_STUN_SERVERS: "stun:127.0.0.1:9",
      SERVICE_CORS_ALLOWED_ORIGINS: origin,
    }),
  );
  const browser = await chromium.launch({
    executablePath: CHROMIUM_PATH!,
    args: ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  });
  opening.defer(() => browser.close());
  const page = await browser.newPage();
  await page.goto(origin);
  await page.evaluate(async ({ url, apiKey }) => {
    const page = globalThis as unknown as Window;
    const place = "/client.js"; // A variable, as the page has it and this file has not.
    page.library = await import(place);
    page.client = new page.library.Client(url, { apiKey });
  }, { url: live.test.url, apiKey: KEY_A });
  const owned = opening.move();
  return { live, page, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
