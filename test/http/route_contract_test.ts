/** The rows of fixtures/contract/routes.json: who may call each route, which bodies it takes, and that it can
 * succeed.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { Blobs } from "../../src/store/media/blobs.ts";
import { CONTRACT, type RouteRow } from "../house/contract.ts";
import { faultOfAnswer, statusesOf } from "../support/http/route_contract.ts";
import { deleteSession, type LiveTest, offer, publish, startLive, trickle } from "../support/live/live.ts";
import { RECORDED_MS, recordSource } from "../support/live/recorded_source.ts";
import { serveRtsp } from "../support/live/rtsp_server.ts";
import { makeClip, TempFolder } from "../support/media.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { SEEN } from "../support/models/reason.ts";
import {
  type Answer,
  CLIPS,
  KEY_A,
  MODEL,
  newRun,
  startService,
  type TestService,
} from "../support/service.ts";
import { until } from "../support/until.ts";

const CLIP = join(CLIPS, "intel_bottle.mp4");
const IDS: Readonly<Record<string, string>> = {
  webhook_id: `wh_${"0".repeat(24)}`,
  revision: "1",
  sess: "sess-0000000000000000",
  filename: "film.mp4",
  sha256: "f".repeat(64),
  name: "cloudevent.schema.json",
  file: "page.css",
  segment: "20261124T101500000Z",
};

const nameOf = ({ method, path }: RouteRow) => `${method} ${path}`;

/** The path of a row with a run that there is, and with identifiers of the right form for all else. */
function pathOf({ path }: RouteRow, runId: string): string {
  return path.replace(":id", runId).replaceAll(/:(\w+)/g, (_, name) => IDS[name]!);
}

/** The status of a request whose body is not read. */
async function statusOf(test: TestService, path: string, init: RequestInit): Promise<number> {
  const response = await fetch(`${test.url}${path}`, { redirect: "manual", ...init });
  await response.body?.cancel();
  return response.status;
}

Deno.test("without a key only the routes that say so are served", async () => {
  await using guarded = await startService();
  const runId = await newRun(guarded);
  for (const row of CONTRACT.routes) {
    const status = await statusOf(guarded, pathOf(row, runId), { method: row.method });
    assert.equal(status === 401, row.auth !== "none", `${nameOf(row)}: ${status}`);
  }
  await using open = await startService({
    SERVICE_REQUIRE_API_KEY: "false",
    SERVICE_METRICS_REQUIRE_API_KEY: "true",
  });
  for (const row of CONTRACT.routes) {
    const status = await statusOf(open, pathOf(row, runId), { method: row.method });
    assert.equal(status === 401, row.auth === "metrics", `${nameOf(row)}: ${status}`);
  }
});

Deno.test("each route takes the body that its row names, and no other", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  /** Per kind of body: content type, body, status; a status of null is none of the refusals of a body. */
  const cases: Readonly<Record<RouteRow["body"], readonly (readonly [string, string, number | null])[]>> = {
    json: [["text/plain", "{}", 415], ["application/json", "{", 400], ["application/json", "[7]", 422]],
    multipart: [["application/json", "{}", 415], ["multipart/form-data", "--x--", 400]],
    sdp: [["application/sdp", " \r\n", 400], ["application/json", "\n", 400]],
    text: [["application/trickle-ice-sdpfrag", "", 404], ["text/plain", "a=candidate:1", 404]],
    none: [["text/plain", "{", null], ["application/json", "{", null]],
  };
  for (const row of CONTRACT.routes.filter(({ method }) => method !== "GET")) {
    for (const [type, body, expected] of cases[row.body]) {
      const status = await statusOf(test, pathOf(row, runId), {
        method: row.method,
        headers: { "x-api-key": KEY_A, "content-type": type },
        body,
      });
      const label = `${nameOf(row)} with ${JSON.stringify(body)} as ${type}: ${status}`;
      if (expected === null) assert.ok(![400, 413, 415].includes(status), label);
      else assert.equal(status, expected, label);
    }
  }
});

Deno.test("a route whose JSON has no required field takes no body, and every other route refuses none", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const rows = CONTRACT.routes.filter(({ body, path }) =>
    body === "json" && path !== "/v1/runs/:id/policies"
  );
  const description = (await test.call("GET", "/openapi.json")).json;
  let withoutBody = 0;
  for (const row of rows) {
    const at = row.path.replaceAll(/:(\w+)/g, "{$1}");
    const { requestBody } = description.paths[at][row.method.toLowerCase()];
    const headers = { "x-api-key": KEY_A };
    const call = (init: RequestInit) => statusOf(test, pathOf(row, runId), { method: row.method, ...init });
    const expected = requestBody.required ? 415 : await call({
      body: "{}",
      headers: { ...headers, "content-type": "application/json" },
    });
    withoutBody += requestBody.required ? 0 : 1;
    assert.notEqual(expected, 400, nameOf(row));
    assert.equal(await call({ headers }), expected, nameOf(row));
    const other = { ...headers, "content-type": "application/x-www-form-urlencoded" };
    assert.equal(await call({ headers: other, body: "" }), expected, nameOf(row));
    assert.equal(await call({ headers: other, body: "mode=x" }), 415, nameOf(row));
    assert.equal(await call({ headers, body: new TextEncoder().encode("{}") }), 415, nameOf(row));
  }
  assert.ok(withoutBody >= 4, `${withoutBody}`);
});

/**
 * Makes one request for each row, in an order in which each finds what it needs; the answer must have the
 * row's status.
 */
async function callAll(
  test: LiveTest,
  camera: string,
  check: (route: string, answer: Promise<Pick<Answer, "status" | "text">>) => Promise<Answer>,
): Promise<void> {
  const get = (route: string, path: string) => check(`GET ${route}`, test.call("GET", path));
  const post = (route: string, path: string, body: unknown = {}) =>
    check(`POST ${route}`, test.call("POST", path, body));
  const remove = (route: string, path: string) => check(`DELETE ${route}`, test.call("DELETE", path));

  const runId: string = (await post("/v1/runs", "/v1/runs")).json.run_id;
  const run = `/v1/runs/${runId}`;
  await get("/v1/runs", "/v1/runs");
  await get("/v1/runs/:id", run);
  await post("/v1/runs/:id/ingest", `${run}/ingest`, { source_uri: CLIP, max_frames: 5 });
  await post("/v1/runs/:id/analyze", `${run}/analyze`, { model: MODEL });
  const reasoned = await newRun(test);
  await post("/v1/runs/:id/reason", `/v1/runs/${reasoned}/reason`, {
    ...{ source_uri: CLIP, model: MODEL, max_frames: 5 },
  });
  await check("POST /v1/runs/:id/keepalive", test.call("POST", `${run}/keepalive`));
  await check("POST /v1/runs/:id/hold", test.call("POST", `${run}/hold`));
  await remove("/v1/runs/:id/hold", `${run}/hold`);
  for (const tail of ["events", "markers", "state", "interactions"]) {
    await get(`/v1/runs/:id/${tail}`, `${run}/${tail}`);
  }
  await streamed(test, run, check);
  await post("/v1/runs/:id/feedback", `${run}/feedback`, {
    rating: 8,
    category: "accuracy",
    feedback: "good",
  });
  await get("/v1/feedback", "/v1/feedback");
  await blobs(test, runId, get);

  const hook = { url: "https://1.1.1.1/hook" };
  const { webhook_id } = (await post("/v1/runs/:id/webhooks", `${run}/webhooks`, hook)).json;
  await get("/v1/runs/:id/webhooks", `${run}/webhooks`);
  await get("/v1/webhooks", "/v1/webhooks");
  await post("/v1/runs/:id/webhooks/:webhook_id/redeliver", `${run}/webhooks/${webhook_id}/redeliver`);
  await deliveries(test, `${run}/webhooks/${webhook_id}/deliveries`, get);
  await remove("/v1/runs/:id/webhooks/:webhook_id", `${run}/webhooks/${webhook_id}`);

  const policy = async (parent: number | null) => {
    const { revision } =
      (await post("/v1/runs/:id/policies", `${run}/policies`, { prompt: "Look.", parent_revision: parent }))
        .json.policy;
    for (const stage of ["shadow", "canary", "active"]) {
      await post("/v1/runs/:id/policies/:revision/activate", `${run}/policies/${revision}/activate`, {
        stage,
      });
    }
    return revision as number;
  };
  const parent = await policy(null);
  const first = `${run}/policies/${parent}`;
  await get("/v1/runs/:id/policies", `${run}/policies`);
  await get("/v1/runs/:id/policies/:revision", first);
  await post("/v1/runs/:id/policies/:revision/replay", `${first}/replay`);
  await policy(parent);
  await post("/v1/runs/:id/policies/:revision/rollback", `${first}/rollback`);

  const source = "trigger a version 1\nwhen motion_score >= 0.5\nemit b\nend";
  const { program } = (await post("/v1/triggers/compile", "/v1/triggers/compile", { source })).json;
  await post("/v1/triggers/validate", "/v1/triggers/validate", program);
  await post("/v1/triggers/evaluate", "/v1/triggers/evaluate", {
    program,
    samples: [{ pts_ms: 0, motion_score: 1 }],
  });
  await post("/v1/runs/:id/triggers/evaluate", `${run}/triggers/evaluate`, { program });
  await post("/v1/query", "/v1/query", { run_id: runId });
  await post("/v1/search", "/v1/search", { query: "rabbit" });
  const question = { model: MODEL, prompt: "What is this?" };
  await post("/v1/infer", "/v1/infer", question);
  await post("/v1/infer/batch", "/v1/infer/batch", { requests: [question] });
  await get("/v1/models", "/v1/models");

  const whip = "/v1/stream/whip";
  await check(`POST ${whip}`, offer(test));
  const session = await publish(test);
  await check(
    `PATCH ${whip}/:sess`,
    trickle(test, session, "a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n"),
  );
  await check(
    `PATCH ${whip}/:sess/prompt`,
    test.call("PATCH", `${session.path}/prompt`, { prompt: "Look." }),
  );
  await check(`DELETE ${whip}/:sess`, deleteSession(test, session));
  const watching = await newRun(test);
  await post("/v1/runs/:id/live", `/v1/runs/${watching}/live`, { source_uri: camera });
  await get("/v1/live", "/v1/live");
  await get("/v1/sources", "/v1/sources");
  await post("/v1/sources/:name/disarm", "/v1/sources/gate/disarm", { for_seconds: 3600 });
  await post("/v1/sources/:name/arm", "/v1/sources/gate/arm");
  await recordSource(test.dataDir, "dock");
  const recordings = await get("/v1/sources/:name/recordings", "/v1/sources/dock/recordings");
  const [{ segment_id }] = recordings.json.segments;
  await get("/v1/sources/:name/recordings/:segment", `/v1/sources/dock/recordings/${segment_id}`);
  const range = `from=${RECORDED_MS}&to=${RECORDED_MS + 1_000}`;
  await get("/v1/sources/:name/recordings/export", `/v1/sources/dock/recordings/export?${range}`);
  await get("/v1/runs/:id/live", `/v1/runs/${watching}/live`);
  await get("/v1/runs/:id/snapshot.jpg", `/v1/runs/${watching}/snapshot.jpg`);
  await get("/v1/runs/:id/live.mp4", `/v1/runs/${watching}/live.mp4`);
  await remove("/v1/runs/:id/live", `/v1/runs/${watching}/live`);
  const named = { source_uri: "source:dock" };
  assert.equal((await test.call("POST", `/v1/runs/${await newRun(test)}/live`, named)).status, 200);
  await get("/v1/sources/:name/live.mp4", "/v1/sources/dock/live.mp4");

  const form = new FormData();
  form.append("file", new File([Deno.readFileSync(CLIP)], "film.mp4"));
  const headers = { "x-api-key": KEY_A };
  const { file_path } =
    (await check("POST /v1/upload", test.send("/v1/upload", { method: "POST", headers, body: form }))).json;
  await get("/v1/files/:filename", `/v1/files/${file_path.split("/").pop()}`);
  await remove("/v1/files/:filename", `/v1/files/${file_path.split("/").pop()}`);
  await get("/v1/health", "/v1/health");
  await get("/v1/system", "/v1/system");
  await get("/v1/system/health", "/v1/system/health");
  await get("/v1/system/retention", "/v1/system/retention");
  await get("/v1/metrics", "/v1/metrics");
  await get("/schemas/:name", `/schemas/${IDS.name}`);
  await get("/openapi.json", "/openapi.json");
  const page = await get("/docs", "/docs");
  await get("/docs/:file", `/${/docs\/page\.\w+\.css/.exec(page.text)![0]}`);
  const consolePage = await get("/console/", "/console/");
  await get("/console/:file", `/console/${/main\.\w+\.css/.exec(consolePage.text)![0]}`);
  const asBrowser = { headers: { accept: "text/html" }, redirect: "manual" } as const;
  await check("GET /console", test.send("/console", asBrowser));
  await check("GET /", test.send("/", asBrowser));
  await get("/v1/runs/:id/signals", `${run}/signals?points=16`);
  await check("POST /v1/runs/:id/stop", test.call("POST", `${run}/stop`));
  await remove("/v1/runs/:id", run);
}

/** An event that could not be delivered. */
async function deliveries(
  test: TestService,
  path: string,
  get: (route: string, path: string) => Promise<unknown>,
): Promise<void> {
  const run = path.replace(/\/webhooks.*/, "");
  assert.equal((await test.call("POST", `${run}/keepalive`)).status, 200);
  const { json: { events } } = await test.call("GET", `${run}/events`);
  const { seq } = events.at(-1);
  await until(async () => {
    const [{ retry, last_terminal_seq }] = (await test.call("GET", `${run}/webhooks`)).json.webhooks;
    return retry !== null || last_terminal_seq >= seq;
  });
  const route = "/v1/runs/:id/webhooks/:webhook_id/deliveries";
  await get(route, path);
  await get(`${route}/:seq`, `${path}/${seq}`);
}

async function streamed(
  test: TestService,
  run: string,
  check: (route: string, answer: Promise<{ status: number; text: string }>) => Promise<unknown>,
): Promise<void> {
  const response = await fetch(`${test.url}${run}/events/stream`, {
    headers: { "x-api-key": KEY_A },
  });
  await check("GET /v1/runs/:id/events/stream", Promise.resolve({ status: response.status, text: "" }));
  await response.body?.cancel();
}

/** A picture and a clip that the run's timeline names. */
async function blobs(
  test: TestService,
  runId: string,
  get: (route: string, path: string) => Promise<unknown>,
): Promise<void> {
  const store = Blobs.open(test.dataDir, realWorld(quietLog()));
  const image = await store.put(new TextEncoder().encode("a picture"), "jpeg");
  const media = await store.put(new TextEncoder().encode("a clip"), "mp4");
  const imageFields = {
    ...{ image_ref: image.ref, image_sha256: image.sha256 },
    ...{ image_bytes: image.sizeBytes, image_media_type: image.mediaType },
  };
  const mediaFields = {
    ...{ media_ref: media.ref, media_sha256: media.sha256 },
    ...{ media_bytes: media.sizeBytes, media_type: media.mediaType },
  };
  test.service.timeline.commit(() => [
    { kind: "keyframe_stored", runId, payload: imageFields },
    { kind: "multimodal_moment", runId, payload: { evidence: mediaFields } },
  ]);
  await get("/v1/runs/:id/keyframes/:sha256", `/v1/runs/${runId}/keyframes/${image.sha256}`);
  await get("/v1/runs/:id/media/:sha256", `/v1/runs/${runId}/media/${media.sha256}`);
}

Deno.test("every route answers a good request with the status of its row", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  await using camera = serveRtsp(Deno.readFileSync(clip), { isEndless: true });
  await using model = startModelServer({ answer: () => SEEN });
  await using test = await startLive({
    SERVICE_VLLM_BASE_URL: model.url,
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_ACTIVE_STREAM_LIMIT: "100",
  }, {
    outbound: {
      resolve: (host) =>
        host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
      reroute: () => "127.0.0.1",
    },
    sourcesFile: ["dock", "gate"].map((name) =>
      `[[sources]]\nname = "${name}"\nuri = "rtsp://${
        name === "dock" ? `camera.test:${camera.port}` : "nowhere.test"
      }/${name}"\n` +
      `principals = ["*"]\nlive = ${name === "gate"}\n`
    ).join(""),
  });
  const succeeded = new Set<string>();
  await callAll(test, `rtsp://camera.test:${camera.port}/dock`, async (route, asked) => {
    const answer = await asked;
    const row = CONTRACT.routes.find((row) => nameOf(row) === route);
    assert.ok(row, `no row of ${route}`);
    assert.equal(answer.status, row.success, `${route}: ${answer.text}`);
    succeeded.add(route);
    return answer as Answer;
  });
  assert.deepEqual(CONTRACT.routes.map(nameOf).filter((route) => !succeeded.has(route)), []);
});

Deno.test("an answer that a row does not have is a fault, as any test would notice", () => {
  const row = CONTRACT.routes.find((row) => nameOf(row) === "GET /v1/runs/:id")!;
  assert.deepEqual([...statusesOf(row)].toSorted(), [200, 401, 404, 414, 422, 429, 500]);
  assert.equal(faultOfAnswer("GET", "/v1/runs/run-1", 404), null);
  assert.match(faultOfAnswer("GET", "/v1/runs/run-1", 409)!, /^GET \/v1\/runs\/:id answered 409/);
  assert.equal(faultOfAnswer("GET", "/v1/nothing", 404), null, "no route, so no row");
});
