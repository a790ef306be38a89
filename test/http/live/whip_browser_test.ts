/** Publishing from a browser: a page of another origin, with a camera and a microphone, does WHIP by fetch.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { openAudioDouble } from "../../support/sidecars/audio_sidecar.ts";
import { TemporaryFolder } from "../../support/folders.ts";
import { encoded, metric } from "../../support/live/live.ts";
import {
  eventsOf,
  FILM,
  kindsOf,
  payloads,
  type ReasonTest,
  startReason,
} from "../../support/models/reason.ts";
import { CHROMIUM, CHROMIUM_PATH, needing } from "../../support/needs.ts";
import { KEY_A } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

const SAID = "A rabbit.";

/** Runs in the page. */
interface Publication {
  readonly location: string;
  readonly runId: string;
  /** Asks, in this order, for the state of the connection and the frames sent so far. */
  facts(): Promise<{ state: string; framesSent: number; codec: string }>;
  stopCamera(): void;
  /** Sends DELETE; the status of the answer. */
  deleteSession(): Promise<number>;
  /** Closes the connection without a request to the service. */
  leave(): void;
}
declare const publication: Publication;

Deno.test({
  ...needing(CHROMIUM, "a browser publishes VP8 and sound from another origin, and ends with DELETE"),
  ...LONG_TEST,
  async fn() {
    await using sidecar = openAudioDouble();
    await using studio = await openStudio({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
    const { live: { test }, page } = studio;
    await publish(studio, { codec: "VP8", withSound: true, trickles: false });
    await checkFrames(studio, "video/VP8");
    await until("sound was analyzed", () => sidecar.requests.length > 0);
    assert.equal(await page.evaluate(() => publication.deleteSession()), 200);
    const events = await eventsOf(test, await page.evaluate(() => publication.runId));
    assert.equal(events.at(-1)!.kind, "run_completed", kindsOf(events).join(" "));
    assert.equal(payloads(events, "semantic_chunk_inferred")[0]?.media_mode, "live_audio");
    assert.equal(await metric(test, "service_pipeline_webrtc_audio_receive_errors_total"), 0);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "a browser publishes H.264 with candidates that follow the offer, and its run fails when it just leaves",
  ),
  ...LONG_TEST,
  async fn() {
    await using studio = await openStudio();
    const { live: { test }, page } = studio;
    await publish(studio, { codec: "H264", withSound: false, trickles: true });
    await checkFrames(studio, "video/H264");
    const runId = await page.evaluate(() => publication.runId);
    await page.close();
    await until(
      "the run has failed",
      async () => (await eventsOf(test, runId)).at(-1)!.kind === "run_failed",
    );
    const { payload } = (await eventsOf(test, runId)).at(-1)!;
    assert.match(payload.reason, /^peer_(closed|disconnected)$/);
  },
});

/**
 * A second of camera and more; after it has stopped every frame that was sent is decoded, or counted as
 * dropped where this machine cannot keep up with the browser. The first one is described.
 */
async function checkFrames({ live: { test, model }, page }: Studio, codec: string): Promise<void> {
  const decoded = () => metric(test, "service_pipeline_frames_decoded_total");
  const dropped = () => metric(test, "service_pipeline_frames_dropped_total");
  await until("a second is decoded", async () => await decoded() > 30);
  await page.evaluate(() => publication.stopCamera());
  const facts = () => page.evaluate(() => publication.facts());
  let sent = await facts();
  await until("every frame is accounted for", async () => {
    sent = await facts();
    return await decoded() + await dropped() === sent.framesSent;
  });
  assert.equal(sent.codec, codec);
  const runId = await page.evaluate(() => publication.runId);
  await until(
    "a keyframe is stored",
    async () => payloads(await eventsOf(test, runId), "keyframe_stored").length > 0,
  );
  const [stored] = payloads(await eventsOf(test, runId), "keyframe_stored");
  assert.equal(stored.description, SAID);
  const { width, height } = stored.coordinates.source_extent;
  // A browser may start with a smaller picture than the camera gives.
  assert.ok(Math.abs(width / height - 4 / 3) < 0.02, `${width}x${height}`);
  assert.ok(model.requests.length > 0);
}

/** A browser whose camera shows a film, a page of another origin, and a service that allows it. */
interface Studio extends AsyncDisposable {
  readonly live: ReasonTest;
  readonly page: Page;
}

async function openStudio(env: Record<string, string> = {}): Promise<Studio> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(new TemporaryFolder());
  const pages = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  );
  opening.defer(() => pages.shutdown());
  const origin = `http://127.0.0.1:${pages.addr.port}`;
  const live = opening.use(
    await startReason({ answer: () => SAID }, {
      SERVICE_WEBRTC_STUN_SERVERS: "",
      SERVICE_CORS_ALLOWED_ORIGINS: origin,
      ...env,
    }),
  );
  const browser = await chromium.launch({
    executablePath: CHROMIUM_PATH!,
    args: [
      "--no-sandbox",
      "--use-fake-device-for-media-stream",
      "--use-fake-ui-for-media-stream",
      `--use-file-for-fake-video-capture=${camera(folder.path)}`,
    ],
  });
  opening.defer(() => browser.close());
  const page = await openPage(browser, origin);
  const owned = opening.move();
  return { live, page, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openPage(browser: Browser, origin: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(origin);
  return page;
}

/** Raw pictures of the film, which the browser shows over and over. */
function camera(folder: string): string {
  const path = join(folder, "camera.y4m");
  const args = ["-v", "error", "-ss", "8", "-i", FILM, "-t", "2", "-vf", "scale=640:480,fps=30"];
  const { success } = new Deno.Command("ffmpeg", { args: [...args, "-pix_fmt", "yuv420p", path] })
    .outputSync();
  assert.ok(success, "ffmpeg made no camera");
  return path;
}

interface Wish {
  readonly codec: "VP8" | "H264";
  readonly withSound: boolean;
  readonly trickles: boolean;
}

/** Publishes from the page and waits until it is connected. */
async function publish({ live, page }: Studio, wish: Wish): Promise<void> {
  const attach = encoded(
    wish.withSound ? { local_audio: { profile: "general", speech_engine: "none" } } : { prompt: "Look." },
  );
  await page.evaluate(publishFromPage, {
    ...wish,
    url: `${live.test.url}/v1/stream/whip`,
    key: KEY_A,
    attach,
  });
  await until(
    "the browser is connected",
    async () => (await page.evaluate(() => publication.facts())).state === "connected",
  );
}

/** Runs in the page, so it may use nothing that stands outside of it. */
async function publishFromPage(
  { url, key, attach, codec, withSound, trickles }: Wish & { url: string; key: string; attach: string },
): Promise<void> {
  // deno-lint-ignore no-explicit-any -- the page has what Deno has no types for
  const window = globalThis as any;
  const camera = await window.navigator.mediaDevices.getUserMedia({
    video: { width: 640, height: 480, frameRate: 30 },
    audio: withSound,
  });
  const connection = new window.RTCPeerConnection();
  const patches: Promise<Response>[] = [];
  const early: string[] = [];
  let location = "";
  const trickle = (line: string) => {
    const [ufrag, password] = ["ufrag", "pwd"].map((name) =>
      new RegExp(`a=ice-${name}:(.*)`).exec(connection.localDescription.sdp)![1]!.trim()
    );
    const body =
      `a=ice-ufrag:${ufrag}\r\na=ice-pwd:${password}\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n` +
      `a=${line}\r\n`;
    const headers = { "x-api-key": key, "content-type": "application/trickle-ice-sdpfrag" };
    patches.push(fetch(location, { method: "PATCH", headers, body }));
  };
  // deno-lint-ignore no-explicit-any -- as above
  connection.onicecandidate = ({ candidate }: any) => {
    if (!trickles || !candidate) return;
    if (location === "") early.push(candidate.candidate);
    else trickle(candidate.candidate);
  };
  const [track] = camera.getVideoTracks();
  const transceiver = connection.addTransceiver(track, { direction: "sendonly" });
  const { codecs } = window.RTCRtpSender.getCapabilities("video");
  transceiver.setCodecPreferences(
    codecs.filter(({ mimeType }: { mimeType: string }) =>
      mimeType === `video/${codec}` || mimeType === "video/rtx"
    ),
  );
  for (const sound of camera.getAudioTracks()) connection.addTransceiver(sound, { direction: "sendonly" });
  await connection.setLocalDescription();
  if (!trickles && connection.iceGatheringState !== "complete") {
    await new Promise<void>((resolve) => {
      connection.onicegatheringstatechange = () => connection.iceGatheringState === "complete" && resolve();
    });
  }
  const response = await fetch(url, {
    method: "POST",
    headers: { "x-api-key": key, "x-attach-config": attach, "content-type": "application/sdp" },
    body: connection.localDescription.sdp,
  });
  const answer = await response.text();
  if (response.status !== 201) throw new Error(`${response.status} ${answer}`);
  location = new URL(response.headers.get("location")!, url).href;
  for (const line of early) trickle(line);
  await connection.setRemoteDescription({ type: "answer", sdp: answer });
  for (const patch of patches) {
    const { status } = await patch;
    if (status !== 204) throw new Error(`PATCH ${status}`);
  }
  window.publication = {
    location,
    runId: response.headers.get("x-service-run-id"),
    async facts() {
      const stats = [...(await transceiver.sender.getStats()).values()];
      const out = stats.find(({ type }: { type: string }) => type === "outbound-rtp");
      const codecStats = stats.find(({ id }: { id: string }) => id === out?.codecId);
      const { connectionState: state } = connection;
      return { state, framesSent: out?.framesSent ?? 0, codec: codecStats?.mimeType ?? "" };
    },
    stopCamera: () => track.stop(),
    leave: () => connection.close(),
    async deleteSession() {
      const gone = await fetch(location, { method: "DELETE", headers: { "x-api-key": key } });
      connection.close();
      return gone.status;
    },
  };
}
