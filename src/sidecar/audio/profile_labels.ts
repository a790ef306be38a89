/** The label of a sound, which depends on the profile: what kind of recording it is. */

import type { AudioProfile } from "../../model/sidecars/local_audio.ts";
import type { Sound } from "./sound_events.ts";

/** Undefined when the profile does not report the sound. See docs/protocols.md#audio-analysis. */
export function labelOf(sound: Sound, profile: AudioProfile): string | undefined {
  if (profile === "gameplay") return GAMEPLAY[sound];
  if (profile === "screen_recording") return SCREEN_RECORDING[sound];
  return sound;
}

const GAMEPLAY: Readonly<Partial<Record<Sound, string>>> = {
  impact: "impact",
  alarm: "alarm",
  music: "music",
};

const SCREEN_RECORDING: Readonly<Partial<Record<Sound, string>>> = {
  beep: "notification",
  click: "click",
  alarm: "alarm",
  music: "music",
};
