/** What the sidecar does with one request, from bytes to an answer. */

import type { World } from "../../base/world.ts";
import type { AnalyzeRequest, SpeechAnswer } from "../../model/sidecars/audio_protocol.ts";
import { LIMITS } from "../../model/limits.ts";
import type { LocalAudio, SpeechEngine } from "../../model/sidecars/local_audio.ts";
import { readWav, wavSamples } from "../../model/sidecars/wav.ts";
import { SAMPLE_RATE_HZ } from "./features.ts";
import { chosen, hear, SOUND_MODEL, VOICE_MODEL } from "./hearing.ts";
import { SidecarFault } from "../sidecar_fault.ts";
import { type Recognizer, transcribed } from "./speech_recognition.ts";
import { speak, SYNTHESIS_MODEL } from "./speech_synthesis.ts";

export interface SidecarWorkOptions {
  readonly world: World;
  /** null where none is configured. */
  readonly recognizer: Recognizer | null;
  readonly espeakProgram: string;
  readonly timeoutMs: number;
}

/** An answer before it is known how long it waited and how full the sidecar is. */
export type Analysis = Omit<LocalAudio, "queue_wait_ms" | "capacity">;
export type Synthesis = Omit<SpeechAnswer, "capacity"> & { readonly wav: Uint8Array };

/** A clip that a codec made a little longer than its window is still that window. */
const EXCESS_MS = 1_000;

/** All methods reject with a `SidecarFault` or the reason of their signal. */
export class SidecarWork {
  readonly #options: SidecarWorkOptions;

  constructor(options: SidecarWorkOptions) {
    this.#options = options;
  }

  async analyze(request: AnalyzeRequest, wav: Uint8Array, signal: AbortSignal): Promise<Analysis> {
    const { world } = this.#options;
    const recognizer = this.#recognizerFor(request.engine);
    const now = () => world.monotonicMs();
    const startedMs = now();
    const samples = decoded(wav);
    const decodedMs = now();
    const { voice, sounds, voiceMs, soundsMs } = hear(samples, request.profile, now);
    const heardMs = now();
    const speech = recognizer ? await transcribed(recognizer, samples, voice, signal) : [];
    const endedMs = now();
    return {
      profile: request.profile,
      speech_engine: recognizer?.engine ?? "none",
      models: [VOICE_MODEL, SOUND_MODEL, ...(recognizer ? [recognizer.model] : [])],
      observations: chosen([...voice, ...sounds, ...speech], request),
      audio_duration_ms: samples.length / SAMPLE_RATE_HZ * 1000,
      audio_bytes: wav.length,
      stages: {
        decode_ms: decodedMs - startedMs,
        vad_ms: voiceMs,
        classifier_ms: soundsMs,
        asr_ms: endedMs - heardMs,
      },
      processing_ms: endedMs - startedMs,
    };
  }

  async synthesize(text: string, signal: AbortSignal): Promise<Synthesis> {
    const { world, espeakProgram, timeoutMs } = this.#options;
    const startedMs = world.monotonicMs();
    const { wav, sampleRateHz } = await speak(text, {
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

  /** Who was asked for by name either is there or is an error; `auto` takes whoever there is. */
  #recognizerFor(engine: SpeechEngine): Recognizer | null {
    const { recognizer } = this.#options;
    if (engine === "none") return null;
    if (engine === "auto" || engine === recognizer?.engine) return recognizer;
    throw new SidecarFault("model_load", `the speech engine ${engine} is not configured here`);
  }
}

/** The samples of a window of at most a minute. */
function decoded(wav: Uint8Array): Int16Array {
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
