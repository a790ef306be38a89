/** Routes of direct inference and of the model catalog. */

import { INFER_BATCH_BODY, INFER_BODY } from "../../model/api/infer.ts";
import { readJson } from "../body.ts";
import type { Route } from "../call.ts";
import { json } from "../reply.ts";

export const INFER_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/infer",
    summary: "Asks a model one question.",
    once: { kinds: ["inference_completed"] },
    handle: async (call) => {
      const body = await readJson(call, INFER_BODY);
      return json(await call.infer.one(call.caller, body));
    },
  },
  {
    method: "POST",
    path: "/v1/infer/batch",
    summary: "Asks a model up to 256 questions.",
    once: { kinds: ["inference_completed"] },
    handle: async (call) => {
      const body = await readJson(call, INFER_BATCH_BODY);
      return json(await call.infer.batch(call.caller, body));
    },
  },
  {
    method: "GET",
    path: "/v1/models",
    summary: "Lists the model catalog and which models can be reached now.",
    handle: async (call) =>
      json({ request_id: call.caller.requestId, models: await call.infer.models(call.caller) }),
  },
];
