/** Routes of ingest and deterministic analysis. */

import { yieldToEventLoop } from "../../base/wait.ts";
import type { AnalyzeResult } from "../../flow/analysis/analyze.ts";
import { ANALYZE_BODY, ANALYZED, INGEST_BODY, INGESTED } from "../../model/api/analysis.ts";
import { frameRow } from "../../model/frames/frame_row.ts";
import { json, jsonStream } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

export const ANALYSIS_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/ingest",
    id: "ingestRun",
    tag: "ingest",
    summary: "Decodes a source into sampled frames with signals.",
    body: jsonContent(INGEST_BODY),
    answers: answersJson(INGESTED, "What was decoded"),
    failures: [404, 409, 422, 500, 503],
    once: { kinds: ["ingest_received"] },
    handle: async (call) => {
      const body = await readJson(call, INGEST_BODY);
      return json(await call.use.ingest.run(call.caller, parameter(call, "id"), body));
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/analyze",
    id: "analyzeRun",
    tag: "analyze",
    summary: "Derives rows and markers from signals.",
    body: jsonContent(ANALYZE_BODY),
    answers: answersJson(ANALYZED, "A row for each frame, and the markers"),
    failures: [404, 409, 422, 500],
    once: { kinds: ["marker_emitted", "analysis_generated"] },
    handle: async (call) => {
      const body = await readJson(call, ANALYZE_BODY);
      return jsonStream(analysisJson(await call.use.analyze.run(call.caller, parameter(call, "id"), body)));
    },
  },
];

/** Rows or markers in one chunk of the response. */
const ROWS_PER_CHUNK = 64;

async function* analysisJson(
  { context, frames, markers, end, includesRows }: AnalyzeResult,
): AsyncIterable<string> {
  const rows = frames.gate.count;
  const head = JSON.stringify({
    request_id: context.requestId,
    run_id: context.runId,
    generated: rows,
    ...end,
  });
  yield `${head.slice(0, -1)},"metadata":[`;
  yield* jsonItems(includesRows ? rows : 0, (row) => JSON.stringify(frameRow(context, frames, row)));
  yield `],"markers":[`;
  yield* jsonItems(markers.length, (index) => JSON.stringify(markers[index]));
  yield "]}";
}

/**
 * The items of a JSON array, with commas, many in one chunk of the response, and a turn for others after each
 * chunk.
 */
export async function* jsonItems(count: number, textOf: (index: number) => string): AsyncIterable<string> {
  for (let start = 0; start < count; start += ROWS_PER_CHUNK) {
    let chunk = "";
    const end = Math.min(count, start + ROWS_PER_CHUNK);
    for (let index = start; index < end; index++) chunk += (index > 0 ? "," : "") + textOf(index);
    yield chunk;
    await yieldToEventLoop();
  }
}
