/** TABLE of the operations that analyze media or ask models, by method and path. */

import { ANALYZE_BODY, INGEST_BODY } from "../../../model/api/analysis.ts";
import { ANALYZED, INGESTED, REASONED } from "../../../model/api/answers/analysis.ts";
import { INFERRED, INFERRED_BATCH, MODELS } from "../../../model/api/answers/models.ts";
import { INFER_BATCH_BODY, INFER_BODY } from "../../../model/api/infer.ts";
import { REASON_BODY } from "../../../model/api/reason.ts";
import { answersJson, jsonContent, type Operation } from "../operation.ts";

export const ANALYSIS_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/runs/:id/ingest": {
    id: "ingestRun",
    tag: "ingest",
    body: jsonContent(INGEST_BODY),
    answers: answersJson(INGESTED, "What was decoded"),
    failures: [404, 409, 422, 500, 503],
  },
  "POST /v1/runs/:id/analyze": {
    id: "analyzeRun",
    tag: "analyze",
    body: jsonContent(ANALYZE_BODY),
    answers: answersJson(ANALYZED, "A row for each frame, and the markers"),
    failures: [404, 409, 422, 500],
  },
  "POST /v1/runs/:id/reason": {
    id: "reason",
    tag: "reason",
    body: jsonContent(REASON_BODY),
    answers: answersJson(REASONED, "What was computed, and the markers"),
    failures: [404, 409, 422, 500, 503],
  },
  "POST /v1/infer": {
    id: "infer",
    tag: "infer",
    body: jsonContent(INFER_BODY),
    answers: answersJson(INFERRED, "The answer of the model"),
    failures: [404, 409, 422, 500, 503],
  },
  "POST /v1/infer/batch": {
    id: "inferBatch",
    tag: "infer",
    body: jsonContent(INFER_BATCH_BODY),
    answers: answersJson(INFERRED_BATCH, "An item for each question, in their order"),
    failures: [404, 409, 422, 500],
  },
  "GET /v1/models": {
    id: "listModels",
    tag: "infer",
    answers: answersJson(MODELS, "The catalog"),
    failures: [500],
  },
};
