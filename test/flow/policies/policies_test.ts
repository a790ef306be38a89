import assert from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import type { Caller } from "../../../src/flow/caller.ts";
import {
  type OpenSessions,
  type PromptableSession,
  type PromptChange,
  promptTimedOut,
  sessionIsEnding,
} from "../../../src/flow/policies/open_sessions.ts";
import { Policies } from "../../../src/flow/policies/policies.ts";
import { PolicyRevisions } from "../../../src/flow/policies/revisions.ts";
import type { CreatePolicyBody } from "../../../src/model/api/policies.ts";
import type { RestrictedZone } from "../../../src/model/policies/zone.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { Bench, RUN } from "../../support/timeline.ts";
import { QUARTER_ZONE } from "../../support/policy_fixtures.ts";

const CALLER: Caller = {
  principalKey: "public",
  tenantId: null,
  requestId: "req-0000000000000001",
  isOnLoopback: true,
  holdUntilAnswered: () => {},
  signal: new AbortController().signal,
};

/**
 * Generation 7 of the run's live session: it records the changes, and acknowledges them when and how the test
 * says.
 */
class Session implements PromptableSession {
  readonly sessionId = "sess-0000000000000007";
  generation = 7;
  zone: RestrictedZone | null = null;
  hasPolicyZone = false;
  readonly changes: PromptChange[] = [];
  answer: () => Promise<void> = () => Promise.resolve();

  updatePrompt(change: PromptChange): Promise<void> {
    this.changes.push(change);
    return this.answer();
  }
}

/** A whip run with a session that the test may close, on a real timeline. */
async function start() {
  const bench = new Bench();
  const timeline = await bench.open();
  timeline.commit(() => [{
    kind: "run_created",
    runId: RUN,
    payload: { principal_key: "public", session_id: "sess-0000000000000007", source: "whip" },
  }]);
  const session = new Session();
  const sessions: { open: PromptableSession | null } & OpenSessions = {
    open: session,
    find: (runId) => runId === RUN ? sessions.open : null,
  };
  const policies = new Policies({ timeline, revisions: new PolicyRevisions(timeline), sessions });
  return {
    timeline,
    session,
    sessions,
    policies,
    /** A revision that has come as far as canary. */
    canary(body: CreatePolicyBody = { prompt: "Describe the dock" }): Promise<number> {
      return toCanary(policies, body);
    },
    async [Symbol.asyncDispose]() {
      await timeline[Symbol.asyncDispose]();
      bench[Symbol.dispose]();
    },
  };
}

async function toCanary(policies: Policies, body: CreatePolicyBody): Promise<number> {
  const newest = [...policies.list(CALLER, RUN)].at(-1)?.revision ?? null;
  const { revision } = policies.create(CALLER, RUN, { parent_revision: newest, ...body });
  for (const stage of ["shadow", "canary"]) await policies.activate(CALLER, RUN, revision, { stage });
  return revision;
}

/** Kind and payload of the run's last events. */
function lastEvents(timeline: Timeline, count: number): [string, Record<string, unknown>][] {
  const all = [...timeline.read(RUN)].flat();
  return all.slice(-count).map(({ kind, payload }) => [kind, JSON.parse(payload)]);
}

async function refusalOf(work: Promise<unknown>): Promise<[number, string | undefined, string]> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refusal) return [error.status, error.details[0]?.field, error.code];
    throw error;
  }
  throw new assert.AssertionError({ message: "it was not refused" });
}

Deno.test("shadow and canary name the live generation and apply nothing to it", async () => {
  await using live = await start();
  const { revision } = live.policies.create(CALLER, RUN, { prompt: "p" });
  const { application } = await live.policies.activate(CALLER, RUN, revision, { stage: "shadow" });
  assert.deepEqual(
    [application.session_id, application.generation, application.prompt_acknowledged],
    ["sess-0000000000000007", 7, false],
  );
  assert.deepEqual(live.session.changes, []);
});

Deno.test("an active revision's prompt is sent to the generation that it expects", async () => {
  await using live = await start();
  const output_schema = { type: "object" };
  const revision = await live.canary({ prompt: "Describe the dock", output_schema });
  const body = { stage: "active", expected_generation: 7 };
  const { policy, application } = await live.policies.activate(CALLER, RUN, revision, body);
  assert.deepEqual(live.session.changes, [{ prompt: "Describe the dock", outputSchema: output_schema }]);
  assert.deepEqual(
    [application.prompt_acknowledged, application.effective_on_current_generation],
    [true, true],
  );
  assert.deepEqual(
    [policy.status, policy.effective_generation, policy.effective_on_current_generation],
    ["active", 7, true],
  );
});

Deno.test("a zone waits for the next generation", async () => {
  await using live = await start();
  const body = { prompt: "p", parameters: { restricted_zone: QUARTER_ZONE } };
  const revision = await live.canary(body);
  const { policy, application } = await live.policies.activate(CALLER, RUN, revision, {
    stage: "active",
    expected_generation: 7,
  });
  assert.deepEqual(
    [application.prompt_acknowledged, application.effective_on_current_generation, policy.deferred_fields],
    [true, false, ["parameters.restricted_zone"]],
  );
  assert.equal(policy.effective_generation, null);
  const zoneOnly = await live.canary({ parameters: { restricted_zone: QUARTER_ZONE } });
  live.session.changes.length = 0;
  const second = await live.policies.activate(CALLER, RUN, zoneOnly, {
    stage: "active",
    expected_generation: 7,
  });
  assert.deepEqual([second.application.prompt_acknowledged, live.session.changes], [false, []]);
});

Deno.test("a request that a live generation does not take leaves requested and rejected events", async () => {
  await using live = await start();
  const revision = await live.canary();
  const active = (expected_generation: number | null) =>
    live.policies.activate(CALLER, RUN, revision, { stage: "active", expected_generation });
  const check = async (expected: number | null, refusal: unknown[], reason: RegExp) => {
    assert.deepEqual(await refusalOf(active(expected)), refusal);
    const [requested, rejected] = lastEvents(live.timeline, 2);
    assert.deepEqual([requested![0], rejected![0]], [
      "policy_deployment_requested",
      "policy_deployment_rejected",
    ]);
    assert.equal(requested![1].expected_generation, expected);
    assert.match(String(rejected![1].reason), reason);
    assert.equal(live.policies.read(CALLER, RUN, revision).status, "canary");
  };
  const conflict = [409, "expected_generation", "conflict"];
  await check(null, conflict, /^expected_generation_required$/);
  await check(6, conflict, /^stale_generation: expected 6, the current one is 7$/);
  assert.deepEqual(live.session.changes, []);
  live.session.answer = () => Promise.reject(promptTimedOut());
  await check(7, [503, undefined, "policy_acknowledgement_timeout"], /^acknowledgement_timeout$/);
  live.session.answer = () => Promise.reject(sessionIsEnding());
  await check(7, conflict, /^generation_closed: generation 7/);
  live.sessions.open = null;
  await check(7, conflict, /^generation_closed: the run has no live session/);
  await active(null);
  assert.equal(live.policies.read(CALLER, RUN, revision).status, "active");
});

Deno.test("a rollback sends the older prompt and names both revisions", async () => {
  await using live = await start();
  const activate = async (prompt: string) => {
    const revision = await live.canary({ prompt });
    await live.policies.activate(CALLER, RUN, revision, { stage: "active", expected_generation: 7 });
    return revision;
  };
  const [first, second] = [await activate("one"), await activate("two")];
  const missing = live.policies.rollback(CALLER, RUN, first, {});
  assert.deepEqual(await refusalOf(missing), [409, "expected_generation", "conflict"]);
  assert.deepEqual(lastEvents(live.timeline, 1)[0]![0], "policy_rollback_rejected");
  const { application } = await live.policies.rollback(CALLER, RUN, first, { expected_generation: 7 });
  assert.equal(application.prompt_acknowledged, true);
  assert.deepEqual(live.session.changes.map(({ prompt }) => prompt), ["one", "two", "one"]);
  assert.equal(live.policies.read(CALLER, RUN, second).status, "rolled_back");
});

Deno.test("while a generation is asked, nothing else moves on its run", async () => {
  await using live = await start();
  const revision = await live.canary();
  const held = Promise.withResolvers<void>();
  live.session.answer = () => held.promise;
  const body = { stage: "active", expected_generation: 7 };
  const first = live.policies.activate(CALLER, RUN, revision, body);
  assert.deepEqual(await refusalOf(live.policies.activate(CALLER, RUN, revision, body)), [
    409,
    "revision",
    "conflict",
  ]);
  held.resolve();
  assert.equal((await first).policy.status, "active");
});
