/** Detection of voices and sounds in a window of audio, by calculation alone. */

import type { AudioObservation, AudioProfile } from "../../model/sidecars/local_audio.ts";
import { measure, SAMPLE_RATE_HZ } from "./features.ts";
import { labelOf } from "./profile_labels.ts";
import { soundEvents } from "./sound_events.ts";
import { voiceProbabilities, voiceSegments } from "./voice_activity.ts";

export const VOICE_MODEL = "voice-activity-1";
export const SOUND_MODEL = "sound-events-1";

export interface Detections {
  readonly voice: readonly AudioObservation[];
  readonly sounds: readonly AudioObservation[];
  readonly voiceMs: number;
  readonly soundsMs: number;
}

/** `samples` have 16 kHz. `monotonicMs` is the clock by which the two stages are timed. */
export function detect(samples: Int16Array, profile: AudioProfile, monotonicMs: () => number): Detections {
  const durationMs = samples.length / SAMPLE_RATE_HZ * 1000;
  const startedMs = monotonicMs();
  const features = measure(samples);
  const probabilities = voiceProbabilities(features);
  const measuredMs = monotonicMs();
  const events = soundEvents(features, probabilities);
  const soundsMs = monotonicMs() - measuredMs;
  const voice = voiceSegments(probabilities, durationMs).map(({ startMs, endMs, confidence }) => ({
    start_offset_ms: startMs,
    end_offset_ms: endMs,
    kind: "voice_activity" as const,
    label: "voice",
    confidence: roundedConfidence(confidence),
    model: VOICE_MODEL,
  }));
  const sounds = events.flatMap(({ sound, startMs, endMs, confidence }) => {
    const label = labelOf(sound, profile);
    const end_offset_ms = Math.min(Math.floor(durationMs), endMs);
    if (label === undefined || end_offset_ms <= startMs) return [];
    const kind = "audio_event" as const;
    return [{
      start_offset_ms: startMs,
      end_offset_ms,
      kind,
      label,
      confidence: roundedConfidence(confidence),
      model: SOUND_MODEL,
    }];
  });
  return { voice, sounds, voiceMs: measuredMs - startedMs, soundsMs };
}

/** The `maxEvents` most important observations among those with enough confidence, in order of time. */
export function selected(
  observations: readonly AudioObservation[],
  { maxEvents, minConfidence }: { readonly maxEvents: number; readonly minConfidence: number },
): AudioObservation[] {
  return observations
    .filter(({ confidence }) => confidence >= minConfidence)
    .toSorted((a, b) => RANK[b.kind] - RANK[a.kind] || b.confidence - a.confidence)
    .slice(0, maxEvents)
    .toSorted((a, b) => a.start_offset_ms - b.start_offset_ms || a.end_offset_ms - b.end_offset_ms);
}

/** When not all fit, speech comes before sounds, and sounds come before voice activity. */
const RANK = { speech: 2, audio_event: 1, voice_activity: 0 } as const;

function roundedConfidence(confidence: number): number {
  return Math.round(confidence * 1000) / 1000;
}
