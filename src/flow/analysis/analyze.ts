/** Analyze: turns the signals of frames into gate decisions, rows and markers, all deterministic. */

import { chosenDetectors } from "../../model/frames/detected_range.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { GateKernel } from "../../media/kernels/gate_kernel.ts";
import type { AnalyzeBody, CallerFrame } from "../../model/api/analysis.ts";
import { COORDINATE_SCHEMA, type ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { type AnalyzedFrames, isKept, type RowContext, typedFrames } from "../../model/frames/frame_row.ts";
import { DEFAULT_STREAM_ID, defaultTraceId } from "../../model/identifiers.ts";
import { type LabelMaps, labelsOf } from "../../model/frames/label_map.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type Marker, MarkerBuilder } from "../../model/frames/marker.ts";
import { type RowRange, withRangeMarkers } from "../../model/frames/row_range.ts";
import type { RunView } from "../../model/runs/run.ts";
import { parseSamplingPolicy, type SamplingPolicy } from "../../model/frames/sampling.ts";
import {
  GATE_REASONS,
  type GateColumns,
  type GateThresholds,
  type SignalColumns,
} from "../../model/frames/signals.ts";
import { columnsOf } from "../../model/frames/signals_json.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { isLongDecode, readDecoded } from "./decoded_signals.ts";
import { FRAMES_PER_TURN, gated } from "./gated_frames.ts";
import type { Inference } from "../infer/inference.ts";
import type { LargeReads } from "../large_reads.ts";
import { actionableRun, stillActionableRun } from "../runs/ownership.ts";
import type { RunWork } from "../runs/run_work.ts";

export interface AnalyzeOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly work: RunWork;
  readonly gate: GateKernel;
  /** Knows the models that a caller may name. */
  readonly inference: Pick<Inference, "identify">;
  readonly thresholds: GateThresholds;
  readonly streamTtlMs: number;
  readonly labelMaps: LabelMaps | null;
  readonly reads: LargeReads;
}

/** The result of one call; the rows are made from it one at a time when the response is written. */
export interface AnalyzeResult {
  readonly context: RowContext;
  readonly frames: AnalyzedFrames;
  readonly markers: readonly Marker[];
  readonly includesRows: boolean;
  /** How the source of the decode ended; nothing for frames that the caller sent. */
  readonly end: SourceEnd;
}

/** Frames, and how their source was sampled. */
interface SourceFrames {
  readonly frameIndex: Float64Array;
  readonly signals: SignalColumns;
  readonly samplingPolicy: SamplingPolicy;
  readonly sampleFps: number;
  /** The next ones are of decoded frames. */
  readonly coordinates?: ImageCoordinates;
  readonly isTruncated?: boolean;
  readonly ranges?: readonly RowRange[];
  readonly cutsMs?: readonly number[];
  readonly end?: SourceEnd;
}

/** Markers of one commit: writing the markers of a long file must not block other requests. */
const MARKERS_PER_COMMIT = 256;

/** See docs/api/analyze.md#analyze and docs/frames.md#gate. */
export class Analyze {
  readonly #options: AnalyzeOptions;

  constructor(options: AnalyzeOptions) {
    this.#options = options;
  }

  /**
   * Errors: 404, 409 when terminal, 422 on `model`, `mode`, `frames`, `window_size`, `segment_ms`,
   * `detectors`, sampling fields; 503 where too many read long decodes; 507.
   */
  async run(caller: Caller, runId: string, body: AnalyzeBody): Promise<AnalyzeResult> {
    const { gate, thresholds, world, inference } = this.#options;
    const identify = await inference.identify([body.model], caller.signal);
    const run = this.#actionable(caller, runId);
    this.#options.timeline.requireRoom(caller.principalKey);
    const rules = new FieldRules();
    const mode = rules.mode(body.mode);
    const model = rules.model(body.model, identify);
    const windowSize = body.window_size ?? LIMITS.analyze.windowSizeDefault;
    const segmentMs = body.segment_ms ?? LIMITS.analyze.segmentMsDefault;
    rules.range("window_size", windowSize, LIMITS.analyze.windowSize);
    rules.range("segment_ms", segmentMs, LIMITS.analyze.segmentMs);
    const policy = checkedPolicy(rules, body);
    const streamId = rules.name("stream_id", body.stream_id) ?? DEFAULT_STREAM_ID;
    const traceId = rules.name("trace_id", body.trace_id) ?? defaultTraceId(caller.requestId);
    const detectors = chosenDetectors(body.detectors, rules);
    checkFrames(rules, body.frames ?? []);
    rules.check();

    const source = body.frames?.length
      ? callerFrames(body.frames, policy, body.fixed_fps)
      : await this.#decodedFrames(caller, run);
    await yieldToEventLoop(); // thousands of frames were just parsed
    const startedMs = world.monotonicMs();
    const columns = await gated(source, thresholds, windowSize, gate);
    this.#count(columns, world.monotonicMs() - startedMs);
    const frames = { frameIndex: source.frameIndex, signals: source.signals, gate: columns };
    const context: RowContext = {
      runId,
      streamId,
      mode,
      model,
      samplingPolicy: source.samplingPolicy,
      sampleFps: source.sampleFps,
      segmentMs,
      requestId: caller.requestId,
      traceId,
      labels: labelsOf(this.#options.labelMaps, caller.principalKey),
      ...(source.coordinates && { coordinates: source.coordinates }),
    };
    const owner = { runId, streamId };
    const markers = withRangeMarkers(
      await segmentMarkers(frames, context, source.cutsMs),
      source.ranges ?? [],
      {
        owner,
        labels: context.labels,
        detectors,
      },
    );
    const end = source.end ?? {};
    await this.#commit(caller, context, {
      frames: columns.count,
      isTruncated: source.isTruncated,
      windowSize,
      markers,
      end,
      isLast: body.complete === true,
    });
    return { context, frames, markers, end, includesRows: body.include_frame_metadata ?? true };
  }

  /**
   * One `marker_emitted` per marker, then `analysis_generated`, and `run_completed` where the caller wants no
   * other analysis; in several commits, so that a stop in between counts.
   */
  async #commit(
    caller: Caller,
    context: RowContext,
    found: {
      readonly frames: number;
      readonly isTruncated: boolean | undefined;
      readonly windowSize: number;
      readonly markers: readonly Marker[];
      readonly end: SourceEnd;
      readonly isLast: boolean;
    },
  ): Promise<void> {
    const { timeline, work } = this.#options;
    const { runId, coordinates } = context;
    const ending = [event("analysis_generated", runId, {
      request_id: caller.requestId,
      stream_id: context.streamId,
      frames: found.frames,
      window_size: found.windowSize,
      segment_ms: context.segmentMs,
      sampling_policy: context.samplingPolicy,
      sample_fps: context.sampleFps,
      mode: context.mode,
      model: context.model,
      markers: found.markers.length,
      ...(coordinates && { coordinate_schema: COORDINATE_SCHEMA, coordinates }),
      ...(found.isTruncated !== undefined && { truncated: found.isTruncated }),
      ...found.end,
    })];
    if (found.isLast) {
      ending.push(event("run_completed", runId, {
        request_id: caller.requestId,
        stream_id: context.streamId,
        frames: found.frames,
        markers: found.markers.length,
        index_name: null,
      }));
    }
    for (let start = 0;; start += MARKERS_PER_COMMIT) {
      const end = start + MARKERS_PER_COMMIT;
      const isLast = end >= found.markers.length;
      timeline.commit((view) => {
        stillActionableRun(view, caller, runId, "analyze");
        const emitted = found.markers.slice(start, end).map((marker) =>
          event("marker_emitted", runId, marker)
        );
        return isLast ? [...emitted, ...ending] : emitted;
      });
      if (isLast) break;
      await yieldToEventLoop();
    }
    // Other work under way for a run that has ended would only fail at its end.
    if (found.isLast) work.end(runId);
  }

  /**
   * Recorded media counts into the metrics of live media: the whole pass, and the average latency of a frame.
   */
  #count(gate: GateColumns, tookMs: number): void {
    const { metrics } = this.#options;
    const kept = gate.reason.reduce((count, reason) => count + (isKept(GATE_REASONS[reason]!) ? 1 : 0), 0);
    metrics.add("service_pipeline_gate_frames_analyzed_total", gate.count);
    metrics.add("service_pipeline_gate_keyframes_selected_total", kept);
    metrics.observe("service_pipeline_gate_latency_us", tookMs * 1000 / gate.count);
  }

  #actionable(caller: Caller, runId: string): RunView {
    const { timeline, world, streamTtlMs } = this.#options;
    const clock = { nowMs: world.now(), ttlMs: streamTtlMs };
    return actionableRun(timeline.view, caller, runId, clock, "analyze");
  }

  /** Signals, policy and rate of the run's latest decode; the sampling fields of the request are ignored. */
  async #decodedFrames(caller: Caller, { latestFramesDecodedSeq: seq }: RunView): Promise<SourceFrames> {
    const { timeline, reads } = this.#options;
    if (isLongDecode(timeline, seq)) await reads.decode(caller);
    const decoded = await readDecoded(timeline, seq);
    if (decoded === null) {
      throw refuse.invalid(
        "frames",
        "are needed as the run has no decoded frames; ingest a source first or send frames",
      );
    }
    const { head, columns } = decoded;
    return {
      ...columns,
      samplingPolicy: head.sampling_policy,
      sampleFps: head.sample_fps,
      coordinates: head.coordinates,
      isTruncated: head.truncated,
      ranges: head.ranges ?? [],
      cutsMs: head.cuts_ms ?? [],
      end: sourceEndOf(head),
    };
  }
}

/** Only what says how the source ended. */
function sourceEndOf({ ended_early, source_warning }: SourceEnd): SourceEnd {
  return { ...(ended_early && { ended_early }), ...(source_warning !== undefined && { source_warning }) };
}

async function segmentMarkers(
  frames: AnalyzedFrames,
  { labels, runId, streamId }: RowContext,
  cutsMs: readonly number[] | undefined,
): Promise<Marker[]> {
  const builder = new MarkerBuilder({ runId, streamId });
  let taken = 0;
  for (const frame of typedFrames(frames, labels, cutsMs)) {
    builder.add(frame);
    if (++taken % FRAMES_PER_TURN === 0) await yieldToEventLoop();
  }
  await yieldToEventLoop();
  return builder.end();
}

function checkedPolicy(rules: FieldRules, body: AnalyzeBody): SamplingPolicy {
  const policy = parseSamplingPolicy(body.sampling_policy);
  if (!policy) rules.fault("sampling_policy", "must be source_fps_adaptive or fixed");
  if (body.fixed_fps != null) rules.range("fixed_fps", body.fixed_fps, LIMITS.sampling.fps);
  else if (policy === "fixed") rules.fault("fixed_fps", "is required when sampling_policy is fixed");
  return policy ?? "source_fps_adaptive";
}

function checkFrames(rules: FieldRules, frames: readonly CallerFrame[]): void {
  if (frames.length > LIMITS.analyze.framesMax) {
    rules.fault("frames", `must be at most ${LIMITS.analyze.framesMax}: got ${frames.length}`);
    return;
  }
  const scores = [
    "luma_mean",
    "flicker_score",
    "ghosting_score",
    "noise_variance_score",
    "cut_score",
    "artifact_score",
  ] as const;
  for (const [index, frame] of frames.entries()) {
    const broken = scores.find((score) => {
      const value = frame[score];
      return value !== undefined && !(value >= 0 && value <= 1);
    });
    if (broken) {
      rules.fault("frames", `[${index}].${broken} must be from 0 to 1: got ${frame[broken]}`);
      return;
    }
  }
}

function callerFrames(
  frames: readonly CallerFrame[],
  policy: SamplingPolicy,
  fixedFps: number | null | undefined,
): SourceFrames {
  return {
    ...columnsOf(frames),
    samplingPolicy: policy,
    sampleFps: policy === "fixed" ? fixedFps! : measuredFps(frames),
  };
}

/**
 * 1000 over the mean positive distance of two frames, within the sampling range; 1 where there is no such
 * distance.
 */
function measuredFps(frames: readonly CallerFrame[]): number {
  let sumMs = 0;
  let distances = 0;
  for (let index = 1; index < frames.length; index++) {
    const distanceMs = frames[index]!.pts_ms - frames[index - 1]!.pts_ms;
    if (distanceMs <= 0) continue;
    sumMs += distanceMs;
    distances += 1;
  }
  if (distances === 0) return 1;
  const { minimum, maximum } = LIMITS.sampling.fps;
  return Math.min(maximum, Math.max(minimum, 1000 / (sumMs / distances)));
}
