/** The sound of a chunk: what the audio sidecar hears in it, and a spoken word about it. Contract 6.8 and 12. */

import { ExtractionFailed, type Extractor, type WindowRequest } from "../../media/windows/extractor.ts";
import { type LocalAudio, SidecarFailed } from "../../model/sidecars/local_audio.ts";
import type { ChunkMoment } from "../../model/reason/moments.ts";
import type { LocalAudioPlan } from "../../model/reason/request.ts";
import type { AudioSidecar, Speech } from "../../remote/sidecars/audio_sidecar.ts";

export interface ChunkAudioOptions {
  readonly extractor: Extractor;
  readonly sidecar: AudioSidecar;
  readonly plan: LocalAudioPlan;
  /** Of each call to the sidecar. Contract 12.2. */
  readonly timeoutMs: number;
}

/** What came of listening to one window; either `local` or `error` is null. */
export interface AudioFindings {
  readonly local: LocalAudio | null;
  /** Why there is nothing: a reason of the sidecar, or why the sound could not be cut out. */
  readonly error: string | null;
  readonly extractionMs: number;
}

export class ChunkAudio {
  readonly #options: ChunkAudioOptions;

  constructor(options: ChunkAudioOptions) {
    this.#options = options;
  }

  /** Never fails but with the reason of the signal: a window that cannot be heard is told as such. */
  async hear(window: WindowRequest): Promise<AudioFindings> {
    const { extractor, sidecar, plan, timeoutMs } = this.#options;
    let extractionMs = 0;
    try {
      const wav = await extractor.wav(window);
      extractionMs = wav.extractionMs;
      const { profile, engine, maxEvents, minConfidence } = plan;
      const { result } = await sidecar.analyze({
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

  /** The moments as speech; null where nobody wants it, there is nothing to say, or it cannot be made. */
  async speak(moments: readonly ChunkMoment[], signal: AbortSignal): Promise<Speech | null> {
    const { sidecar, plan, timeoutMs } = this.#options;
    if (!plan.voiceFeedback || moments.length === 0) return null;
    try {
      return await sidecar.synthesize({ text: spokenSentence(moments), timeoutMs, signal });
    } catch (error) {
      // The sidecar has counted it, and what was found in the window stands without it.
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

/** Few enough to be listened to between two windows. */
const SPOKEN_MOMENTS_MAX = 3;
const SPOKEN_CHARACTERS_MAX = 400;

/** The surest moments in the order of their times. */
function spokenSentence(moments: readonly ChunkMoment[]): string {
  const surest = moments.toSorted((left, right) => right.confidence - left.confidence)
    .slice(0, SPOKEN_MOMENTS_MAX);
  const told = moments.filter((moment) => surest.includes(moment)).map(({ description }) =>
    description.replace(/[.\s]+$/, "")
  );
  return Array.from(`${told.join(". ")}.`).slice(0, SPOKEN_CHARACTERS_MAX).join("");
}
