import assert from "node:assert/strict";
import { quietLog } from "../../src/base/log.ts";
import { Connections, type LookAtConnections } from "../../src/http/connections.ts";
import { NEVER_ABORTED } from "../../src/base/wait.ts";
import { ManualClock } from "../support/manual_clock.ts";

function watched(lookAt: LookAtConnections) {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const log = { ...quietLog(), warn: (message: string) => void warnings.push(message) };
  const world = {
    log,
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
  };
  return { connections: new Connections(lookAt, world), clock, warnings };
}

const CLIENT: Deno.NetAddr = { transport: "tcp", hostname: "127.0.0.1", port: 4000 };

Deno.test("a look at the connections that is late is told apart from a system without a list", async () => {
  let look: LookAtConnections = () => new Promise(() => {});
  const { connections, clock, warnings } = watched((listener, clients) => look(listener, clients));
  await using _closed = connections;
  using watch = connections.watch(CLIENT, NEVER_ABORTED);
  for (let second = 0; second < 10; second++) await clock.advance(1000);
  assert.equal(warnings.length, 1, warnings.join());
  assert.match(warnings[0]!, /took longer than 2000 ms/);
  assert.doesNotMatch(warnings[0]!, /does not list/);

  look = () => Promise.resolve(null);
  for (let second = 0; second < 10; second++) await clock.advance(1000);
  assert.equal(warnings.length, 2, warnings.join());
  assert.match(warnings[1]!, /does not list its connections/);

  look = (_listener, clients) => Promise.resolve({ open: 0, gone: clients, behind: [] });
  for (let second = 0; second < 3; second++) await clock.advance(1000);
  assert.ok(watch.signal.aborted);
});

Deno.test("nobody looks for clients whose requests are answered soon, and one of a request that waits is found gone", async () => {
  let looks = 0;
  const { connections, clock } = watched((_listener, clients) => {
    looks++;
    return Promise.resolve({ open: 1, gone: clients, behind: [] });
  });
  await using _closed = connections;
  for (let request = 0; request < 50; request++) {
    using _watch = connections.watch(CLIENT, NEVER_ABORTED);
    await clock.advance(100);
  }
  assert.equal(looks, 0);
  using watch = connections.watch(CLIENT, NEVER_ABORTED);
  await clock.advance(2000);
  assert.ok(watch.signal.aborted);
});

Deno.test("a request that is watched ends with its own signal too, and with its reason", async () => {
  const { connections } = watched(() => Promise.resolve({ open: 0, gone: [], behind: [] }));
  await using _closed = connections;
  const request = new AbortController();
  using watch = connections.watch(CLIENT, request.signal);
  const reason = new Error("the client has disconnected");
  request.abort(reason);
  assert.equal(watch.signal.reason, reason);
  using late = connections.watch(CLIENT, request.signal);
  assert.equal(late.signal.reason, reason);
});
