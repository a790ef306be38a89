/** The work of the audio sidecar on one request: from the received bytes to the parts of the answer. */

import type { World } from "../../base/world.ts";
import type { AnalyzeRequest, SpeechAnswer } from "../../model/sidecars/audio_protocol.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { LocalAudio, SpeechEngine } from "../../model/sidecars/local_audio.ts";
import { readWav, wavSamples } from "../../model/sidecars/wav.ts";
import { SAMPLE_RATE_HZ } from "./features.ts";
import { detect, selected, SOUND_MODEL, VOICE_MODEL } from "./detection.ts";
import { SidecarFault } from "../sidecar_fault.ts";
import { type Recognizer, transcribe } from "./speech_recognition.ts";
import { SYNTHESIS_MODEL, synthesize } from "./speech_synthesis.ts";

export interface AudioWorkOptions {
  readonly world: World;
  /** Null when none is configured. */
  readonly recognizer: Recognizer | null;
  readonly espeakProgram: string;
  readonly timeoutMs: number;
}

/** An answer without the wait of its request and the capacity of the sidecar, which the server adds. */
export type WindowAnalysis = Omit<LocalAudio, "queue_wait_ms" | "capacity">;
/** A spoken text, without the capacity of the sidecar. */
export type SynthesizedSpeech = Omit<SpeechAnswer, "capacity"> & { readonly wav: Uint8Array };

/** A codec can make a clip a little longer than its window. The excess is cut off and is no fault. */
const EXCESS_MS = 1_000;

/** All methods reject with a `SidecarFault` or the reason of their signal. */
export class AudioWork {
  readonly #options: AudioWorkOptions;

  constructor(options: AudioWorkOptions) {
    this.#options = options;
  }

  async analyze(request: AnalyzeRequest, wav: Uint8Array, signal: AbortSignal): Promise<WindowAnalysis> {
    const { world } = this.#options;
    const recognizer = this.#recognizerFor(request.engine);
    const now = () => world.monotonicMs();
    const startedMs = now();
    const samples = samplesOf(wav);
    const decodedMs = now();
    const { voice, sounds, voiceMs, soundsMs } = detect(samples, request.profile, now);
    const detectedMs = now();
    const speech = recognizer ? await transcribe(recognizer, samples, voice, signal) : [];
    const endedMs = now();
    return {
      profile: request.profile,
      speech_engine: recognizer?.engine ?? "none",
      models: [VOICE_MODEL, SOUND_MODEL, ...(recognizer ? [recognizer.model] : [])],
      observations: selected([...voice, ...sounds, ...speech], request),
      audio_duration_ms: samples.length / SAMPLE_RATE_HZ * 1000,
      audio_bytes: wav.length,
      stages: {
        decode_ms: decodedMs - startedMs,
        vad_ms: voiceMs,
        classifier_ms: soundsMs,
        asr_ms: endedMs - detectedMs,
      },
      processing_ms: endedMs - startedMs,
    };
  }

  async synthesize(text: string, signal: AbortSignal): Promise<SynthesizedSpeech> {
    const { world, espeakProgram, timeoutMs } = this.#options;
    const startedMs = world.monotonicMs();
    const { wav, sampleRateHz } = await synthesize(text, {
      world,
      program: espeakProgram,
      deadlineMs: timeoutMs,
      signal,
    });
    return {
      wav,
      model: SYNTHESIS_MODEL,
      sample_rate_hz: sampleRateHz,
      processing_ms: world.monotonicMs() - startedMs,
    };
  }

  /** An engine that is named must be configured; `auto` takes the configured one, if any. */
  #recognizerFor(engine: SpeechEngine): Recognizer | null {
    const { recognizer } = this.#options;
    if (engine === "none") return null;
    if (engine === "auto" || engine === recognizer?.engine) return recognizer;
    throw new SidecarFault("model_load", `the speech engine ${engine} is not configured here`);
  }
}

/** The samples of a window of at most a minute. */
function samplesOf(wav: Uint8Array): Int16Array {
  const shape = readWav(wav);
  if (typeof shape === "string") throw undecodable(shape);
  if (shape.channels !== 1 || shape.sampleRateHz !== SAMPLE_RATE_HZ) {
    throw undecodable(
      `it must be mono with ${SAMPLE_RATE_HZ} samples a second: got ${shape.channels} channels with ${shape.sampleRateHz}`,
    );
  }
  const longest = LIMITS.sidecar.observationEndMsMax;
  if (shape.durationMs > longest + EXCESS_MS) {
    throw undecodable(`it lasts ${Math.round(shape.durationMs)} ms, more than ${longest}`);
  }
  return wavSamples(wav, shape).subarray(0, longest * SAMPLE_RATE_HZ / 1000);
}

function undecodable(why: string): SidecarFault {
  return new SidecarFault("decode", `the audio cannot be used as ${why}`, "bad_request");
}
