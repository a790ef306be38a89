/** Named sources and always-on cameras: who may name one, what is told of it, and how it lives on through
 * everything.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import type { Outbound } from "../../../src/remote/guard/outbound.ts";
import { make, makeClip, TempFolder } from "../../support/media.ts";
import { Receiver, signatureFaults } from "../../support/http/receiver.ts";
import { NO_COUNTS } from "../../support/live/fake_live_workers.ts";
import { type LiveTest, metric, startLive } from "../../support/live/live.ts";
import { type RtspOptions, serveRtsp } from "../../support/live/rtsp_server.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { type Answer, KEY_A, KEY_B, newRun, startService, type TestService } from "../../support/service.ts";
import { writtenName } from "../../support/principals.ts";
import { until } from "../../support/until.ts";
import { parseSourceFile } from "../../../src/model/sources/source_file.ts";

const REROUTED: Outbound = {
  resolve: (host) => host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  reroute: () => "127.0.0.1",
};
const RTSP = { SERVICE_ALLOW_UNENCRYPTED_RTSP: "true", CAM_PASSWORD: "t0p:s@cret" };
/** Settings with webhooks to a receiver of the test. */
const WITH_WEBHOOKS = {
  ...RTSP,
  SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
};
const HASH_A = principalKeyOf(KEY_A).slice("api-key:".length);
const LOGIN = { user: "viewer", password: RTSP.CAM_PASSWORD };

function camera(options: RtspOptions = {}) {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  return serveRtsp(Deno.readFileSync(clip), { isEndless: true, ...options });
}

function source(name: string, uri: string, more = ""): string {
  const principals = more.includes("principals") ? "" : `principals = ["${HASH_A}"]\n`;
  return `[[sources]]\nname = "${name}"\nuri = "${uri}"\n${principals}${more}\n`;
}

async function looks(test: TestService, key = KEY_A) {
  const { status, json, text } = await test.call("GET", "/v1/sources", undefined, key);
  assert.equal(status, 200, text);
  return json.sources;
}

async function lookOf(test: TestService, name: string) {
  return (await looks(test)).find((look: { name: string }) => look.name === name);
}

function messageOf({ json }: Answer): string {
  return json.error.details[0].message;
}

Deno.test("a named source is used by those who may, everywhere a source is, and nothing tells where it is", async () => {
  await using digest = camera({ login: { scheme: "digest", ...LOGIN } });
  await using basic = camera({ login: { scheme: "basic", ...LOGIN } });
  const at = (port: number, login = "viewer:${CAM_PASSWORD}") => `rtsp://${login}@camera.test:${port}/dock`;
  const sourcesFile = [
    source("dock", at(digest.port)),
    source("gate", at(basic.port), 'principals = ["*"]'),
    source("wrong", at(digest.port, "viewer:no")),
    source("hidden", "rtsp://127.0.0.1:1/x"),
    source("lost", "rtsp://nowhere.test/x"),
  ].join("\n");
  await using test = await startLive(RTSP, { outbound: REROUTED, sourcesFile });
  const answers: string[] = [];
  const call = async (path: string, body: object, key = KEY_A) => {
    const answer = await test.call("POST", path, body, key);
    answers.push(answer.text);
    return answer;
  };
  const runId = await newRun(test);
  const ingested = await call(`/v1/runs/${runId}/ingest`, { source_uri: "source:dock", max_frames: 5 });
  assert.equal(ingested.status, 200, ingested.text);
  assert.equal(ingested.json.source_uri, "source:dock");
  const watched = await call(`/v1/runs/${runId}/live`, { source_uri: " source:gate " });
  assert.deepEqual([watched.status, watched.json.source_uri], [200, "source:gate"], watched.text);

  const other = await newRun(test);
  const refused = async (source_uri: string, route = "ingest", key = KEY_A) => {
    const of = key === KEY_A ? other : (await test.call("POST", "/v1/runs", {}, key)).json.run_id;
    const answer = await call(`/v1/runs/${of}/${route}`, { source_uri }, key);
    assert.deepEqual([answer.status, answer.json.error?.details[0].field], [422, "source_uri"], answer.text);
    return messageOf(answer);
  };
  assert.equal(await refused("source:dock", "ingest", KEY_B), await refused("source:nothing"));
  assert.equal(await refused("source:dock", "live", KEY_B), await refused("source:", "live"));
  assert.match(await refused("source:wrong"), /its server refuses the user name and the password/);
  assert.match(await refused("source:wrong", "live"), /its server refuses the user name and the password/);
  assert.match(
    await refused("source:hidden"),
    /^its host is not a public address; SERVICE_MEDIA_ALLOWED_NETWORKS may admit it$/,
  );
  assert.match(await refused("source:lost", "live"), /^its host cannot be resolved/);
  for (const route of ["ingest", "live"]) {
    assert.match(
      await refused(at(basic.port, "viewer:x"), route),
      /user name or password.*SERVICE_SOURCES_CONFIG/,
    );
  }

  const listed = await looks(test);
  assert.deepEqual(listed[1], {
    name: "gate",
    source_uri: "source:gate",
    kind: "rtsp",
    live: false,
    state: "connecting",
    run_id: runId,
    last_frame_age_ms: null,
    reason: null,
    ...{ armed: null, armed_by: null, next_change_ms: null, recording: null },
  });
  assert.deepEqual([listed.length, listed[0].state, listed[0].run_id], [5, "disabled", null]);
  assert.deepEqual(
    (await looks(test, KEY_B)).map(({ name, run_id }: Record<string, unknown>) => [name, run_id]),
    [[
      "gate",
      null,
    ]],
  );
  const told = [...answers, JSON.stringify([listed, await eventsOf(test, runId)])].join("\n");
  assert.doesNotMatch(told, /camera\.test|nowhere\.test|127\.0\.0\.1|t0p|93\.184/);
});

Deno.test("the password of a source goes to its own server alone, and not where that one sends the reader", async () => {
  using folder = new TempFolder();
  const clip = Deno.readFileSync(makeClip(join(folder.path, "film.ts"), { size: "160x120", frames: 10 }));
  const seen: string[] = [];
  const serve = (name: string, answer: (path: string) => Response) => {
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
      const { pathname } = new URL(request.url);
      const login = request.headers.get("authorization");
      seen.push(`${name} ${pathname} ${login === null ? "-" : atob(login.slice("Basic ".length))}`);
      const isAsked = name === "own" && login === null;
      return isAsked
        ? new Response("who?", { status: 401, headers: { "www-authenticate": 'Basic realm="films"' } })
        : answer(pathname);
    });
    const origin = `camera.test:${(server.addr as Deno.NetAddr).port}`;
    return { origin, [Symbol.asyncDispose]: () => server.shutdown() };
  };
  await using other = serve("other", () => new Response(clip));
  const playlist =
    `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.4,\nhttp://${other.origin}/part.ts\n#EXT-X-ENDLIST\n`;
  await using own = serve(
    "own",
    (path) =>
      path === "/list.m3u8"
        ? new Response(playlist)
        : new Response(null, { status: 302, headers: { location: `http://${other.origin}/film.ts` } }),
  );
  const at = (path: string) => `http://viewer:\${CAM_PASSWORD}@${own.origin}${path}`;
  await using test = await startLive({
    ...RTSP,
    SERVICE_ALLOW_INSECURE_HTTP: "true",
    SERVICE_ALLOW_REMOTE_HLS: "true",
  }, { outbound: REROUTED, sourcesFile: source("film", at("/film.ts")) + source("list", at("/list.m3u8")) });
  for (const name of ["film", "list"]) {
    const runId = await newRun(test);
    const { status, text } = await test.call("POST", `/v1/runs/${runId}/ingest`, {
      source_uri: `source:${name}`,
    });
    assert.equal(status, 200, text);
  }
  const login = `${LOGIN.user}:${LOGIN.password}`;
  assert.deepEqual([...new Set(seen)].sort(), [
    "other /film.ts -",
    "other /part.ts -",
    "own /film.ts -",
    `own /film.ts ${login}`,
    "own /list.m3u8 -",
    `own /list.m3u8 ${login}`,
  ]);
});

/** A service in which `dock` is always watched, by fake Workers. */
async function startWatching(port: number, more = ""): Promise<LiveTest> {
  const dock = source("dock", `rtsp://camera.test:${port}/dock`, `live = true\nrollover = "1m"\n${more}`);
  return await startLive(RTSP, { outbound: REROUTED, timerSpeed: 20, sourcesFile: dock });
}

Deno.test("an always-on camera rolls over without losing a picture, and goes on when its run is deleted or stopped", async () => {
  await using dock = camera();
  await using test = await startWatching(dock.port, 'prompt = "Watch the dock."');
  await until("watched", () => test.workers.sessions.length === 1);
  const worker = test.workers.last;
  const first = (await lookOf(test, "dock")).run_id;
  let shown = 0;
  const show = () => worker.picture(shown++);
  show();
  worker.report({ kind: "gap", reason: "the connection was closed", lastPtsMs: 1, silentMs: 0 });
  const gap = await lookOf(test, "dock");
  assert.deepEqual([gap.state, gap.reason !== null, gap.run_id], ["gap", true, first]);
  assert.equal(await metric(test, "service_sources", 'state="gap"'), 1);
  let second = first;
  await until("rolled over", async () => {
    if (worker.acknowledged.pictures === shown) show();
    return (second = (await lookOf(test, "dock")).run_id) !== first;
  });
  worker.report({ kind: "resumed" });
  await until("all described", () => worker.acknowledged.pictures === shown);
  const stop = await test.call("POST", `/v1/runs/${second}/stop`);
  assert.equal(stop.status, 200, stop.text);

  const [before, after] = [await eventsOf(test, first), await eventsOf(test, second)];
  const [created, opened] = after;
  const { session_id } = before[0]!.payload;
  assert.deepEqual(payloads(before, "run_completed"), [
    { source: "live", session_id, reason: "rolled_over", successor_run_id: second },
  ]);
  assert.equal(before.at(-1)!.kind, "run_completed");
  assert.deepEqual([created!.kind, created!.payload], ["run_created", {
    principal_key: writtenName(test.dataDir, KEY_A),
    session_id,
    source: "live",
    predecessor_run_id: first,
  }]);
  assert.deepEqual([opened!.kind, opened!.payload.source_uri], ["live_source_opened", "source:dock"]);
  assert.deepEqual(kindsOf(after).slice(2, 3), ["source_gap"], "the gap goes on");
  assert.equal(kindsOf(after).filter((kind) => kind === "source_resumed").length, 1);
  const pictures = [...before, ...after].filter(({ kind }) => kind === "keyframe_stored");
  assert.equal(pictures.length, shown, "every picture belongs to one of the two");

  await until("watched again", () => test.workers.sessions.length === 2);
  const third = (await lookOf(test, "dock")).run_id;
  assert.ok(third !== second);
  assert.equal((await test.call("DELETE", `/v1/runs/${third}`)).status, 200);
  await until("and again", () => test.workers.sessions.length === 3);
  test.workers.last.report({ kind: "counts", counts: { ...NO_COUNTS, framesDecoded: 3 } });
  const live = await lookOf(test, "dock");
  assert.deepEqual([live.state, live.reason, live.last_frame_age_ms < 60_000], ["live", null, true]);
  assert.equal((await test.call("DELETE", `/v1/runs/${live.run_id}/live`)).json.status, "completed");
  await until("once more", () => test.workers.sessions.length === 4);
  const { run_id } = await lookOf(test, "dock");
  await test.restart();
  assert.equal(payloads(await eventsOf(test, run_id), "run_failed")[0].reason, "service_stopped");
  await until("after the restart", async () => (await lookOf(test, "dock")).run_id !== null);
});

Deno.test("a change of the file restarts what has changed, and a fault in it changes nothing", async () => {
  await using dock = camera();
  const uri = `rtsp://camera.test:${dock.port}/dock`;
  const files = [
    source("dock", uri, "live = true") + source("gate", uri, "live = true"),
    source("dock", uri, "live = true") + source("gate", uri, 'live = true\nprompt = "Watch."') +
    source("film", "/x"),
    source("dock", uri),
  ].map((text) =>
    parseSourceFile(text, {
      env: {},
      toggles: { allowInsecureHttp: false, allowUnencryptedRtsp: true, allowRemoteHls: false },
      attach: { crop: null, zone: null, tokensPerSecond: 0, hasLocalOutput: false },
      webhooks: { allowPrivate: true, areOn: true },
    })
  );
  await using test = await startLive(RTSP, { outbound: REROUTED, timerSpeed: 20 });
  const runs = async () =>
    Object.fromEntries((await looks(test)).map((look: Record<string, string>) => [look.name, look.run_id]));
  await test.service.applySources(files[0]!);
  await until("both are watched", () => test.workers.sessions.length === 2);
  const first = await runs();
  await test.service.applySources(null);
  assert.deepEqual(await runs(), first);
  assert.equal(await metric(test, "service_sources_file_faulty"), 1);
  const health = (await test.call("GET", "/v1/system/health")).json;
  assert.deepEqual(
    [health.result, health.reasons.map(({ code }: { code: string }) => code)],
    ["healthy", ["sources_file_faulty", "sessions_running"]],
  );
  await test.service.applySources(files[1]!);
  await until("the changed one is watched anew", () => test.workers.sessions.length === 3);
  await until("with its run", async () => (await runs()).gate !== null);
  const second = await runs();
  assert.ok(second.dock === first.dock && second.gate !== first.gate);
  assert.equal(payloads(await eventsOf(test, first.gate!), "run_completed")[0].reason, "source_changed");
  assert.equal(await metric(test, "service_sources_file_faulty"), 0);
  await test.service.applySources(files[2]!);
  assert.deepEqual(await runs(), { dock: null });
  assert.equal(payloads(await eventsOf(test, second.gate!), "run_completed")[0].reason, "source_removed");
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
});

Deno.test("each run of an always-on camera has the webhooks of the file; a change of them alone gives it a new run", async () => {
  await using dock = camera();
  await using receiver = await Receiver.start();
  const uri = `rtsp://camera.test:${dock.port}/dock`;
  const secret = "ab".repeat(32);
  const hook = (kinds: string) =>
    `live = true\nwebhooks = [{ name = "alarm", url = "${receiver.url}", secret = "${secret}", event_kinds = [${kinds}] }]`;
  await using test = await startLive(WITH_WEBHOOKS, {
    outbound: REROUTED,
    sourcesFile: source("dock", uri, hook("")),
  });
  await until("watched", () => test.workers.sessions.length === 1);
  const { run_id: first } = await lookOf(test, "dock");
  await receiver.waitFor(() => receiver.received.length === 1);
  assert.deepEqual(signatureFaults(receiver.received[0]!, secret), []);
  const [listed] = (await test.call("GET", `/v1/runs/${first}/webhooks`)).json.webhooks;
  const { url, source: of, registered_seq } = listed;
  assert.deepEqual([url, of], [`${new URL(receiver.url).origin}/...`, { name: "dock", webhook: "alarm" }]);
  assert.equal(receiver.received[0]!.event.sequence, registered_seq + 1);
  const path = `/v1/runs/${first}/webhooks/${listed.webhook_id}`;
  const refused = await test.call("DELETE", path);
  assert.deepEqual([refused.status, refused.json.error.details[0].field], [409, "webhook_id"]);
  assert.equal(
    (await test.call("GET", `${path}/deliveries/${registered_seq + 1}`)).json.headers["webhook-id"],
    `${first}:${registered_seq + 1}`,
  );
  const events = await eventsOf(test, first);
  assert.deepEqual(kindsOf(events), ["run_created", "webhook_registered", "live_source_opened"]);
  assert.doesNotMatch(JSON.stringify([events, listed]), new RegExp(`/hook|${secret}`));

  await test.service.applySources(parseSourceFile(source("dock", uri, hook('"vlm"')), {
    env: {},
    toggles: { allowInsecureHttp: false, allowUnencryptedRtsp: true, allowRemoteHls: false },
    attach: { crop: null, zone: null, tokensPerSecond: 0, hasLocalOutput: false },
    webhooks: { allowPrivate: true, areOn: true },
  }));
  let second = first;
  await until("a new run", async () => (second = (await lookOf(test, "dock")).run_id) !== first);
  assert.equal(test.workers.sessions.length, 1, "the camera goes on");
  assert.deepEqual(payloads(await eventsOf(test, second), "webhook_registered")[0].event_kinds, ["vlm"]);
  await receiver.waitFor(() => receiver.received.length === 2);
  assert.equal(receiver.received[1]!.event.data.successor_run_id, second);
});

Deno.test("what a disarmed camera finds is written, and neither sent nor explained; a call arms it, also over a restart", async () => {
  await using dock = camera();
  await using receiver = await Receiver.start();
  const ZONE = "restricted_zone_activity_entered";
  const secret = "ab".repeat(32);
  const hook = (path: string, more: string) =>
    `{ name = "${path}", url = "${new URL(
      path,
      receiver.url,
    )}", secret = "${secret}", event_kinds = ["${ZONE}"]${more} }`;
  const zone = 'policy_id = "dock", policy_version = 1, device_id = "cam-1", enter_motion_score = 0.6, ' +
    "exit_motion_score = 0.2, enter_after_frames = 2, exit_after_frames = 3, " +
    "region = { x = 0.1, y = 0.2, width = 0.3, height = 0.4 }";
  const uri = `rtsp://camera.test:${dock.port}/dock`;
  const sourcesFile = source(
    "dock",
    uri,
    [
      "live = true",
      `restricted_zone = { ${zone} }`,
      'enrich = { on = ["zone"] }',
      `webhooks = [${hook("alarm", "")}, ${hook("all", ', filter = { armed = "any" }')}]`,
    ].join("\n"),
  ) + source("film", "/srv/film.mp4");
  await using test = await startLive(WITH_WEBHOOKS, { outbound: REROUTED, sourcesFile });
  const arm = async (verb: string, body: object = {}, name = "dock", key = KEY_A) => {
    const { status, json } = await test.call("POST", `/v1/sources/${name}/${verb}`, body, key);
    return status === 200
      ? [json.armed, json.armed_by, json.next_change_ms]
      : [status, json.error.details[0]?.field];
  };
  await until("watched", () => test.workers.sessions.length === 1);
  const worker = test.workers.last;
  await until("armed from the start", () => worker.isArmed === true);
  const { run_id, armed, armed_by, next_change_ms } = await lookOf(test, "dock");
  assert.deepEqual([armed, armed_by, next_change_ms], [true, "schedule", null]);
  assert.equal((await lookOf(test, "film")).armed, null);
  assert.deepEqual(await arm("disarm"), [false, "call", null]);
  assert.equal(await metric(test, "service_sources_armed", 'state="disarmed"'), 1);
  const facts = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };
  const found = (frame: number) => worker.picture(frame, { isKeyframe: false, zone: facts });
  found(1);
  await until("written", () => worker.acknowledged.evidence === 1);
  assert.deepEqual(await arm("arm"), [true, "schedule", null]);
  found(2);
  await receiver.waitFor(() => receiver.received.length === 3);
  const events = await eventsOf(test, run_id);
  assert.equal(payloads(events, "live_source_opened")[0].armed, true);
  assert.deepEqual(
    payloads(events, ZONE).map(({ armed, enrichment_deadline_ms: ms }) => [armed, ms !== undefined]),
    [[false, false], [true, true]],
  );
  const changes = events.filter(({ kind }) => /^source_(dis)?armed$/.test(kind)).map(({ kind, payload }) => [
    ...[kind, payload.reason, payload.principal_key],
  ]);
  const principal = writtenName(test.dataDir, KEY_A);
  assert.deepEqual(changes, [["source_disarmed", "call", principal], ["source_armed", "call", principal]]);
  const sent = receiver.received.map(({ path, event: { data } }) => `${path} ${data.armed}`).sort();
  assert.deepEqual(sent, ["/alarm true", "/all false", "/all true"]);

  assert.deepEqual(await arm("arm", {}, "dock", KEY_B), [404, "name"]);
  assert.deepEqual(await arm("arm", {}, "nothing"), [404, "name"]);
  assert.deepEqual(await arm("disarm", {}, "film"), [409, "name"]);
  assert.deepEqual(await arm("arm", { for_seconds: 0 }), [422, "for_seconds"]);
  assert.deepEqual(await arm("arm", { for_seconds: "1" }), [422, "for_seconds"]);
  const [isArmed, , until_ms] = await arm("disarm", { for_seconds: 3600 });
  assert.ok(isArmed === false && until_ms > Date.now() + 3_500_000);
  await test.restart();
  await until(
    "watched again",
    () => test.workers.sessions.length === 1 && test.workers.last.isArmed === false,
  );
  const again = await lookOf(test, "dock");
  assert.deepEqual([again.armed, again.next_change_ms], [false, until_ms]);
  assert.equal(payloads(await eventsOf(test, again.run_id), "live_source_opened")[0].armed, false);
});

/** JPEGs over HTTP for a user, picture after picture. */
function serveJpegs(jpeg: Uint8Array, login: { user: string; password: string }) {
  const pauses = new Set<Promise<void>>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    if (request.headers.get("authorization") !== `Basic ${btoa(`${login.user}:${login.password}`)}`) {
      return new Response("who?", { status: 401, headers: { "www-authenticate": 'Basic realm="camera"' } });
    }
    const head = new TextEncoder().encode("--frame\r\nContent-Type: image/jpeg\r\n\r\n");
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const pause = new Promise<void>((resolve) => setTimeout(resolve, 50));
        pauses.add(pause);
        await pause.finally(() => pauses.delete(pause));
        controller.enqueue(joinedBytes(head, jpeg));
      },
    });
    return new Response(body, { headers: { "content-type": "multipart/x-mixed-replace; boundary=frame" } });
  });
  return {
    port: (server.addr as Deno.NetAddr).port,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await Promise.all(pauses); // of a client who is gone
    },
  };
}

Deno.test("real cameras are watched side by side: one of JPEGs, one that restarts, and others that are no use", async () => {
  using folder = new TempFolder();
  const picture = join(folder.path, "picture.jpg");
  make(picture, "-f", "lavfi", "-i", "testsrc2=s=160x120", "-frames:v", "1");
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  await using jpegs = serveJpegs(Deno.readFileSync(picture), LOGIN);
  // It closes after each play, as a camera that restarts.
  await using dock = serveRtsp(Deno.readFileSync(clip));
  await using wrong = camera({ login: { scheme: "digest", ...LOGIN } });
  await using garbage = camera({ statusLines: { DESCRIBE: "SSH-2.0 hello\r\n" } });
  const rtsp = (port: number) => `rtsp://viewer:no@127.0.0.1:${port}/x`;
  const sourcesFile = [
    source("jpegs", `http://viewer:\${CAM_PASSWORD}@127.0.0.1:${jpegs.port}/video.cgi`, "live = true"),
    source("dock", rtsp(dock.port), "live = true"),
    source("wrong", rtsp(wrong.port), "live = true"),
    source("garbage", rtsp(garbage.port), "live = true"),
  ].join("\n");
  await using test = await startService({
    ...RTSP,
    SERVICE_ALLOW_INSECURE_HTTP: "true",
    SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
  }, { sourcesFile });
  // One after the other, as each is requested again at times of its own, and is connecting then.
  const stored = async (name: string, kind: string) => {
    const { run_id } = await lookOf(test, name);
    return run_id === null ? [] : payloads(await eventsOf(test, run_id), kind);
  };
  const reasonOf = async (name: string): Promise<string> => {
    let look: { state: string; reason: string };
    await until(`${name} has failed`, async () => (look = await lookOf(test, name)).state === "failed");
    return look!.reason;
  };
  await until("JPEGs are live", async () => (await stored("jpegs", "keyframe_stored")).length > 0);
  await until(
    "the dock was requested again",
    async () => (await stored("dock", "source_resumed")).length > 0,
  );
  assert.match(await reasonOf("wrong"), /refuses the user name and the password/);
  assert.match(await reasonOf("garbage"), /does not answer in RTSP/);
  await until("JPEGs are live all the same", async () => (await lookOf(test, "jpegs")).state === "live");
  assert.deepEqual([(await lookOf(test, "jpegs")).kind, (await lookOf(test, "dock")).kind], [
    "mjpeg",
    "rtsp",
  ]);
  const [frame] = await stored("jpegs", "keyframe_stored");
  assert.deepEqual(frame.coordinates.source_extent, { width: 160, height: 120 });
});
