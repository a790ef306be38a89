/** Routes about the service itself: health, metrics, and the published JSON Schemas. Interface 4.12. */

import { refuse } from "../../base/refusal.ts";
import { schemaText } from "../../model/schemas/published.ts";
import { parameter, type Route } from "../call.ts";
import { json, jsonText, plainText } from "../reply.ts";

export const SYSTEM_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/health",
    handle: () => json({ status: "ok" }),
  },
  {
    method: "GET",
    path: "/v1/metrics",
    handle: async ({ metrics }) => plainText(await metrics.text()),
  },
  {
    method: "GET",
    path: "/schemas/:name",
    handle: (call) => {
      const schema = call.schemas.get(parameter(call, "name"));
      if (!schema) throw refuse.notFound("Schema", "name");
      return jsonText(schemaText(schema));
    },
  },
];
