/** The audio of a chunk: has the audio sidecar analyze it, and makes spoken feedback about it. */

import { ExtractionFailed, type Extractor, type WindowRequest } from "../../media/files/extractor.ts";
import { type LocalAudio, SidecarFailed } from "../../model/sidecars/local_audio.ts";
import type { ChunkMoment } from "../../model/reason/moments.ts";
import type { LocalAudioPlan } from "../../model/reason/request.ts";
import type { AudioSidecar, Speech } from "../../remote/sidecars/audio_sidecar.ts";

export interface ChunkAudioOptions {
  readonly extractor: Extractor;
  readonly sidecar: AudioSidecar;
  readonly plan: LocalAudioPlan;
  /** How long each call to the sidecar may take. */
  readonly timeoutMs: number;
}

/** The result for one window; either `local` or `error` is null. */
export interface AudioFindings {
  readonly local: LocalAudio | null;
  /** Why there is no result: the failure of the sidecar, or of cutting the audio out of the source. */
  readonly error: string | null;
  readonly extractionMs: number;
}

/** See docs/reason.md#local-audio. */
export class ChunkAudio {
  readonly #options: ChunkAudioOptions;

  constructor(options: ChunkAudioOptions) {
    this.#options = options;
  }

  /**
   * Rejects only with the reason of the signal: a failure of the sidecar or the extraction is part of the
   * result.
   */
  async analyze(window: WindowRequest): Promise<AudioFindings> {
    const { extractor, sidecar, plan, timeoutMs } = this.#options;
    let extractionMs = 0;
    try {
      const wav = await extractor.wav(window);
      extractionMs = wav.extractionMs;
      const { profile, engine, maxEvents, minConfidence } = plan;
      const { result } = await sidecar.analyze({
        principalKey: window.principalKey,
        wav: wav.bytes,
        profile,
        engine,
        maxEvents,
        minConfidence,
        sourceStartMs: Math.round(window.startMs),
        timeoutMs,
        extractionMs,
        signal: window.signal,
      });
      return { local: result, error: null, extractionMs };
    } catch (error) {
      return { local: null, error: reasonOf(error), extractionMs };
    }
  }

  /** The moments as speech; null where it was not requested, there are no moments, or the sidecar fails. */
  async synthesize(
    moments: readonly ChunkMoment[],
    principalKey: string,
    signal: AbortSignal,
  ): Promise<Speech | null> {
    const { sidecar, plan, timeoutMs } = this.#options;
    if (!plan.voiceFeedback || moments.length === 0) return null;
    try {
      return await sidecar.synthesize({ principalKey, text: spokenSentence(moments), timeoutMs, signal });
    } catch (error) {
      // The sidecar has counted it, and the result of the window is complete without speech.
      if (error instanceof SidecarFailed) return null;
      throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof SidecarFailed) return error.reason;
  if (error instanceof ExtractionFailed) return `media_extraction_failed:${error.reason}`;
  throw error;
}

/** Short enough to be played between two windows. */
const SPOKEN_MOMENTS_MAX = 3;
const SPOKEN_CHARACTERS_MAX = 400;

/** The moments of the highest confidence, in the order of their times. */
function spokenSentence(moments: readonly ChunkMoment[]): string {
  const spoken = moments.toSorted((left, right) => right.confidence - left.confidence)
    .slice(0, SPOKEN_MOMENTS_MAX);
  const sentences = moments.filter((moment) => spoken.includes(moment)).map(({ description }) =>
    description.replace(/[.\s]+$/, "")
  );
  return Array.from(`${sentences.join(". ")}.`).slice(0, SPOKEN_CHARACTERS_MAX).join("");
}
