/** The live view over HTTP: one order to the Worker, and the same bytes to every viewer. */

import assert from "node:assert/strict";
import type { FakeWorkerSession } from "../../support/live/fake_live_workers.ts";
import { deleteSession, type LiveTest, metric, publish, startLive } from "../../support/live/live.ts";
import { KEY_A, KEY_B, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const INIT = Uint8Array.of(1, 2, 3);
const CODECS = "avc1.42e01f, opus";

function fragmentOf(number: number, bytes = 4): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes).fill(number);
}

function orders(worker: FakeWorkerSession): (number | null)[] {
  return worker.orders.flatMap((order) => order.kind === "watch" ? [order.viewId] : []);
}

/** The newest time of watching. */
function show(worker: FakeWorkerSession, number: number, { isKeyframe = false, bytes = 4 } = {}): void {
  const viewId = orders(worker).at(-1) ?? 0;
  worker.report({
    kind: "view",
    view: { kind: "fragment", viewId, bytes: fragmentOf(number, bytes), isKeyframe },
  });
}

function begin(worker: FakeWorkerSession, codecs = CODECS): void {
  const viewId = orders(worker).at(-1) ?? 0;
  worker.report({ kind: "view", view: { kind: "began", viewId, init: INIT, codecs } });
}

class Watcher {
  readonly #leaving = new AbortController();
  readonly response: Promise<Response>;
  readonly bytes: number[] = [];
  hasEnded = false;

  constructor(test: LiveTest, path: string) {
    const { signal } = this.#leaving;
    this.response = fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A }, signal });
    void this.#read();
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #read(): Promise<void> {
    try {
      for await (const bytes of (await this.response).body!) this.bytes.push(...bytes);
      this.hasEnded = true;
    } catch {
      // it has left
    }
  }
}

Deno.test("twenty viewers cost the Worker what one does, get the same bytes, and begin with a key frame", async () => {
  await using test = await startLive();
  const published = await publish(test);
  const { runId, worker } = published;
  worker.seesFrames = false;
  const path = `/v1/runs/${runId}/live.mp4`;
  assert.equal((await test.call("GET", path, undefined, KEY_B)).status, 404);
  assert.deepEqual(orders(worker), []);

  const watchers = Array.from({ length: 20 }, () => new Watcher(test, path));
  await until("all wait", async () => await metric(test, "service_live_view_viewers") === 20);
  begin(worker);
  show(worker, 9);
  show(worker, 1, { isKeyframe: true });
  show(worker, 2);
  const { status, headers } = await watchers[0]!.response;
  assert.deepEqual([status, headers.get("content-type")], [200, `video/mp4; codecs="${CODECS}"`]);
  const wanted = [...INIT, 1, 1, 1, 1, 2, 2, 2, 2];
  await until("all have it", () => watchers.every(({ bytes }) => bytes.length === wanted.length));
  for (const { bytes } of watchers) assert.deepEqual(bytes, wanted);

  // Whoever comes later begins with the last key frame, and with nothing that was before.
  const late = new Watcher(test, path);
  await until("it has begun", () => late.bytes.length === wanted.length);
  show(worker, 3, { isKeyframe: true });
  const later = new Watcher(test, path);
  await until("it has begun", () => later.bytes.length === INIT.length + 4);
  assert.deepEqual([late.bytes, later.bytes], [[...wanted, 3, 3, 3, 3], [...INIT, 3, 3, 3, 3]]);
  // Each one that waited for a key frame asked for one, nobody after that.
  assert.deepEqual(new Set(orders(worker)), new Set([1]));
  assert.equal(worker.acknowledged.fragments, 4);

  // Another size or codec ends the answers, and the next ones have it from the beginning.
  begin(worker, "hvc1.1.6.L93.B0");
  await until("all have ended", () => [...watchers, late, later].every(({ hasEnded }) => hasEnded));
  await until("nobody watches", () => orders(worker).at(-1) === null);
  const head = test.send(path, { method: "HEAD", headers: { "x-api-key": KEY_A } });
  await until("it is ordered", () => orders(worker).at(-1) === 2);
  begin(worker, "hvc1.1.6.L93.B0");
  show(worker, 4, { isKeyframe: true });
  assert.equal((await head).headers.get("content-type"), 'video/mp4; codecs="hvc1.1.6.L93.B0"');
  await until("it has no body", () => orders(worker).at(-1) === null);

  // A client that disconnects is forgotten, and a session that ends ends the answer.
  const gone = new Watcher(test, path);
  await until("it is ordered", () => orders(worker).at(-1) === 3);
  gone.leave();
  await until("nobody watches", () => orders(worker).at(-1) === null);
  const last = new Watcher(test, path);
  await until("it is ordered", () => orders(worker).at(-1) === 4);
  begin(worker);
  show(worker, 5, { isKeyframe: true });
  await last.response;
  await deleteSession(test, published);
  await until("it has ended", () => last.hasEnded);
  assert.equal(await metric(test, "service_live_view_viewers"), 0);
  assert.equal((await test.call("GET", path)).status, 404);
});

Deno.test("what cannot be watched is answered with the reason", async () => {
  await using test = await startLive();
  const { runId, worker } = await publish(test);
  worker.seesFrames = false;
  const path = `/v1/runs/${runId}/live.mp4`;
  const refused = async (codec: string | null) => {
    const count = orders(worker).length;
    const asked = test.call("GET", path);
    await until("it is ordered", () => orders(worker).length > count);
    worker.report({ kind: "view", view: { kind: "unable", viewId: orders(worker).at(-1)!, codec } });
    const { status, json } = await asked;
    return [status, json.error.details];
  };
  assert.deepEqual(await refused("vp8"), [422, [{
    field: "run_id",
    message: "needs a session with H.264 or H.265, which MP4 carries to browsers, and this one has vp8",
  }]]);
  assert.deepEqual(await refused(null), [422, [{ field: "run_id", message: "needs a session with video" }]]);
  assert.equal((await test.call("GET", "/v1/sources/dock/live.mp4")).status, 404);

  const watchers = Array.from({ length: 64 }, () => new Watcher(test, path));
  await until("all wait", async () => await metric(test, "service_live_view_viewers") === 64);
  const { status, json } = await test.call("GET", path);
  assert.deepEqual([status, json.error.code], [503, "provider_saturated"]);
  for (const watcher of watchers) watcher.leave();
  await until("nobody watches", () => orders(worker).at(-1) === null);
});

Deno.test("a named source that nobody watches is refused by its name", async () => {
  const sourcesFile = '[[sources]]\nname = "dock"\nuri = "/film.mp4"\nprincipals = ["*"]\n';
  await using test = await startService({}, { sourcesFile });
  const { status, json } = await test.call("GET", "/v1/sources/dock/live.mp4");
  assert.deepEqual([status, json.error.details], [404, [{ field: "name", message: "not found" }]]);
  assert.match(json.error.message, /^Live session not found/);
});
