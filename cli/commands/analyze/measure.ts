/** `analyze` without a model: every frame is measured, and what follows from that is printed. */

import { type Client, DEFAULT_MODEL, MAX_ROWS } from "../../../client/mod.ts";
import { FilmTimes, TIME_POINTS } from "../../contact_sheet/film_times.ts";
import { clock, type Mark, marksOf, rateText } from "../../contact_sheet/marks.ts";
import { Progress } from "../../output/progress.ts";
import { laneColumns, timelineLines } from "../../output/timeline.ts";
import { visible } from "../../output/visible.ts";
import type { Flags, Session } from "../../session.ts";
import { withDecodeProgress } from "./decode_progress.ts";
import type { AnalyzedSource } from "./source.ts";
import { ingestRequest, truncatedText } from "./requests.ts";
import { writeSheet } from "./sheet_file.ts";
import { sourceEndWarnings } from "./source_end.ts";

const NOTE_AT_MOST = 200;

export async function measure(
  session: Session,
  client: Client,
  source: AnalyzedSource,
  flags: Flags,
): Promise<void> {
  const { out, signal } = session;
  const { mode, model = DEFAULT_MODEL } = flags;
  const { run_id } = await client.createRun({
    ...(flags.model !== undefined && { model: flags.model }),
    ...(mode !== undefined && { mode }),
  }, { signal });
  try {
    const ingested = await withDecodeProgress(
      session,
      { client, run_id, title: source.title },
      () => client.ingestRun(run_id, ingestRequest(source.source_uri, flags), { signal }),
    );
    const { decoded_frames: frames, sample_fps: fps, truncated } = ingested;
    const times = new FilmTimes(await client.getSignals(run_id, { points: TIME_POINTS }, { signal }), fps);
    out.note(
      `decoded ${frames} frames at ${rateText(fps)} a second, ${clock(Math.round(times.lengthMs))} of video`,
    );
    sourceEndWarnings(ingested).forEach((warning) => out.warn(warning));
    if (truncated) out.warn(truncatedText(frames));
    const analyzed = await timed(
      session,
      "looking for marks",
      () =>
        client.analyzeRun(run_id, {
          model,
          ...(mode !== undefined && { mode }),
          include_frame_metadata: frames <= MAX_ROWS,
          complete: true,
        }, { signal }),
    );
    const markers = await client.getMarkers(run_id, {}, { signal });
    const marks = marksOf(markers, (frame) => noteOf(analyzed.metadata, frame));
    const sheet = flags.sheet as string | undefined;
    if (sheet !== undefined) {
      await timed(
        session,
        "cutting out pictures",
        () => writeSheet(sheet, { title: source.title, path: source.file!, times, fps, marks }),
      );
    }
    print(session, { run_id, ingested, times, markers, marks, sheet });
  } catch (error) {
    // Nothing is in it that would be missed. What matters is the failure.
    await client.deleteRun(run_id).catch(() => {});
    throw error;
  }
}

interface Measured {
  readonly run_id: string;
  readonly ingested: object;
  readonly times: FilmTimes;
  readonly markers: readonly unknown[];
  readonly marks: readonly Mark[];
  readonly sheet: string | undefined;
}

function print({ out }: Session, { run_id, ingested, times, markers, marks, sheet }: Measured): void {
  if (out.isJson) return out.json({ run_id, ingest: ingested, markers, sheet: sheet ?? null });
  if (out.isQuiet) return out.line(run_id);
  const { firstMs, endMs } = times;
  timelineLines({ marks, firstMs, endMs }, laneColumns(out.columns)).forEach((line) => out.line(line));
  out.line("");
  out.line(`${run_id}: ${marks.length} marks of ${markers.length} markers`);
  if (sheet !== undefined) out.line(`contact sheet: ${visible(sheet)}`);
}

function noteOf(rows: readonly object[], frame: number): string {
  const row = rows[frame] as { annotations?: { events?: { description?: string }[] } } | undefined;
  return (row?.annotations?.events?.[0]?.description ?? "").slice(0, NOTE_AT_MOST);
}

async function timed<T>({ out }: Session, what: string, work: () => Promise<T>): Promise<T> {
  using _progress = new Progress(out, { what });
  return await work();
}
