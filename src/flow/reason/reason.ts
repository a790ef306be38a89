/** Reason: analyzes a recording chunk by chunk with a model, in addition to the deterministic analysis. */

import type { Metrics } from "../../contract/metrics.ts";
import { refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Decoder } from "../../media/files/decoder.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import type { Extractor } from "../../media/files/extractor.ts";
import type { DecodedChunk, FrameStream } from "../../media/files/frame_stream.ts";
import { GateKernel } from "../../media/kernels/gate_kernel.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import type { ReasonBody } from "../../model/api/reason.ts";
import { event } from "../../model/events/event_table.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import { type RowColumns, type RowContext, saidFrames, typedFrames } from "../../model/frames/frame_row.ts";
import { type LabelMaps, labelsOf } from "../../model/frames/label_map.ts";
import { LIMITS } from "../../contract/limits.ts";
import { deriveMarkers, type Marker, ordinalsOf } from "../../model/frames/marker.ts";
import { isNative, readReason, type ReasonPlan } from "../../model/reason/request.ts";
import { rowRanges, withRangeMarkers } from "../../model/frames/row_range.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import { plannedEndMs, planSampling, type SamplingPlan } from "../../model/frames/sampling.ts";
import type { GateThresholds } from "../../model/frames/signals.ts";
import type { AudioSidecar } from "../../remote/sidecars/audio_sidecar.ts";
import type { Blobs } from "../../store/media/blobs.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import type { Inference } from "../infer/inference.ts";
import { actionableRun, explainedFailure, stillActionableRun } from "../runs/ownership.ts";
import { ChunkReasoner } from "./chunk.ts";
import { analysisGeneratedPayload, chunkGenerated, ingestReceivedPayload } from "./chunk_events.ts";
import { ReasonFrames } from "./frames.ts";
import type { OutputSchemas } from "./output_schemas.ts";
import { forEachChunk } from "./pipeline.ts";
import { ChunkRecords, type FailedChunks, type LagPercentiles, type Spent } from "./chunk_records.ts";
import type { RunWork, RunWorkHandle } from "../runs/run_work.ts";
import type { OpenedSource, Sources } from "../sources/sources.ts";

export interface ReasonOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly work: RunWork;
  readonly decoder: Decoder;
  readonly extractor: Extractor;
  readonly trials: Pick<ToolTrials, "require">;
  readonly sources: Sources;
  readonly blobs: Blobs;
  readonly inference: Inference;
  /** Null where SERVICE_AUDIO_SIDECAR_ADDR is not set. */
  readonly audioSidecar: AudioSidecar | null;
  /** Model calls that one principal may have under way. */
  readonly perPrincipalLimit: number;
  readonly thresholds: GateThresholds;
  readonly streamTtlMs: number;
  readonly labelMaps: LabelMaps | null;
  readonly outputSchemas: OutputSchemas;
}

/** The result of one call; the rows are made from it one at a time when the response is written. */
export interface Reasoned {
  readonly context: RowContext;
  readonly frames: RowColumns;
  readonly chunks: ChunkRecords;
  readonly markers: readonly Marker[];
  readonly lag: LagPercentiles;
  readonly spent: Spent;
  readonly failed: FailedChunks;
  /** Whether `max_frames` ended the decode, and not the source. */
  readonly isTruncated: boolean;
  /** How the source ended. */
  readonly end: SourceEnd;
  /** Whether the response has the rows. */
  readonly includesRows: boolean;
}

/** What one call works with after its source was opened. */
interface ReasonCall {
  readonly caller: Caller;
  readonly runId: string;
  readonly plan: ReasonPlan;
  readonly source: OpenedSource;
  readonly info: MediaInfo;
  readonly sampling: SamplingPlan;
  readonly stream: FrameStream;
  /** Whether a model is asked at all. */
  readonly isSemantic: boolean;
  readonly handle: RunWorkHandle;
  readonly signal: AbortSignal;
}

/** Events of one commit: writing the last events of a long film must not block other requests. */
const EVENTS_PER_COMMIT = 4096;
/** What the caller wants of the run, for error messages. */
const ACTION = "reason on";
/**
 * The chunks of this model are written to the timeline in the order of the source. See
 * docs/reason.md#events-of-a-call.
 */
const MODEL_IN_SOURCE_ORDER = "gemini-3-8-flash";

/** See docs/reason.md#request. */
export class Reason {
  readonly #options: ReasonOptions;

  constructor(options: ReasonOptions) {
    this.#options = options;
  }

  /**
   * Writes the events of each chunk as soon as it was inferred; the other events, and the run's completion,
   * at the end. A client that disconnects, a stop and a delete end the call at once; events that were written
   * stay.
   *
   * Errors: 404, 409 when the run is or becomes terminal, 422 with the field, `source_uri` for any media
   * fault, 503 without the sidecar, the provider or the ffmpeg that the request needs, 507 `storage_quota` as
   * soon as the caller stores too much. A chunk that fails is no error of the request.
   */
  async run(caller: Caller, runId: string, body: ReasonBody): Promise<Reasoned> {
    const { timeline, world, work, inference, streamTtlMs } = this.#options;
    const { output_schema: schema } = body;
    const checkedSchema = schema == null ? null : await this.#options.outputSchemas.check(caller, schema);
    const named = [body.model, body.first_pass_model, body.second_pass_model].filter((name) => name != null);
    const identify = await inference.identify(named, caller.signal);
    actionableRun(timeline.view, caller, runId, { nowMs: world.now(), ttlMs: streamTtlMs }, ACTION);
    timeline.requireRoom(caller.principalKey);
    const plan = readReason(body, {
      requestId: caller.requestId,
      hasProvider: inference.isConfigured,
      hasBinaryMedia: (model) => inference.hasBinaryMedia(model),
      identify,
      checkedSchema,
    });
    this.#checkAvailable(plan);

    using handle = work.begin(runId, caller.signal);
    try {
      return await this.#reason(caller, runId, plan, handle);
    } catch (error) {
      const run = { view: timeline.view, caller, runId, action: ACTION };
      throw explainedFailure(error, handle.signal, run);
    }
  }

  /** 503 for a request that needs a sidecar or a provider that is not configured. */
  #checkAvailable(plan: ReasonPlan): void {
    const { audioSidecar, inference } = this.#options;
    if (plan.localAudio && !audioSidecar) {
      throw refuse.because(
        "audio_sidecar_unavailable",
        "Cannot analyze local audio as SERVICE_AUDIO_SIDECAR_ADDR is not set",
      );
    }
    if (isNative(plan) && plan.semanticInference && !inference.isConfigured) {
      throw refuse.because(
        "inference_provider_unavailable",
        `Cannot reason on ${plan.media.mode} as no inference provider is configured`,
      );
    }
  }

  async #reason(caller: Caller, runId: string, plan: ReasonPlan, handle: RunWorkHandle): Promise<Reasoned> {
    const { signal } = handle;
    const { sources, decoder, inference } = this.#options;
    const { principalKey } = caller;
    await using source = await sources.open(plan.sourceUri, principalKey, signal);
    const info = await source.explained(decoder.probe(source.input, signal, {
      ...{ principalKey, videoStream: plan.videoStream },
    }));
    if (plan.media.mode === "audio_video") checkAudioStreams(info);
    const sampling = planSampling(plan.sampling, info.video?.averageFps ?? null, "reason");
    const isSemantic = plan.semanticInference && inference.isConfigured;
    const needsClips = isNative(plan) || (isSemantic && plan.clip !== null);
    if (needsClips) await this.#options.trials.require("clip");
    if (plan.localAudio) await this.#options.trials.require("sound");
    const asksWithImages = isSemantic && !plan.clip && !isNative(plan);
    await using stream = await source.explained(decoder.streamFrames({
      principalKey,
      input: source.input,
      info,
      plan: sampling,
      maxFrames: plan.maxFrames,
      signal,
      sourceFault: () => source.fault(),
      chunks: plan.chunking,
      ...(plan.crop && { crop: plan.crop }),
      ...(asksWithImages && { images: { perChunk: plan.imagesPerChunk, maxEdge: plan.maxEdge } }),
    }));
    return await this.#analyze({
      caller,
      runId,
      plan,
      source,
      info,
      sampling,
      stream,
      isSemantic,
      handle,
      signal,
    });
  }

  async #analyze(call: ReasonCall): Promise<Reasoned> {
    const { thresholds, metrics, world } = this.#options;
    const { caller, plan, sampling, stream } = call;
    const frames = new ReasonFrames({
      gate: await GateKernel.load(),
      thresholds,
      windowSize: plan.windowSize,
      metrics,
      world,
    });
    const end_ms = plannedEndMs(sampling, plan.maxFrames, call.info.durationMs);
    call.handle.tells(() => ({ work: "reason", frames: frames.count, pts_ms: frames.lastPtsMs, end_ms }));
    const chunks = new ChunkRecords();
    await this.#chunks(call, frames, chunks);

    const context: RowContext = {
      runId: call.runId,
      streamId: plan.streamId,
      mode: plan.mode,
      model: plan.model,
      samplingPolicy: sampling.policy,
      sampleFps: sampling.sampleFps,
      segmentMs: plan.segmentMs,
      requestId: caller.requestId,
      traceId: plan.traceId,
      labels: labelsOf(this.#options.labelMaps, caller.principalKey),
      coordinates: stream.coordinates,
    };
    frames.clearFaultsIn(stream.ranges);
    const { columns } = frames;
    const owner = {
      runId: call.runId,
      streamId: plan.streamId,
      correctionWindowFrames: plan.markerWindow,
    };
    const segments = deriveMarkers(
      typedFrames(columns, context.labels, stream.cutsMs.map(Math.round)),
      owner,
    );
    const { ranges } = rowRanges(stream.ranges, columns.signals.ptsMs);
    const measured = withRangeMarkers(segments, ranges, {
      owner,
      labels: context.labels,
      detectors: plan.detectors,
    });
    const said = deriveMarkers(
      saidFrames(columns, context.labels, (row) => chunks.semanticsOf(row)?.overlay ?? null),
      { ...owner, origin: "model", firstOrdinal: ordinalsOf(measured) },
    );
    const markers = [...measured, ...said];
    const reasoned: Reasoned = {
      context,
      frames: columns,
      chunks,
      markers,
      lag: chunks.lag(),
      spent: chunks.spent(),
      failed: chunks.failed(),
      isTruncated: stream.isTruncated,
      end: stream.end,
      includesRows: plan.includeFrameMetadata,
    };
    await this.#commitEnd(call, reasoned);
    return reasoned;
  }

  /** Reasons on every chunk. Writes the first event only when a frame was decoded. */
  async #chunks(call: ReasonCall, frames: ReasonFrames, chunks: ChunkRecords): Promise<void> {
    const { plan, signal } = call;
    const { world, metrics, inference, extractor, audioSidecar, blobs } = this.#options;
    const reasoner = new ChunkReasoner({
      caller: call.caller,
      runId: call.runId,
      plan,
      input: call.source.input,
      info: call.info,
      stream: call.stream,
      isSemantic: call.isSemantic,
      world,
      metrics,
      inference,
      extractor,
      audioSidecar,
      blobs,
    });
    const keepsOrder = plan.firstPassModel === MODEL_IN_SOURCE_ORDER;
    let isFirst = true;
    const next = async () => {
      const chunk = await this.#nextChunk(call);
      if (chunk !== null) frames.append(chunk.signals);
      if (isFirst) this.#commit(call, () => firstEvents(call));
      isFirst = false;
      return chunk;
    };
    // More at once than the principal may have would only wait for admission, each against its own deadline.
    const concurrency = Math.min(plan.concurrency, this.#options.perPrincipalLimit);
    await forEachChunk({ next }, { concurrency, signal }, async (chunk, ended, predecessor) => {
      const { record, events } = await reasoner.reason(chunk, ended);
      if (keepsOrder) await predecessor;
      ended.throwIfAborted();
      if (events.length > 0) this.#commit(call, () => events);
      chunks.set(record);
    });
  }

  /** Recorded media counts into the metrics of live media: each chunk, and the average latency of a frame. */
  async #nextChunk({ source, stream }: ReasonCall): Promise<DecodedChunk | null> {
    const { metrics, world } = this.#options;
    const startedMs = world.monotonicMs();
    const chunk = await source.explained(stream.next());
    if (chunk === null) return null;
    const { count } = chunk.signals;
    metrics.add("service_pipeline_frames_decoded_total", count);
    metrics.observe("service_pipeline_decode_latency_us", (world.monotonicMs() - startedMs) * 1000 / count);
    return chunk;
  }

  /** Writes the last events in order; in several commits, so that a stop in between counts. */
  async #commitEnd(call: ReasonCall, reasoned: Reasoned): Promise<void> {
    let step: NewEvent[] = [];
    for (const next of lastEvents(call, reasoned)) {
      step.push(next);
      if (step.length < EVENTS_PER_COMMIT) continue;
      this.#commit(call, () => step);
      step = [];
      await yieldToEventLoop();
    }
    this.#commit(call, () => step);
    // The run has ended: other work under way for it would only fail at its end.
    this.#options.work.end(call.runId);
  }

  #commit({ caller, runId }: ReasonCall, decide: () => readonly NewEvent[]): void {
    this.#options.timeline.commit((view) => {
      stillActionableRun(view, caller, runId, ACTION);
      return decide();
    });
  }
}

/** 422 for a source from which no clip with audio can be cut. */
function checkAudioStreams({ video, audioStreams }: MediaInfo): void {
  const audioStreamsMax = LIMITS.mediaWindow.audioStreamsMax;
  if (!video) throw refuse.invalid("source_uri", "it has no video stream, which audio_video needs");
  if (audioStreams === 0) {
    throw refuse.invalid("source_uri", "it has no audio stream, which audio_video needs");
  }
  if (audioStreams > audioStreamsMax) {
    throw refuse.invalid(
      "source_uri",
      `it must have at most ${audioStreamsMax} audio streams for audio_video: got ${audioStreams}`,
    );
  }
}

/** The first events of a call, written when its first frame was decoded. */
function firstEvents({ caller, runId, plan, info, source, stream, isSemantic }: ReasonCall): NewEvent[] {
  const requestId = caller.requestId;
  const { coordinates } = stream;
  const received = ingestReceivedPayload(plan, {
    ...{ requestId, uri: source.uri, coordinates, info },
    ...(source.name !== undefined && { name: source.name }),
  });
  const ingested = event("ingest_received", runId, received);
  if (isSemantic || !plan.semanticInference) return [ingested];
  return [
    ingested,
    event("semantic_fallback_activated", runId, {
      request_id: requestId,
      stream_id: plan.streamId,
      reason: "provider_not_configured",
    }),
  ];
}

/**
 * The last events of a call: costs of every chunk, markers, summary, end of the run. Made one at a time, as
 * written.
 */
function* lastEvents(
  { caller, runId, plan, sampling, stream }: ReasonCall,
  reasoned: Reasoned,
): Generator<NewEvent> {
  const { requestId } = caller;
  const { chunks, markers, lag, spent, failed, isTruncated } = reasoned;
  for (let chunkIndex = 0; chunkIndex < chunks.count; chunkIndex++) {
    const generated = chunkGenerated({ requestId, chunkIndex, plan }, chunks.at(chunkIndex));
    yield event("semantic_chunk_generated", runId, generated);
  }
  for (const marker of markers) {
    const named = plan.indexName === null ? marker : { ...marker, index_name: plan.indexName };
    yield event("marker_emitted", runId, named);
  }
  const counts = { frames: reasoned.frames.gate.count, markers: markers.length };
  const { coordinates } = stream;
  yield event(
    "analysis_generated",
    runId,
    {
      ...analysisGeneratedPayload(plan, {
        ...{ requestId, ...counts, sampling, coordinates, isTruncated, lag, spent },
      }),
      ...failed,
      ...reasoned.end,
    },
  );
  yield event("run_completed", runId, {
    request_id: requestId,
    stream_id: plan.streamId,
    ...counts,
    index_name: plan.indexName,
  });
}
