/** Alerts in two phases over HTTP: the event at once, its explanation later, exactly once. */

import assert from "node:assert/strict";
import { deleteSession, metric, NO_CAP, publish, startLive } from "../../support/live/live.ts";
import { held, startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { until } from "../../support/until.ts";
import { DOCK_ZONE } from "../../support/policy_fixtures.ts";

/** A model that gives one answer a request; the last one never comes. */
function inTurn(...answers: (string | { status: number } | (() => Promise<string>))[]) {
  return {
    answer: () => {
      const next = answers.shift() ?? held().answer;
      return typeof next === "function" ? next() : next;
    },
  };
}

const ZONE_FACTS = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };

Deno.test("a zone and a cut are told before the model has answered, and explained once by its answer or the end of the session", async () => {
  const [first, third] = [held("A van stops."), held("A door opens.")];
  await using model = startModelServer(inTurn(first.answer, "It drives away.", third.answer));
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const attach = { ...NO_CAP, restricted_zone: DOCK_ZONE, enrich: { deadline_ms: 60_000 } };
  const session = await publish(test, { attach });
  const kinds = async () => kindsOf(await eventsOf(test, session.runId));
  session.worker.picture(1, { zone: ZONE_FACTS }, { gateReason: "scene_cut" });
  await until("asked", () => model.requests.length === 1);
  assert.deepEqual(await kinds(), ["run_created", "marker_emitted", "restricted_zone_activity_entered"]);
  const events = await eventsOf(test, session.runId);
  const [cut] = payloads(events, "marker_emitted");
  assert.deepEqual([cut.event_type, cut.start_frame, cut.enrichment_deadline_ms], ["scene_cut", 1, 60_000]);
  first.release();
  await until("explained", async () => (await eventsOf(test, session.runId)).length === 7);
  const after = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(after.slice(3)), ["vlm", "keyframe_stored", "event_enriched*2"]);
  assert.deepEqual(
    payloads(after, "event_enriched").map((
      { cause_seq, cause_kind, zone, description },
    ) => [cause_seq, cause_kind, zone, description]),
    [
      [after[1]!.seq, "marker_emitted", null, "A van stops."],
      [after[2]!.seq, "restricted_zone_activity_entered", DOCK_ZONE.policy_id, "A van stops."],
    ],
  );

  // A picture that is kept for other reasons announces nothing.
  session.worker.picture(2);
  await until("described", async () => payloads(await eventsOf(test, session.runId), "vlm").length === 2);
  session.worker.picture(3, { isKeyframe: false, zone: ZONE_FACTS });
  await until("asked again", () => model.requests.length === 3);
  session.worker.picture(4, { isKeyframe: false, zone: ZONE_FACTS });
  await until(
    "told",
    async () =>
      payloads(await eventsOf(test, session.runId), "restricted_zone_activity_entered").length === 3,
  );
  const hungUp = deleteSession(test, session);
  await until("ending", () => session.worker.isAskedToClose);
  third.release();
  await hungUp;
  const ended = await eventsOf(test, session.runId);
  assert.equal(ended.at(-1)!.kind, "run_completed");
  const explained = payloads(ended, "event_enriched").slice(2);
  const causes = ended.filter(({ kind }) => kind === "restricted_zone_activity_entered").map(({ seq }) =>
    seq
  );
  assert.deepEqual(
    explained.map(({ cause_seq, description, reason }) => [cause_seq, description ?? reason]),
    [
      [causes[2], "session_ended"],
      [causes[1], "A door opens."],
    ],
  );
  const counted = (outcome: string) =>
    metric(test, "service_pipeline_enrichments_total", `outcome="${outcome}"`);
  assert.deepEqual([await counted("described"), await counted("session_ended")], [3, 1]);
});

Deno.test("a stopped run, a failing model and a missing one explain too; without the field nothing is announced", async () => {
  await using model = startModelServer(inTurn({ status: 500 }));
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const attach = { ...NO_CAP, restricted_zone: DOCK_ZONE, enrich: { on: ["zone"] } };
  const session = await publish(test, { attach });
  session.worker.picture(1, { zone: ZONE_FACTS }, { gateReason: "scene_cut" });
  await until(
    "explained",
    async () => kindsOf(await eventsOf(test, session.runId)).includes("event_enriched"),
  );
  assert.equal(payloads(await eventsOf(test, session.runId), "event_enriched")[0].reason, "model_failed");
  session.worker.picture(2, { isKeyframe: false, zone: ZONE_FACTS });
  await until("asked again", () => model.requests.length === 2);
  await test.call("POST", `/v1/runs/${session.runId}/stop`);
  await until(
    "explained",
    async () => payloads(await eventsOf(test, session.runId), "event_enriched").length === 2,
  );
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), [
    ...["run_created", "restricted_zone_activity_entered", "keyframe_stored", "event_enriched"],
    ...["restricted_zone_activity_entered", "stop_requested", "event_enriched"],
  ]);

  await using plain = await startLive();
  const without = await publish(plain, { attach: { ...NO_CAP, restricted_zone: DOCK_ZONE } });
  without.worker.picture(1, { zone: ZONE_FACTS }, { gateReason: "scene_cut" });
  await until(
    "stored",
    async () => kindsOf(await eventsOf(plain, without.runId)).includes("keyframe_stored"),
  );
  const [entered] = payloads(await eventsOf(plain, without.runId), "restricted_zone_activity_entered");
  assert.equal("enrichment_deadline_ms" in entered, false);
  const unserved = await publish(plain, { attach });
  unserved.worker.picture(1, { zone: ZONE_FACTS });
  await until(
    "explained",
    async () => kindsOf(await eventsOf(plain, unserved.runId)).includes("event_enriched"),
  );
  assert.equal(payloads(await eventsOf(plain, unserved.runId), "event_enriched")[0].reason, "no_model");
});
