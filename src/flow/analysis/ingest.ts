/** Ingest: decodes a source into the signals of sampled frames, and appends them to the timeline. */

import { freeMemory } from "../../base/bytes.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import type { DecodedSignals, Decoder } from "../../media/files/decoder.ts";
import { newProgress, readProgress } from "../../media/files/decode_progress.ts";
import type { IngestBody } from "../../model/api/analysis.ts";
import { event } from "../../model/events/event_table.ts";
import { COORDINATE_SCHEMA } from "../../model/frames/coordinates.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { PreparedPayload } from "../../model/runs/run.ts";
import { rowRanges } from "../../model/frames/row_range.ts";
import { plannedEndMs, planSampling, type SamplingPlan } from "../../model/frames/sampling.ts";
import { signalRowsJson } from "../../model/frames/signals_json.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { actionableRun, explainedFailure, stillActionableRun } from "../runs/ownership.ts";
import type { RunWork } from "../runs/run_work.ts";
import type { OpenedSource, Sources } from "../sources/sources.ts";

export interface IngestOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly work: RunWork;
  readonly decoder: Decoder;
  readonly sources: Sources;
  readonly streamTtlMs: number;
}

export interface IngestAnswer extends SourceEnd {
  readonly request_id: string;
  readonly run_id: string;
  readonly status: "processing";
  readonly decoded_frames: number;
  readonly truncated: boolean;
  readonly source_uri: string;
  readonly sampling_policy: string;
  readonly source_fps: number | null;
  readonly sample_fps: number;
}

/** Rows of signals that are encoded before other requests get a turn. */
const ROWS_PER_TURN = 1024;
/** What the caller wants of the run, for error messages. */
const ACTION = "ingest into";

/** See docs/api/ingest.md#ingest. */
export class Ingest {
  readonly #options: IngestOptions;

  constructor(options: IngestOptions) {
    this.#options = options;
  }

  /**
   * Appends both events in one commit, after the whole source was decoded. Errors: 404, 409 when the run is
   * or becomes terminal, 422 with the field, `source_uri` for any media fault, 507 `storage_quota`.
   */
  async run(caller: Caller, runId: string, body: IngestBody): Promise<IngestAnswer> {
    const { timeline, work, decoder, sources } = this.#options;
    const { principalKey } = caller;
    this.#actionable(caller, runId);
    timeline.requireRoom(principalKey);
    const maxFrames = body.max_frames ?? LIMITS.ingest.maxFramesDefault;
    const rules = new FieldRules();
    const streamId = rules.name("stream_id", body.stream_id) ?? DEFAULT_STREAM_ID;
    rules.range("max_frames", maxFrames, LIMITS.ingest.maxFrames);
    rules.check();
    const sampling = { policy: body.sampling_policy, fixedFps: body.fixed_fps, sampleFps: body.sample_fps };
    planSampling(sampling, null, "ingest"); // refuses an invalid policy before the source is opened

    using handle = work.begin(runId, caller.signal);
    try {
      await using source = await sources.open(body.source_uri, principalKey, handle.signal);
      const info = await source.explained(decoder.probe(source.input, handle.signal, {
        ...{ principalKey, videoStream: body.video_stream },
      }));
      const plan = planSampling(sampling, info.video?.averageFps ?? null, "ingest");
      const startedMs = this.#options.world.monotonicMs();
      const progress = newProgress();
      const end_ms = plannedEndMs(plan, maxFrames, info.durationMs);
      handle.tells(() => {
        const { frames, ptsMs: pts_ms } = readProgress(progress);
        return { work: "ingest", frames, pts_ms, end_ms };
      });
      const { signal } = handle;
      const sourceFault = () => source.fault();
      const request = {
        principalKey,
        input: source.input,
        info,
        plan,
        maxFrames,
        progress,
        sourceFault,
        signal,
      };
      const decoded = await source.explained(decoder.decodeSignals(request));
      this.#count(decoded.signals.count, this.#options.world.monotonicMs() - startedMs);
      const facts = { caller, streamId, sourceUri: source.uri, plan, info, decoded };
      using framesDecoded = timeline.newPayload();
      await writeFramesDecoded(framesDecoded, facts);
      freeMemory(Object.values(decoded.signals).filter((column) => typeof column !== "number"));
      handle.signal.throwIfAborted();

      this.#commit(caller, runId, { body, source, info, plan, decoded, framesDecoded });
      return {
        request_id: caller.requestId,
        run_id: runId,
        status: "processing",
        decoded_frames: decoded.signals.count,
        truncated: decoded.isTruncated,
        ...decoded.end,
        source_uri: source.uri,
        sampling_policy: plan.policy,
        source_fps: plan.sourceFps,
        sample_fps: plan.sampleFps,
      };
    } catch (error) {
      const run = { view: timeline.view, caller, runId, action: ACTION };
      throw explainedFailure(error, handle.signal, run);
    }
  }

  #commit(caller: Caller, runId: string, { body, source, info, plan, decoded, framesDecoded }: {
    readonly body: IngestBody;
    readonly source: Pick<OpenedSource, "uri" | "name">;
    readonly info: MediaInfo;
    readonly plan: SamplingPlan;
    readonly decoded: DecodedSignals;
    readonly framesDecoded: PreparedPayload;
  }): void {
    this.#options.timeline.commit((view) => {
      stillActionableRun(view, caller, runId, ACTION);
      return [
        event("ingest_received", runId, {
          request_id: caller.requestId,
          ingest: {
            source_uri: body.source_uri,
            sampling_policy: body.sampling_policy ?? null,
            fixed_fps: body.fixed_fps ?? null,
            sample_fps: body.sample_fps ?? null,
            max_frames: body.max_frames ?? null,
            stream_id: body.stream_id ?? null,
            ...(body.video_stream != null && { video_stream: body.video_stream }),
          },
          decoded_frames: decoded.signals.count,
          source_uri: source.uri,
          ...(source.name !== undefined && { source_name: source.name }),
          ...(info.videoStartMs !== undefined && { video_start_ms: info.videoStartMs }),
          sampling_policy: plan.policy,
          sample_fps: plan.sampleFps,
        }),
        { kind: "frames_decoded", runId, payload: framesDecoded },
      ];
    });
  }

  #actionable(caller: Caller, runId: string): void {
    const { timeline, world, streamTtlMs } = this.#options;
    actionableRun(timeline.view, caller, runId, { nowMs: world.now(), ttlMs: streamTtlMs }, ACTION);
  }

  /**
   * Recorded media counts into the metrics of live media: the whole pass, and the average latency of a frame.
   */
  #count(frames: number, tookMs: number): void {
    const { metrics } = this.#options;
    metrics.add("service_pipeline_frames_decoded_total", frames);
    metrics.observe("service_pipeline_decode_latency_us", tookMs * 1000 / frames);
  }
}

/** Whether some row tells of one cut only, and two lie before it. */
function hasCutsBetweenRows({ signals, cutsMs }: DecodedSignals): boolean {
  const inRows = signals.cutPtsMs?.reduce((count, ptsMs) => count + (Number.isNaN(ptsMs) ? 0 : 1), 0);
  return cutsMs.length > (inRows ?? 0);
}

/** Fills the payload of `frames_decoded`. Other requests get a turn while a long one is encoded. */
async function writeFramesDecoded(payload: PreparedPayload, facts: {
  caller: Caller;
  streamId: string;
  sourceUri: string;
  plan: SamplingPlan;
  info: MediaInfo;
  decoded: DecodedSignals;
}): Promise<void> {
  const { caller, streamId, sourceUri, plan, info, decoded } = facts;
  const { signals, coordinates } = decoded;
  const { ranges, isTruncated } = rowRanges(decoded.ranges, signals.ptsMs.subarray(0, signals.count));
  const head = JSON.stringify({
    request_id: caller.requestId,
    source_uri: sourceUri,
    stream_id: streamId,
    sampling_policy: plan.policy,
    source_fps: plan.sourceFps,
    sample_fps: plan.sampleFps,
    decoded_frames: signals.count,
    truncated: decoded.isTruncated,
    ...decoded.end,
    width: decoded.width,
    height: decoded.height,
    pixel_format: decoded.pixelFormat,
    ...(decoded.fieldOrder && { field_order: decoded.fieldOrder }),
    video_stream: info.video!.streamIndex,
    video_streams: info.videoStreams,
    decode_backend: decoded.decodeBackend,
    coordinate_schema: COORDINATE_SCHEMA,
    coordinates,
    ranges,
    ...(isTruncated && { ranges_truncated: true }),
    ...(hasCutsBetweenRows(decoded) && { cuts_ms: decoded.cutsMs.map(Math.round) }),
  });
  const encoder = new TextEncoder();
  payload.add(encoder.encode(`${head.slice(0, -1)},"signals":[`));
  for (let start = 0; start < signals.count; start += ROWS_PER_TURN) {
    const end = Math.min(signals.count, start + ROWS_PER_TURN);
    payload.add(encoder.encode((start > 0 ? "," : "") + signalRowsJson(signals, start, end)));
    if (end < signals.count) await yieldToEventLoop();
  }
  payload.add(encoder.encode("]}"));
}
