/** A timeline of many events, like that of a service that analyzes files. */

import { yieldToEventLoop } from "../src/base/wait.ts";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { quietWorld } from "./support.ts";

export interface FilledTimeline {
  readonly dataDir: string;
  readonly events: number;
  readonly runs: number;
  /** The owner of a run; the runs are numbered from 0. */
  readonly principalOf: (run: number) => string;
}

/** Most events are markers of about 300 bytes. Returns the bytes of the log. */
export async function fillTimeline({ dataDir, events, runs, principalOf }: FilledTimeline): Promise<number> {
  await using timeline = await Timeline.open({ dataDir, world: quietWorld(), sync: "none" });
  for (let seq = 1; seq <= events; seq++) {
    const run = seq % runs;
    const first = seq <= runs;
    timeline.commit(() => [
      first ? creation(run, principalOf(run)) : seq <= 2 * runs ? ingest(run) : marker(run, seq),
    ]);
    // Yields, so that full segments are synced in between, as in the service.
    if (seq % 10_000 === 0) await yieldToEventLoop();
  }
  return timeline.stats.bytes;
}

export function runId(number: number): string {
  return `run-${number.toString(16).padStart(32, "0")}`;
}

function creation(run: number, principalKey: string) {
  const payload = {
    request_id: "req-0000000000000001",
    mode: "balanced",
    model: null,
    principal_key: principalKey,
    tenant_id: null,
  };
  return { kind: "run_created", runId: runId(run), payload };
}

function ingest(run: number) {
  const payload = {
    request_id: "req-0000000000000002",
    source_uri: `/srv/media/${run}.mp4`,
    status: "processing",
  };
  return { kind: "ingest_received", runId: runId(run), payload };
}

function marker(run: number, seq: number) {
  const payload = {
    marker_id: `mk-${(seq % 4096).toString(16).padStart(8, "0")}`,
    run_id: runId(run),
    stream_id: "stream-0",
    event_type: "keyframe_keep",
    status: "exact",
    start_frame: seq % 5000,
    end_frame: seq % 5000 + 12,
    start_pts_ms: seq * 33,
    end_pts_ms: seq * 33 + 396,
    confidence: 0.7361538410186768,
    supersedes_marker_id: null,
  };
  return { kind: "marker_emitted", runId: runId(run), payload };
}
