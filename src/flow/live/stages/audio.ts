/** The audio analysis of a session: windows of Opus become WAV, go to the audio sidecar, and become events.
 */

import { joinedBytes } from "../../../base/bytes.ts";
import type { Metrics } from "../../../contract/metrics.ts";
import { inRootSpan } from "../../../base/tracing.ts";
import type { World } from "../../../base/world.ts";
import type { AudioWindow, ReportOf } from "../../../live/messages/messages.ts";
import { opusWav, OpusWavFailed } from "../../../media/live/opus_wav.ts";
import { type SessionEvent, sessionEvent } from "../../../model/events/event_table.ts";
import type { LiveAudioPlan } from "../../../model/live/attach.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { type LocalAudio, SidecarFailed } from "../../../model/sidecars/local_audio.ts";
import { type ChunkMoment, fuseMoments } from "../../../model/reason/moments.ts";
import { SIDECAR_SAMPLE_RATE_HZ, wavOf } from "../../../model/sidecars/wav.ts";
import type { LiveJournal, SessionIdentity } from "../journal/journal.ts";
import { Stage } from "./stage.ts";
import type { StagedSession, StageHost } from "./staged_session.ts";

/** The stream that events of live audio name. Their `request_id` is made up, as no request causes them. */
const STREAM_ID = "default";

type LiveAudioOptions = NonNullable<StageHost["audio"]> & {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly plan: LiveAudioPlan;
  readonly metrics: Metrics;
  readonly world: World;
};

export function audioStage({ host, plan: { identity, attach }, journal, acknowledge }: StagedSession) {
  const { audio: parts, metrics, world } = host;
  const { localAudio: plan } = attach;
  const audio = parts && plan && new LiveAudio({ identity, journal, plan, ...parts, metrics, world });
  return new Stage<ReportOf<"audio_window">>(acknowledge, {
    name: "audio",
    bound: audio ? LIMITS.live.audioWindowsQueued : 0,
    credit: "audioWindows",
    work: async ({ window }, signal) => await audio?.analyze(window, signal),
    onLost: ({ window }) =>
      metrics.add("service_pipeline_webrtc_audio_queue_dropped_total", window.units.length),
  });
}

/** See docs/live/events.md#live-audio. */
class LiveAudio {
  readonly #options: LiveAudioOptions;

  constructor(options: LiveAudioOptions) {
    this.#options = options;
  }

  /** A window that fails is only counted. Rejects with the reason of the signal. */
  analyze(window: AudioWindow, signal: AbortSignal): Promise<void> {
    const { world, journal: { runId }, identity: { sessionId } } = this.#options;
    const attributes = {
      "service.run.id": runId,
      "service.request.id": requestIdOf(sessionId),
      "service.stream.id": STREAM_ID,
      "service.chunk.index": window.chunkIndex,
    };
    return inRootSpan(world.tracing, "audio chunk", { attributes }, () => this.#analyze(window, signal));
  }

  async #analyze(window: AudioWindow, signal: AbortSignal): Promise<void> {
    const { identity, plan, sidecar, runner, world, timeoutMs, metrics, journal } = this.#options;
    try {
      const { wav, durationMs, decodeMs } = window.format === "pcm"
        ? wavOfBlocks(window.units)
        : await opusWav(window.units, { runner, world, signal });
      metrics.add("service_pipeline_local_audio_wav_bytes_total", wav.length);
      metrics.observe("service_pipeline_local_audio_wav_extraction_latency_ms", decodeMs);
      const { result, roundTripMs } = await sidecar.analyze({
        principalKey: identity.principalKey,
        wav,
        profile: plan.profile,
        engine: plan.engine,
        maxEvents: plan.maxEvents,
        minConfidence: plan.minConfidence,
        sourceStartMs: window.startPtsMs,
        timeoutMs,
        extractionMs: decodeMs,
        signal,
      });
      journal.append(this.#events(window, { result, durationMs, decodeMs, roundTripMs }));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SidecarFailed) return; // the sidecar has counted it
      if (!(error instanceof OpusWavFailed)) throw error;
      metrics.add("service_pipeline_local_audio_analysis_failures_total");
      metrics.add("service_pipeline_local_audio_failures_total", { reason: "decode" });
    }
  }

  #events(
    window: AudioWindow,
    { result, durationMs, decodeMs, roundTripMs }: {
      result: LocalAudio;
      durationMs: number;
      decodeMs: number;
      roundTripMs: number;
    },
  ): SessionEvent[] {
    const { identity: { sessionId }, metrics } = this.#options;
    const { chunkIndex, trackId, startPtsMs, endPtsMs } = window;
    const common = {
      request_id: requestIdOf(sessionId),
      stream_id: STREAM_ID,
      session_id: sessionId,
      chunk_index: chunkIndex,
      track_id: trackId,
      provider: "local_audio",
      timestamp_resolution_ms: 1,
    } as const;
    const { moments } = fuseMoments([], { local: result, localFailed: false, clipMs: durationMs });
    metrics.add("service_pipeline_multimodal_moments_total", moments.length);
    return [
      sessionEvent("semantic_chunk_inferred", {
        ...common,
        media_mode: "live_audio",
        pts_start_ms: startPtsMs,
        pts_end_ms: endPtsMs,
        rtp_access_units: window.units.length,
        decode_ms: decodeMs,
        round_trip_ms: roundTripMs,
        local_audio: result,
      }),
      ...moments.map((moment, number) =>
        sessionEvent("multimodal_moment", {
          ...common,
          moment_id: `live-audio:${sessionId}:${chunkIndex}:${number}`,
          ...audioMoment(moment),
          start_pts_ms: startPtsMs + moment.start_offset_ms,
          end_pts_ms: startPtsMs + moment.end_offset_ms,
          evidence: null,
        })
      ),
    ];
  }
}

/** Speech is only in the description: the other text fields are for what a model sees. */
function audioMoment({ start_offset_ms, end_offset_ms, kind, description, confidence }: ChunkMoment) {
  return {
    start_offset_ms,
    end_offset_ms,
    modalities: ["audio"],
    kind,
    description,
    intent: null,
    audio_visual_relation: null,
    confidence,
  } as const;
}

/** The Worker's decoder has decoded them already. */
function wavOfBlocks(blocks: readonly Uint8Array<ArrayBuffer>[]) {
  const samples = new Int16Array(joinedBytes(...blocks).buffer);
  const durationMs = samples.length * 1000 / SIDECAR_SAMPLE_RATE_HZ;
  return { wav: wavOf(samples, SIDECAR_SAMPLE_RATE_HZ), durationMs, decodeMs: 0 };
}

/** Under which events and spans of the session's sound are found, as no request asks for it. */
function requestIdOf(sessionId: string): string {
  return `live-audio:${sessionId}`;
}
