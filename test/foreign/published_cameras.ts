/** Named cameras of an RTSP server that programs publish to, made of the library of MediaMTX: what it serves,
 * how it asks, and what it survives.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { ForeignProgram } from "../support/foreign/foreign_program.ts";
import { type ForeignService, startForeignService } from "../support/foreign/foreign_service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { make, TempFolder } from "../support/media.ts";
import { payloads } from "../support/models/reason.ts";
import { KEY_A } from "../support/service.ts";
import { until } from "../support/until.ts";

const USER = "viewer";
const PASSWORD = "sesame-open-77";
const FILM_SECONDS = 100;

/** A film with a picture that changes, and a tone. */
function film(folder: string, encoder: "libx264" | "libx265"): string {
  return make(
    join(folder, `${encoder}.mp4`),
    ...["-f", "lavfi", "-i", `testsrc2=s=160x120:r=15:d=${FILM_SECONDS}`],
    ...["-f", "lavfi", "-i", `sine=duration=${FILM_SECONDS}`, "-c:a", "aac", "-pix_fmt", "yuv420p"],
    ...["-c:v", encoder, "-preset", "ultrafast", "-g", "15"],
    ...(encoder === "libx264" ? ["-bf", "2"] : ["-x265-params", "bframes=2:log-level=error:pools=1"]),
  );
}

/** ffmpeg, which sends the film to a path of the server by ANNOUNCE and RECORD until it is disposed. */
class Publisher implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;

  constructor(path: string, url: string) {
    this.#child = new Deno.Command("ffmpeg", {
      args: ["-v", "error", "-re", "-i", path, "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp", url],
      ...{ stdin: "null", stdout: "null", stderr: "null" },
    }).spawn();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // Its film is over.
    }
    await this.#child.status;
  }
}

function source(name: string, uri: string, more = ""): string {
  return `[[sources]]\nname = "${name}"\nuri = "${uri}"\nprincipals = ["*"]\nlive = true\n${more}\n`;
}

// deno-lint-ignore no-explicit-any -- as the answers of tests are
async function cameraOf({ call }: ForeignService, name: string): Promise<any> {
  const { json } = await call("GET", "/v1/sources");
  return json.sources.find((one: { name: string }) => one.name === name);
}

async function untilState(service: ForeignService, name: string, state: string) {
  let last: unknown;
  await until(`${name} is ${state}`, async () => {
    const camera = await cameraOf(service, name);
    last = camera;
    return camera.state === state;
  }).catch((error) => {
    throw new Error(`${name}: ${JSON.stringify(last)}`, { cause: error });
  });
  return await cameraOf(service, name);
}

const SHAPES: readonly {
  readonly name: string;
  readonly serve: Readonly<Record<string, unknown>>;
  readonly encoder?: "libx265";
}[] = [
  { name: "tcp", serve: {} },
  { name: "udp", serve: { udp: true } },
  { name: "rtsps", serve: { tls: true } },
  { name: "basic", serve: { auth: "basic" } },
  { name: "digest", serve: { auth: "digest" } },
  { name: "sha256", serve: { auth: "digest-sha256" } },
  { name: "hevc", serve: {}, encoder: "libx265" },
];

Deno.test(
  "cameras over TCP, UDP and RTSPS, with basic and digest passwords, of H.264 with B-frames and H.265, with AAC",
  LONG_TEST,
  async () => {
    await using open = new AsyncDisposableStack();
    const { path: folder } = open.use(new TempFolder());
    const films = { libx264: film(folder, "libx264"), libx265: film(folder, "libx265") };
    const lines: string[] = [];
    const servers = new Map<string, ForeignProgram>();
    for (const { name, serve, encoder = "libx264" } of SHAPES) {
      const server = open.use(new ForeignProgram("rtsp_server"));
      servers.set(name, server);
      const { port } = await server.order("serve", { user: USER, password: PASSWORD, ...serve });
      const scheme = serve.tls ? "rtsps" : "rtsp";
      open.use(new Publisher(films[encoder], `${scheme}://127.0.0.1:${port}/yard`));
      const user = serve.auth ? `${USER}:${PASSWORD}@` : "";
      lines.push(source(name, `${scheme}://${user}127.0.0.1:${port}/yard`, "recording = { hours = 1 }"));
    }
    const service = open.use(
      await startForeignService({ SERVICE_ALLOW_INSECURE_TLS: "true" }, lines.join("")),
    );
    for (const { name, serve, encoder } of SHAPES) {
      await untilState(service, name, "live");
      let segments: { codec: string; sound: string }[] = [];
      await until(`${name} is recorded`, async () => {
        segments = (await service.call("GET", `/v1/sources/${name}/recordings`)).json.segments;
        return segments.length > 0;
      });
      assert.match(segments[0]!.codec, encoder ? /^hvc1.*mp4a/ : /^avc1.*mp4a/, name);
      const { transports } = await servers.get(name)!.order("seen");
      assert.ok(transports.length > 0);
      assert.ok(
        transports.every((one: string) => one === (serve.udp ? "UDP" : "TCP")),
        `${name}: ${transports}`,
      );
    }
    assert.equal(await service.metric("service_pipeline_worker_faults_total"), 0);
  },
);

Deno.test(
  "a publisher goes away and comes back, a wrong password is the reason of a failure, and another camera notices nothing",
  LONG_TEST,
  async () => {
    using temp = new TempFolder();
    const path = film(temp.path, "libx264");
    await using server = new ForeignProgram("rtsp_server");
    const { port } = await server.order("serve");
    await using locked = new ForeignProgram("rtsp_server");
    const guarded = await locked.order("serve", { auth: "digest", user: USER, password: PASSWORD });
    const url = (name: string) => `rtsp://127.0.0.1:${port}/${name}`;
    const record =
      `prompt = "Watch."\nrecord = { pre_roll_ms = 500, post_roll_ms = 500, on = ["keyframe"] }\n`;
    await using _steady = new Publisher(path, url("steady"));
    await using first = new Publisher(path, url("dock"));
    await using _guarded = new Publisher(path, `rtsp://127.0.0.1:${guarded.port}/yard`);
    await using service = await startForeignService(
      {},
      source("steady", url("steady")) + source("dock", url("dock"), `${record}recording = { hours = 1 }\n`) +
        source("yard", `rtsp://${USER}:wrong@127.0.0.1:${guarded.port}/yard`),
    );
    const steady = await untilState(service, "steady", "live");
    const { run_id: runId } = await untilState(service, "dock", "live");
    const failed = await untilState(service, "yard", "failed");
    assert.match(failed.reason, /password/);
    assert.ok(!JSON.stringify(failed).includes("wrong"));

    await until(
      "a clip is stored",
      async () => payloads(await service.events(runId), "clip_stored").length > 0,
    );
    const live = await fetch(`${service.url}/v1/sources/dock/live.mp4`, { headers: { "x-api-key": KEY_A } });
    assert.match(live.headers.get("content-type")!, /^video\/mp4; codecs="avc1\.\w+, mp4a\.40\.2"$/);
    const reader = live.body!.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value!.slice(4, 8)), "ftyp");
    await reader.cancel();

    await first[Symbol.asyncDispose]();
    await untilState(service, "dock", "gap");
    await using _again = new Publisher(path, url("dock"));
    const back = await untilState(service, "dock", "live");
    assert.equal(back.run_id, runId);
    const kinds = (await service.events(runId)).map(({ kind }) => kind);
    assert.deepEqual(kinds.filter((kind) => kind.startsWith("source_")), ["source_gap", "source_resumed"]);
    const unmoved = await cameraOf(service, "steady");
    assert.deepEqual([unmoved.state, unmoved.run_id], ["live", steady.run_id]);
    assert.deepEqual(payloads(await service.events(steady.run_id), "source_gap"), []);
    const { json } = await service.call("GET", "/v1/sources/dock/recordings");
    assert.ok(json.segments.length > 0);
  },
);
