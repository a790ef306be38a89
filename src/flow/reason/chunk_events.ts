/** The payloads of the events of one reason call. See docs/reason.md#events-of-a-call. */

import type { Clip } from "../../media/files/extractor.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import { COORDINATE_SCHEMA, type ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { PayloadOf } from "../../model/events/event_table.ts";
import { LIMITS } from "../../contract/limits.ts";
import { NO_TOKENS } from "../../model/infer/inference.ts";
import { momentId } from "../../model/reason/chunks.ts";
import type { ChunkMoment } from "../../model/reason/moments.ts";
import { type ReasonPlan, sentMediaMode } from "../../model/reason/request.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { RowOverlay } from "../../model/frames/frame_row.ts";
import type { AudioFindings } from "./chunk_audio.ts";
import type { Evidence, FeedbackAudio } from "./chunk_evidence.ts";
import type { ChunkReply } from "./question.ts";
import type { ChunkRecord, LagPercentiles, Spent } from "./chunk_records.ts";

type Provider = PayloadOf<"multimodal_moment">["provider"];
type RawOutput = Extract<
  PayloadOf<"semantic_chunk_inferred">,
  { readonly raw_output: unknown }
>["raw_output"];

/** Media time, milliseconds, from the first video frame. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

export interface ChunkIdentity {
  readonly requestId: string;
  readonly chunkIndex: number;
  readonly plan: ReasonPlan;
}

interface Stored {
  readonly evidence: Evidence | null;
  readonly feedbackAudio: FeedbackAudio | null;
}

/** Everything that the events of one chunk report. */
export interface ChunkReport extends Stored {
  readonly reply: ChunkReply | null;
  readonly provider: Provider | null;
  readonly isFallback: boolean;
  readonly error: string | null;
  /** What is known of the error for people; null where the error says all. */
  readonly errorText?: string | null;
  readonly rawOutput: unknown;
  readonly overlay: RowOverlay | null;
  readonly moments: readonly ChunkMoment[];
  readonly span: Span;
  readonly clip: Clip | null;
  readonly audio: AudioFindings | null;
}

/** Media windows and streams are reported only where clips are cut out of them. */
export function ingestReceivedPayload(
  plan: ReasonPlan,
  source: {
    requestId: string;
    uri: string;
    name?: string;
    coordinates: ImageCoordinates;
    info: MediaInfo;
  },
): PayloadOf<"ingest_received"> {
  const { info } = source;
  const mediaMode = sentMediaMode(plan);
  const hasClips = mediaMode !== "frames";
  return {
    request_id: source.requestId,
    source_uri: source.uri,
    ...(source.name !== undefined && { source_name: source.name }),
    ...(info.videoStartMs !== undefined && { video_start_ms: info.videoStartMs }),
    index_name: plan.indexName,
    coordinate_schema: COORDINATE_SCHEMA,
    coordinates: source.coordinates,
    media_mode: mediaMode,
    media_window_ms: hasClips ? plan.clip?.durationMs ?? plan.media.windowMs : null,
    video_streams: hasClips ? info.videoStreams : null,
    ...(plan.videoStream !== null && { video_stream: plan.videoStream }),
    audio_streams: hasClips ? info.audioStreams : null,
    audio_channels: hasClips ? info.audioChannels : null,
  };
}

export function chunkInferred(
  { requestId, chunkIndex, plan }: ChunkIdentity,
  report: ChunkReport,
): PayloadOf<"semantic_chunk_inferred"> {
  const { reply, overlay, span, clip, audio } = report;
  const common = {
    request_id: requestId,
    stream_id: plan.streamId,
    chunk_index: chunkIndex,
    provider: report.provider,
    provider_fallback_used: reply?.answer.fallbackUsed ?? false,
    semantic_fallback_used: report.isFallback,
    semantic_error: report.error,
    ...(report.errorText && { semantic_error_text: report.errorText }),
    finish_reason: reply?.answer.finishReason ?? null,
    response_chars: reply ? Array.from(reply.answer.outputText).length : 0,
    event_type: overlay?.eventType ?? null,
    object_label: overlay?.objectLabel ?? null,
    summary: overlay?.summary ?? null,
    description: overlay?.description ?? null,
    confidence: overlay?.confidence ?? null,
    raw_output: (report.rawOutput ?? null) as RawOutput,
    ...(reply?.tokens ?? NO_TOKENS),
    inference_latency_ms: reply?.inferenceLatencyMs ?? 0,
    moments: report.moments,
    local_audio: audio?.local ?? null,
    local_audio_error: audio?.error ?? null,
    ...(plan.indexName !== null && { index_name: plan.indexName }),
  };
  const times = { pts_start_ms: Math.round(span.startMs), pts_end_ms: Math.round(span.endMs) };
  const mediaMode = sentMediaMode(plan);
  if (mediaMode === "frames") return { ...common, ...times };
  return {
    ...common,
    media_mode: mediaMode,
    media_resolution: plan.media.resolution,
    ...times,
    timestamp_resolution_ms: timestampResolutionMs(report.provider),
    clip_bytes: clip?.bytes.length ?? 0,
    extraction_ms: Math.round(clip?.extractionMs ?? audio?.extractionMs ?? 0),
    audio_streams: clip?.audioStreams ?? null,
    audio_channels: clip?.audioChannels ?? null,
    audio_mixed: clip?.audioMixed ?? null,
    ...(report.evidence && { evidence: report.evidence }),
    ...(report.feedbackAudio && { feedback_audio: report.feedbackAudio }),
  };
}

export function momentFound(
  { requestId, chunkIndex, plan }: ChunkIdentity,
  { moment, number, provider, span, evidence, feedbackAudio }: Stored & {
    readonly moment: ChunkMoment;
    /** Among the moments of its chunk, from 0. */
    readonly number: number;
    readonly provider: Provider;
    readonly span: Span;
  },
): PayloadOf<"multimodal_moment"> {
  const startMs = Math.round(span.startMs);
  return {
    moment_id: momentId(requestId, chunkIndex, number),
    request_id: requestId,
    stream_id: plan.streamId,
    chunk_index: chunkIndex,
    start_offset_ms: moment.start_offset_ms,
    end_offset_ms: moment.end_offset_ms,
    start_pts_ms: startMs + moment.start_offset_ms,
    end_pts_ms: startMs + moment.end_offset_ms,
    timestamp_resolution_ms: timestampResolutionMs(provider),
    modalities: moment.modalities,
    kind: moment.kind,
    description: moment.description,
    intent: moment.intent ?? null,
    audio_visual_relation: moment.audio_visual_relation ?? null,
    confidence: moment.confidence,
    provider,
    index_name: plan.indexName,
    evidence,
    ...(feedbackAudio && { feedback_audio: feedbackAudio }),
  };
}

export function chunkGenerated(
  { requestId, chunkIndex, plan }: ChunkIdentity,
  { frames, lag, tokens, inferenceLatencyMs }: ChunkRecord,
): PayloadOf<"semantic_chunk_generated"> {
  return {
    request_id: requestId,
    stream_id: plan.streamId,
    chunk_index: chunkIndex,
    chunk_frames: frames,
    ...lag,
    index_name: plan.indexName,
    ...tokens,
    inference_latency_ms: inferenceLatencyMs,
  };
}

export function analysisGeneratedPayload(
  plan: ReasonPlan,
  found: {
    requestId: string;
    frames: number;
    markers: number;
    sampling: SamplingPlan;
    coordinates: ImageCoordinates;
    isTruncated: boolean;
    lag: LagPercentiles;
    spent: Spent;
  },
): PayloadOf<"analysis_generated"> {
  const { sampling, lag } = found;
  return {
    request_id: found.requestId,
    stream_id: plan.streamId,
    frames: found.frames,
    markers: found.markers,
    sampling_policy: sampling.policy,
    source_fps: sampling.sourceFps,
    sample_fps: sampling.sampleFps,
    coordinate_schema: COORDINATE_SCHEMA,
    coordinates: found.coordinates,
    truncated: found.isTruncated,
    lag_p95_ms: lag.p95Ms,
    lag_p99_ms: lag.p99Ms,
    mode: plan.mode,
    model: plan.model,
    index_name: plan.indexName,
    ...found.spent,
  };
}

/** Gemini samples video at one frame per second, so its times are no more exact than that. */
function timestampResolutionMs(provider: Provider | null): number {
  return provider === "gemini" ? LIMITS.mediaWindow.timestampResolutionMs : 1;
}
