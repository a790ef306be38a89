/** `analyze` with a model: asks chunk by chunk, shows how far it is, and prints what was said. */

import { type Client, DEFAULT_MODEL } from "../../../client/mod.ts";
import { clock, type Marker, marksOf } from "../../contact_sheet/marks.ts";
import { CliError } from "../../failure.ts";
import { Progress } from "../../output/progress.ts";
import { tableLines } from "../../output/table.ts";
import { laneColumns, timelineLines } from "../../output/timeline.ts";
import type { Flags, Session } from "../../session.ts";
import { asking, withDecodeProgress } from "./decode_progress.ts";
import type { AnalyzedSource } from "./source.ts";
import { ingestRequest, reasonRequest, truncatedText } from "./requests.ts";
import { sourceEndWarnings } from "./source_end.ts";

const POLL_MS = 750;

export async function reasonAbout(
  session: Session,
  client: Client,
  source: AnalyzedSource,
  flags: Flags,
): Promise<void> {
  const { out, signal } = session;
  const model = flags.model ?? await readyModel(session, client, flags);
  const request = reasonRequest(source.source_uri, model, flags);
  const { mode } = flags;
  const { run_id } = await client.createRun({ model, ...(mode !== undefined && { mode }) }, { signal });
  try {
    if (flags.withIngest) {
      const ingest = ingestRequest(source.source_uri, { ...flags, samplingPolicy: request.sampling_policy });
      await withDecodeProgress(
        session,
        { client, run_id, title: source.title },
        () => client.ingestRun(run_id, ingest, { signal }),
      );
    }
    const answer = await withChunkProgress(
      session,
      { client, run_id },
      () => client.reason(run_id, request, { signal }),
    );
    const { metadata, ...rest } = answer;
    if (answer.truncated) out.warn(truncatedText(answer.decoded_frames));
    if (answer.chunks_failed) {
      const { chunks_failed, first_chunk_error = "the reason is not known", tokens } = answer;
      const reason = first_chunk_error.replaceAll("_", " ");
      out.warn(`${chunks_failed} of ${tokens.chunks_analyzed} questions got no answer: ${reason}`);
    }
    const interactions = await client.getInteractions(run_id, undefined, { signal });
    if (out.isJson) {
      return out.json({ ...rest, ...(flags.includeFrameMetadata && { metadata }), interactions });
    }
    if (out.isQuiet) return out.line(run_id);
    sourceEndWarnings(answer).forEach((warning) => out.warn(warning));
    await printInteractions(session, interactions);
    printMarks(session, answer.markers);
    const { tokens, markers_emitted, decoded_frames } = answer;
    out.line(
      `${run_id}: ${decoded_frames} frames, ${tokens.chunks_analyzed} chunks, ${markers_emitted} markers, ` +
        `${tokens.total_tokens} tokens, asked ${model}`,
    );
  } catch (error) {
    out.note(`${run_id} is kept; \`runs rm ${run_id}\` removes it`);
    throw error;
  }
}

/** What was measured, and in lanes of their own what the model calls a cut or a fault. */
function printMarks({ out }: Session, markers: readonly Marker[]): void {
  const marks = marksOf(markers, () => "");
  if (marks.length === 0) return;
  const endMs = markers.reduce((latest, { end_pts_ms }) => Math.max(latest, end_pts_ms), 1);
  timelineLines({ marks, firstMs: 0, endMs }, laneColumns(out.columns)).forEach((line) => out.line(line));
  out.line("");
}

async function printInteractions(
  { out }: Session,
  interactions: readonly Record<string, unknown>[],
): Promise<void> {
  if (interactions.length === 0) return out.line("No model said anything.");
  const rows = interactions.map((item) => [
    clock(Number(item.pts_start_ms)),
    clock(Number(item.pts_end_ms)),
    String(item.event_type ?? item.kind ?? ""),
    saidIn(item),
  ]);
  const columns = [{ title: "FROM", isRight: true }, { title: "TO", isRight: true }, { title: "TYPE" }, {
    title: "WHAT WAS SAID",
  }];
  const lines = await tableLines(columns, rows, { paint: out.paint, columns: Infinity });
  lines.forEach((line) => out.line(line));
  out.line("");
}

/** Of an answer of another shape, the JSON without what stands in the other columns. */
function saidIn(item: Record<string, unknown>): string {
  const { chunk_index: _, pts_start_ms: _from, pts_end_ms: _to, ...rest } = item;
  const text = item.description || item.summary || item.object_label;
  return typeof text === "string" && text !== "" ? text : JSON.stringify(rest);
}

/**
 * The first model that can be reached; without one the standard model, which the server then falls back from.
 */
async function readyModel({ out, signal }: Session, client: Client, { vlm }: Flags): Promise<string> {
  if (vlm === false) return DEFAULT_MODEL;
  const models = await client.listModels({ signal });
  const ready = models.filter(({ availability }) => availability === "ready");
  const model = ready.find(({ id }) => id === DEFAULT_MODEL) ?? ready[0] ??
    models.find(({ availability }) => availability === "saturated");
  if (!model) {
    throw new CliError("server", "no model can be reached", "`models` lists them; --no-vlm asks none");
  }
  out.note(`asking ${model.id}`);
  return model.id;
}

/** Runs `work`, and meanwhile counts the chunks that the run's events tell of. */
async function withChunkProgress<T>(
  { out, signal }: Session,
  { client, run_id }: { readonly client: Client; readonly run_id: string },
  work: () => Promise<T>,
): Promise<T> {
  using progress = new Progress(out, {
    what: "asking the model",
    amount: (count) => `${Math.round(count)} chunks`,
    rate: (perSecond) => `${perSecond.toFixed(2)} chunks/s`,
  });
  let done = 0;
  let from_seq = 0;
  let askedUpToMs = 0;
  using _asking = asking(POLL_MS, async () => {
    const { matches } = await client.query({ run_id, kind: "semantic_chunk_inferred", from_seq }, { signal });
    done += matches.length;
    from_seq = (matches.at(-1)?.seq ?? from_seq - 1) + 1;
    askedUpToMs = Math.max(askedUpToMs, ...matches.map(({ payload }) => Number(payload.pts_end_ms ?? 0)));
    const { end_ms = null } = await client.getRunProgress(run_id, { signal }) ?? {};
    progress.update(done, chunksIn(end_ms, done, askedUpToMs));
  });
  return await work();
}

/**
 * All chunks are about as long as those that are done; null before the first one, and where the end is not
 * known.
 */
function chunksIn(endMs: number | null, done: number, askedUpToMs: number): number | null {
  return endMs === null || askedUpToMs === 0 ? null : Math.max(done, Math.ceil(endMs / askedUpToMs * done));
}
