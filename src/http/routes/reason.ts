/** The route of prompt-driven analysis. */

import type { Reasoned } from "../../flow/reason/reason.ts";
import { REASON_BODY, REASONED } from "../../model/api/reason.ts";
import { frameRow } from "../../model/frames/frame_row.ts";
import { jsonStream } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";
import { jsonItems } from "./analysis.ts";

export const REASON_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/reason",
    id: "reason",
    tag: "reason",
    summary: "Analyzes a source chunk by chunk with a model.",
    body: jsonContent(REASON_BODY),
    answers: answersJson(REASONED, "What was computed, and the markers"),
    failures: [404, 409, 422, 500, 503],
    once: { kinds: ["ingest_received"] },
    handle: async (call) => {
      const body = await readJson(call, REASON_BODY);
      return jsonStream(reasonJson(await call.use.reason.run(call.caller, parameter(call, "id"), body)));
    },
  },
];

/** `generated` counts the rows that were computed, whether or not they are in the response. */
async function* reasonJson(reasoned: Reasoned): AsyncIterable<string> {
  const { context, frames, chunks, markers, lag, spent, failed, isTruncated, end, includesRows } = reasoned;
  const rows = frames.gate.count;
  const head = JSON.stringify({
    request_id: context.requestId,
    run_id: context.runId,
    generated: rows,
    markers_emitted: markers.length,
    decoded_frames: rows,
    truncated: isTruncated,
    ...end,
    sample_fps: context.sampleFps,
    lag_p95_ms: lag.p95Ms,
    lag_p99_ms: lag.p99Ms,
    tokens: spent,
    ...failed,
    frame_metadata_included: includesRows,
  });
  yield `${head.slice(0, -1)},"metadata":[`;
  if (includesRows) {
    yield* jsonItems(rows, (row) => JSON.stringify(frameRow(context, frames, row, chunks.semanticsOf(row))));
  }
  yield `],"markers":[`;
  yield* jsonItems(markers.length, (index) => JSON.stringify(markers[index]));
  yield "]}";
}
