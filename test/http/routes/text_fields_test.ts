/** Every text that a caller can send is bounded: no field, parameter or header takes a text of any length. */

import assert from "node:assert/strict";
import { z } from "zod";
import { ANALYZE_BODY, INGEST_BODY } from "../../../src/model/api/analysis.ts";
import { FEEDBACK_BODY } from "../../../src/model/api/feedback.ts";
import { INFER_BODY } from "../../../src/model/api/infer.ts";
import {
  ACTIVATE_POLICY_BODY,
  CREATE_POLICY_BODY,
  REPLAY_POLICY_BODY,
} from "../../../src/model/api/policies.ts";
import { QUERY_BODY } from "../../../src/model/api/reads.ts";
import { REASON_BODY } from "../../../src/model/api/reason.ts";
import { CREATE_RUN_BODY } from "../../../src/model/api/runs.ts";
import { SEARCH_BODY } from "../../../src/model/api/search.ts";
import { COMPILE_BODY } from "../../../src/model/api/triggers.ts";
import { MODEL, startService, type TestService } from "../../support/service.ts";

function logBytes({ dataDir }: TestService): number {
  return [...Deno.readDirSync(`${dataDir}/timeline`)].filter(({ name }) => name.endsWith(".wal"))
    .reduce((sum, { name }) => sum + Deno.statSync(`${dataDir}/timeline/${name}`).size, 0);
}

type Path = readonly (string | number)[];

/**
 * The places of all texts in a schema; those with a list of values too, as such a list may only be told and
 * not checked.
 */
function* texts(schema: z.core.JSONSchema.BaseSchema | boolean | undefined, at: Path = []): Generator<Path> {
  if (typeof schema !== "object") return;
  const kinds = [schema.type].flat();
  if (kinds.includes("string") && schema.const === undefined) yield at;
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    yield* texts(inner as never, [...at, name]);
  }
  if (schema.items && !Array.isArray(schema.items)) yield* texts(schema.items as never, [...at, 0]);
  for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    yield* texts(inner as never, at);
  }
}

function jsonSchemaOf(schema: z.ZodType): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
}

/** The body with `text` at the path; what is missing on the way is made. */
function withText(body: unknown, [first, ...rest]: Path, text: string): unknown {
  if (first === undefined) return text;
  if (typeof first === "number") {
    const list = Array.isArray(body) ? [...body] : [];
    list[first] = withText(list[first], rest, text);
    return list;
  }
  const fields = { ...(body as Record<string, unknown> | undefined) };
  return { ...fields, [first]: withText(fields[first], rest, text) };
}

const ZONE = {
  ...{ policy_id: "p", policy_version: 1, device_id: "d", region: { x: 0, y: 0, width: 1, height: 1 } },
  ...{ enter_motion_score: 0.5, exit_motion_score: 0.2, enter_after_frames: 1, exit_after_frames: 1 },
};
const SIGNAL = { kind: "dwell_ms", label: "person", zone: "bay" };
const PROGRAM = {
  ...{ isa_version: 1, program_id: "dock-entry", version: 3 },
  instructions: [
    { op: "load", signal: SIGNAL },
    { op: "constant", value: 0.5 },
    { op: "greater_or_equal" },
    { op: "jump_if_false", target: 5 },
    { op: "emit", event_type: "dock_entry" },
    { op: "halt" },
  ],
};
const PROGRAM_TEXTS: Path[] = [
  ["program_id"],
  ["instructions", 0, "signal", "label"],
  ["instructions", 0, "signal", "zone"],
  ["instructions", 4, "event_type"],
];
const SCHEMA_TEXTS: Path[] = [["output_schema", "title"], ["output_schema", "properties", "a", "pattern"]];
const ASK = { model: MODEL, prompt: "p" };
const MEDIUM = { model: MODEL, source_uri: "x.mp4" };
const CAMERA = { source_uri: "rtsp://camera.test/" };

/** Every route that takes JSON, with a legal body and the schema that lists its texts, or the list. */
const ROUTES: [path: string, texts: z.ZodType | Path[], body: object][] = [
  ["runs", CREATE_RUN_BODY, {}],
  ["runs/:id/ingest", INGEST_BODY, { source_uri: "x.mp4" }],
  ["runs/:id/analyze", ANALYZE_BODY, { model: MODEL }],
  ["runs/:id/reason", REASON_BODY, MEDIUM],
  ["runs/:id/reason", SCHEMA_TEXTS, MEDIUM],
  ["runs/:id/live", [["source_uri"], ["prompt"]], CAMERA],
  ["runs/:id/live", [["restricted_zone", "policy_id"], ["restricted_zone", "device_id"]], {
    ...CAMERA,
    restricted_zone: ZONE,
  }],
  ["runs/:id/live", PROGRAM_TEXTS.map((at) => ["trigger_program", ...at]), {
    ...CAMERA,
    trigger_program: PROGRAM,
  }],
  ["runs/:id/feedback", FEEDBACK_BODY, { rating: 5, category: "quality" }],
  ["runs/:id/policies", CREATE_POLICY_BODY, { prompt: "a", parameters: { restricted_zone: ZONE } }],
  ["runs/:id/policies", SCHEMA_TEXTS, { prompt: "a" }],
  ["runs/:id/policies/:revision/activate", ACTIVATE_POLICY_BODY, { stage: "active" }],
  ["runs/:id/policies/:revision/replay", REPLAY_POLICY_BODY, {}],
  ["runs/:id/webhooks", [["url"], ["event_kinds", 0]], { url: "https://hook.example.org/" }],
  ["infer", INFER_BODY, ASK],
  ["infer", SCHEMA_TEXTS, ASK],
  [
    "infer/batch",
    [...texts(jsonSchemaOf(INFER_BODY)), ...SCHEMA_TEXTS].map((at) => ["requests", 0, ...at]),
    { requests: [ASK] },
  ],
  ["query", QUERY_BODY, { run_id: ":id" }],
  ["search", SEARCH_BODY, { query: "a" }],
  ["triggers/compile", COMPILE_BODY, {}],
  ["triggers/validate", PROGRAM_TEXTS, PROGRAM],
  [
    "triggers/evaluate",
    [
      ...PROGRAM_TEXTS.map((at) => ["program", ...at]),
      ["samples", 0, "observations", 0, "signal", "label"],
      ["samples", 0, "observations", 0, "signal", "zone"],
    ],
    { program: PROGRAM, samples: [{ pts_ms: 0, observations: [{ signal: SIGNAL, value: 1 }] }] },
  ],
];

/** Fields whose refusal names what they are part of. */
const NAMED_BY = /^(?:output_schema|trigger_program|program|instructions|event_kinds|samples)/;

Deno.test("a text of 300 KB is refused by its field in every field of every route, and is not repeated", async () => {
  await using test = await startService({
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_VLLM_BASE_URL: "http://127.0.0.1:1",
  });
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  const { policy } = (await test.call("POST", `/v1/runs/${run_id}/policies`, { prompt: "a" })).json;
  const before = logBytes(test);
  const long = ["x".repeat(300_000), "\u0001".repeat(300_000)];
  for (const [path, listed, template] of ROUTES) {
    const body = JSON.parse(JSON.stringify(template).replace(":id", run_id));
    const url = `/v1/${path.replace(":id", run_id).replace(":revision", String(policy.revision))}`;
    const places = Array.isArray(listed) ? listed : [...texts(jsonSchemaOf(listed))];
    assert.ok(places.length > 0, path);
    for (const at of places) {
      const what = `${path} ${at.join(".")}`;
      const name = String(at.findLast((part) => typeof part === "string"));
      for (const text of long) {
        const answer = await test.call("POST", url, withText(body, at, text));
        assert.equal(answer.status, 422, `${what}: ${answer.text.slice(0, 200)}`);
        assert.ok(answer.text.length < 2000, `${what}: ${answer.text.length} characters`);
        const fields = answer.json.error.details.map(({ field }: { field: string }) => field);
        assert.ok(
          fields.some((field: string) => field.endsWith(name) || NAMED_BY.test(field)),
          `${what}: ${answer.text.slice(0, 300)}`,
        );
      }
    }
    const unknown = await test.call("POST", url, { ...body, [long[0]!]: 1 });
    assert.equal(unknown.status, 422, path);
    assert.ok(unknown.text.length < 2000, `${path}: ${unknown.text.length} characters of an unknown field`);
  }
  assert.equal(logBytes(test), before, "nothing of it is written");
});

Deno.test("a long part of a path, a query or a header has no effect and is not repeated", async () => {
  await using test = await startService();
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  const before = logBytes(test);
  const long = "x".repeat(50_000);
  const run = `/v1/runs/${run_id}`;
  const check = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const answer = await test.send(path, { method, headers: { "x-api-key": "key-of-a", ...headers } });
    const text = answer.text + [...answer.headers].flat().join("");
    const what = `${method} ${path.slice(0, 80)} ${Object.keys(headers)}`;
    assert.ok(answer.status < 500, `${what}: ${answer.status}`);
    assert.ok(text.length < 2000, `${what}: ${text.length} characters`);
  };
  for (
    const path of [
      ...[
        `/v1/runs/${long}`,
        `/v1/runs/${long}/state`,
        `/v1/runs/${long}/events`,
        `/v1/runs/${long}/policies`,
      ],
      ...[`${run}/events?index=${long}`, `${run}/interactions?index=${long}`, `${run}/${long}`, `/${long}`],
      ...["status", "event_type", "from_frame", "to_frame"].map((name) => `${run}/markers?${name}=${long}`),
      ...[`${run}/policies/${long}`, `/v1/files/${long}`, `${run}/media/${long}`, `/schemas/${long}`],
    ]
  ) await check("GET", path);
  for (const path of [`/v1/runs/${long}`, `${run}/webhooks/${long}`, `/v1/stream/whip/${long}`]) {
    await check("DELETE", path);
  }
  for (
    const name of [
      "range",
      "if-match",
      "accept-encoding",
      "content-type",
      "x-request-id",
      "traceparent",
      "origin",
    ]
  ) {
    await check("GET", run, { [name]: long });
  }
  for (const query of [`kind=${long}`, `after=${long}`]) await check("GET", `${run}/events/stream?${query}`);
  await check("GET", `/v1/runs/${long}/events/stream`);
  assert.equal(logBytes(test), before);
});
