/** One chunk: pictures or a clip and its sound, a question to the model, and what goes on the timeline. Contract 6. */

import type { Metrics } from "../../base/metrics.ts";
import type { World } from "../../base/world.ts";
import { type Clip, ExtractionFailed, type Extractor } from "../../media/windows/extractor.ts";
import type { DecodedChunk, FrameStream } from "../../media/recorded/frame_stream.ts";
import type { MediaInput } from "../../media/input.ts";
import type { MediaInfo } from "../../media/probe.ts";
import type { RowOverlay } from "../../model/frames/frame_row.ts";
import { InferenceFailed, NO_TOKENS, semanticErrorOf } from "../../model/infer/inference.ts";
import { type Answered, parseCustomAnswer, parseFrameAnswer, TIER_LABEL } from "../../model/reason/answer.ts";
import { chunkLag } from "../../model/reason/chunks.ts";
import { type ChunkMoment, fuseMoments, parseMomentsAnswer } from "../../model/reason/moments.ts";
import { chunkPrompt } from "../../model/reason/prompts.ts";
import { isNative, type ReasonPlan } from "../../model/reason/request.ts";
import { event } from "../../model/events/event_table.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import type { AudioSidecar } from "../../remote/sidecars/audio_sidecar.ts";
import type { Blobs } from "../../store/blobs.ts";
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

/** What a chunk comes to: what is kept of it, and its events, none where nobody was asked. */
export interface ReasonedChunk {
  readonly record: ChunkRecord;
  readonly events: readonly NewEvent[];
}

/** What was found out about a chunk, before anything is stored or told. */
interface Finding {
  readonly reply: ChunkReply | null;
  /** Contract 6.6; null when the semantic path did its work. */
  readonly error: string | null;
  readonly rawOutput: unknown;
  readonly overlay: RowOverlay | null;
  readonly moments: readonly ChunkMoment[];
}

/** The clip of a chunk, or why there is none. */
interface Cut {
  readonly clip: Clip | null;
  readonly error: string | null;
}

export class ChunkReasoner {
  readonly #options: ChunkReasonerOptions;
  readonly #questions: ChunkQuestions;
  readonly #listening: ChunkAudio | null;
  readonly #evidence: EvidenceStore;
  /** What was last said and seen, for a temporal chain; its chunks come one after the other. */
  #previous: { readonly ptsMs: number; readonly text: string } | null = null;
  #previousPicture: Uint8Array | null = null;

  constructor(options: ChunkReasonerOptions) {
    const { inference, plan, caller, runId, extractor, audioSidecar } = options;
    this.#options = options;
    this.#questions = new ChunkQuestions({ inference, plan, principalKey: caller.principalKey, runId });
    this.#listening = plan.localAudio && audioSidecar
      ? new ChunkAudio({ extractor, sidecar: audioSidecar, plan: plan.localAudio, timeoutMs: plan.timeoutMs })
      : null;
    this.#evidence = new EvidenceStore(options);
  }

  /** Rejects with the reason of the signal and with nothing else that a model, a sidecar or a medium could cause. */
  async reason(chunk: DecodedChunk, signal: AbortSignal): Promise<ReasonedChunk> {
    const { world, isSemantic } = this.#options;
    const startedMs = world.monotonicMs();
    const told = isSemantic || this.#listening !== null ? await this.#tell(chunk, signal) : null;
    const record = this.#record(chunk, told?.finding ?? null, world.monotonicMs() - startedMs);
    return { record, events: told?.events ?? [] };
  }

  async #tell(chunk: DecodedChunk, signal: AbortSignal): Promise<{ finding: Finding; events: NewEvent[] }> {
    const { plan, isSemantic } = this.#options;
    const span = this.#span(chunk);
    const needsClip = isSemantic && (isNative(plan) || plan.clip !== null);
    const [heard, asked] = await Promise.all([
      this.#hear(span, signal),
      needsClip ? this.#cut(span, signal) : NO_CUT,
    ]);
    const finding = this.#fused(await this.#find(chunk, span, { heard, cut: asked, signal }), span, heard);
    this.#remember(chunk, span, finding);
    const isKept = plan.media.persistEvidence && isWorthKeeping(plan, finding);
    const cut = isKept && asked.clip === null && asked.error === null ? await this.#cut(span, signal) : asked;
    const evidence = isKept && cut.clip ? await this.#evidence.clip(cut.clip.bytes) : null;
    const speech = await this.#listening?.speak(finding.moments, signal);
    const feedbackAudio = speech ? await this.#evidence.speech(speech) : null;
    signal.throwIfAborted();
    return { finding, events: this.#events(chunk, span, { finding, heard, cut, evidence, feedbackAudio }) };
  }

  /** A native window begins with its first frame and ends with the medium, whatever frames it has. Contract 6.2. */
  #span({ signals }: DecodedChunk): Span {
    const { plan, info } = this.#options;
    const startMs = signals.ptsMs[0]!;
    const lengthMs = plan.clip?.durationMs ?? (isNative(plan) ? plan.media.windowMs : null);
    if (lengthMs === null) return { startMs, endMs: signals.ptsMs[signals.count - 1]! };
    const leftMs = info.durationMs === null ? lengthMs : info.durationMs - startMs;
    return { startMs, endMs: startMs + Math.max(1, Math.min(lengthMs, leftMs)) };
  }

  async #hear({ startMs, endMs }: Span, signal: AbortSignal): Promise<AudioFindings | null> {
    const { input, info } = this.#options;
    return await this.#listening?.hear({ input, info, startMs, durationMs: endMs - startMs, signal }) ?? null;
  }

  async #cut({ startMs, endMs }: Span, signal: AbortSignal): Promise<Cut> {
    const { extractor, input, info, plan, stream: { coordinates } } = this.#options;
    const withAudio = plan.media.mode === "audio_video";
    const window = { input, info, startMs, durationMs: endMs - startMs, signal };
    try {
      return { clip: await extractor.clip({ ...window, coordinates, withAudio }), error: null };
    } catch (error) {
      if (!(error instanceof ExtractionFailed)) throw error;
      return { clip: null, error: `media_extraction_failed:${error.reason}` };
    }
  }

  /** What the model makes of the chunk, on its own word. */
  async #find(
    chunk: DecodedChunk,
    span: Span,
    { heard, cut, signal }: { heard: AudioFindings | null; cut: Cut; signal: AbortSignal },
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
      prompt: this.#prompt(chunk, span, heard),
      images,
      ...(video && { video }),
    };
    const clipMs = span.endMs - span.startMs;
    try {
      const reply = await this.#questions.ask(
        question,
        (text) => this.#read(text, true, clipMs).ok,
        signal,
      );
      const read = this.#read(reply.answer.outputText, reply.isSecondPass, clipMs);
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
      return failed(semanticErrorOf(error));
    }
  }

  /** Chosen pictures of the chunk; in front of them, if asked for, the one in the middle of the chunk before. */
  #pictures({ images }: DecodedChunk): Uint8Array[] {
    const own = images.map(({ jpeg }) => jpeg);
    const { visualDiff } = this.#options.plan;
    return visualDiff && this.#previousPicture && own.length > 0 ? [this.#previousPicture, ...own] : own;
  }

  #prompt(
    { firstFrame, signals }: DecodedChunk,
    { startMs, endMs }: Span,
    heard: AudioFindings | null,
  ): string {
    const { plan } = this.#options;
    return chunkPrompt({
      mediaMode: plan.clip ? "video" : plan.media.mode,
      prompt: plan.prompt,
      frames: { start: firstFrame, end: firstFrame + signals.count - 1 },
      ptsStartMs: Math.round(startMs),
      ptsEndMs: Math.round(endMs),
      previous: plan.temporalChain ? this.#previous : null,
      localAudio: heard?.local ?? null,
    });
  }

  #read(
    text: string,
    isSecondPass: boolean,
    clipMs: number,
  ): Answered<{ readonly overlay?: RowOverlay; readonly moments?: readonly ChunkMoment[] }> {
    const { outputSchema, media } = this.#options.plan;
    if (outputSchema) return parseCustomAnswer(text, isSecondPass ? TIER_LABEL : outputSchema);
    return media.mode === "audio_video" ? parseMomentsAnswer(text, clipMs) : parseFrameAnswer(text);
  }

  /** Contract 6.8: the sidecar's word beside, or instead of, the model's. */
  #fused(finding: Finding, { startMs, endMs }: Span, heard: AudioFindings | null): Finding {
    const { plan, isSemantic } = this.#options;
    if (heard === null) return finding;
    const localFailed = heard.local === null;
    const { moments, overlay } = fuseMoments(finding.moments, {
      local: heard.local,
      localFailed,
      clipMs: endMs - startMs,
    });
    const hasLabels = isSemantic ? finding.error === null && !plan.outputSchema : !localFailed;
    return { ...finding, moments, overlay: hasLabels ? overlay : null };
  }

  /** A chunk that failed leaves the state as it was: the next one is told of what was last seen, and when. */
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
      tokens: finding?.reply?.tokens ?? NO_TOKENS,
      inferenceLatencyMs: finding?.reply?.inferenceLatencyMs ?? 0,
      semantics: {
        // Texts of a long film's chunks are kept for nothing where nobody gets to see the rows.
        overlay: overlay && !plan.includeFrameMetadata
          ? { ...overlay, summary: "", description: "" }
          : overlay,
        isFallback: finding !== null && isFallback(finding, this.#options.isSemantic),
        finishReason: finding?.reply?.answer.finishReason ?? null,
      },
    };
  }

  #events(chunk: DecodedChunk, span: Span, told: ChunkOutcome): NewEvent[] {
    const { caller, runId, plan, metrics, isSemantic } = this.#options;
    const identity = { requestId: caller.requestId, chunkIndex: chunk.index, plan };
    const { finding, heard, cut, evidence, feedbackAudio } = told;
    const { moments, reply } = finding;
    const provider = reply?.answer.provider ?? (heard?.local && !isSemantic ? "local_audio" : null);
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
          heard,
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

/** What is stored and told of a chunk beside its finding. */
interface ChunkOutcome {
  readonly finding: Finding;
  readonly heard: AudioFindings | null;
  readonly cut: Cut;
  readonly evidence: Evidence | null;
  readonly feedbackAudio: FeedbackAudio | null;
}

const NO_CUT: Cut = { clip: null, error: null };
const NOTHING_ASKED: Finding = { reply: null, error: null, rawOutput: null, overlay: null, moments: [] };

function failed(error: string): Finding {
  return { ...NOTHING_ASKED, error };
}

/** Contract 6.6. A window that only the sidecar was to tell of, and could not, falls back as well. */
function isFallback({ error, reply, overlay }: Finding, isSemantic: boolean): boolean {
  return error !== null || reply?.answer.fallbackUsed === true || (!isSemantic && overlay === null);
}

/** A silent clip has no moments: there the clip is evidence of what the model made of it. */
function isWorthKeeping(plan: ReasonPlan, { moments, reply, error }: Finding): boolean {
  return moments.length > 0 || (plan.media.mode === "video" && reply !== null && error === null);
}
