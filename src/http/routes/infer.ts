/** Routes of direct inference and of the model catalog. */

import { INFER_BATCH_BODY, INFER_BODY, INFERRED, INFERRED_BATCH, MODELS } from "../../model/api/infer.ts";
import { json } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

export const INFER_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/infer",
    id: "infer",
    tag: "infer",
    summary: "Asks a model one question.",
    body: jsonContent(INFER_BODY),
    answers: answersJson(INFERRED, "The answer of the model"),
    failures: [404, 409, 422, 500, 503],
    once: { kinds: ["inference_completed"] },
    handle: async (call) => {
      const body = await readJson(call, INFER_BODY);
      return json(await call.use.infer.one(call.caller, body));
    },
  },
  {
    method: "POST",
    path: "/v1/infer/batch",
    id: "inferBatch",
    tag: "infer",
    summary: "Asks a model up to 256 questions.",
    body: jsonContent(INFER_BATCH_BODY),
    answers: answersJson(INFERRED_BATCH, "An item for each question, in their order"),
    failures: [404, 409, 422, 500],
    once: { kinds: ["inference_completed"] },
    handle: async (call) => {
      const body = await readJson(call, INFER_BATCH_BODY);
      return json(await call.use.infer.batch(call.caller, body));
    },
  },
  {
    method: "GET",
    path: "/v1/models",
    id: "listModels",
    tag: "infer",
    summary: "Lists the model catalog and which models can be reached now.",
    answers: answersJson(MODELS, "The catalog"),
    failures: [500],
    handle: async (call) =>
      json({ request_id: call.caller.requestId, models: await call.use.infer.models(call.caller) }),
  },
];
