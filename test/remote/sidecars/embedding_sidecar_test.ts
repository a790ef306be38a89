import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { Metrics } from "../../../src/contract/metrics.ts";
import { realWorld, type World } from "../../../src/base/world.ts";
import { EmbeddingSidecar, EmbeddingUnavailable } from "../../../src/remote/sidecars/embedding_sidecar.ts";
import {
  axis,
  embedded,
  type EmbeddingDouble,
  MALFORMED_EMBEDDINGS,
  openEmbeddingDouble,
  refusedEmbedding,
} from "../../support/sidecars/embedding_sidecar.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const JPEG = Uint8Array.of(0xff, 0xd8, 1, 2, 3, 0xff, 0xd9);

/** A client of `double` with a clock that only the test moves; its deadlines end only with `elapse`. */
function client({ port }: Pick<EmbeddingDouble, "port">) {
  const clock = { ms: 1_000 };
  const timers: (() => void)[] = [];
  const world: World = {
    ...realWorld(quietLog()),
    monotonicMs: () => clock.ms,
    sleep: (_ms, signal) =>
      new Promise((resolve, reject) => {
        timers.push(resolve);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
  const metrics = new Metrics();
  const address = { hostname: "127.0.0.1", port };
  const sidecar = new EmbeddingSidecar({ address, timeoutMs: 2_000, world, metrics });
  return {
    sidecar,
    clock,
    /** Ends all running timers. */
    elapse: () => timers.splice(0).forEach((end) => end()),
    embed: (jpeg: Uint8Array = JPEG, signal = NEVER_ABORTED) => sidecar.embed(jpeg, signal),
    async metric(name: string) {
      const line = (await metrics.text()).split("\n").find((line) =>
        line.startsWith(`service_pipeline_novelty_embedding_${name} `)
      );
      return Number(line?.split(" ").at(-1));
    },
    [Symbol.dispose]: () => sidecar[Symbol.dispose](),
  };
}

function unavailable(message = /./) {
  return (error: unknown) => {
    ok(error instanceof EmbeddingUnavailable, String(error));
    match(error.message, message);
    return true;
  };
}

Deno.test("several pictures get their embeddings over one connection", async () => {
  await using double = openEmbeddingDouble();
  using novelty = client(double);
  for (let index = 0; index < 5; index++) {
    double.answer(embedded(axis(index)));
    deepEqual(await novelty.embed(Uint8Array.of(index, ...JPEG)), axis(index));
  }
  deepEqual(double.requests.map(({ connection, jpeg }) => [connection, jpeg[0]]), [[0, 0], [0, 1], [0, 2], [
    0,
    3,
  ], [
    0,
    4,
  ]]);
  equal(await novelty.metric("latency_ms_count"), 5);
  equal(await novelty.metric("unavailable_total"), 0);
  deepEqual(double.faults, []);
});

Deno.test("a picture of 10 MiB arrives whole, a larger or empty one is not sent", async () => {
  await using double = openEmbeddingDouble();
  using novelty = client(double);
  const largest = new Uint8Array(10 * 2 ** 20);
  await novelty.embed(largest);
  equal(double.requests[0]!.jpeg.length, largest.length);
  await rejects(
    novelty.embed(new Uint8Array(largest.length + 1)),
    unavailable(/1 to 10485760 bytes: got 10485761/),
  );
  await rejects(novelty.embed(new Uint8Array()), unavailable(/got 0/));
  // That is no failure of the sidecar, so there is no back-off.
  await novelty.embed();
  equal(double.accepted, 1);
  equal(await novelty.metric("unavailable_total"), 2);
});

Deno.test("every failure closes the connection and starts a back-off", async () => {
  const wrong = {
    ...MALFORMED_EMBEDDINGS,
    "bad request": refusedEmbedding("bad_request"),
    "an inference error": refusedEmbedding("inference_error"),
    "too much to do": refusedEmbedding("overloaded"),
    "out of time": refusedEmbedding("timeout"),
    "a connection that is cut": () => "cut" as const,
  };
  for (const [what, script] of Object.entries(wrong)) {
    await using double = openEmbeddingDouble(script);
    using novelty = client(double);
    await rejects(novelty.embed(), unavailable(), what);
    await until("the connections are closed", () => double.open === 0);
    double.answer(embedded(axis(0)));
    await rejects(novelty.embed(), unavailable(/not called for another 100 ms/), what);
    equal(double.requests.length, 1, what);
    novelty.clock.ms += 100;
    deepEqual(await novelty.embed(), axis(0), what);
    equal(double.accepted, 2, what);
    equal(await novelty.metric("unavailable_total"), 2, what);
  }
});

Deno.test("the back-off doubles with each failure up to five seconds, and a success resets it", async () => {
  await using double = openEmbeddingDouble(() => "cut");
  using novelty = client(double);
  for (const pauseMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
    await rejects(novelty.embed(), unavailable(/cut the connection/));
    novelty.clock.ms += pauseMs - 1;
    await rejects(novelty.embed(), unavailable(/another 1 ms/));
    novelty.clock.ms += 1;
  }
  double.answer(embedded(axis(0)));
  await novelty.embed();
  double.answer(refusedEmbedding("overloaded"));
  await rejects(novelty.embed(), unavailable(/refused: overloaded/));
  await rejects(novelty.embed(), unavailable(/another 100 ms/));
});

Deno.test("a sidecar that refuses connections is unavailable, and a back-off starts", async () => {
  const double = openEmbeddingDouble();
  const { port } = double;
  await double[Symbol.asyncDispose]();
  using novelty = client({ port });
  await rejects(novelty.embed(), unavailable(/cannot be connected to: ConnectionRefused/));
  await rejects(novelty.embed(), unavailable(/not called/));
});

Deno.test("a kept connection that was closed meanwhile is opened again without a back-off", async () => {
  await using double = openEmbeddingDouble();
  using novelty = client(double);
  await novelty.embed();
  double.dropConnections();
  await until("the connections are closed", () => double.open === 0);
  deepEqual(await novelty.embed(), axis(0));
  equal(double.accepted, 2);
  equal(await novelty.metric("unavailable_total"), 0);
});

Deno.test("an answer that does not come in time closes the connection and starts a back-off", async () => {
  await using double = openEmbeddingDouble(() => "hang");
  using novelty = client(double);
  const asked = novelty.embed();
  await until("the requests have arrived", () => double.requests.length === 1);
  novelty.elapse();
  await rejects(asked, unavailable(/did not react within 2000 ms/));
  await until("the connections are closed", () => double.open === 0);
  await rejects(novelty.embed(), unavailable(/not called/));
});

Deno.test("one call is under way at a time, two wait and a fourth fails at once", async () => {
  const release = Promise.withResolvers<void>();
  await using double = openEmbeddingDouble(async (request, index) => {
    await release.promise;
    return embedded(axis(index))(request, index);
  });
  using novelty = client(double);
  const first = [novelty.embed(), novelty.embed(), novelty.embed()];
  await until("the requests have arrived", () => double.requests.length === 1);
  await rejects(novelty.embed(), unavailable(/Cannot admit more than 1/));
  equal(double.requests.length, 1);
  release.resolve();
  deepEqual(await Promise.all(first), [axis(0), axis(1), axis(2)]);
  equal(double.accepted, 1);
});

Deno.test("an abort rejects with the caller's reason and starts no back-off", async () => {
  await using double = openEmbeddingDouble(() => "hang");
  using novelty = client(double);
  const reason = new Error("the session has ended");
  const caller = new AbortController();
  const asked = [1, 2].map(() => rejects(novelty.embed(JPEG, caller.signal), reason));
  await until("the requests have arrived", () => double.requests.length === 1);
  caller.abort(reason);
  await Promise.all(asked);
  await rejects(novelty.embed(JPEG, caller.signal), reason);
  double.answer(embedded(axis(0)));
  deepEqual(await novelty.embed(), axis(0));
  equal(await novelty.metric("unavailable_total"), 0);
});

Deno.test("closing ends the connection, the call under way and the waiting ones", async () => {
  await using double = openEmbeddingDouble(() => "hang");
  const novelty = client(double);
  const asked = [novelty.embed(), novelty.embed()].map((embedding) => rejects(embedding, unavailable()));
  await until("the requests have arrived", () => double.requests.length === 1);
  novelty[Symbol.dispose]();
  await Promise.all(asked);
  await rejects(novelty.embed(), unavailable(/closing/));
  await until("the connections are closed", () => double.open === 0);
});
