/** An audio sidecar for tests: checks that requests follow the protocol, records them and gives scripted
 * answers.
 */

import {
  decodeRequestHeader,
  encodeResponse,
  REQUEST_HEADER_BYTES,
  type RequestHeader,
} from "../../../src/model/sidecars/audio_protocol.ts";
import type {
  AudioObservation,
  LocalAudio,
  SidecarFailure,
} from "../../../src/model/sidecars/local_audio.ts";
import { readWav, wavOf, type WavShape } from "../../../src/model/sidecars/wav.ts";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { openSidecarDouble, type SidecarDouble, type SidecarScript } from "./sidecar_double.ts";

/** One request as it came in. */
export type AudioRequest = RequestHeader & {
  /** Counted from 0; requests of one number came over one connection. */
  readonly connection: number;
  readonly audio: Uint8Array;
  readonly text: string;
  /** What the audio is; a text says why it is no valid WAV. */
  readonly wav: WavShape | string;
};

export type AudioScript = SidecarScript<AudioRequest>;
export type AudioDouble = SidecarDouble<AudioRequest>;

/**
 * Answers analyze with what `script` says (no sound is found unless given), and synthesize with a second of
 * silence.
 */
export function openAudioDouble(script: AudioScript = observed([])): AudioDouble {
  return openSidecarDouble(async (read, connection) => {
    const head = await read(REQUEST_HEADER_BYTES);
    if (!head) return null;
    const header = decodeRequestHeader(head);
    const audio = await read(header.audioBytes);
    const text = await read(header.textBytes);
    if (!audio || !text) throw new Error("the request was cut off");
    const wav = header.operation === "analyze" ? readWav(audio) : "there is none";
    return { ...header, connection, audio, text: new TextDecoder().decode(text), wav };
  }, script);
}

/** An answer that names these observations; `changed` replaces any other part of it. */
export function observed(
  observations: readonly AudioObservation[],
  changed: Partial<LocalAudio> = {},
): AudioScript {
  return (request) => {
    if (request.operation === "synthesize") return spoken()(request, 0);
    return joinedBytes(...encodeResponse("ok", { ...analysisOf(request, observations), ...changed }));
  };
}

/** The metadata that a well-behaved sidecar gives for `request`. */
export function analysisOf(request: AudioRequest, observations: readonly AudioObservation[]): LocalAudio {
  if (request.operation !== "analyze") throw new Error("only a window of audio has an analysis");
  return {
    profile: request.profile,
    speech_engine: request.engine,
    models: ["double"],
    observations: [...observations],
    audio_duration_ms: typeof request.wav === "string" ? 0 : request.wav.durationMs,
    audio_bytes: request.audioBytes,
    queue_wait_ms: 1,
    stages: { decode_ms: 1, vad_ms: 2, classifier_ms: 3, asr_ms: 4 },
    capacity: CAPACITY,
    processing_ms: 10,
  };
}

export const CAPACITY = { active: 1, queued: 2, limit: 3 };

/** An observation with everything but its interval filled in. */
export function observation(
  startMs: number,
  endMs: number,
  changed: Partial<AudioObservation> = {},
): AudioObservation {
  return {
    start_offset_ms: startMs,
    end_offset_ms: endMs,
    kind: "audio_event",
    label: "music",
    confidence: 0.9,
    model: "double",
    ...changed,
  };
}

/** The answer to a text: a second of silence, or `wav`. */
export function spoken(wav: Uint8Array = wavOf(new Int16Array(22_050), 22_050)): AudioScript {
  const metadata = { model: "double-voice", sample_rate_hz: 22_050, processing_ms: 5, capacity: CAPACITY };
  return () => joinedBytes(...encodeResponse("ok", metadata, wav));
}

/** An answer that says why there is none. */
export function refused(
  reason: SidecarFailure | (string & Record<never, never>),
  status: "bad_request" | "inference_error" | "overloaded" = "inference_error",
): AudioScript {
  const failure = { reason: reason as SidecarFailure, message: "fails on request", capacity: CAPACITY };
  return () => joinedBytes(...encodeResponse(status, failure));
}

/** A script with its bytes changed: `change` may edit them in place or give others. */
export function changed(script: AudioScript, change: (bytes: Uint8Array) => Uint8Array | void): AudioScript {
  return async (request, index) => {
    const reply = await script(request, index);
    return typeof reply === "string" ? reply : change(reply) ?? reply;
  };
}

/** Answers that a client must refuse, by their fault. */
export const MALFORMED: Readonly<Record<string, AudioScript>> = {
  "another magic": changed(observed([]), (bytes) => void (bytes[3] = 0)),
  "another version": changed(observed([]), (bytes) => void (bytes[4] = 2)),
  "a status that nobody knows": changed(observed([]), (bytes) => void (bytes[5] = 9)),
  "more metadata than is allowed": changed(
    observed([]),
    (bytes) => new DataView(bytes.buffer).setUint32(8, 512 * 2 ** 10 + 1),
  ),
  "more audio than is allowed": changed(
    observed([]),
    (bytes) => new DataView(bytes.buffer).setUint32(12, 16 * 2 ** 20 + 1),
  ),
  "a list in each byte": changed(observed([]), (bytes) => void bytes.fill(0x9f, 16)),
  "garbled MessagePack": changed(observed([]), (bytes) => void bytes.fill(0xc1, 16)),
  "a key that nobody knows": observed([], { surprise: 1 } as Partial<LocalAudio>),
  "an observation that ends before it starts": observed([observation(20, 10)]),
  "an observation beyond the minute": observed([observation(0, 60_001)]),
  "a confidence above 1": observed([observation(0, 10, { confidence: 1.01 })]),
  "a label of 129 bytes": observed([observation(0, 10, { label: "x".repeat(129) })]),
  "an engine spelt differently": observed(
    [],
    { speech_engine: "sense_voice" } as unknown as Partial<LocalAudio>,
  ),
  "65 observations": observed(Array.from({ length: 65 }, (_, index) => observation(index, index + 1))),
};
