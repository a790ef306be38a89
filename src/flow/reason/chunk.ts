/** One chunk: takes its pictures, clip or audio, asks the model about them, and makes the events of the
 * result.
 */

import type { Metrics } from "../../contract/metrics.ts";
import { inSpan } from "../../base/tracing.ts";
import type { World } from "../../base/world.ts";
import { type Clip, ExtractionFailed, type Extractor } from "../../media/files/extractor.ts";
import type { DecodedChunk, FrameStream } from "../../media/files/frame_stream.ts";
import type { MediaInput } from "../../media/input.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import type { RowOverlay } from "../../model/frames/frame_row.ts";
import { InferenceFailed, NO_TOKENS, semanticErrorOf } from "../../model/infer/inference.ts";
import { type Answered, parseCustomAnswer, parseFrameAnswer, TIER_LABEL } from "../../model/reason/answer.ts";
import { chunkLag } from "../../model/reason/chunks.ts";
import { type ChunkMoment, fuseMoments, parseMomentsAnswer } from "../../model/reason/moments.ts";
import { chunkPrompt } from "../../model/reason/prompts.ts";
import { isNative, type ReasonPlan, sentMediaMode } from "../../model/reason/request.ts";
import { event } from "../../model/events/event_table.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import type { AudioSidecar } from "../../remote/sidecars/audio_sidecar.ts";
import type { Blobs } from "../../store/media/blobs.ts";
import type { Caller } from "../caller.ts";
import type { Inference } from "../infer/inference.ts";
import { type AudioFindings, ChunkAudio } from "./chunk_audio.ts";
import { chunkInferred, momentFound, type Span } from "./chunk_events.ts";
import { type Evidence, EvidenceStore, type FeedbackAudio } from "./chunk_evidence.ts";
import { type ChunkQuestion, ChunkQuestions, type ChunkReply } from "./question.ts";
import type { ChunkRecord } from "./chunk_records.ts";

export interface ChunkReasonerOptions {
  readonly caller: Caller;
  readonly runId: string;
  readonly plan: ReasonPlan;
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly stream: FrameStream;
  /** Whether a model is asked at all. */
  readonly isSemantic: boolean;
  readonly world: World;
  readonly metrics: Metrics;
  readonly inference: Inference;
  readonly extractor: Extractor;
  readonly audioSidecar: AudioSidecar | null;
  readonly blobs: Blobs;
}

/**
 * The result of a chunk: its record, and its events; none where neither a model nor the sidecar was asked.
 */
export interface ReasonedChunk {
  readonly record: ChunkRecord;
  readonly events: readonly NewEvent[];
}

/** The semantic result of a chunk. */
interface Finding {
  readonly reply: ChunkReply | null;
  /** `semantic_error`, null where the model gave a valid answer. See docs/reason.md#failed-chunks. */
  readonly error: string | null;
  /** What is known of the error for people; null where the error says all. */
  readonly errorText?: string | null;
  readonly rawOutput: unknown;
  readonly overlay: RowOverlay | null;
  readonly moments: readonly ChunkMoment[];
}

/** The clip of a chunk, or the error of its extraction. */
interface Cut {
  readonly clip: Clip | null;
  readonly error: string | null;
}

export class ChunkReasoner {
  readonly #options: ChunkReasonerOptions;
  readonly #questions: ChunkQuestions;
  readonly #audio: ChunkAudio | null;
  readonly #evidence: EvidenceStore;
  /**
   * The last description and picture, for a temporal chain, whose chunks are processed one after the other.
   */
  #previous: { readonly ptsMs: number; readonly text: string } | null = null;
  #previousPicture: Uint8Array | null = null;

  constructor(options: ChunkReasonerOptions) {
    const { inference, plan, caller, runId, extractor, audioSidecar, blobs, metrics } = options;
    this.#options = options;
    this.#questions = new ChunkQuestions({ inference, plan, principalKey: caller.principalKey, runId });
    this.#audio = plan.localAudio && audioSidecar
      ? new ChunkAudio({ extractor, sidecar: audioSidecar, plan: plan.localAudio, timeoutMs: plan.timeoutMs })
      : null;
    this.#evidence = new EvidenceStore({ blobs, metrics, principalKey: caller.principalKey });
  }

  /**
   * Failures of a model, a sidecar or the media are part of the result. Rejects with the reason of the
   * signal.
   */
  async reason(chunk: DecodedChunk, signal: AbortSignal): Promise<ReasonedChunk> {
    const { world, isSemantic } = this.#options;
    const startedMs = world.monotonicMs();
    const isAnalyzed = isSemantic || this.#audio !== null;
    const analyzed = isAnalyzed ? await this.#traced(chunk, () => this.#analyze(chunk, signal)) : null;
    const record = this.#record(chunk, analyzed?.finding ?? null, world.monotonicMs() - startedMs);
    return { record, events: analyzed?.events ?? [] };
  }

  /** A chunk whose sound is analyzed has a span, with those of the sidecar's calls below it. */
  #traced<T>({ index }: DecodedChunk, analyze: () => Promise<T>): Promise<T> {
    const { world, caller, runId, plan } = this.#options;
    if (this.#audio === null) return analyze();
    const attributes = {
      "service.run.id": runId,
      "service.request.id": caller.requestId,
      "service.stream.id": plan.streamId,
      "service.chunk.index": index,
    };
    return inSpan(world.tracing, "audio chunk", { attributes }, analyze);
  }

  async #analyze(
    chunk: DecodedChunk,
    signal: AbortSignal,
  ): Promise<{ finding: Finding; events: NewEvent[] }> {
    const { plan, isSemantic } = this.#options;
    const span = this.#span(chunk);
    const needsClip = isSemantic && (isNative(plan) || plan.clip !== null);
    const [audio, modelCut] = await Promise.all([
      this.#analyzeAudio(span, signal),
      needsClip ? this.#cut(span, signal) : NO_CUT,
    ]);
    const finding = this.#fused(await this.#find(chunk, span, { audio, cut: modelCut, signal }), span, audio);
    this.#remember(chunk, span, finding);
    const isKept = plan.media.persistEvidence && isWorthKeeping(plan, finding);
    const cut = isKept && modelCut.clip === null && modelCut.error === null
      ? await this.#cut(span, signal)
      : modelCut;
    const evidence = isKept && cut.clip ? await this.#evidence.clip(cut.clip.bytes) : null;
    const speech = await this.#audio?.synthesize(finding.moments, this.#options.caller.principalKey, signal);
    const feedbackAudio = speech ? await this.#evidence.speech(speech) : null;
    signal.throwIfAborted();
    return { finding, events: this.#events(chunk, span, { finding, audio, cut, evidence, feedbackAudio }) };
  }

  /**
   * A native window starts with its first frame; the end of the media may shorten it. See
   * docs/reason.md#media-windows.
   */
  #span({ signals }: DecodedChunk): Span {
    const { plan, info, stream } = this.#options;
    const startMs = signals.ptsMs[0]!;
    const lengthMs = plan.clip?.durationMs ?? (isNative(plan) ? plan.media.windowMs : null);
    if (lengthMs === null) return { startMs, endMs: signals.ptsMs[signals.count - 1]! };
    const { clock } = stream;
    const endMs = clock.isSteady && info.durationMs !== null
      ? Math.max(info.durationMs, clock.knownMs)
      : clock.endMs;
    const leftMs = endMs === null ? lengthMs : endMs - startMs;
    return { startMs, endMs: startMs + Math.max(1, Math.min(lengthMs, leftMs)) };
  }

  async #analyzeAudio({ startMs, endMs }: Span, signal: AbortSignal): Promise<AudioFindings | null> {
    const { caller: { principalKey }, input, info, stream: { clock } } = this.#options;
    const window = { principalKey, input, info, clock, startMs, durationMs: endMs - startMs, signal };
    return await this.#audio?.analyze(window) ?? null;
  }

  async #cut({ startMs, endMs }: Span, signal: AbortSignal): Promise<Cut> {
    const { caller: { principalKey }, extractor, input, info, plan, stream } = this.#options;
    const { coordinates, clock } = stream;
    const withAudio = plan.media.mode === "audio_video";
    const window = { principalKey, input, info, clock, startMs, durationMs: endMs - startMs, signal };
    try {
      return { clip: await extractor.clip({ ...window, coordinates, withAudio }), error: null };
    } catch (error) {
      if (!(error instanceof ExtractionFailed)) throw error;
      return { clip: null, error: `media_extraction_failed:${error.reason}` };
    }
  }

  /** What the model says about the chunk. */
  async #find(
    chunk: DecodedChunk,
    span: Span,
    { audio, cut, signal }: { audio: AudioFindings | null; cut: Cut; signal: AbortSignal },
  ): Promise<Finding> {
    const { plan, isSemantic } = this.#options;
    if (!isSemantic) return NOTHING_ASKED;
    if (cut.error !== null) return failed(cut.error);
    const video = cut.clip && {
      bytes: cut.clip.bytes,
      ...(plan.media.resolution && { resolution: plan.media.resolution }),
    };
    const images = video ? [] : this.#pictures(chunk);
    if (!video && images.length === 0) return failed("chunk_has_no_jpeg_frames");
    const question: ChunkQuestion = {
      prompt: this.#prompt(chunk, span, audio),
      images,
      ...(video && { video }),
    };
    const clipMs = span.endMs - span.startMs;
    try {
      const reply = await this.#questions.ask(
        question,
        async (text) => (await this.#read(text, { isSecondPass: true, clipMs, signal })).ok,
        signal,
      );
      const read = await this.#read(reply.answer.outputText, {
        ...{ isSecondPass: reply.isSecondPass, clipMs, signal },
      });
      const { rawOutput } = read;
      if (!read.ok) {
        return { ...failed(`semantic_parse_failed:${read.fault}`), reply, rawOutput };
      }
      return {
        reply,
        error: null,
        rawOutput,
        overlay: read.overlay ?? null,
        moments: read.moments ?? [],
      };
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      signal.throwIfAborted();
      return { ...failed(semanticErrorOf(error)), errorText: error.told };
    }
  }

  /**
   * The chosen pictures of the chunk; with `visual_diff` the middle picture of the chunk before comes first.
   */
  #pictures({ images }: DecodedChunk): Uint8Array[] {
    const own = images.map(({ jpeg }) => jpeg);
    const { visualDiff } = this.#options.plan;
    return visualDiff && this.#previousPicture && own.length > 0 ? [this.#previousPicture, ...own] : own;
  }

  #prompt(
    { firstFrame, signals }: DecodedChunk,
    { startMs, endMs }: Span,
    audio: AudioFindings | null,
  ): string {
    const { plan } = this.#options;
    return chunkPrompt({
      mediaMode: sentMediaMode(plan),
      prompt: plan.prompt,
      frames: { start: firstFrame, end: firstFrame + signals.count - 1 },
      ptsStartMs: Math.round(startMs),
      ptsEndMs: Math.round(endMs),
      previous: plan.temporalChain ? this.#previous : null,
      localAudio: audio?.local ?? null,
    });
  }

  async #read(
    text: string,
    { isSecondPass, clipMs, signal }: { isSecondPass: boolean; clipMs: number; signal: AbortSignal },
  ): Promise<Answered<{ readonly overlay?: RowOverlay; readonly moments?: readonly ChunkMoment[] }>> {
    const { outputSchema, media } = this.#options.plan;
    if (outputSchema) {
      return isSecondPass ? parseCustomAnswer(text, TIER_LABEL) : await outputSchema.read(text, signal);
    }
    return media.mode === "audio_video" ? parseMomentsAnswer(text, clipMs) : parseFrameAnswer(text);
  }

  /** Adds the sidecar's result to the model's, or uses it instead. See docs/reason.md#local-audio. */
  #fused(finding: Finding, { startMs, endMs }: Span, audio: AudioFindings | null): Finding {
    const { plan, isSemantic } = this.#options;
    if (audio === null) return finding;
    const localFailed = audio.local === null;
    const { moments, overlay } = fuseMoments(finding.moments, {
      local: audio.local,
      localFailed,
      clipMs: endMs - startMs,
    });
    const hasLabels = isSemantic ? finding.error === null && !plan.outputSchema : !localFailed;
    return { ...finding, moments, overlay: hasLabels ? overlay : null };
  }

  /**
   * A failed chunk does not change the last description, so the next prompt names the last one that
   * succeeded.
   */
  #remember(
    { images }: DecodedChunk,
    { startMs }: Span,
    { reply, error, rawOutput, overlay }: Finding,
  ): void {
    this.#previousPicture = images[images.length >> 1]?.jpeg ?? this.#previousPicture;
    if (reply === null || error !== null) return;
    const text = rawOutput === null ? overlay?.description ?? "" : JSON.stringify(rawOutput);
    this.#previous = { ptsMs: Math.round(startMs), text };
  }

  #record(chunk: DecodedChunk, finding: Finding | null, processMs: number): ChunkRecord {
    const { plan } = this.#options;
    const { index, firstFrame, signals } = chunk;
    const overlay = finding?.overlay ?? null;
    return {
      index,
      firstFrame,
      frames: signals.count,
      lag: chunkLag({
        processMs: Math.round(processMs),
        firstPtsMs: Math.round(signals.ptsMs[0]!),
        lastPtsMs: Math.round(signals.ptsMs[signals.count - 1]!),
      }),
      wasAttempted: finding !== null,
      error: finding?.error ?? null,
      tokens: finding?.reply?.tokens ?? NO_TOKENS,
      inferenceLatencyMs: finding?.reply?.inferenceLatencyMs ?? 0,
      semantics: {
        // Without rows in the response nobody reads the texts, which take much memory for a long film.
        overlay: overlay && !plan.includeFrameMetadata
          ? { ...overlay, summary: "", description: "" }
          : overlay,
        isFallback: finding !== null && isFallback(finding, this.#options.isSemantic),
        finishReason: finding?.reply?.answer.finishReason ?? null,
      },
    };
  }

  #events(chunk: DecodedChunk, span: Span, outcome: ChunkOutcome): NewEvent[] {
    const { caller, runId, plan, metrics, isSemantic } = this.#options;
    const identity = { requestId: caller.requestId, chunkIndex: chunk.index, plan };
    const { finding, audio, cut, evidence, feedbackAudio } = outcome;
    const { moments, reply } = finding;
    const provider = reply?.answer.provider ?? (audio?.local && !isSemantic ? "local_audio" : null);
    const stored = { evidence, feedbackAudio };
    metrics.add("service_pipeline_multimodal_moments_total", moments.length);
    return [
      event(
        "semantic_chunk_inferred",
        runId,
        chunkInferred(identity, {
          ...finding,
          ...stored,
          provider,
          isFallback: isFallback(finding, isSemantic),
          span,
          clip: cut.clip,
          audio,
        }),
      ),
      ...moments.map((moment, number) =>
        event(
          "multimodal_moment",
          runId,
          momentFound(identity, { ...stored, moment, number, provider: provider ?? "local_audio", span }),
        )
      ),
    ];
  }
}

/** Everything that the events of a chunk report. */
interface ChunkOutcome {
  readonly finding: Finding;
  readonly audio: AudioFindings | null;
  readonly cut: Cut;
  readonly evidence: Evidence | null;
  readonly feedbackAudio: FeedbackAudio | null;
}

const NO_CUT: Cut = { clip: null, error: null };
const NOTHING_ASKED: Finding = { reply: null, error: null, rawOutput: null, overlay: null, moments: [] };

function failed(error: string): Finding {
  return { ...NOTHING_ASKED, error };
}

/**
 * `semantic_fallback_used`. A chunk that only the sidecar should have described, and could not, is a fallback
 * too.
 */
function isFallback({ error, reply, overlay }: Finding, isSemantic: boolean): boolean {
  return error !== null || reply?.answer.fallbackUsed === true || (!isSemantic && overlay === null);
}

/** A clip without moments is kept only in mode `video`, as evidence of its description. */
function isWorthKeeping(plan: ReasonPlan, { moments, reply, error }: Finding): boolean {
  return moments.length > 0 || (plan.media.mode === "video" && reply !== null && error === null);
}
