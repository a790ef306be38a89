/** What is heard in a window of audio without a model provider: profiles, engines, the analysis, why there is none. */

import { z } from "zod";
import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../limits.ts";

/** What kind of recording it is, which decides the labels. The place in the list is the number on the wire. */
export const AUDIO_PROFILES = ["general", "gameplay", "screen_recording", "physical_world"] as const;
export type AudioProfile = typeof AUDIO_PROFILES[number];

/** Who turns speech into text, named as in JSON. The place in the list is the number on the wire. Contract 12.2, C4. */
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

/** Why a window has no analysis, or a text no speech; also the label `reason` of the metrics. */
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

/** Requests that the sidecar works on, that wait in it, and that it works on at most. */
export const sidecarCapacity = z.strictObject({ active: count, queued: count, limit: count });
export type SidecarCapacity = z.infer<typeof sidecarCapacity>;

/** Offsets are milliseconds from the start of the window. */
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

/** Contract 12.2: the whole answer about one window. Closed, as it comes from outside and is passed on as it is. */
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

/** What events carry as `local_audio`. */
export type LocalAudio = z.infer<typeof localAudioAnswer>;

/** A window without an analysis, or a text without speech. The message says why, never what was heard or to be said. */
export class SidecarFailed extends Error {
  override readonly name = "SidecarFailed";

  constructor(readonly reason: SidecarFailure, message: string) {
    super(message);
  }
}
