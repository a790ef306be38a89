import assert from "node:assert/strict";
import { isTerminal, Run, statusOf } from "../../../src/model/runs/run.ts";

const TTL_MS = 60_000;

function folded(kinds: string, payloads: Record<string, unknown> = {}): Run {
  const run = new Run("run-1");
  kinds.split(" ").filter(Boolean).forEach((kind, at) => run.fold(at + 1, 1000 + at, kind, payloads[kind]));
  return run;
}

Deno.test("the last event with an effect on the state decides it", () => {
  const check = (kinds: string, state: string) => assert.equal(folded(kinds).state, state, kinds);
  check("", "pending");
  check("run_created", "pending");
  check("run_created vlm marker_emitted", "pending");
  check("run_created publisher_connected vlm", "processing");
  check("run_created ingest_received", "processing");
  check("run_created frames_decoded", "pending");
  check("run_created analysis_generated", "processing");
  check("run_created inference_completed", "processing");
  check("run_created keepalive_refreshed", "processing");
  check("run_created semantic_chunk_inferred", "pending");
  check("run_created ingest_received run_completed", "completed");
  check("run_created run_failed", "failed");
  check("run_created stop_requested", "cancelled");
  check("run_created stop_requested inference_completed", "processing");
  check("run_created run_completed stop_requested", "cancelled");
  check("run_created run_completed operator_feedback_submitted", "completed");
  check("run_created run_completed run_deleted", "completed");
  check("run_created run_failed run_created", "pending");
});

Deno.test("a run expires when it was idle for longer than the TTL, and only while it is not over", () => {
  const check = (kinds: string, idleMs: number, status: string) => {
    const run = folded(kinds);
    assert.equal(statusOf(run, run.lastActivityMs + idleMs, TTL_MS), status, `${kinds} after ${idleMs}`);
  };
  check("run_created", 0, "pending");
  check("run_created", TTL_MS, "pending");
  check("run_created", TTL_MS + 1, "expired");
  check("run_created", -5, "pending");
  check("run_created ingest_received", TTL_MS, "processing");
  check("run_created ingest_received", TTL_MS + 1, "expired");
  check("run_created run_completed", TTL_MS * 9, "completed");
  check("run_created run_failed", TTL_MS * 9, "failed");
  check("run_created stop_requested", TTL_MS * 9, "cancelled");
});

Deno.test("pending and processing are the statuses that are not terminal", () => {
  const terminal = (["pending", "processing", "completed", "failed", "cancelled", "expired"] as const)
    .filter((status) => isTerminal(status));
  assert.deepEqual(terminal, ["completed", "failed", "cancelled", "expired"]);
});

Deno.test("a hold lasts until it is released, and neither is activity", () => {
  const run = folded("run_created ingest_received");
  const { lastActivityMs } = run;
  for (const [kind, onHold] of [["hold_placed", true], ["vlm", true], ["hold_released", false]] as const) {
    run.fold(run.lastSeq + 1, kind === "vlm" ? 0 : lastActivityMs + 1000, kind, {});
    assert.deepEqual([run.onHold, run.state, run.lastActivityMs], [onHold, "processing", lastActivityMs]);
  }
});

Deno.test("every other kind is activity, and time that goes back does not take activity back", () => {
  const run = new Run("run-1");
  for (const [seq, ptsMs, expected] of [[1, 100, 100], [2, 50, 100], [3, 200, 200]] as const) {
    run.fold(seq, ptsMs, seq === 1 ? "run_created" : "anything.at.all", {});
    assert.equal(run.lastActivityMs, expected);
  }
  assert.equal(run.createdMs, 100);
  assert.equal(run.eventCount, 3);
  assert.equal(run.lastSeq, 3);
});

Deno.test("the texts of run_created are kept", () => {
  const check = (payload: unknown, expected: Partial<Run>) => {
    const run = folded("run_created", { run_created: payload });
    for (const [field, value] of Object.entries(expected)) {
      assert.equal(run[field as keyof Run], value, field);
    }
  };
  check({ principal_key: "api-key:a", mode: "balanced", model: "m", tenant_id: null }, {
    principalKey: "api-key:a",
    mode: "balanced",
    model: "m",
    source: "",
    sessionId: "",
  });
  check({ principal_key: "api-key:a", session_id: "sess-1", source: "whip", trigger_program: null }, {
    principalKey: "api-key:a",
    mode: "",
    model: "",
    source: "whip",
    sessionId: "sess-1",
  });
  check({ mode: "custom", model: null }, { principalKey: "public", mode: "custom", model: "" });
  check({ principal_key: null }, { principalKey: "public" });
  check({ principal_key: "", source: "rtsp" }, { principalKey: "public", source: "" });
  for (const odd of [null, undefined, 5, "text", [], [1]]) check(odd, { principalKey: "public", mode: "" });
});

Deno.test("the first run_created and the first ingest_received stay", () => {
  const run = new Run("run-1");
  run.fold(1, 1, "run_created", { principal_key: "api-key:a" });
  run.fold(2, 2, "run_created", { principal_key: "api-key:b" });
  assert.equal(run.principalKey, "api-key:a");
  assert.equal(run.createdMs, 1);
  run.fold(3, 3, "ingest_received", { source_uri: "/a" });
  run.fold(4, 4, "ingest_received", { source_uri: "/b" });
  assert.equal(run.sourceUri, "/a");
});

Deno.test("the payload is needed only where the fold reads it", () => {
  const run = new Run("run-1");
  const check = (kinds: string, expected: boolean) => {
    for (const kind of kinds.split(" ")) assert.equal(run.needsPayloadOf(kind), expected, kind);
  };
  check("run_created ingest_received", true);
  check("frames_decoded vlm run_deleted", false);
  run.fold(1, 1, "run_created", {});
  run.fold(2, 2, "ingest_received", {});
  check("run_created ingest_received frames_decoded", false);
});

Deno.test("the latest frames_decoded is remembered by its number", () => {
  assert.equal(folded("run_created ingest_received").latestFramesDecodedSeq, 0);
  assert.equal(folded("run_created frames_decoded vlm frames_decoded vlm").latestFramesDecodedSeq, 4);
});
