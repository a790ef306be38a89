/** The bundle that `scripts/serve` starts: it does what the sources do, with every Worker and every file that
 * it needs.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildService } from "../scripts/build_service.ts";
import { startListening } from "../scripts/server.ts";
import { needing, NODE } from "./support/needs.ts";
import { TraceCollector } from "./support/otlp_collector.ts";
import { TempFolder } from "./support/media.ts";
import { CLIPS, MODEL, PROJECT_ROOT } from "./support/service.ts";
import { until } from "./support/until.ts";

const BUNDLE = join(PROJECT_ROOT, "dist", "service_test");
const NOTHING = { read: false, write: false, net: false, env: false, run: false, ffi: false, import: false };

Deno.test("the bundled service decodes, analyzes, serves its pages and keeps its settings out of the environment", async () => {
  await buildService(BUNDLE); // which the next tests look at, too
  for (const { name } of Deno.readDirSync(BUNDLE)) {
    const text = Deno.readTextFileSync(join(BUNDLE, name));
    assert.ok(!text.includes("/locales/he.js"), `${name} has zod's messages in languages that nobody uses`);
  }
  using folder = new TempFolder();
  const service = await startListening([join(BUNDLE, "main.mjs")], {
    SERVICE_DATA_DIR: join(folder.path, "data"),
    SERVICE_BIND_ADDR: "127.0.0.1:0",
    SERVICE_API_KEYS: "bundled-key",
    SERVICE_INGEST_FILE_ROOTS: CLIPS,
  });
  try {
    const call = async (path: string, body?: unknown) => {
      const response = await fetch(`${service.url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-api-key": "bundled-key", "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      return text;
    };
    const { run_id } = JSON.parse(await call("/v1/runs", {}));
    const source_uri = join(CLIPS, "intel_bottle.mp4");
    assert.equal(
      JSON.parse(await call(`/v1/runs/${run_id}/ingest`, { source_uri })).decoded_frames,
      512,
    );
    const { markers } = JSON.parse(await call(`/v1/runs/${run_id}/analyze`, { model: MODEL }));
    assert.ok(markers.length > 0);
    assert.match(await call("/docs"), /<html/);
    assert.match(await call("/v1/metrics"), /^service_runs_created_total 1$/m);
    const environment = Deno.readTextFileSync(`/proc/${service.pid}/environ`);
    assert.doesNotMatch(environment, /bundled-key|SERVICE_/);
  } finally {
    await service[Symbol.asyncDispose]();
  }
});

Deno.test({
  ...needing(NODE, "the bundled service reaches its mirror database and its trace collector"),
  async fn() {
    using folder = new TempFolder();
    await using collector = await TraceCollector.start();
    using database = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const first = database.accept();
    await using service = await startListening([join(BUNDLE, "main.mjs")], {
      SERVICE_DATA_DIR: join(folder.path, "data"),
      SERVICE_BIND_ADDR: "127.0.0.1:0",
      SERVICE_API_KEYS: "bundled-key",
      SERVICE_MIRROR_URL: `postgres://user:secret@127.0.0.1:${database.addr.port}/db?sslmode=disable`,
      SERVICE_TRACES_ENDPOINT: collector.endpoint,
    });
    using connection = await first;
    const message = new Uint8Array(256);
    const got = await connection.read(message);
    assert.match(new TextDecoder().decode(message.subarray(0, got!)), /user\0user\0database\0db\0/);
    await (await fetch(`${service.url}/v1/health`)).body?.cancel();
    await until("a span", () => collector.named("GET /v1/health").length === 1);
  },
});

Deno.test("each file of a bundled Worker first takes away what the Worker must not have", () => {
  const files = [...Deno.readDirSync(BUNDLE)].map(({ name }) => name);
  const ofWorkers = files.filter((name) => /^(service|decode|live|data_tools)_worker/.test(name));
  assert.ok(ofWorkers.length >= 4, files.join());
  for (const name of ofWorkers) {
    const [first] = Deno.readTextFileSync(join(BUNDLE, name)).split("\n");
    assert.equal(first, 'import "./worker_globals.mjs";', name);
  }
});

Deno.test("the bundled Worker of live sessions loads", async () => {
  const worker = new Worker(pathToFileURL(join(BUNDLE, "live_worker.mjs")), {
    type: "module",
    deno: {
      permissions: { ...NOTHING, sys: ["networkInterfaces", "cpus"], read: [join(PROJECT_ROOT, "wasm")] },
    },
  });
  const first = Promise.withResolvers<unknown>();
  worker.onmessage = ({ data }) => first.resolve(data);
  worker.onerror = ({ message }) => first.reject(new Error(message));
  assert.deepEqual(await first.promise, { kind: "ready" });
  worker.terminate();
});
