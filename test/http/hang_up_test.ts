/** Callers who hang up, byte by byte: what ends their work, and what does not. Work here never ends by
 * itself.
 */

import assert from "node:assert/strict";
import { gatherFor } from "../../src/base/wait.ts";
import { held, type ModelServer, startModelServer } from "../support/models/model_server.ts";
import { MODEL, startService, type TestService } from "../support/service.ts";
import { RawConnection } from "../support/http/raw_http.ts";
import { until } from "../support/until.ts";

interface Scene extends AsyncDisposable {
  readonly test: TestService;
  readonly model: ModelServer;
  release(): void;
  /** Connects over IPv4, or over IPv6 where the host is `[::1]`. */
  connect(host?: string): Promise<RawConnection>;
}

/** A service that listens on IPv4 and IPv6, and a model that answers when it is released. */
async function open(env: Record<string, string> = {}): Promise<Scene> {
  const { answer, release } = held("A forklift waits.");
  const model = startModelServer({ answer });
  const test = await startService({
    SERVICE_BIND_ADDR: "[::]:0",
    SERVICE_VLLM_BASE_URL: model.url,
    ...env,
  });
  return {
    test,
    model,
    release,
    connect: (host = "127.0.0.1") => RawConnection.open(`http://${host}:${new URL(test.url).port}`),
    async [Symbol.asyncDispose]() {
      release();
      await test[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}

/** A question of at least `bytes` bytes; the model would be asked for a minute. */
function question(bytes: number, prompt = "What waits?"): string {
  const body = JSON.stringify({ model: MODEL, prompt, timeout_ms: 60_000 }).padEnd(bytes);
  return `POST /v1/infer HTTP/1.1\r\nhost: a\r\nx-api-key: key-of-a\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`;
}

async function metric({ test }: Scene, name: string): Promise<number> {
  const { text } = await test.call("GET", "/v1/metrics");
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

for (const host of ["127.0.0.1", "[::1]"]) {
  for (const bytes of [0, 600, 100_000, 3_000_000]) {
    Deno.test(`a caller from ${host} who hangs up after a body of ${bytes} bytes ends its work`, async () => {
      await using scene = await open();
      const connection = await scene.connect(host);
      await connection.send(question(bytes));
      await until("the model is asked", () => scene.model.inFlight === 1);
      connection[Symbol.dispose]();
      await until("the call is ended", () => scene.model.inFlight === 0);
      assert.equal(scene.model.aborted, 1);
      await until(
        "nobody is admitted",
        async () => await metric(scene, "service_infer_admission_active") === 0,
      );
    });
  }
}

Deno.test("a caller who hangs up after a short body that came behind its head ends its work", async () => {
  await using scene = await open();
  const connection = await scene.connect();
  const [head, body] = question(0).split("\r\n\r\n") as [string, string];
  await connection.send(`${head}\r\n\r\n`);
  await gatherFor(50);
  await connection.send(body);
  await until("the model is asked", () => scene.model.inFlight === 1);
  connection[Symbol.dispose]();
  await until("the call is ended", () => scene.model.inFlight === 0);
});

Deno.test("of pipelined requests all are answered in order while the caller stays", async () => {
  await using scene = await open();
  using staying = await scene.connect();
  await staying.send(question(2000) + question(600, "And then?") + question(0, "At last?"));
  await until("the first is under way", () => scene.model.inFlight === 1);
  // Another caller who hangs up shows that the connections were looked at meanwhile, and no work but its own
  // is ended.
  const leaving = await scene.connect();
  await leaving.send(question(2000));
  await until("both are under way", () => scene.model.inFlight === 2);
  leaving[Symbol.dispose]();
  await until("one was ended", () => scene.model.aborted === 1);
  scene.release();
  const three = /(HTTP\/1\.1 200 .*){3}/s;
  let text = "";
  while (!three.test(text)) text += new TextDecoder().decode(await staying.receive() ?? assert.fail(text));
  await until("all were asked", () => scene.model.requests.length === 4);
  assert.deepEqual(scene.model.requests.map(({ prompt }) => prompt), [
    ...["What waits?", "What waits?", "And then?", "At last?"],
  ]);
  assert.equal(scene.model.aborted, 1);
});

Deno.test("a caller who hangs up ends the first of its pipelined requests, and the next is not begun", async () => {
  await using scene = await open();
  const connection = await scene.connect();
  await connection.send(question(2000) + question(2000, "And then?"));
  await until("the first is under way", () => scene.model.inFlight === 1);
  connection[Symbol.dispose]();
  await until("it was ended", () => scene.model.inFlight === 0);
  // A later request of somebody else reaches the model, so the second of these would have.
  using other = await scene.connect();
  await other.send(question(0, "Who else?"));
  await until("another is under way", () => scene.model.inFlight === 1);
  assert.deepEqual(scene.model.requests.map(({ prompt }) => prompt), ["What waits?", "Who else?"]);
});

Deno.test("a connection that is kept is watched for its later requests too", async () => {
  await using scene = await open();
  const connection = await scene.connect();
  await connection.send(question(700).replace('"prompt"', '"promt_"'));
  assert.equal((await connection.answer()).status, 422);
  await connection.send(question(700));
  await until("the model is asked", () => scene.model.inFlight === 1);
  connection[Symbol.dispose]();
  await until("the call is ended", () => scene.model.inFlight === 0);
});

Deno.test("a caller who closes only its sending side counts as gone, and is told so where it still reads", async () => {
  await using scene = await open();
  using connection = await scene.connect();
  await connection.send(question(600));
  await until("the model is asked", () => scene.model.inFlight === 1);
  await connection.finish();
  const { status, text } = await connection.answer();
  assert.deepEqual([status, text], [
    400,
    "The client closed its side of the connection before it was answered",
  ]);
  assert.equal(scene.model.aborted, 1);
});

Deno.test("connections are counted: open ones whatever they do, and those that have sent a request", async () => {
  await using scene = await open();
  const [now, total] = ["service_http_connections", "service_http_connections_total"];
  const before = { now: await metric(scene, now), total: await metric(scene, total) };
  const silent = [await scene.connect(), await scene.connect("[::1]")];
  await silent[0]!.send("GET /v1/health HTTP/1.1\r\nhost:");
  await until("the silent ones are open", async () => await metric(scene, now) === before.now + 2);
  assert.equal(await metric(scene, total), before.total, "they have sent no request");
  for (const path of ["health", "nothing"]) {
    await silent[1]!.send(`GET /v1/${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    await silent[1]!.receive();
  }
  assert.equal(await metric(scene, total), before.total + 1, "two requests of one connection");
  for (const connection of silent) connection[Symbol.dispose]();
  await until("none of them is open", async () => await metric(scene, now) === before.now);
});
