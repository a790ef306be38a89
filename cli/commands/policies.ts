/** `policies …`: the revisions of what a run's live session works with. */

import type { Policy } from "../../client/mod.ts";
import { CliError } from "../failure.ts";
import type { Output } from "../output/output.ts";
import type { CellValue } from "../output/table.ts";
import type { Handler } from "../session.ts";
import { readJson } from "./text_input.ts";

export const listPolicies: Handler = async ({ client, out, signal }, [id]) => {
  const answer = await (await client()).listPolicies(id!, { signal });
  await out.list(
    answer.policies,
    [{ title: "REVISION", isRight: true }, { title: "PARENT", isRight: true }, { title: "STATUS" }, {
      title: "ZONE",
    }, {
      title: "PROMPT",
    }],
    answer.policies.map((policy) => [
      ...[policy.revision, policy.parent_revision, policy.status, zoneOf(policy)],
      policy.prompt,
    ]),
    "no policy revisions",
  );
};

export const showPolicy: Handler = async ({ client, out, signal }, [id, revision]) => {
  const { policy } = await (await client()).getPolicy(id!, numberOf(revision!), { signal });
  show(out, policy, policy);
};

export const createPolicy: Handler = async (session, [id], { prompt, zone, outputSchema, parent }) => {
  const { out, signal } = session;
  const client = await session.client();
  const newest = parent ?? (await client.listPolicies(id!, { signal })).policies.at(-1)?.revision;
  const answer = await client.createPolicy(id!, {
    ...(newest !== undefined && { parent_revision: newest }),
    ...(prompt !== undefined && { prompt }),
    ...(outputSchema !== undefined && { output_schema: await readJson(outputSchema) }),
    ...(zone !== undefined && { parameters: { restricted_zone: await readJson(zone) } }),
  }, { signal });
  show(out, answer.policy, answer.policy);
};

export const activatePolicy: Handler = async ({ client, out, signal }, [id, revision], flags) => {
  const { stage, expectedGeneration: expected_generation } = flags;
  const request = { stage, ...(expected_generation !== undefined && { expected_generation }) };
  const answer = await (await client()).activatePolicy(id!, numberOf(revision!), request, { signal });
  show(out, answer, answer.policy, answer.application);
};

export const rollbackPolicy: Handler = async ({ client, out, signal }, [id, revision], flags) => {
  const { expectedGeneration: expected_generation } = flags;
  const request = expected_generation === undefined ? {} : { expected_generation };
  const answer = await (await client()).rollbackPolicy(id!, numberOf(revision!), request, { signal });
  show(out, answer, answer.policy, answer.application);
};

/** A replay of signals decodes media, which takes its time. */
const REPLAY_TIMEOUT_MS = 600_000;

export const replayPolicy: Handler = async (session, [id, revision], { fromSeq, toSeq, source }) => {
  const { out, signal } = session;
  const client = await session.client({ timeoutMs: REPLAY_TIMEOUT_MS });
  const answer = await client.replayPolicy(id!, numberOf(revision!), {
    ...(fromSeq !== undefined && { from_seq: fromSeq }),
    ...(toSeq !== undefined && { to_seq: toSeq }),
    ...(source !== undefined && { source }),
  }, { signal });
  out.record(
    answer,
    [["evaluation_id", answer.evaluation_id], ...cellsOf(answer.evaluation)],
    String(answer.evaluation_id),
  );
};

function show(out: Output, value: unknown, policy: Policy, application: Record<string, unknown> = {}): void {
  out.record(value, [
    ["revision", policy.revision],
    ["parent_revision", policy.parent_revision],
    ["status", policy.status],
    ["prompt", policy.prompt],
    ["zone", zoneOf(policy)],
    ["effective_generation", policy.effective_generation],
    ["deferred_fields", policy.deferred_fields.join(", ")],
    ...cellsOf(application).filter(([name]) => name !== "deferred_fields"),
  ], String(policy.revision));
}

function zoneOf({ parameters }: Policy): string {
  const zone = parameters.restricted_zone as { policy_id?: string; policy_version?: number } | undefined;
  return zone ? `${zone.policy_id} version ${zone.policy_version}` : "";
}

function cellsOf(values: object): (readonly [string, CellValue])[] {
  return Object.entries(values).map(([name, value]) =>
    [name, value !== null && typeof value === "object" ? JSON.stringify(value) : value] as const
  );
}

function numberOf(revision: string): number {
  if (!/^\d{1,15}$/.test(revision)) {
    throw new CliError("usage", `a revision is a whole number, got ${revision}`);
  }
  return Number(revision);
}
