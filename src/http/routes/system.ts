/** Routes about the service itself: health, metrics, and the published JSON Schemas. */

import { refuse } from "../../contract/refusal.ts";
import { HEALTH, RETENTION_REPORT, SYSTEM, SYSTEM_HEALTH } from "../../model/api/system.ts";
import { jsonObject } from "../../model/events/payload_shapes.ts";
import { schemaText } from "../../model/published/json_schema.ts";
import { constantJson, json, jsonText, plainText } from "../answers/reply.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

export const SYSTEM_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/health",
    id: "health",
    tag: "system",
    summary: "Says that the HTTP server is up.",
    access: "open",
    answers: answersJson(HEALTH, "The server is up"),
    failures: [],
    handle: constantJson({ status: "ok" }),
  },
  {
    method: "GET",
    path: "/v1/metrics",
    id: "getMetrics",
    tag: "system",
    summary: "Serves metrics as Prometheus text.",
    access: "metrics",
    answers: {
      200: { description: "Metrics in the Prometheus text format", content: { "text/plain": "text" } },
    },
    failures: [503],
    handle: async ({ use }) => plainText(await use.metrics.text()),
  },
  {
    method: "GET",
    path: "/v1/system",
    id: "getSystem",
    tag: "system",
    summary: "Tells the versions, the disk and the settings of the service, without secrets.",
    answers: answersJson(SYSTEM, "Versions, the disk, and the settings without their secrets"),
    failures: [500],
    handle: async ({ caller, use }) => json({ request_id: caller.requestId, ...await use.system.look() }),
  },
  {
    method: "GET",
    path: "/v1/system/health",
    id: "getSystemHealth",
    tag: "system",
    summary: "Tells whether live sessions and model calls are well, and why.",
    answers: answersJson(SYSTEM_HEALTH, "Whether live sessions and model calls are well, with the reasons"),
    failures: [500],
    handle: async ({ caller, use }) => json({ request_id: caller.requestId, ...await use.healthView.look() }),
  },
  {
    method: "GET",
    path: "/v1/system/retention",
    id: "getRetention",
    tag: "system",
    summary: "Tells which of the caller's runs retention removes next, and why the others stay.",
    answers: answersJson(
      RETENTION_REPORT,
      "What retention removes next, and why the rest stays; nothing is removed by asking",
    ),
    failures: [500],
    handle: async ({ caller, use }) =>
      json({ request_id: caller.requestId, ...await use.retention.look(caller) }),
  },
  {
    method: "GET",
    path: "/schemas/:name",
    id: "getSchema",
    tag: "system",
    summary: "Serves a published JSON Schema.",
    answers: { 200: { description: "A JSON Schema, draft 2020-12", content: jsonContent(jsonObject) } },
    failures: [404],
    handle: (call) => {
      const schema = call.use.schemas().get(parameter(call, "name"));
      if (!schema) throw refuse.notFound("Schema", "name");
      return jsonText(schemaText(schema));
    },
  },
];
