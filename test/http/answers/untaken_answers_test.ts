/** What is under way to the event streams of a principal is bounded, whoever reads. See
 * docs/events.md#event-stream.
 */

import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { UntakenAnswers } from "../../../src/http/answers/untaken_answers.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { connectionsTo, unsentOf } from "../../../src/process/tcp_connections.ts";
import { SseClient, StalledClient } from "../../support/http/sse_client.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { KEY_A, KEY_B, newRun, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const { untakenBytesPerPrincipal: OF_ALL, untakenBytesOfEach: OF_EACH } = LIMITS.sse;
const EVENTS = 40;

async function appendLarge(test: TestService, runId: string, key: string): Promise<void> {
  const json = { rating: 1, category: "c", feedback: "x".repeat(60_000) };
  for (let event = 0; event < EVENTS; event++) {
    const { status } = await test.send(`/v1/runs/${runId}/feedback`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify(json),
    });
    assert.equal(status, 200);
  }
}

Deno.test("streams of large events that are not read have little under way, others go on, and nothing is lost", async () => {
  await using test = await startService();
  const [runId, otherRunId] = [await newRun(test), await newRun(test, KEY_B)];
  await appendLarge(test, runId, KEY_A);
  await appendLarge(test, otherRunId, KEY_B);
  const count = 60;
  using clients = new DisposableStack();
  const [late] = await Array.fromAsync(
    { length: count },
    async () => clients.use(await StalledClient.open(test, runId)),
  );
  const { hostname, port } = new URL(test.url);
  const underWay = () => {
    const connections = [...connectionsTo({ hostname, port: Number(port) })];
    return connections.map(unsentOf).reduce((sum, bytes) => sum + bytes, 0);
  };
  // Of each a piece that was begun comes on top, and what the client's system has taken without its client.
  const most = OF_ALL + count * 2 * OF_EACH;
  await until("much is under way", () => underWay() > OF_ALL / 2);
  await using other = await SseClient.open(test, otherRunId, { key: KEY_B });
  await other.take(EVENTS);
  assert.ok(underWay() < most, `${underWay()} of ${most} bytes`);
  await using reading = await late!.read();
  assert.equal(new Set(await reading.ids(EVENTS)).size, EVENTS);
});

function streams(behind: (clients: readonly string[]) => ReadonlySet<string> | null) {
  const clock = new ManualClock();
  const world = {
    ...realWorld(quietLog()),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms: number, signal?: Parameters<ManualClock["sleep"]>[1]) => clock.sleep(ms, signal),
  };
  const untaken = new UntakenAnswers({ world, behind: (clients) => Promise.resolve(behind(clients)) });
  const resumed: string[] = [];
  const open = (principalKey: string, client: string) => {
    const sent = untaken.open({
      ...{ principalKey, client },
      resume: () => {
        resumed.push(client);
        sent.add(OF_EACH);
      },
    });
    return sent;
  };
  const look = async () => {
    await clock.advance(25);
    await new Promise((resolve) => setTimeout(resolve, 20)); // a turn, and the answer
    await clock.advance(0);
  };
  return { untaken, resumed, open, look, clock };
}

/** Streams that use up what a principal may have: the runtime itself keeps at most 480 KiB of each. */
const FULL = Math.ceil(OF_ALL / (480 * 1024));

Deno.test("streams beyond what a principal may have wait, go on in the order in which they came, and hold up no other principal", async () => {
  const behind = new Set<string>();
  const { untaken, resumed, open, look } = streams(() => behind);
  using _closed = untaken;
  const first = Array.from({ length: FULL }, (_, index) => open("a", `first ${index}`));
  for (const [index, stream] of first.entries()) {
    assert.ok(stream.mayGoOn());
    stream.add(2 ** 20);
    behind.add(`first ${index}`);
  }
  const late = ["x", "y", "z"].map((name) => open("a", name));
  for (const stream of late) {
    assert.ok(stream.mayGoOn(), "a little of each is always sent");
    stream.add(OF_EACH);
    assert.ok(!stream.mayGoOn());
  }
  const other = open("b", "other");
  other.add(OF_EACH);
  assert.ok(other.mayGoOn());
  behind.add("y");
  await look();
  assert.deepEqual(resumed, ["x", "z"], "whose clients have taken what was sent");
  behind.clear();
  await look();
  await until("y has its turn", () => resumed.includes("y"));
  assert.ok(late.every((stream) => stream.mayGoOn()));
});

Deno.test("a stream that has ended gives its part to those that wait, and where nothing is known all counts as taken", async () => {
  let seen: ReadonlySet<string> | null = new Set(Array.from({ length: FULL }, (_, index) => `${index}`));
  const { untaken, resumed, open, look, clock } = streams(() => seen);
  using _closed = untaken;
  const first = Array.from({ length: FULL }, (_, index) => open("a", `${index}`));
  for (const stream of first) stream.add(2 ** 20);
  assert.ok(!first[1]!.mayGoOn());
  assert.ok(!first[2]!.mayGoOn());
  first[0]![Symbol.dispose]();
  first[2]![Symbol.dispose]();
  await look();
  assert.deepEqual(resumed, ["1"]);
  first[1]!.add(2 ** 20);
  first[3]!.add(2 ** 20);
  seen = null;
  await look();
  await look();
  assert.ok(first[3]!.mayGoOn());
  for (const stream of first) stream[Symbol.dispose]();
  await look();
  assert.equal(clock.sleeping, 0, "nobody looks where nothing is under way");
});
