/** Routes about the service itself: health, metrics, and the published JSON Schemas. */

import { refuse } from "../../contract/refusal.ts";
import { schemaText } from "../../model/published/json_schema.ts";
import { parameter, type Route } from "../call.ts";
import { constantJson, json, jsonText, plainText } from "../reply.ts";

export const SYSTEM_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/health",
    summary: "Says that the HTTP server is up.",
    handle: constantJson({ status: "ok" }),
  },
  {
    method: "GET",
    path: "/v1/metrics",
    summary: "Serves metrics as Prometheus text.",
    handle: async ({ metrics }) => plainText(await metrics.text()),
  },
  {
    method: "GET",
    path: "/v1/system",
    summary: "Tells the versions, the disk and the settings of the service, without secrets.",
    handle: async ({ caller, system }) => json({ request_id: caller.requestId, ...await system.look() }),
  },
  {
    method: "GET",
    path: "/v1/system/health",
    summary: "Tells whether live sessions and model calls are well, and why.",
    handle: async ({ caller, healthView }) =>
      json({ request_id: caller.requestId, ...await healthView.look() }),
  },
  {
    method: "GET",
    path: "/v1/system/retention",
    summary: "Tells which of the caller's runs retention removes next, and why the others stay.",
    handle: async ({ caller, retention }) =>
      json({ request_id: caller.requestId, ...await retention.look(caller) }),
  },
  {
    method: "GET",
    path: "/schemas/:name",
    summary: "Serves a published JSON Schema.",
    handle: (call) => {
      const schema = call.schemas().get(parameter(call, "name"));
      if (!schema) throw refuse.notFound("Schema", "name");
      return jsonText(schemaText(schema));
    },
  },
];
