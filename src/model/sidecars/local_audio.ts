/** The analysis of a window of audio by the sidecar: profiles, engines, results, failures. See
 * docs/protocols.md#audio-analysis.
 */

import * as z from "zod";
import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";

/** The kind of recording, which decides the labels. The index in the list is the number on the wire. */
export const AUDIO_PROFILES = ["general", "gameplay", "screen_recording", "physical_world"] as const;
export type AudioProfile = typeof AUDIO_PROFILES[number];

/**
 * The engines that turn speech into text, named as in JSON. The index in the list is the number on the wire.
 */
export const SPEECH_ENGINES = [
  "none",
  "auto",
  "sensevoice",
  "moonshine",
  "qwen3_asr",
  "lfm2_5_audio",
  "whisper",
] as const;
export type SpeechEngine = typeof SPEECH_ENGINES[number];

export const OBSERVATION_KINDS = ["voice_activity", "audio_event", "speech"] as const;
export type ObservationKind = typeof OBSERVATION_KINDS[number];

/** Why a window has no analysis, or a text has no speech; also the label `reason` of the metrics. */
export const SIDECAR_FAILURES = [
  "decode",
  "timeout",
  "overloaded",
  "model_load",
  "malformed_response",
  "reconnect",
  "inference",
] as const;
export type SidecarFailure = typeof SIDECAR_FAILURES[number];

/** A text of at most `maximum` bytes of UTF-8. */
function bytes(maximum: number) {
  return z.string().refine((text) => utf8Length(text) <= maximum, `must be at most ${maximum} bytes`);
}

const named = (maximum: number) => bytes(maximum).min(1);
const count = z.int().nonnegative();
const durationMs = z.number().nonnegative();

/** Requests in work, requests that wait, and the most that can be in work. */
export const sidecarCapacity = z.strictObject({ active: count, queued: count, limit: count });
export type SidecarCapacity = z.infer<typeof sidecarCapacity>;

/** A sound that was found. Offsets are milliseconds from the start of the window. */
export const audioObservation = z.strictObject({
  start_offset_ms: count,
  end_offset_ms: count.max(LIMITS.sidecar.observationEndMsMax),
  kind: z.enum(OBSERVATION_KINDS),
  label: named(LIMITS.sidecar.labelBytesMax),
  confidence: z.number().min(0).max(1),
  model: named(LIMITS.sidecar.modelBytesMax),
  transcript: bytes(LIMITS.sidecar.transcriptBytesMax).nullish(),
  language: bytes(LIMITS.sidecar.languageBytesMax).nullish(),
  emotion: bytes(LIMITS.sidecar.languageBytesMax).nullish(),
}).refine(
  ({ start_offset_ms, end_offset_ms }) => end_offset_ms > start_offset_ms,
  "must end after it starts",
);
export type AudioObservation = z.infer<typeof audioObservation>;

/**
 * The whole answer about one window. Closed, because it comes from outside and is written to events
 * unchanged.
 */
export const localAudioAnswer = z.strictObject({
  profile: z.enum(AUDIO_PROFILES),
  speech_engine: z.enum(SPEECH_ENGINES),
  models: z.array(named(LIMITS.sidecar.modelBytesMax)).max(LIMITS.sidecar.modelsMax),
  observations: z.array(audioObservation).max(LIMITS.sidecar.observationsMax),
  audio_duration_ms: durationMs,
  audio_bytes: count,
  queue_wait_ms: durationMs,
  stages: z.strictObject({
    decode_ms: durationMs,
    vad_ms: durationMs,
    classifier_ms: durationMs,
    asr_ms: durationMs,
  }),
  capacity: sidecarCapacity,
  processing_ms: durationMs,
});

/** The value of `local_audio` in events. */
export type LocalAudio = z.infer<typeof localAudioAnswer>;

/**
 * The error of a failed analysis or synthesis. The message says why, without any content of the audio or the
 * text.
 */
export class SidecarFailed extends Error {
  override readonly name = "SidecarFailed";

  constructor(readonly reason: SidecarFailure, message: string) {
    super(message);
  }
}
