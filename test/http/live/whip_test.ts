/** Signalling of WHIP: offers and what is wrong with them, trickled candidates, prompts, the end. See
 * docs/live/whip.md.
 */

import assert from "node:assert/strict";
import {
  deleteSession,
  metric,
  offer,
  prompt,
  publish,
  type Publishing,
  runsOf,
  startLive,
  trickle,
  WHIP,
} from "../../support/live/live.ts";
import { ANSWER, offerText } from "../../support/live/fake_live_workers.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A, KEY_B } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { DOCK_ZONE, dockProgram } from "../../support/policy_fixtures.ts";

Deno.test("an accepted offer answers with SDP, its place, its run and the servers to use", async () => {
  await using test = await startLive({
    SERVICE_WEBRTC_STUN_SERVERS: "stun:stun.example.org:3478,stun:two.example.org:3478",
    SERVICE_WEBRTC_TURN_URL: "turn:turn.example.org:3478",
    SERVICE_WEBRTC_TURN_USERNAME: "guest",
    SERVICE_WEBRTC_TURN_CREDENTIAL: 'a"b\\c',
  });
  const { status, headers, text } = await offer(test);
  assert.equal(status, 201);
  assert.equal(text, ANSWER);
  assert.equal(headers.get("content-type"), "application/sdp");
  assert.match(headers.get("location")!, /^\/v1\/stream\/whip\/sess-[0-9a-f]{16}$/);
  assert.match(headers.get("x-service-run-id")!, /^run-[0-9a-f]{32}$/);
  assert.match(headers.get("etag")!, /^"[^"]+"$/);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(
    headers.get("link"),
    '<stun:stun.example.org:3478>; rel="ice-server", <stun:two.example.org:3478>; rel="ice-server", ' +
      '<turn:turn.example.org:3478>; rel="ice-server"; username="guest"; credential="a\\"b\\\\c"; ' +
      'credential-type="password"',
  );
  const { settings } = test.workers.last;
  assert.deepEqual(settings.ice, {
    stunServers: ["stun:stun.example.org:3478", "stun:two.example.org:3478"],
    turn: { url: "turn:turn.example.org:3478", username: "guest", credential: 'a"b\\c' },
    candidates: { listenHost: "127.0.0.1", allowedNetworks: [] },
  });
});

Deno.test("without any server set there is no Link header", async () => {
  await using test = await startLive();
  assert.equal((await offer(test)).headers.get("link"), null);
});

Deno.test("the run of an offer names its session and its program, and has neither mode nor model", async () => {
  await using test = await startLive();
  const { runId, sessionId } = await publish(test, { attach: { trigger_program: dockProgram() } });
  const events = await eventsOf(test, runId);
  assert.deepEqual(kindsOf(events), ["run_created"]);
  const [created] = payloads(events, "run_created");
  assert.deepEqual(created, {
    principal_key: created.principal_key,
    session_id: sessionId,
    source: "whip",
    trigger_program: { program_id: "dock-entry", version: 3, isa_version: 1 },
  });
  const run = (await test.call("GET", `/v1/runs/${runId}`)).json;
  assert.deepEqual([run.status, run.mode, run.model, run.source_uri], ["pending", "", "", ""]);
  const { runId: plain } = await publish(test);
  assert.equal(payloads(await eventsOf(test, plain), "run_created")[0].trigger_program, null);
});

Deno.test("the run is pending until its publisher is connected, and then processing", async () => {
  await using test = await startLive();
  const { runId, sessionId, worker } = await publish(test);
  const status = async () => (await test.call("GET", `/v1/runs/${runId}`)).json.status;
  assert.equal(await status(), "pending");
  worker.report({ kind: "connected", tookMs: 412.3 });
  assert.equal(await status(), "processing");
  assert.deepEqual(payloads(await eventsOf(test, runId), "publisher_connected"), [
    { session_id: sessionId, connect_ms: 412, pipeline_generation: 1 },
  ]);
  await test.restart();
  assert.equal(await status(), "failed");
});

Deno.test("what a session is watched with reaches its Worker whole", async () => {
  await using test = await startLive({ SERVICE_GATE_KEEPALIVE_EVERY_FRAMES: "7" });
  const { worker } = await publish(test, { attach: { restricted_zone: DOCK_ZONE, crop: DOCK_ZONE.region } });
  const { settings } = worker;
  assert.equal(settings.generation, 1);
  assert.equal(settings.windowSize, 16);
  assert.equal(settings.gateThresholds.keepaliveEveryFrames, 7);
  assert.deepEqual(settings.zone, DOCK_ZONE);
  assert.deepEqual(settings.crop, DOCK_ZONE.region);
  assert.equal(settings.trigger, null);
  assert.equal(settings.wantsKeyframes, true);
  assert.equal(settings.wantsAudio, false);
  assert.deepEqual(settings.maxFrame, { width: 1920, height: 1080 });
  const clip = await publish(test, {
    attach: { clip_mode: { target_fps: 10, clip_length_seconds: 1, delay_seconds: 0 } },
  });
  assert.deepEqual(clip.worker.settings.clip, { targetFps: 10, clipSeconds: 1, delaySeconds: 0 });
  assert.equal(clip.worker.settings.wantsKeyframes, false);
  assert.equal(clip.worker.settings.generation, 2);
});

Deno.test("the server's crop, zone and patience hold for sessions that bring none, and a zone of their own replaces it", async () => {
  const backendFile = `[restricted_zone]
policy_id = "night"
policy_version = 2
device_id = "cam-07"
enter_motion_score = 0.2
exit_motion_score = 0.05
enter_after_frames = 3
exit_after_frames = 5
[restricted_zone.region]
x = 0.1
y = 0.1
width = 0.5
height = 0.5
`;
  await using test = await startLive({}, { backendFile });
  assert.equal((await publish(test)).worker.settings.zone?.policy_id, "night");
  const own = await publish(test, { attach: { restricted_zone: DOCK_ZONE } });
  assert.equal(own.worker.settings.zone?.policy_id, "dock");
  assert.equal((await offer(test, { attach: { clip_mode: {} } })).status, 400);

  await using impatient = await startLive({ SERVICE_WEBRTC_MEDIA_IDLE_SECS: "5" });
  assert.equal((await publish(impatient)).worker.settings.mediaIdleMs, 5_000);

  await using cropped = await startLive({ SERVICE_WEBRTC_CROP: "0,0,0.5,1" });
  assert.deepEqual((await publish(cropped)).worker.settings.crop, { x: 0, y: 0, width: 0.5, height: 1 });
  const crop = { x: 0.5, y: 0, width: 0.5, height: 1 };
  assert.deepEqual((await publish(cropped, { attach: { crop } })).worker.settings.crop, crop);
});

const WRONG_OFFERS: readonly [string, number, Publishing][] = [
  ["an empty body", 400, { offer: "" }],
  ["a blank body", 400, { offer: " \r\n\t" }],
  ["bytes that are not UTF-8", 400, { offer: Uint8Array.of(0x76, 0x3d, 0xff, 0xfe) }],
  ["text that is no SDP", 400, { offer: "hello" }],
  ["SDP without a section", 400, { offer: "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" }],
  ["no fingerprint", 400, { offer: offerText().replace(/a=fingerprint.*\r\n/g, "") }],
  ["two videos", 415, { offer: offerText({ video: [["VP8"], ["VP8"]] }) }],
  ["a codec that nobody decodes", 415, { offer: offerText({ video: [["FLV"]] }) }],
  ["neither picture nor sound that is served", 415, {
    offer: offerText({ video: [["H266"]], audio: false }),
  }],
  ["attach: padded base64", 400, { attach: "e30=" }],
  ["attach: no base64url", 400, { attach: "{}" }],
  ["attach: no JSON", 400, { attach: new TextEncoder().encode("{").toBase64({ omitPadding: true }) }],
  ["attach: an array", 400, { attach: [] }],
  ["attach: an unknown field", 400, { attach: { prompts: "x" } }],
  ["attach: a text as cap", 400, { attach: { token_cap: "1" } }],
  ["attach: too long", 400, { attach: { prompt: "x".repeat(8192) } }],
  ["attach: crop beyond the picture", 400, { attach: { crop: { x: 0.5, y: 0, width: 0.6, height: 1 } } }],
  ["attach: a zone whose exit is not below its enter", 400, {
    attach: { restricted_zone: { ...DOCK_ZONE, exit_motion_score: 0.6 } },
  }],
  ["attach: version 0", 400, { attach: { restricted_zone: { ...DOCK_ZONE, policy_version: 0 } } }],
  ["attach: zone and clips", 400, { attach: { restricted_zone: DOCK_ZONE, clip_mode: {} } }],
  ["attach: trigger and clips", 400, { attach: { trigger_program: dockProgram(), clip_mode: {} } }],
  ["attach: zone and trigger", 400, {
    attach: { restricted_zone: DOCK_ZONE, trigger_program: dockProgram() },
  }],
  ["attach: a crop that is not the zone's", 400, {
    attach: { restricted_zone: DOCK_ZONE, crop: { ...DOCK_ZONE.region, x: 0.11 } },
  }],
  ["attach: two frames a clip", 400, { attach: { clip_mode: { target_fps: 4, clip_length_seconds: 0.5 } } }],
  ["attach: a trigger that needs a socket", 400, {
    attach: {
      trigger_program: {
        ...dockProgram(),
        instructions: dockProgram().instructions.toSpliced(6, 0, { op: "notify", channel: "local_output" })
          .with(3, { op: "jump_if_false", target: 7 }),
      },
    },
  }],
  ["attach: a trigger of objects", 400, {
    attach: {
      trigger_program: {
        ...dockProgram(),
        instructions: dockProgram().instructions.with(0, {
          op: "load",
          signal: { kind: "object_count", label: "person", zone: null },
        }),
      },
    },
  }],
  ["local audio without a sidecar", 503, { attach: { local_audio: {} } }],
];

Deno.test("an offer that cannot be served is refused in plain text, and leaves no run and no session", async () => {
  await using test = await startLive({ SERVICE_ACTIVE_STREAM_LIMIT: "1" });
  for (const [what, status, publishing] of WRONG_OFFERS) {
    const answer = await offer(test, publishing);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    assert.match(answer.headers.get("content-type")!, /^text\/plain/, what);
    assert.notEqual(answer.text, "", what);
    assert.equal(answer.headers.get("location"), null, what);
  }
  assert.deepEqual(await runsOf(test), []);
  assert.equal(test.workers.sessions.length, 0);
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
  // All of them but the one that is no text used a generation.
  assert.equal((await publish(test)).worker.settings.generation, WRONG_OFFERS.length);
});

Deno.test("no refusal repeats the prompt", async () => {
  await using test = await startLive();
  const { text } = await offer(test, { attach: { prompt: "the secret words", token_cap: -1 } });
  assert.doesNotMatch(text, /secret/);
});

Deno.test("of several faults the one that is checked first is reported", async () => {
  await using test = await startLive({
    SERVICE_ACTIVE_STREAM_LIMIT: "1",
    SERVICE_MEDIA_WORKER_THREAD_BUDGET: "4",
  });
  const attachSyntax = "!";
  const attachRule = { token_cap: 1, max_output_tokens_per_second: 2, local_audio: {} };
  const check = async (expected: number, publishing: Publishing, why: string) =>
    assert.equal((await offer(test, publishing)).status, expected, why);
  await check(400, { offer: "", attach: attachSyntax }, "body before attach syntax");
  await check(400, { offer: "hello", attach: attachSyntax }, "attach syntax before SDP");
  await check(400, { offer: "hello", attach: attachRule }, "SDP before attach rules");
  await check(400, { attach: attachRule }, "attach rules before the sidecar");
  await publish(test);
  await check(503, { attach: { local_audio: {} } }, "the sidecar before the stream limit");
  await check(409, {}, "the stream limit before capacity");
  await check(503, { key: KEY_B }, "capacity of all principals together");
});

Deno.test("the limit of active runs is one for all runs of a principal", async () => {
  await using test = await startLive({ SERVICE_ACTIVE_STREAM_LIMIT: "2" });
  await test.call("POST", "/v1/runs", {});
  const first = await publish(test);
  const refused = await offer(test);
  assert.equal(refused.status, 409);
  assert.match(refused.text, /2\/2\. End or delete one of them, or raise SERVICE_ACTIVE_STREAM_LIMIT$/);
  assert.equal((await runsOf(test)).length, 2);
  assert.equal((await deleteSession(test, first)).status, 200);
  await publish(test);
});

Deno.test("of two offers at once that fit one place, one is served and nothing is left of the other", async () => {
  await using test = await startLive({ SERVICE_ACTIVE_STREAM_LIMIT: "1" });
  const statuses = (await Promise.all([offer(test), offer(test)])).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, 409]);
  assert.equal((await runsOf(test)).length, 1);
  assert.equal(await metric(test, "service_pipeline_generations_active"), 1);
});

Deno.test("an offer that its Worker refuses, or does not survive, leaves nothing", async () => {
  const ends: [number, Parameters<typeof startLive>[1]][] = [
    [500, { workers: { onOpen: (s) => s.report({ kind: "refused", message: "no" }) } }],
    [503, {
      workers: {
        onOpen: (s) => {
          s.report({ kind: "ended", cause: "worker_fault", message: "it died" });
          s.report({ kind: "closed" });
        },
      },
    }],
    [503, { workers: { onOpen: () => {} }, timerSpeed: 100 }],
  ];
  for (const [status, options] of ends) {
    await using test = await startLive({}, options);
    assert.equal((await offer(test)).status, status);
    assert.deepEqual(await runsOf(test), []);
    assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
    assert.equal(await metric(test, "service_pipeline_generations_active"), 0);
  }
});

/** What a proxy on this machine says of its caller, and whether that one is on this machine as well. */
const FORWARDED: readonly (readonly [Record<string, string>, boolean])[] = [
  [{}, true],
  [{ "x-forwarded-for": "127.0.0.1" }, true],
  [{ "x-forwarded-for": "::1, ::ffff:127.0.0.1" }, true],
  [{ "x-real-ip": "127.0.0.1", "x-forwarded-proto": "https" }, true],
  [{ forwarded: 'for=127.0.0.1;proto=http;by=192.0.2.1, for="[::1]:4711"' }, true],
  [{ "x-forwarded-for": "203.0.113.9" }, false],
  [{ "x-forwarded-for": "127.0.0.1, 203.0.113.9" }, false],
  [{ "x-forwarded-for": "127.0.0.1", "x-real-ip": "203.0.113.9" }, false],
  [{ "x-forwarded-for": "" }, false],
  [{ forwarded: 'host=a;for="[2001:db8::9]"' }, false],
  [{ forwarded: "for=unknown" }, false],
];

Deno.test("the Worker is told whether the caller of an offer, of candidates and of a restart is on loopback", async () => {
  await using test = await startLive();
  for (const [headers, isOnLoopback] of FORWARDED) {
    const session = await publish(test, { headers });
    const { opening } = session.worker;
    assert.ok(opening.kind === "offer");
    assert.equal(opening.isOnLoopback, isOnLoopback, JSON.stringify(headers));
    assert.equal((await trickle(test, session, "candidate:x", { headers })).status, 204);
    const restarting = trickle(test, session, "a=ice-ufrag:efgh", { headers, ifMatch: "*" });
    await until("asked", () => session.worker.orders.some(({ kind }) => kind === "restart_ice"));
    session.worker.report({ kind: "ice_restarted", orderId: 1, fragment: "" });
    assert.equal((await restarting).status, 200);
    const told = session.worker.orders.flatMap((order) =>
      order.kind === "candidate" || order.kind === "restart_ice" ? [order.isOnLoopback] : []
    );
    assert.deepEqual(told, [isOnLoopback, isOnLoopback], JSON.stringify(headers));
    await deleteSession(test, session);
  }
  // Without a connection the address is unknown.
  const headers = { "x-api-key": KEY_A, "content-type": "application/sdp" };
  const init = { method: "POST", headers, body: offerText() };
  assert.equal((await test.service.respond(new Request(`${test.url}${WHIP}`, init))).status, 201);
  const { opening } = test.workers.last;
  assert.ok(opening.kind === "offer" && !opening.isOnLoopback);
});

Deno.test("candidates and fragments go to the Worker as they are, whatever they say", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const bodies = [
    "candidate:1 1 udp 2130706431 192.0.2.1 3478 typ host",
    "a=candidate:1 1 udp 2130706431 192.0.2.1 3478 typ host\r\n",
    "a=ice-ufrag:abcd\r\na=ice-pwd:x\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=end-of-candidates\r\n",
    "nonsense",
    "",
  ];
  for (const body of bodies) {
    const { status, text } = await trickle(test, session, body);
    assert.deepEqual([status, text], [204, ""], body);
  }
  const sent = session.worker.orders.flatMap((order) => order.kind === "candidate" ? [order.fragment] : []);
  assert.deepEqual(sent, bodies);
  assert.equal((await trickle(test, session, Uint8Array.of(0xff))).status, 400);
});

Deno.test("ICE is restarted with If-Match: *, and fragments of before are turned away", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const candidate = "a=candidate:1 1 udp 1 192.0.2.1 9 typ host";
  assert.equal((await trickle(test, session, candidate, { ifMatch: session.etag })).status, 204);
  assert.equal((await trickle(test, session, candidate, { ifMatch: '"other"' })).status, 412);

  const answered = (fragment: string | null) => async () => {
    await until("asked", () => session.worker.orders.at(-1)?.kind === "restart_ice");
    const order = session.worker.orders.at(-1)!;
    assert.ok(order.kind === "restart_ice");
    session.worker.report({ kind: "ice_restarted", orderId: order.orderId, fragment });
  };
  const [restarted] = await Promise.all([
    trickle(test, session, "a=ice-ufrag:efgh\r\n", { ifMatch: "*" }),
    answered("a=ice-ufrag:ours\r\n")(),
  ]);
  assert.equal(restarted.status, 200);
  assert.equal(restarted.text, "a=ice-ufrag:ours\r\n");
  assert.equal(restarted.headers.get("content-type"), "application/trickle-ice-sdpfrag");
  const etag = restarted.headers.get("etag")!;
  assert.notEqual(etag, session.etag);
  assert.equal((await trickle(test, session, candidate, { ifMatch: session.etag })).status, 412);
  assert.equal((await trickle(test, session, candidate, { ifMatch: etag })).status, 204);
  session.worker.orders.length = 0;
  const [failed] = await Promise.all([
    trickle(test, session, "a=ice-ufrag:ijkl\r\n", { ifMatch: '"*"' }),
    answered(null)(),
  ]);
  assert.equal(failed.status, 422);
});

Deno.test("a session of somebody else reads like one that nobody has, except on the prompt route", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const unknown = { path: `${WHIP}/sess-0000000000000000` };
  for (const ask of [trickle, deleteSession] as const) {
    const foreign = await (ask === trickle
      ? trickle(test, session, "", { key: KEY_B })
      : deleteSession(test, session, KEY_B));
    const missing = await (ask === trickle
      ? trickle(test, unknown, "", { key: KEY_B })
      : deleteSession(test, unknown, KEY_B));
    assert.deepEqual([foreign.status, foreign.text], [404, "no such session"]);
    assert.deepEqual([missing.status, missing.text], [404, "no such session"]);
    assert.deepEqual([...foreign.headers.keys()], [...missing.headers.keys()]);
  }
  assert.equal((await prompt(test, session, { prompt: "x" }, KEY_B)).status, 403);
  assert.equal((await prompt(test, unknown, { prompt: "x" }, KEY_B)).status, 404);
  assert.equal((await deleteSession(test, session, null)).status, 401);
  assert.equal(session.worker.isAskedToClose, false);
});

Deno.test("an offer or a fragment of more than 64 KiB is turned away before it is read", async () => {
  await using test = await startLive();
  const padding = "a=x-padding:1\r\n".repeat(65_536 / 15);
  const large = await offer(test, { offer: offerText() + padding });
  assert.equal(large.status, 413);
  const session = await publish(test);
  assert.equal((await trickle(test, session, padding + padding)).status, 413);
  assert.equal(session.worker.orders.length, 0);
});

Deno.test("a session is ended once, and its end may be asked for again for ten minutes", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const { status, text } = await deleteSession(test, session);
  assert.deepEqual([status, text], [200, ""]);
  assert.equal(session.worker.isAskedToClose, true);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "run_completed"]);
  assert.deepEqual(payloads(events, "run_completed"), [
    { source: "whip", session_id: session.sessionId, reason: "whip_terminated" },
  ]);
  assert.equal((await deleteSession(test, session)).status, 200);
  assert.equal((await deleteSession(test, session, KEY_B)).status, 404);
  assert.equal((await trickle(test, session, "")).status, 404);
  assert.equal((await prompt(test, session, { prompt: "x" })).status, 404);
  test.advance(599_000);
  assert.equal((await deleteSession(test, session)).status, 200);
  test.advance(2_000);
  assert.equal((await deleteSession(test, session)).status, 404);
  assert.equal((await eventsOf(test, session.runId)).length, 2);
});

Deno.test("a prompt is applied from the next picture on, and an empty one brings the built-in one back", async () => {
  await using model = startModelServer({ answer: () => "A quiet yard." });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { prompt: "Count the crates." } });
  const asked = async () => {
    const count = model.requests.length;
    session.worker.picture(count);
    await until("asked", () => model.requests.length > count);
    await until("acknowledged", () => session.worker.acknowledged.pictures > count);
    return model.requests.at(-1)!;
  };
  const schema = { type: "object", properties: { crates: { type: "integer" } } };
  assert.match((await asked()).prompt, /^Count the crates\./);
  const changed = await prompt(test, session, { prompt: "Count the doors.", output_schema: schema });
  assert.equal(changed.status, 200);
  assert.deepEqual(changed.json, {
    session_id: session.sessionId,
    prompt: "Count the doors.",
    output_schema: schema,
  });
  const structured = await asked();
  assert.match(structured.prompt, /^Count the doors\./);
  assert.deepEqual(structured.schema?.schema, schema);
  assert.equal(structured.maxTokens, 1024);
  const emptied = await prompt(test, session, { prompt: "" });
  assert.deepEqual(emptied.json, { session_id: session.sessionId, prompt: "", output_schema: null });
  const builtIn = await asked();
  assert.doesNotMatch(builtIn.prompt, /doors|crates/);
  assert.equal(builtIn.schema, null);
  assert.equal(builtIn.maxTokens, 128);
});

Deno.test("a prompt that the busy model keeps waiting for two seconds is 503 and dropped", async () => {
  const released = Promise.withResolvers<void>();
  await using model = startModelServer({
    answer: async ({ index }) => {
      if (index === 0) await released.promise;
      return "A door.";
    },
  });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url }, { timerSpeed: 2 });
  const session = await publish(test, { attach: { max_output_tokens_per_second: 0 } });
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.equal((await prompt(test, session, { prompt: "Too late." })).status, 503);
  released.resolve();
  await until("answered", () => session.worker.acknowledged.pictures === 1);
  session.worker.picture(1);
  await until("asked again", () => model.requests.length === 2);
  assert.doesNotMatch(model.requests[1]!.prompt, /Too late/);
});

Deno.test("a body that is no prompt is turned away before the session is looked for", async () => {
  await using test = await startLive();
  const session = await publish(test);
  assert.equal((await prompt(test, session, "{")).status, 400);
  assert.equal((await prompt(test, session, { prompts: "x" })).status, 422);
  assert.equal((await prompt(test, session, { prompt: 1 })).status, 422);
  const schema = await prompt(test, session, { prompt: null, output_schema: [] });
  assert.deepEqual([schema.status, schema.json.error.details[0].field], [422, "output_schema"]);
  const plain = await test.send(`${session.path}/prompt`, {
    method: "PATCH",
    headers: { "x-api-key": KEY_A, "content-type": "text/plain" },
    body: "{}",
  });
  assert.equal(plain.status, 415);
  assert.equal((await prompt(test, { path: `${WHIP}/sess-0000000000000000` }, "{")).status, 400);
});

Deno.test("a change without a prompt, or with a field that is unknown, changes nothing", async () => {
  await using model = startModelServer();
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { prompt: "Watch the gate.", token_cap: 0 } });
  const faults: [unknown, string][] = [
    [{}, "prompt"],
    [{ output_schema: { type: "object" } }, "prompt"],
    [{ prompt: "Watch the door.", outputSchema: {} }, "outputSchema"],
    [{ prompt: "Watch the door.", model: "x" }, "model"],
  ];
  for (const [body, field] of faults) {
    const { status, json } = await prompt(test, session, body);
    assert.equal(status, 422);
    assert.deepEqual(json.error.details.map((fault: { field: string }) => fault.field), [field]);
  }
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the gate\./);
  assert.equal(model.requests[0]!.schema, null);
  const reset = await prompt(test, session, { prompt: null });
  assert.deepEqual(reset.json, { session_id: session.sessionId, prompt: null, output_schema: null });
});

Deno.test("a publisher that only has a bearer key publishes, and asks before what it may post and trickle", async () => {
  await using test = await startLive();
  for (const path of [WHIP, `${WHIP}/sess-0000000000000000`]) {
    const { status, headers, text } = await test.send(path, { method: "OPTIONS" });
    assert.equal(status, 204);
    assert.equal(text, "");
    assert.equal(headers.get("accept-post"), "application/sdp");
    assert.ok(headers.get("access-control-allow-methods")!.split(",").includes("PATCH"));
  }
  assert.equal((await test.send(`${WHIP}/a/prompt`, { method: "OPTIONS" })).status, 401);
  const bearer = { authorization: `Bearer ${KEY_A}` };
  const accepted = await offer(test, { key: null, headers: bearer });
  assert.equal(accepted.status, 201, accepted.text);
  const path = accepted.headers.get("location")!;
  assert.equal((await test.send(path, { method: "PATCH", headers: bearer, body: "" })).status, 204);
  assert.equal((await test.send(path, { method: "DELETE", headers: bearer })).status, 200);
});

Deno.test("a browser of a listed origin may publish and read what it is answered", async () => {
  await using test = await startLive({ SERVICE_CORS_ALLOWED_ORIGINS: "https://ui.example.org" });
  const headers = { origin: "https://ui.example.org" };
  const { headers: answered } = await offer(test, { headers });
  assert.equal(answered.get("access-control-allow-origin"), "https://ui.example.org");
  const exposed = answered.get("access-control-expose-headers")!.split(",");
  for (const name of ["location", "link", "etag", "x-service-run-id"]) {
    assert.ok(exposed.includes(name), name);
  }
  const preflight = await test.send(`${WHIP}/sess-0000000000000000`, {
    method: "OPTIONS",
    headers: { ...headers, "access-control-request-method": "PATCH" },
  });
  assert.equal(preflight.status, 204);
  const allowed = preflight.headers.get("access-control-allow-headers")!.split(",");
  for (const name of ["content-type", "x-api-key", "authorization", "x-attach-config", "if-match", "etag"]) {
    assert.ok(allowed.includes(name), name);
  }
  const refused = await offer(test, { offer: "", headers });
  assert.equal(refused.headers.get("access-control-allow-origin"), "https://ui.example.org");
});

Deno.test("a hundred sessions are the most that a process has", async () => {
  await using test = await startLive({
    SERVICE_API_KEYS: KEY_A, // the only principal may have all of them
    SERVICE_ACTIVE_STREAM_LIMIT: "1024",
    SERVICE_MEDIA_MEMORY_BUDGET_BYTES: String(2 ** 40),
    SERVICE_MEDIA_WORKER_THREAD_BUDGET: "4096",
  });
  const sessions = await Promise.all(Array.from({ length: 100 }, () => publish(test)));
  assert.equal(new Set(sessions.map(({ sessionId }) => sessionId)).size, 100);
  assert.equal((await offer(test)).status, 503);
  assert.equal((await runsOf(test)).length, 100);
  assert.equal((await deleteSession(test, sessions[0]!)).status, 200);
  assert.equal((await offer(test)).status, 201);
});

Deno.test("an audio-only offer is accepted", async () => {
  await using test = await startLive();
  const { worker } = await publish(test, { offer: offerText({ video: [] }) });
  assert.deepEqual(worker.settings.maxFrame, { width: 0, height: 0 });
});
