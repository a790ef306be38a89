/** Retention through HTTP: the report, what goes, how readers with old cursors learn of it, and that a
 * restart agrees.
 */

import assert from "node:assert/strict";
import { KEY_A, KEY_B, newRun, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** A pass comes twice a second. */
const FAST = { timerSpeed: 1200 };

async function kindsOf(test: TestService, runId: string): Promise<string[]> {
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  return json.events.map((event: { kind: string }) => event.kind);
}

/** The text of an event stream up to its first event. */
async function streamFrom(test: TestService, runId: string, lastEventId: number): Promise<string> {
  const response = await fetch(`${test.url}/v1/runs/${runId}/events/stream`, {
    headers: { "x-api-key": KEY_A, "last-event-id": String(lastEventId) },
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body!) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("\nid: ") || text.startsWith("id: ")) break;
  }
  return text;
}

Deno.test("old runs go when they have ended, held and active ones stay, and a reader with an old cursor is told", async () => {
  await using test = await startService({
    SERVICE_RETENTION_RUN_HOURS: "2",
    SERVICE_STREAM_TTL_SECS: "86400",
  }, FAST);
  const [old, held, active] = [await newRun(test), await newRun(test), await newRun(test)];
  const foreign = await newRun(test, KEY_B);
  for (const runId of [old, held]) {
    await test.call("POST", `/v1/runs/${runId}/keepalive`);
    await test.call("POST", `/v1/runs/${runId}/stop`);
  }
  await test.call("POST", `/v1/runs/${held}/hold`);
  const before = await test.call("GET", "/v1/system/retention");
  assert.equal(before.json.is_on, true);
  assert.equal(before.json.goes.count, 0);
  const reasons = (list: { runs: { run_id: string; reason: string }[] }) =>
    Object.fromEntries(list.runs.map(({ run_id, reason }) => [run_id, reason]));
  assert.deepEqual(reasons(before.json.stays), {
    [old]: "within_limits",
    [held]: "on_hold",
    [active]: "not_ended",
  });

  const { json: { events } } = await test.call("GET", `/v1/runs/${old}/events`);
  const seqs: number[] = events.map(({ seq }: { seq: number }) => seq);
  test.pass(1.9 * 3_600_000); // the active run is kept alive, so that it does not expire
  await test.call("POST", `/v1/runs/${active}/keepalive`);
  assert.equal((await test.call("GET", "/v1/system/retention")).json.goes.count, 0);
  test.pass(0.2 * 3_600_000);
  await until(async () => (await kindsOf(test, old))[0] === "events_removed");
  const kept = ["run_created", "keepalive_refreshed", "stop_requested", "hold_placed"];
  assert.deepEqual(await kindsOf(test, held), kept);
  assert.deepEqual(await kindsOf(test, active), ["run_created", "keepalive_refreshed"]);

  const agrees = async () => {
    const run = await test.call("GET", `/v1/runs/${old}`);
    assert.equal(run.json.status, "cancelled");
    assert.equal(run.json.events_removed, true);
    const listed = await test.call("GET", "/v1/runs");
    assert.deepEqual(listed.json.map(({ run_id }: { run_id: string }) => run_id), [held, active]);
    const [{ seq: firstSeq, payload }] = (await test.call("GET", `/v1/runs/${old}/events`)).json.events;
    assert.equal(payload.through_seq, seqs.at(-1));
    assert.equal(payload.events, 3);
    const expired = await test.call("GET", `/v1/runs/${old}/events?from_seq=${seqs[1]}`);
    assert.equal(expired.status, 410);
    assert.deepEqual([expired.json.error.code, expired.json.error.first_seq], ["cursor_expired", firstSeq]);
    for (const list of ["events", "markers"]) {
      const page = await test.call("GET", `/v1/runs/${old}/${list}?cursor=${seqs[0]}`);
      assert.deepEqual([page.status, page.json.error.details[0].field], [410, "cursor"]);
      assert.equal(page.json.error.first_seq, firstSeq);
    }
    const query = await test.call("POST", "/v1/query", { run_id: old, from_seq: seqs[1] });
    assert.equal(query.status, 410);
    const next = await test.call("GET", `/v1/runs/${old}/events?from_seq=${seqs.at(-1)! + 1}`);
    assert.equal(next.status, 200);
    const stream = await streamFrom(test, old, seqs[0]!);
    const data = JSON.stringify({ run_id: old, cursor: seqs[0], first_seq: firstSeq });
    assert.ok(stream.startsWith(`event: cursor_expired\ndata: ${data}\n\nid: ${firstSeq}\n`), stream);
    assert.ok((await streamFrom(test, old, 0)).startsWith(`id: ${firstSeq}\n`));
    assert.ok((await streamFrom(test, old, seqs.at(-1)!)).startsWith(`id: ${firstSeq}\n`));
  };
  await agrees();
  const { text: metrics } = await test.call("GET", "/v1/metrics");
  assert.match(metrics, /^service_retention_removed_total\{what="runs"\} 1$/m);
  await test.restart();
  await agrees();
  assert.equal((await test.call("GET", `/v1/runs/${foreign}`, undefined, KEY_B)).status, 200);
  // Whoever follows it may delete it, and it is gone as any other.
  assert.equal((await test.call("DELETE", `/v1/runs/${old}`)).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${old}`)).status, 404);
});
