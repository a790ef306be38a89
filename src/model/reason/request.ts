/** A reason request with all defaults applied, and the rules for its fields. See docs/reason.md#request. */

import { utf8Length } from "../../base/bytes.ts";
import type { ReasonBody } from "../api/reason.ts";
import type { IdentifyModel } from "../infer/catalog.ts";
import { cropFault, type NormalizedRegion } from "../frames/coordinates.ts";
import type { Detector } from "../frames/detected_range.ts";
import { FieldRules } from "../field_rules.ts";
import { DEFAULT_STREAM_ID, defaultTraceId } from "../identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { AudioProfile, SpeechEngine } from "../sidecars/local_audio.ts";
import type { Mode } from "../runs/mode.ts";
import { parseSamplingPolicy, type SamplingRequest } from "../frames/sampling.ts";
import type { MediaMode, MediaResolution } from "./media_mode.ts";
import type { CheckedSchema, OutputSchema } from "./caller_schema.ts";

/** What the rules need besides the body. */
export interface ReasonFacts {
  readonly requestId: string;
  /** Whether any backend is configured; without one, no backend can lack support for binary media. */
  readonly hasProvider: boolean;
  /** Whether the backend that would serve `model` accepts clips. */
  hasBinaryMedia(model: string): boolean;
  readonly identify: IdentifyModel;
  /** What became of `output_schema`; null for a body without one. */
  readonly checkedSchema: CheckedSchema | null;
}

/** How the sampled frames are divided into chunks. See docs/reason.md#chunks. */
export type Chunking =
  | { readonly by: "count"; readonly size: number }
  | { readonly by: "window"; readonly windowMs: number };

export interface LocalAudioPlan {
  readonly profile: AudioProfile;
  readonly engine: SpeechEngine;
  readonly minConfidence: number;
  readonly maxEvents: number;
  readonly voiceFeedback: boolean;
}

/** A reason request that keeps every rule, with a value for every field. */
export interface ReasonPlan {
  readonly sourceUri: string;
  readonly mode: Mode;
  /** Canonical. */
  readonly model: string;
  readonly streamId: string;
  /** The index of the video stream that is asked for; null for the one that is taken of itself. */
  readonly videoStream: number | null;
  readonly traceId: string;
  readonly indexName: string | null;
  readonly sampling: SamplingRequest;
  readonly maxFrames: number;
  readonly chunking: Chunking;
  readonly windowSize: number;
  readonly segmentMs: number;
  /** Frames; 0 turns corrections off. */
  readonly markerWindow: number;
  readonly crop: NormalizedRegion | null;
  /** The detectors whose ranges become markers. */
  readonly detectors: ReadonlySet<Detector>;
  readonly includeFrameMetadata: boolean;

  readonly semanticInference: boolean;
  readonly timeoutMs: number;
  /** The caller's prompt, trimmed; null asks for the built-in one. */
  readonly prompt: string | null;
  readonly outputSchema: OutputSchema | null;
  /** The id of the catalog or of a server if one has the model, else as given. */
  readonly firstPassModel: string;
  readonly secondPassModel: string;
  /** With a first answer below this confidence the second model is asked. */
  readonly threshold: number;
  /** The prompt of a chunk has the answer about the one before, so chunks are processed one after the other. */
  readonly temporalChain: boolean;
  /** The middle picture of the chunk before is sent as the first picture of this one. */
  readonly visualDiff: boolean;
  /** Chunks that are processed at the same time; 1 in a temporal chain. */
  readonly concurrency: number;

  /** Still pictures of a chunk in frames mode. */
  readonly imagesPerChunk: number;
  /** Pixels of the longest edge; null for the original size. */
  readonly maxEdge: number | null;
  /** `video_clip_mode`: a chunk is sent as a silent clip of this length instead of as pictures. */
  readonly clip: { readonly durationMs: number } | null;
  readonly media: {
    readonly mode: MediaMode;
    /** Null for the default of the backend. */
    readonly resolution: MediaResolution | null;
    readonly persistEvidence: boolean;
    /** Length of a native window, milliseconds. */
    readonly windowMs: number;
  };
  readonly localAudio: LocalAudioPlan | null;
}

/** Whether clips are sent (`video`, `audio_video`) instead of pictures. See docs/reason.md#media-windows. */
export function isNative(plan: ReasonPlan): boolean {
  return plan.media.mode !== "frames";
}

/** What the model is sent of a chunk: pictures, a silent clip, or a clip with sound. */
export function sentMediaMode(plan: ReasonPlan): MediaMode {
  return plan.clip ? "video" : plan.media.mode;
}

/** Whether there is a second pass, which needs a second model. See docs/reason.md#second-model. */
export function isTiered(plan: ReasonPlan): boolean {
  return plan.firstPassModel !== plan.secondPassModel;
}

/** Errors: one 422 that names every field at fault. */
export function readReason(body: ReasonBody, facts: ReasonFacts): ReasonPlan {
  const rules = new FieldRules();
  const mediaMode = body.media?.mode ?? "frames";
  const native = mediaMode !== "frames";

  const mode = rules.mode(body.mode);
  const model = rules.model(body.model, facts.identify);
  const passes = { rules, model, identify: facts.identify };
  const firstPassModel = passModel("first_pass_model", body.first_pass_model, passes);
  const secondPassModel = passModel("second_pass_model", body.second_pass_model, passes);
  checkSampling(rules, body);
  const maxFrames = body.max_frames ?? LIMITS.reason.maxFramesDefault;
  rules.range("max_frames", maxFrames, LIMITS.reason.maxFrames);
  const windowSize = body.window_size ?? LIMITS.reason.windowSizeDefault;
  rules.range("window_size", windowSize, LIMITS.reason.windowSize);
  const segmentMs = body.segment_ms ?? LIMITS.reason.segmentMsDefault;
  if (segmentMs < LIMITS.reason.segmentMsMin) {
    rules.fault("segment_ms", `must be at least ${LIMITS.reason.segmentMsMin}: got ${segmentMs}`);
  }
  const imagesPerChunk = body.semantic_frames_per_chunk ?? LIMITS.reason.framesPerChunkDefault;
  rules.range("semantic_frames_per_chunk", imagesPerChunk, LIMITS.reason.framesPerChunk);
  const maxEdge = body.semantic_frame_max_edge ?? null;
  if (maxEdge !== null) rules.range("semantic_frame_max_edge", maxEdge, LIMITS.reason.frameEdgePixels);
  const crop = body.crop ?? null;
  const cropProblem = crop && cropFault(crop);
  if (cropProblem) rules.fault("crop", cropProblem);
  const detectors = rules.detectors(body.detectors);

  const semanticInference = body.semantic_inference ?? true;
  const localAudio = readLocalAudio(rules, body, mediaMode);
  const clip = readClip(rules, body);
  const chunking = readChunking(rules, body, { native, hasLocalAudio: localAudio !== null });
  if (native && !semanticInference && localAudio === null) {
    rules.fault("semantic_inference", `must be on with media.mode ${mediaMode}, or local_audio be given`);
  }
  // An unknown model is already a fault; the fields that depend on it are then not checked.
  const isNamed = body.first_pass_model != null || facts.identify(body.model) !== undefined;
  if (native && semanticInference && isNamed && facts.hasProvider && !facts.hasBinaryMedia(firstPassModel)) {
    rules.fault("media.mode", `needs a backend that takes binary media for the model ${firstPassModel}`);
  }
  const timeoutMs = body.semantic_timeout_ms ?? LIMITS.reason.semanticTimeoutMsDefault;
  rules.range("semantic_timeout_ms", timeoutMs, LIMITS.reason.semanticTimeoutMs);
  const prompt = readPrompt(rules, body.semantic_prompt);
  const outputSchema = readOutputSchema(rules, facts.checkedSchema);
  const streamId = rules.name("stream_id", body.stream_id) ?? DEFAULT_STREAM_ID;
  const traceId = rules.name("trace_id", body.trace_id) ?? defaultTraceId(facts.requestId);
  const indexName = rules.name("index_name", body.index_name);
  rules.check();

  const visualDiff = body.visual_diff ?? false;
  const temporalChain = visualDiff || (body.temporal_chain ?? false);
  return {
    sourceUri: body.source_uri,
    mode,
    model,
    streamId,
    videoStream: body.video_stream ?? null,
    traceId,
    indexName,
    sampling: { policy: body.sampling_policy ?? null, fixedFps: body.fixed_fps ?? null },
    maxFrames,
    chunking,
    windowSize,
    segmentMs,
    markerWindow: Number(body.marker_correction_window_frames ?? LIMITS.marker.correctionWindowFrames),
    crop,
    detectors,
    includeFrameMetadata: body.include_frame_metadata ?? !native,
    semanticInference,
    timeoutMs,
    prompt,
    outputSchema,
    firstPassModel,
    secondPassModel,
    threshold: clamped(body.second_pass_threshold ?? LIMITS.reason.secondPassThreshold, {
      minimum: 0,
      maximum: 1,
    }),
    temporalChain,
    visualDiff,
    concurrency: temporalChain ? 1 : readConcurrency(body.vlm_concurrency, mediaMode),
    imagesPerChunk,
    maxEdge,
    clip,
    media: {
      mode: mediaMode,
      resolution: body.media?.resolution ?? null,
      persistEvidence: native && (body.media?.persist_evidence ?? mediaMode === "audio_video"),
      windowMs: windowMsOf(body, localAudio !== null),
    },
    localAudio,
  };
}

/** The rules that do not depend on the file; the rate itself is decided with the file. */
function checkSampling(rules: FieldRules, body: ReasonBody): void {
  const policy = parseSamplingPolicy(body.sampling_policy);
  if (policy === null) rules.fault("sampling_policy", "must be source_fps_adaptive or fixed");
  if (body.fixed_fps != null) rules.range("fixed_fps", body.fixed_fps, LIMITS.sampling.fps);
}

function readChunking(
  rules: FieldRules,
  body: ReasonBody,
  { native, hasLocalAudio }: { native: boolean; hasLocalAudio: boolean },
): Chunking {
  const windowMs = windowMsOf(body, hasLocalAudio);
  rules.range("media.window_ms", windowMs, LIMITS.mediaWindow.lengthMs);
  if (native) {
    if (body.chunk_size != null) {
      rules.fault("chunk_size", `is for frames; media.mode ${body.media!.mode} has media.window_ms`);
    }
    return { by: "window", windowMs };
  }
  const size = body.chunk_size ?? LIMITS.reason.chunkSizeDefault;
  rules.range("chunk_size", size, LIMITS.reason.chunkSize);
  return { by: "count", size };
}

/** In frames mode the window has no effect, as chunks have a number of frames there. */
function windowMsOf(body: ReasonBody, hasLocalAudio: boolean): number {
  if (body.media?.window_ms != null) return body.media.window_ms;
  if ((body.media?.mode ?? "frames") === "frames") return LIMITS.mediaWindow.lengthMsFrames;
  return hasLocalAudio ? LIMITS.mediaWindow.lengthMsLocalAudio : LIMITS.mediaWindow.lengthMsDefault;
}

/** The older fields for clips; `media` replaces them, so a request must not have both. */
function readClip(rules: FieldRules, body: ReasonBody): { durationMs: number } | null {
  const isClip = body.video_clip_mode ?? false;
  if (body.media && (isClip || body.video_clip_duration_s != null)) {
    rules.fault("media", "must not be combined with video_clip_mode or video_clip_duration_s");
  }
  const seconds = body.video_clip_duration_s ?? LIMITS.reason.clipSecondsDefault;
  if (!(seconds > 0 && seconds <= LIMITS.reason.clipSeconds)) {
    rules.fault(
      "video_clip_duration_s",
      `must be above 0 and at most ${LIMITS.reason.clipSeconds}: got ${seconds}`,
    );
  }
  return isClip ? { durationMs: Math.max(1, Math.round(seconds * 1000)) } : null;
}

function readLocalAudio(rules: FieldRules, body: ReasonBody, mediaMode: MediaMode): LocalAudioPlan | null {
  const asked = body.local_audio;
  if (!asked) return null;
  if (mediaMode !== "audio_video") rules.fault("local_audio", "needs media.mode audio_video");
  const minConfidence = asked.min_confidence ?? LIMITS.localAudio.confidenceDefault;
  rules.range("local_audio.min_confidence", minConfidence, LIMITS.localAudio.confidence);
  const maxEvents = asked.max_events ?? LIMITS.localAudio.eventsDefault;
  rules.range("local_audio.max_events", maxEvents, LIMITS.localAudio.events);
  return {
    profile: asked.profile ?? "general",
    engine: asked.speech_engine ?? "auto",
    minConfidence,
    maxEvents,
    voiceFeedback: asked.voice_feedback ?? false,
  };
}

function readPrompt(rules: FieldRules, text: string | null | undefined): string | null {
  if (text == null) return null;
  const prompt = text.trim();
  const bytes = utf8Length(prompt);
  const maximum = LIMITS.reason.promptBytesMax;
  if (bytes === 0) rules.fault("semantic_prompt", "must not be blank");
  if (bytes > maximum) rules.fault("semantic_prompt", `must be at most ${maximum} bytes: got ${bytes}`);
  return prompt;
}

function readOutputSchema(rules: FieldRules, checked: CheckedSchema | null): OutputSchema | null {
  if (checked === null) return null;
  if (checked.ok) return checked.outputSchema;
  rules.fault("output_schema", checked.fault);
  return null;
}

/** The model is not checked here: with one that no backend serves, the chunks fail. */
function passModel(
  field: string,
  id: string | null | undefined,
  { rules, model, identify }: {
    readonly rules: FieldRules;
    readonly model: string;
    readonly identify: IdentifyModel;
  },
): string {
  const name = rules.name(field, id);
  return name === null ? model : identify(name) ?? name;
}

function readConcurrency(given: number | bigint | null | undefined, mediaMode: MediaMode): number {
  const usual = mediaMode === "audio_video"
    ? LIMITS.reason.vlmConcurrencyAudioVideo
    : LIMITS.reason.vlmConcurrencyDefault;
  return clamped(Number(given ?? usual), LIMITS.reason.vlmConcurrency);
}

function clamped(value: number, { minimum, maximum }: { minimum: number; maximum: number }): number {
  return Math.min(maximum, Math.max(minimum, value));
}
